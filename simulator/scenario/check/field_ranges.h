// SPDX-License-Identifier: GPL-2.0-only
// Loads fields whose values must be within a range.
#pragma once

#include <cstdint>

#include "simulator/text_proto/text_proto.h"
#include "simulator/units/units.h"

namespace railyard {

// A scenario may state delays up to this one.
inline constexpr int64_t kDelayPsMax = 1000 * kPsPerSecond;

// Returns a duration of at most kDelayPsMax; `default_ps` if it is absent, or after a finding.
int64_t LoadDelay(const ProtoCursor& cursor, const char* field, int64_t default_ps,
                  Diagnostics& diagnostics);

// Returns `value`, the value of the field; if it is not within [min, max], reports a finding and
// returns max.
double LoadShare(const ProtoCursor& cursor, const char* field, double value, double min, double max,
                 Diagnostics& diagnostics);

}  // namespace railyard
