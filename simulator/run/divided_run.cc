// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/divided_run.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <exception>
#include <set>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/processes/child_process.h"
#include "simulator/transport/nic/queue_transport.h"
#include "simulator/transport/stacks/network_stacks.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

// Crossings that all rings into one shard hold together.
constexpr uint32_t kRingCrossings = 1u << 14;
constexpr uint32_t kRingCrossingsMin = 1u << 8;
// Windows of less simulated time have too few events.
constexpr int64_t kLookaheadMinPs = 20 * kPsPerNs;

std::string WhyNotNetwork(const FabricNetwork& network) {
  const FabricSettings& settings = network.settings();
  if (settings.flow_control == FlowControl::kCredits) return "links between servers have credits";
  if (settings.load_balancing != LoadBalancing::kEcmp) return "switches balance the load";
  if (settings.hashes_trajectory) return "the trajectory is hashed";
  if (network.telemetry().is_enabled()) return "packets carry telemetry";
  return {};
}

std::string WhyNotShards(const FabricGraph& graph, const ShardMap& map) {
  for (const std::vector<LinkId>& links : map.outgoing) {
    const auto is_in_server = [&](LinkId link) {
      const Tier tier = graph.link(link).tier;
      return tier == Tier::kNvlink || tier == Tier::kHost;
    };
    if (std::ranges::any_of(links, is_in_server)) return "NVLink or PCIe joins servers";
  }
  if (map.lookahead_ps >= kLookaheadMinPs) return {};
  return fmt::format("a cable between two parts of the fabric takes only {}",
                     FormatDuration(map.lookahead_ps));
}

// Runs in a child. Nothing of the parent's may be flushed or destroyed twice.
[[noreturn]] void SimulateShard(const PreparedRun& run, const ShardMap& map,
                                WindowExchange& exchange, uint32_t shard, Handover& handover) {
  try {
    ShardProcess(run, map, exchange, shard).Run().Put(handover);
    _exit(0);
  } catch (const std::exception& error) {
    fmt::print(stderr, "railyard: part {} of the run: {}\n", shard, error.what());
    _exit(1);
  }
}

}  // namespace

std::string WhyNotDivided(const Scenario& scenario, const RunOptions& options) {
  if (!scenario.faults.empty()) return "it has faults";
  if (scenario.job.parts.size() > 1) return "it has several jobs";
  if (std::ranges::any_of(scenario.restarts, &RestartSettings::restarts))
    return "its job may restart";
  if (!FindNetworkStackTraits(scenario.stack.name)->runs_divided)
    return "its transport takes one thread";
  if (scenario.stack.uses_flows) return "flow mode takes one";
  if (scenario.fabric.circuits) return "its circuits change";
  if (scenario.watchdog.no_progress_real_ps != kNeverPs) return "it is watched in real time";
  if (!options.captures.empty()) return "packets are captured";
  if (!options.perfetto_file.empty()) return "a timeline is recorded";
  if (options.replay_cache != ReplayCacheMode::kOff && scenario.job.collectives.size() > 1) {
    return "the replay cache is on (--no-replay-cache)";
  }
  return {};
}

std::string DividedRun::Run(const PreparedRun& run, RunMonitor& monitor) {
  if (std::string why = WhyNotNetwork(run.network); !why.empty()) return why;
  if (std::string why = WhyNotShards(run.graph, map_); !why.empty()) return why;
  if (std::string why = run.replay.PrepareShards(); !why.empty()) return why;
  WindowExchange exchange(map_.count,
                          std::max(std::bit_floor(kRingCrossings / map_.count), kRingCrossingsMin));
  std::deque<Handover> handovers(map_.count);
  std::vector<ChildProcess> processes(map_.count);
  std::vector<ChildProcess*> pointers;
  for (uint32_t shard = 0; shard < map_.count; ++shard) {
    if (processes[shard].Fork(fmt::format("part {} of the run", shard))) {
      SimulateShard(run, map_, exchange, shard, handovers[shard]);
    }
    pointers.push_back(&processes[shard]);
  }
  monitor.WaitForParts(pointers, exchange);
  std::vector<ShardOutcome> outcomes(map_.count);
  for (uint32_t shard = 0; shard < map_.count; ++shard) {
    if (!outcomes[shard].Take(handovers[shard])) {
      throw EnvironmentError(fmt::format("part {} of the run has no outcome", shard));
    }
  }
  return Absorb(run, std::move(outcomes));
}

DivisionResult DividedRun::DivisionOf(const FabricGraph& graph,
                                      const std::vector<ShardOutcome>& outcomes) const {
  DivisionResult division{.lookahead_ps = map_.lookahead_ps,
                          .windows = outcomes.front().windows,
                          .serial_events = outcomes.front().serial_events};
  for (const ShardOutcome& outcome : outcomes) {
    division.shards.push_back({.events = outcome.events,
                               .crossings = outcome.crossings,
                               .cpu_seconds = outcome.cpu_seconds,
                               .waiting_seconds = outcome.waiting_seconds});
  }
  std::set<ServerIndex> servers;
  for (DeviceId id{0}; id < graph.device_count(); ++id) {
    ShardResult& shard = division.shards[map_.of_device[id]];
    if (!graph.IsInServer(id)) {
      ++shard.switches;
    } else if (servers.insert(graph.device(id).server).second) {
      ++shard.servers;
    }
  }
  return division;
}

std::string DividedRun::Absorb(const PreparedRun& run, std::vector<ShardOutcome> outcomes) {
  for (const ShardOutcome& outcome : outcomes) {
    cpu_seconds_ += outcome.cpu_seconds;
    peak_rss_bytes_ += outcome.peak_rss_bytes;
  }
  for (ShardOutcome& outcome : outcomes) {
    if (!outcome.obstacle.empty()) return std::move(outcome.obstacle);
  }
  division_ = DivisionOf(run.graph, outcomes);
  std::vector<StreamRunner::Span> calls;
  for (const ShardOutcome& outcome : outcomes) {
    run.engine.Absorb(outcome.end_ps, outcome.events);
    run.network.part().Absorb(outcome.links, outcome.network, outcome.in_flight_bytes);
    run.replay.executor().network_stack().queue_pairs()->Absorb(outcome.stack);
    run.replay.executor().connection_table().AbsorbTaken(outcome.taken);
    calls.insert(calls.end(), outcome.calls.begin(), outcome.calls.end());
  }
  run.replay.AbsorbCalls(std::move(calls));
  return {};
}

}  // namespace railyard
