// SPDX-License-Identifier: GPL-2.0-only
// Implements runs whose ranks several processes simulate.
#include <algorithm>
#include <tuple>
#include <vector>

#include "simulator/execution/lanes/connection_opening.h"
#include "simulator/replay/engine/replay_engine.h"

namespace railyard {

std::string ReplayEngine::PrepareShards() {
  streams_.Prepare();
  if (streams_.pending().size() != ledger_.calls_left()) {
    return "a rank calls more than one collective";
  }
  // Calls open their connections when their kernels run.
  struct Launch {
    int64_t time_ps;
    CallNumber number;
    Call call;
  };
  std::vector<Launch> launches;
  for (const StreamRunner::Pending& pending : streams_.pending()) {
    const Call call = streams_.CallOf(pending);
    launches.push_back({pending.begin_ps + LaunchLatencyPs(call), pending.number, call});
  }
  std::ranges::sort(launches, {},
                    [](const Launch& launch) { return std::tuple(launch.time_ps, launch.number); });
  ConnectionOpening opening(executor_->connection_table());
  for (const Launch& launch : launches) {
    std::shared_ptr<const CollectiveSchedule> schedule;
    opening.Open(ProgramOf(launch.call, schedule));
    if (!opening.obstacle().empty()) return opening.obstacle();
  }
  has_numbers_of_one_process_ = opening.is_in_order();
  return {};
}

void ReplayEngine::StartShard(const std::function<bool(GlobalRank rank)>& is_own) {
  ConnectionTable& table = executor_->connection_table();
  for (ConnectionId id; id < table.connections().size(); ++id) {
    const Connection& connection = table.connection(id);
    if (connection.is_on_network() && !is_own(RankOn(connection.from_gpu))) table.ForgetSizes(id);
  }
  streams_.StartOwn(is_own);
}

}  // namespace railyard
