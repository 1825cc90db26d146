// SPDX-License-Identifier: GPL-2.0-only
// Small jobs and what a replay needs besides a network: for tests that construct its parts alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ns3/simulator.h>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/execution/lanes/cta_clock.h"
#include "simulator/replay/streams/call_ledger.h"
#include "simulator/replay/streams/call_table.h"
#include "simulator/replay/streams/plan_cache.h"
#include "simulator/replay/streams/progress_watch.h"
#include "simulator/replay/streams/stream_runner.h"
#include "simulator/units/units.h"
#include "topologies/generators/rail_optimized.h"
#include "workloads/job/job.h"

namespace railyard::testing {

// Servers of eight GPUs, NVLinks of four planes and a NIC for each.
inline FabricGraph Servers(uint32_t servers) {
  RailOptimizedSpec spec;
  spec.servers = servers;
  return MakeRailOptimized(spec);
}

// An AllReduce of so many floats, as a ring with Simple.
inline TraceOperation AllReduce(uint64_t count, int64_t gap_ps = 0, uint32_t communicator = 0,
                                uint32_t stream = 0) {
  return {.kind = CollectiveKind::kAllReduce,
          .communicator = communicator,
          .count = count,
          .datatype = Datatype::kFloat32,
          .stream = stream,
          .compute_before_ps = gap_ps,
          .algorithm = Algorithm::kRing,
          .protocol = Protocol::kSimple};
}

using Programs = std::vector<std::vector<TraceOperation>>;  // by rank

// Rank r is GPU r.
inline Job JobOf(const std::vector<std::vector<uint32_t>>& communicators,
                 const Programs& programs) {
  Trace trace;
  trace.origin = "test";
  trace.rank_count = static_cast<uint32_t>(programs.size());
  for (size_t i = 0; i < communicators.size(); ++i) {
    trace.communicators.push_back(
        {.name = "comm" + std::to_string(i), .ranks = GlobalRanksOf(communicators[i])});
  }
  trace.operations.resize(programs.size());
  for (size_t rank = 0; rank < programs.size(); ++rank)
    trace.operations[GlobalRank{rank}] = programs[rank];
  Diagnostics diagnostics;
  std::optional<Job> job = BuildJob(trace, diagnostics);
  EXPECT_TRUE(job.has_value()) << diagnostics.ToString();
  return *std::move(job);
}

// Connections that a test has moved to other NICs.
struct TestMoves final : MovedConnections {
  uint64_t move_count() const override { return count; }
  bool HasMoved(CommunicatorIndex, uint32_t, RankIndex from, RankIndex,
                ConnectionUse) const override {
    return std::ranges::find(ranks, from) != ranks.end();
  }
  uint64_t count = 0;
  std::vector<uint32_t> ranks;  // whose connections have moved
};

// A machine on which every call takes `call_ps` once it is launched, which takes kLaunchPs.
class FakeHost final : public CallHost {
 public:
  static constexpr int64_t kLaunchPs = 5 * kPsPerUs;

  int64_t LaunchLatencyPs(const Call& /*call*/) override { return kLaunchPs; }
  Launched Launch(RunningIndex operation, const Call& call) override {
    launched.push_back(call);
    if (on_launch) on_launch(call);
    for (const int64_t channel_ps : channels_ps) {
      streams->OnChannelFinished(operation, FabricSimulatorImpl::Get().NowPs() + channel_ps,
                                 nullptr);
    }
    return {.channels = static_cast<uint32_t>(channels_ps.size())};
  }

  StreamRunner* streams = nullptr;
  std::vector<int64_t> channels_ps = {kPsPerMs};  // of a call
  std::function<void(const Call& call)> on_launch;
  std::vector<Call> launched;  // so far
};

// A replay that knows nothing.
struct NoReplay : CallReplay {
  bool ReplayFromRest() override { return false; }
  bool OnBegin(RunningIndex /*operation*/) override { return false; }
  bool OnLaunch(RunningIndex /*operation*/) override { return false; }
  void OnEnd(RunningIndex /*operation*/) override {}
  void OnNothingRuns() override {}
};

// A job on a FakeHost.
struct SmallReplay {
  SmallReplay(uint32_t servers, Job of, CallReplay& replay, uint64_t seed = 1)
      : graph(Servers(servers)),
        job(std::move(of)),
        streams(FabricSimulatorImpl::Get(), calls, ledger, clock, host, replay, seed) {
    host.streams = &streams;
  }
  ~SmallReplay() { ns3::Simulator::Destroy(); }
  SmallReplay(const SmallReplay&) = delete;
  SmallReplay& operator=(const SmallReplay&) = delete;

  void Run() {
    streams.Start();
    ns3::Simulator::Run();
  }
  int64_t BeginPs(uint32_t collective) const { return ledger.times()[collective].first_start_ps; }
  int64_t EndPs(uint32_t collective) const { return ledger.times()[collective].last_end_ps; }

  FabricGraph graph;
  Job job;
  TestMoves moves;
  CallTable calls{job};
  PlanCache plans{graph,          job,
                  NcclSettings{}, GpuCosts{.launch_latency_ps = FakeHost::kLaunchPs},
                  NicSettings{},  moves};
  ProgressWatch progress{
      job, plans, {.count_payload = [](uint32_t) {}, .on_progress = [](uint32_t, double) {}}};
  CallLedger ledger{calls, plans, progress, false};
  CtaClock clock{graph.gpus().size()};
  FakeHost host;
  StreamRunner streams;
};

}  // namespace railyard::testing
