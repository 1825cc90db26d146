// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <tuple>
#include <utility>

#include "simulator/replay/streams/stream_runner.h"
#include "simulator/units/time_end.h"

namespace railyard {

uint64_t StreamRunner::CountPending(const std::function<bool(GlobalRank rank)>& is_own) const {
  return static_cast<uint64_t>(std::ranges::count_if(pending_, is_own, &Pending::rank));
}

void StreamRunner::StartOwn(const std::function<bool(GlobalRank rank)>& is_own) {
  std::erase_if(pending_, [&](const Pending& pending) { return !is_own(pending.rank); });
  std::make_heap(pending_.begin(), pending_.end());
  ScheduleFirst();
}

std::vector<StreamRunner::Span> StreamRunner::RunningSpans() const {
  std::vector<Span> spans;
  for (const Running& running : running_) {
    if (running.is_free()) continue;
    spans.push_back({.number = calls_.NumberOf(running.call),
                     .rank = running.call.rank,
                     .begin_ps = running.start_ps,
                     .end_ps = kNeverPs});
  }
  return spans;
}

void StreamRunner::Absorb(std::vector<Span> spans) {
  std::ranges::sort(spans, {},
                    [](const Span& span) { return std::tuple(span.begin_ps, span.number); });
  for (const Span& span : spans)
    ledger_.NoteBegin(calls_.CallOf(span.rank, span.number), span.begin_ps);
  std::ranges::sort(spans, {},
                    [](const Span& span) { return std::tuple(span.end_ps, span.number); });
  for (const Span& span : spans) {
    const Call call = calls_.CallOf(span.rank, span.number);
    if (span.end_ps == kNeverPs) {
      NewRunning(call, span.begin_ps);
      ++running_count_;
      continue;
    }
    ledger_.NoteEnd(call, span.begin_ps, span.end_ps, {});
    LetFollow(call, span.end_ps);
  }
  std::ranges::sort(spans, {}, &Span::number);
  std::erase_if(pending_, [&](const Pending& pending) {
    return std::ranges::binary_search(spans, pending.number, {}, &Span::number);
  });
  std::make_heap(pending_.begin(), pending_.end());
}

}  // namespace railyard
