// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_placed_calls.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace railyard {

PlacedCalls::PlacedCalls(LoggedCalls& logged, const Placement& placement, ImportReport& report)
    : logged_(logged), placement_(placement), report_(report), by_rank_(placement.rank_count) {
  for (uint32_t i = 0; i < size(); ++i) {
    const auto& unplaced = placement_.unplaced[logged_.calls[i].handle];
    if (unplaced) Drop(i, unplaced->reason, unplaced->detail);
  }
  for (uint32_t i = 0; i < size(); ++i) {
    const LoggedCall& call = logged_.calls[i];
    if (!call.dropped) by_rank_[RankOfHandle(call.handle)].push_back(i);
  }
  FindMissing();
}

void PlacedCalls::DropThoseWithUnknownMembers() {
  for (uint32_t i = 0; i < size(); ++i) {
    const LoggedCall& call = logged_.calls[i];
    if (call.dropped) continue;
    const JoinedCommunicator& communicator = placement_.communicators[CommunicatorOf(call)];
    if (!communicator.ranks.empty()) continue;
    Drop(i, CallDropReason::kAmbiguousCommunicator,
         fmt::format(
             "the log does not determine which ranks of the communicator of {} ranks are missing",
             communicator.size));
  }
  for (std::vector<uint32_t>& calls : by_rank_) {
    std::erase_if(calls, [this](uint32_t i) { return logged_.calls[i].dropped; });
  }
  FindMissing();
}

void PlacedCalls::Drop(uint32_t index, CallDropReason reason, std::string detail) {
  DropCall(logged_.calls[index], reason, std::move(detail), report_);
}

bool PlacedCalls::AllAreDropped() const {
  return std::all_of(logged_.calls.begin(), logged_.calls.end(),
                     [](const LoggedCall& call) { return call.dropped; });
}

GlobalRank PlacedCalls::RankOfHandle(uint32_t handle) const {
  return GlobalRank{*placement_.endpoints[placement_.endpoint_of[handle]].rank};
}

uint32_t PlacedCalls::CommunicatorOf(const LoggedCall& call) const {
  return *placement_.communicator_of[call.handle];
}

uint32_t PlacedCalls::CommunicatorRankOf(const LoggedCall& call) const {
  return *placement_.communicator_rank_of[call.handle];
}

SourceLocation PlacedCalls::PlaceOf(const LoggedCall& call) const {
  return {.file = report_.files[call.file].path,
          .line = static_cast<int>(std::min<uint64_t>(call.line, INT32_MAX))};
}

std::string PlacedCalls::PlaceText(const LoggedCall& call) const {
  return fmt::format("{}:{}", report_.files[call.file].path, call.line);
}

SourceLocation PlacedCalls::FirstFile() const {
  if (report_.files.empty()) return {};
  return {.file = report_.files.front().path, .line = 1, .column = 1};
}

void PlacedCalls::FindMissing() {
  missing_.clear();
  for (uint32_t rank = 0; rank < by_rank_.size(); ++rank) {
    if (by_rank_[rank].empty()) missing_.push_back(rank);
  }
}

}  // namespace railyard
