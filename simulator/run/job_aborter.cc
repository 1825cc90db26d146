// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/job_aborter.h"

#include <algorithm>

#include <fmt/format.h>

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "simulator/units/units.h"

namespace railyard {
namespace {

// PyTorch's ProcessGroupNCCL looks for errors of its communicators about every 100 ms and ends the
// process then; the launcher ends the others.
constexpr int64_t kErrorPollPs = kPsPerSecond / 10;
static_assert(kErrorPollPs >= ReplayEngine::kAbortNoticePs);
// Its default time-out of a collective (kProcessGroupNCCLDefaultTimeout).
constexpr int64_t kCollectiveTimeoutPs = 600 * kPsPerSecond;

}  // namespace

int64_t AllRanksGonePs(RestartSettings::Detection detection, int64_t error_ps,
                       int64_t last_begin_ps) {
  const int64_t polled_ps = error_ps + kErrorPollPs;
  if (detection == RestartSettings::Detection::kLauncher) return polled_ps;
  return std::max(polled_ps, last_begin_ps + kCollectiveTimeoutPs);
}

void JobAborter::OnRankError(GlobalRank rank, const std::string& why) {
  const bool is_first = ranks_.empty();
  ranks_.insert(rank);
  if (!is_first) return;
  why_ = why;
  result_.first_error_ps = engine_.NowPs();
  TryToAbort();
}

// Without a launcher a rank may begin another collective meanwhile, and hang in that.
void JobAborter::TryToAbort() {
  const int64_t now_ps = engine_.NowPs();
  const int64_t gone_ps =
      AllRanksGonePs(detection_, result_.first_error_ps, replay_.streams().LastBeginPs(part_));
  if (gone_ps > now_ps) {
    ns3::Simulator::Schedule(ns3::PicoSeconds(static_cast<uint64_t>(gone_ps - now_ps)),
                             &JobAborter::TryToAbort, this);
    return;
  }
  const std::vector<GlobalRank> in_collectives = replay_.streams().RanksInCollectives(part_);
  const auto hung = std::count_if(in_collectives.begin(), in_collectives.end(),
                                  [this](GlobalRank rank) { return !ranks_.contains(rank); });
  result_.ranks_with_error = static_cast<uint32_t>(ranks_.size());
  result_.ranks_hung = static_cast<uint32_t>(hung);
  result_.detection_ps = now_ps - result_.first_error_ps;
  replay_.Abort(part_, why_ + "\n" + Explain(result_.ranks_hung));
}

std::string JobAborter::Explain(size_t hung) const {
  std::string ranks;
  size_t named = 0;
  for (const GlobalRank rank : ranks_) {
    if (named++ == 4) {
      ranks += ", ...";
      break;
    }
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
  }
  return fmt::format(
      "{} of {} ranks ({}) saw an error, the first after {}; {} saw none and hung until {} after "
      "{}",
      ranks_.size(), replay_.calls().RankCountOf(part_), ranks,
      FormatDuration(result_.first_error_ps), hung,
      detection_ == RestartSettings::Detection::kLauncher
          ? "the launcher ended them"
          : "the last of their collectives had timed out",
      FormatDuration(engine_.NowPs()));
}

}  // namespace railyard
