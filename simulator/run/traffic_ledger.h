// SPDX-License-Identifier: GPL-2.0-only
// Characterizes the traffic of a job: flows on each link, the times in which each link was in use,
// and sizes of messages. It is computed from the bytes of connections and the times of collectives,
// so replayed collectives count like simulated ones.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/metrics/entropy.h"
#include "analysis/result/run_result.h"
#include "simulator/replay/engine/replay_engine.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/job/job.h"

namespace railyard {

class TrafficLedger {
 public:
  // Takes the bytes that the executor's connections have carried, by their current paths.
  TrafficLedger(const Job& job, const ConnectionTable& table, size_t link_count);
  // Writes to the links and `traffic` of a result whose links exist already.
  void Record(const Job& job, const ReplayEngine& replay, RunResult& result) const;

 private:
  // Identifies the collectives for which a link is in use: all of a communicator's that are planned
  // as a whole, or the point-to-point ones of one rank.
  struct User {
    static constexpr GlobalRank kAllRanks{UINT32_MAX};
    CommunicatorIndex communicator{};
    GlobalRank global_rank = kAllRanks;
    auto operator<=>(const User&) const = default;
  };
  static constexpr uint32_t kNone = UINT32_MAX;
  struct OnLink {
    EntropySum flows;
    uint32_t last_use = kNone;  // into uses_
  };
  // Holds a user of a link, and the previous use of the same link. Users are added in order.
  struct Use {
    uint32_t user = 0;  // into users_
    uint32_t before = kNone;
  };

  void AddUse(OnLink& link);

  std::vector<User> users_;
  std::vector<OnLink> links_;
  std::vector<Use> uses_;
};

}  // namespace railyard
