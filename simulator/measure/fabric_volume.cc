// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/fabric_volume.h"

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/diagnostics/check.h"
#include "workloads/collectives/replayable.h"
#include "workloads/collectives/schedule_pairs.h"
#include "workloads/nccl/nccl_planner.h"
#include "workloads/plans/rank_timeline.h"

namespace railyard {
namespace {

class Counting {
 public:
  explicit Counting(const Scenario& scenario) : scenario_(scenario), job_(scenario.job) {
    bytes_.resize(job_.communicators.size());
  }

  // By communicator, the bytes between its ranks.
  std::vector<RankPairBytes> Take() {
    CountCollectives();
    CountSends();
    return std::move(bytes_);
  }

 private:
  // Collectives of one communicator with equal keys have one schedule.
  using Key =
      std::tuple<CommunicatorIndex, CollectiveKind, uint64_t, Datatype, RankIndex, ReplayChoice>;

  void CountCollectives() {
    std::map<Key, std::pair<const JobCollective*, uint64_t>> counts;
    for (const JobCollective& collective : job_.collectives) {
      if (collective.is_p2p()) continue;
      auto& [example, count] =
          counts[{collective.communicator, collective.kind, collective.count, collective.datatype,
                  collective.root, StatedChoice(collective)}];
      example = &collective;
      ++count;
    }
    for (const auto& [key, entry] : counts) {
      const auto& [collective, count] = entry;
      const NcclPlanner& planner = *scenario_.planners[collective->communicator];
      const auto choice = planner.Choose(*collective, StatedChoice(*collective));
      SIM_CHECK(choice.has_value(), "a collective that cannot be replayed");
      for (const auto& [pair, bytes] : PairBytesOf(*planner.Plan(*collective, *choice))) {
        bytes_[collective->communicator][pair] += count * bytes;
      }
    }
  }

  void CountSends() {
    for (GlobalRank global_rank{0}; global_rank < job_.rank_count; ++global_rank) {
      for (const JobOperation& call : job_.operations[global_rank]) {
        if (call.p2p_count == 0) continue;
        const JobCollective& collective = job_.collectives[job_.CollectiveOf(global_rank, call)];
        const RankIndex own = job_.CommunicatorRank(collective.communicator, global_rank);
        for (uint32_t i = 0; i < call.p2p_count; ++i) {
          const P2pCall& p2p = job_.p2p_calls[call.p2p_first + i];
          if (!p2p.is_send || p2p.peer == own || p2p.bytes == 0) continue;
          bytes_[collective.communicator][{own, p2p.peer}] += p2p.bytes;
        }
      }
    }
  }

  const Scenario& scenario_;
  const Job& job_;
  std::vector<RankPairBytes> bytes_;
};

}  // namespace

PlanVolume VolumeOnFabric(const Scenario& scenario, const Trace& trace) {
  PlanVolume volume = VolumeOf(trace);
  volume.pairs.clear();
  for (auto& [name, group] : volume.groups) group.bytes = group.largest_bytes = 0;
  std::map<std::pair<std::string, GlobalRank>, uint64_t> sent;  // by group's name and sender
  const std::vector<RankPairBytes> bytes = Counting(scenario).Take();
  for (CommunicatorIndex i{}; i < bytes.size(); ++i) {
    const TraceCommunicator& communicator = scenario.job.communicators[i];
    const std::string name = GroupNameOf(communicator);
    for (const auto& [pair, of_pair] : bytes[i]) {
      const GlobalRank from = communicator.ranks[pair.first];
      volume.pairs[{from, communicator.ranks[pair.second]}] += of_pair;
      volume.groups[name].bytes += of_pair;
      uint64_t& of_rank = sent[{name, from}];
      of_rank += of_pair;
      volume.groups[name].largest_bytes = std::max(volume.groups[name].largest_bytes, of_rank);
    }
  }
  return volume;
}

}  // namespace railyard
