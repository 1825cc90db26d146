// SPDX-License-Identifier: GPL-2.0-only
// Measures the kind of traffic that a job had: flows on each link, when each link was in use, sizes
// of messages. It is computed from the bytes of connections and the times of collectives, so
// replayed collectives count as simulated ones do.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/metrics/entropy.h"
#include "analysis/result/run_result.h"
#include "simulator/replay/streams/replay_engine.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/job/job.h"

namespace railyard {

class TrafficLedger {
 public:
  // Takes the bytes that the executor's connections have carried, by their current paths.
  TrafficLedger(const Job& job, const ConnectionTable& table, size_t link_count);
  // Writes to the links and `traffic` of a result that has its links.
  void Record(const Job& job, const ReplayEngine& replay, RunResult& result) const;

 private:
  // The collectives for which a link is in use: all of a communicator's that are planned as a
  // whole, or the point-to-point ones of one rank.
  struct User {
    static constexpr uint32_t kAllRanks = UINT32_MAX;
    uint32_t communicator = 0;
    uint32_t global_rank = kAllRanks;
    auto operator<=>(const User&) const = default;
  };
  static constexpr uint32_t kNone = UINT32_MAX;
  struct OnLink {
    EntropySum flows;
    uint32_t last_use = kNone;  // into uses_
  };
  // A user of a link, and the use of the same link before. Users come in order.
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
