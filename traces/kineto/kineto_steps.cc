// SPDX-License-Identifier: GPL-2.0-only
#include "traces/kineto/kineto_steps.h"

#include <algorithm>
#include <unordered_set>

namespace railyard {

KinetoSteps::KinetoSteps(std::vector<KinetoStep> events) {
  std::stable_sort(events.begin(), events.end(), [](const KinetoStep& a, const KinetoStep& b) {
    return IsBefore(a.start, b.start);
  });
  std::unordered_set<uint64_t> numbers;
  for (const KinetoStep& event : events) {
    if (numbers.insert(event.number).second) begins_.push_back(event.start);
  }
}

uint32_t KinetoSteps::BegunBy(const EventTime& time) const {
  const auto next = std::upper_bound(begins_.begin(), begins_.end(), time, IsBefore);
  return static_cast<uint32_t>(next - begins_.begin());
}

}  // namespace railyard
