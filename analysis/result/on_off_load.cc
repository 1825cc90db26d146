// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/result/on_off_load.h"

#include <algorithm>

namespace railyard {

OnOffLoad MeasureOnOff(std::vector<TimeInterval> intervals) {
  std::erase_if(intervals, [](const TimeInterval& i) { return i.end_ps <= i.begin_ps; });
  std::sort(intervals.begin(), intervals.end(),
            [](const TimeInterval& a, const TimeInterval& b) { return a.begin_ps < b.begin_ps; });
  OnOffLoad load;
  int64_t first_begin_ps = 0;
  TimeInterval burst;
  for (const TimeInterval& interval : intervals) {
    if (load.bursts > 0 && interval.begin_ps <= burst.end_ps) {
      burst.end_ps = std::max(burst.end_ps, interval.end_ps);
      continue;
    }
    if (load.bursts++ == 0) first_begin_ps = interval.begin_ps;
    load.on_ps += burst.end_ps - burst.begin_ps;
    burst = interval;
  }
  if (load.bursts > 1) {
    const int64_t periods_ps = burst.begin_ps - first_begin_ps;
    const auto periods = static_cast<int64_t>(load.bursts - 1);
    load.period_ps = (periods_ps + periods / 2) / periods;
    load.duty = static_cast<double>(load.on_ps) / static_cast<double>(periods_ps);
  }
  load.on_ps += burst.end_ps - burst.begin_ps;
  return load;
}

}  // namespace railyard
