// SPDX-License-Identifier: GPL-2.0-only
// Where two snapshots differ, in the names of owners, records and fields.
#pragma once

#include <functional>
#include <string>

#include "simulator/state/state_archive.h"

namespace railyard {

// The walk by which both snapshots were taken.
using StateWalk = std::function<void(StateArchive& archive)>;

// "queue pairs.sending end[3].retries is 2, not 0; ..." of the first few places, and how many more
// there are; empty: there is no difference. A place that the walk does not name, or no longer has,
// is called by its number.
std::string DescribeDifference(const StateWalk& walk, const RestState& found,
                               const RestState& expected);
// The same of what was counted: "fabric.link[7].packets grew by 12, not by 13; ...".
std::string DescribeDifference(const StateWalk& walk, const RestCountChanges& found,
                               const RestCountChanges& expected);

}  // namespace railyard
