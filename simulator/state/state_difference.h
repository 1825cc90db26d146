// SPDX-License-Identifier: GPL-2.0-only
// Describes where two snapshots differ by the names of owners, records and fields.
#pragma once

#include <functional>
#include <string>

#include "simulator/state/state_archive.h"

namespace railyard {

// Visits the state in the same way as for both snapshots.
using StateWalk = std::function<void(StateArchive& archive)>;

// Returns "queue pairs.sending end[3].retries is 2, not 0; ..." for the first few places, and how
// many more there are; empty if there is no difference. A place that the visit does not name, or
// that no longer exists, is given by its number.
std::string DescribeDifference(const StateWalk& walk, const StateSnapshot& found,
                               const StateSnapshot& expected);
// Does the same for counters: "fabric.link[7].packets grew by 12, not by 13; ...".
std::string DescribeDifference(const StateWalk& walk, const CountChanges& found,
                               const CountChanges& expected);

}  // namespace railyard
