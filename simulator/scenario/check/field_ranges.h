// SPDX-License-Identifier: GPL-2.0-only
// Fields whose values have to be within a range.
#pragma once

#include <cstdint>

#include "simulator/text_proto/text_proto.h"
#include "simulator/units/units.h"

namespace railyard {

// What a run can be asked to wait.
inline constexpr int64_t kDelayPsMax = 1000 * kPsPerSecond;

// A duration of at most kDelayPsMax; `default_ps` where there is none, or after a finding.
int64_t LoadDelay(const ProtoCursor& cursor, const char* field, int64_t default_ps,
                  Diagnostics& diagnostics);

// `value`, which the field has; a finding where it is not within [min, max], and max then.
double LoadShare(const ProtoCursor& cursor, const char* field, double value, double min, double max,
                 Diagnostics& diagnostics);

}  // namespace railyard
