// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/check/field_ranges.h"

#include <fmt/format.h>

namespace railyard {

int64_t LoadDelay(const ProtoCursor& cursor, const char* field, int64_t default_ps,
                  Diagnostics& diagnostics) {
  const int64_t delay_ps = cursor.DurationPs(diagnostics, field, default_ps);
  if (delay_ps <= kDelayPsMax) return delay_ps;
  cursor.Error(diagnostics, field,
               fmt::format("{} is out of range (expected at most {})",
                           Quote(cursor.Text(field, "")), FormatDuration(kDelayPsMax)));
  return default_ps;
}

double LoadShare(const ProtoCursor& cursor, const char* field, double value, double min, double max,
                 Diagnostics& diagnostics) {
  if (value >= min && value <= max) return value;
  cursor.Error(diagnostics, field,
               fmt::format("{} is out of range (expected {} to {})", value, min, max));
  return max;
}

}  // namespace railyard
