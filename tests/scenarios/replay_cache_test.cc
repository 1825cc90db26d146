// SPDX-License-Identifier: GPL-2.0-only
// Jobs of which it is known what the replay cache simulates once and what it may not repeat.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/run/program.h"
#include "tests/scenarios/replay_cache_fixture.h"
#include "traces/trace/trace_file.h"

namespace railyard::testing {
namespace {

// Sixteen ranks that add up 14 KiB every 50 us: all states recur within a turn of the NVLink planes
// (18 packets on each pair of GPUs), and nothing new is simulated after that.
TEST_F(ReplayCacheTest, ARegularJobIsSimulatedOnce) {
  Trace trace;
  trace.origin = "test";
  trace.rank_count = 16;
  trace.communicators.push_back({.name = "world", .ranks = {}});
  for (GlobalRank rank{0}; rank < 16; ++rank) trace.communicators[0].ranks.emplace_back(rank);
  trace.operations.resize(16);
  TraceOperation operation;
  operation.count = 7168;
  operation.datatype = Datatype::kBfloat16;
  operation.compute_before_ps = 50 * kPsPerUs;
  trace.operations[GlobalRank{0}].assign(20'000, operation);
  for (GlobalRank rank{1}; rank < 16; ++rank) trace.operations.SetProgram(rank, 0);
  WriteTrace(scratch_.Path("job.trace"), trace);
  const EndedRun run = RunFile(
      scratch_.Write("job.textproto", RailOptimized(2) + "workload { trace: \"job.trace\" }\n"));
  ASSERT_TRUE(run.has_result()) << run.exit.errors;
  EXPECT_EQ(run.Integer("collectives.count"), 20'000);
  EXPECT_EQ(run.Integer("collectives.replayed") + run.Integer("collectives.simulated"), 20'000);
  EXPECT_EQ(run.Integer("collectives.replayed_by.network"), run.Integer("collectives.replayed"));
  // Opening connections, then what ranks begin at once and as the last one ended, and the last.
  EXPECT_LE(run.Integer("collectives.simulated"), 1 + 2 + 1);
}

// Two stages, tensor parallel in their servers.
class IterationsTest : public ReplayCacheTest {
 protected:
  EndedRun Run(const std::string& model, const std::string& training, int iterations,
               const std::vector<std::string>& arguments = {}) {
    scratch_.Write(
        "plan.textproto",
        fmt::format("model {{ layers: 4 vocabulary: 1024 {} }}\n"
                    "parallelism {{ tensor: 8 pipeline: 2 }}\n"
                    "compute {{ accelerator: \"h100-sxm\" utilisation: 0.4 memory_utilisation: 0.8 "
                    "part_overhead: \"20us\" }}\n"
                    "training {{ micro_batch: 1 {} iterations: {} }}\n",
                    model, training, iterations));
    return RunFile(scratch_.Write("job.textproto",
                                  RailOptimized(2) + "workload { plan: \"plan.textproto\" }\n"),
                   arguments);
  }

  static constexpr const char* kSmall = "hidden: 512 heads: 8 feed_forward: 2048";
  static constexpr const char* kShort = "sequence: 512 micro_batches: 4";
};

// All ranks end an iteration with one AllReduce: the network is at rest then, and nothing new is
// simulated after the first iterations, the last included.
TEST_F(IterationsTest, ThoseThatAreAlikeAreSimulatedOnce) {
  const std::string training = std::string(kShort) + " gradient_clipping: true";
  const EndedRun run = Run(kSmall, training, 6);
  ASSERT_TRUE(run.has_result()) << run.exit.errors;
  EXPECT_EQ(Results(run), Results(Run(kSmall, training, 6, {"--no-replay-cache"})));
  EXPECT_TRUE(Run(kSmall, training, 6, {"--verify-replay-cache"}).has_result());
  EXPECT_EQ(Run(kSmall, training, 60).Integer("collectives.simulated"),
            run.Integer("collectives.simulated"));
}

// They begin as ranks leave a barrier, whenever these came. The second is as the first, in which
// connections were opened, and NVSwitches began to count; but for its barrier, to which ranks come
// one after the other.
TEST_F(IterationsTest, AfterABarrierTheSecondIsAsTheFirst) {
  const char* const model = "hidden: 4096 heads: 32 feed_forward: 4096";
  const char* const training =
      "sequence: 2048 micro_batches: 2 gradient_clipping: true log_interval: 1";
  const int64_t of_one = Run(model, training, 1).Integer("collectives.simulated");
  for (const int iterations : {2, 3, 12}) {
    const EndedRun run = Run(model, training, iterations);
    ASSERT_TRUE(run.has_result()) << run.exit.errors;
    EXPECT_EQ(run.Integer("collectives.simulated"), of_one + 1);
  }
  EXPECT_EQ(Results(Run(model, training, 3)),
            Results(Run(model, training, 3, {"--no-replay-cache"})));
  EXPECT_TRUE(Run(model, training, 3, {"--verify-replay-cache"}).has_result());
}

// Two servers that add up 4 MiB every 50 and every 70 us, the second from an instant on, beside
// eight rails that add up 2 MiB all the time.
class ServersInStepTest : public ReplayCacheTest {
 protected:
  static constexpr int64_t kCalls = 300;  // of a server, and of a rail
  static constexpr int64_t kGroups = 10;
  static constexpr int64_t kWaysMax = 15;  // in which what is alike goes on, all of them
  uint32_t servers_ = 2;
  int64_t calls_ = kCalls;
  int64_t second_calls_ = kCalls;
  int64_t second_from_ps_ = 0;

  EndedRun Run(const std::string& fault, const std::vector<std::string>& arguments = {}) {
    Trace trace;
    trace.origin = "test";
    trace.rank_count = 16;
    trace.operations.resize(16);
    for (uint32_t server = 0; server < 2; ++server) {
      trace.communicators.push_back({.name = fmt::format("server{}", server), .ranks = {}});
      for (uint32_t i = 0; i < 8; ++i)
        trace.communicators.back().ranks.emplace_back(8 * server + i);
    }
    for (uint32_t rail = 0; rail < 8; ++rail) {
      trace.communicators.push_back(
          {.name = fmt::format("rail{}", rail), .ranks = GlobalRanksOf({rail, rail + 8})});
    }
    for (GlobalRank rank{0}; rank < 16; ++rank) {
      TraceOperation in_server;
      in_server.communicator = rank / 8;
      in_server.count = uint64_t{1} << 21;
      in_server.datatype = Datatype::kBfloat16;
      in_server.compute_before_ps = (rank < 8 ? 50 : 70) * kPsPerUs;
      TraceOperation on_rail;
      on_rail.communicator = 2 + rank % 8;
      on_rail.count = uint64_t{1} << 20;
      on_rail.datatype = Datatype::kBfloat16;
      on_rail.stream = 1;
      const int64_t calls = rank < 8 ? calls_ : second_calls_;
      trace.operations[rank].assign(static_cast<size_t>(calls), in_server);
      if (rank >= 8 && calls > 0)
        trace.operations[rank].front().compute_before_ps += second_from_ps_;
      trace.operations[rank].insert(trace.operations[rank].end(), static_cast<size_t>(calls_),
                                    on_rail);
    }
    WriteTrace(scratch_.Path("job.trace"), trace);
    return RunFile(
        scratch_.Write("job.textproto",
                       RailOptimized(servers_) + "workload { trace: \"job.trace\" }\n" + fault),
        arguments);
  }
};

TEST_F(ServersInStepTest, AreSimulatedOnce) {
  const EndedRun run = Run("");
  ASSERT_TRUE(run.has_result()) << run.exit.errors;
  // Each opens its connections. Then what ranks begin as the last one ended: few ways, in turn, and
  // the same on all rails, at the same time. A call that may go on as the watchdog looks is not
  // replayed.
  EXPECT_LE(run.Integer("collectives.simulated"), kGroups + kWaysMax + kGroups);
  EXPECT_GE(run.Integer("collectives.simulated"), kGroups);
  EXPECT_EQ(Results(run), Results(Run("", {"--no-replay-cache"})));
  EXPECT_TRUE(Run("", {"--verify-replay-cache"}).has_result());
}

TEST_F(ServersInStepTest, ShareWhatTheOtherHasDone) {
  second_calls_ = 0;
  const int64_t replayed_alone = Run("").Integer("collectives.replayed");
  second_calls_ = kCalls;
  second_from_ps_ = 5'000 * kPsPerUs;
  const EndedRun run = Run("");
  ASSERT_TRUE(run.has_result()) << run.exit.errors;
  // The second one only opens its connections.
  EXPECT_EQ(run.Integer("collectives.replayed"), replayed_alone + kCalls - 1);
  EXPECT_GE(run.Integer("collectives.replayed_by.like_part"), kCalls - 1);
  EXPECT_EQ(run.Integer("collectives.replayed_by.network") +
                run.Integer("collectives.replayed_by.part") +
                run.Integer("collectives.replayed_by.like_part"),
            run.Integer("collectives.replayed"));
  EXPECT_EQ(Results(run), Results(Run("", {"--no-replay-cache"})));
  const EndedRun verified = Run("", {"--verify-replay-cache"});
  ASSERT_TRUE(verified.has_result());
  EXPECT_EQ(verified.Integer("collectives.replayed"), 0);
  EXPECT_GE(verified.Integer("collectives.verified_episodes"), replayed_alone + kCalls - 1);
}

// On the rail of the flap only disturbed collectives are simulated, on the others no more than
// before.
TEST_F(ServersInStepTest, AFlapOfARailHasHardlyAnythingSimulatedAgain) {
  const std::string flap =
      "faults { link: \"server0/nic3--leaf3\" kind: LINK_DOWN at: \"10ms\" until: \"12ms\" }\n";
  const EndedRun run = Run(flap);
  ASSERT_TRUE(run.has_result()) << run.exit.errors;
  EXPECT_EQ(run.Integer("transport.retransmitted_packets") > 0, true);
  EXPECT_LE(run.Integer("collectives.simulated"), kGroups + kWaysMax + kGroups + 2);
  EXPECT_EQ(Results(run), Results(Run(flap, {"--no-replay-cache"})));
}

TEST_F(ServersInStepTest, ANvlinkThatIsSlowerForAWhileConcernsItsServer) {
  const std::string slow =
      "faults { link: \"server0/gpu1--server0/nvswitch2\" kind: DEGRADE rate: \"100Gbps\" "
      "at: \"10ms\" until: \"12ms\" }\n";
  const EndedRun run = Run(slow);
  ASSERT_TRUE(run.has_result()) << run.exit.errors;
  // The ways in which it goes on while the link is slow, and again afterwards.
  EXPECT_LE(run.Integer("collectives.simulated"), kGroups + 3 * kWaysMax + kGroups);
  EXPECT_EQ(Results(run), Results(Run(slow, {"--no-replay-cache"})));
}

// Each of its lives simulates the opening of connections and the ways in which all goes on.
TEST_F(ServersInStepTest, AJobThatRestartsRepeatsItselfAgain) {
  calls_ = second_calls_ = 80;
  const std::string cut =
      "nccl { IB_TIMEOUT: 5 IB_RETRY_CNT: 1 }\n"
      "restart { load: \"1ms\" requeue: \"2ms\" }\n"
      "faults { link: \"server0/nic3--leaf3\" kind: LINK_DOWN at: \"2ms\" until: \"9ms\" }\n";
  const EndedRun run = Run(cut);
  ASSERT_TRUE(run.has_result()) << run.exit.errors;
  EXPECT_EQ(run.Text("status"), "COMPLETED");
  EXPECT_EQ(run.At("jobs")[0]["restarts"].GetInt64(), 1);
  EXPECT_LE(run.Integer("collectives.simulated"), kGroups + kWaysMax + kGroups);
  EXPECT_EQ(Results(run), Results(Run(cut, {"--no-replay-cache"})));
  EXPECT_TRUE(Run(cut, {"--verify-replay-cache"}).has_result());
}

TEST_F(ServersInStepTest, AJobThatMovesToASpareServerRepeatsItselfThere) {
  calls_ = second_calls_ = 80;
  servers_ = 3;
  const std::string cut =
      "nccl { IB_TIMEOUT: 5 IB_RETRY_CNT: 1 }\n"
      "restart { load: \"1ms\" requeue: \"2ms\" spare_servers: \"server2\" }\n"
      "faults { link: \"server0/nic3--leaf3\" kind: LINK_DOWN at: \"2ms\" }\n";
  const EndedRun run = Run(cut);
  ASSERT_TRUE(run.has_result()) << run.exit.errors;
  EXPECT_EQ(run.Text("status"), "COMPLETED");
  EXPECT_EQ(run.At("jobs")[0]["servers_replaced"].GetInt64(), 1);
  EXPECT_LE(run.Integer("collectives.simulated"), kGroups + kWaysMax + kGroups);
  EXPECT_EQ(Results(run), Results(Run(cut, {"--no-replay-cache"})));
  EXPECT_TRUE(Run(cut, {"--verify-replay-cache"}).has_result());
}

// Traffic around the NIC of rail 3 crosses rail 4 and both servers' NVLinks with PXN; six rails
// have nothing to do with it. With REPLAN it crosses all of them.
TEST_F(ServersInStepTest, RailsBesideANicThatFailedOverRepeatThemselves) {
  calls_ = second_calls_ = 80;
  std::map<std::string, int64_t> replayed;
  for (const std::string policy : {"PXN", "REPLAN"}) {
    SCOPED_TRACE(policy);
    const std::string fault = fmt::format(
        "nccl {{ IB_TIMEOUT: 5 IB_RETRY_CNT: 1 }}\n"
        "nic_failover {{ policy: {} }}\n"
        "faults {{ link: \"server0/nic3--leaf3\" kind: LINK_DOWN at: \"2ms\" }}\n",
        policy);
    const EndedRun run = Run(fault);
    ASSERT_TRUE(run.has_result()) << run.exit.errors;
    EXPECT_EQ(run.Text("status"), "COMPLETED");
    EXPECT_GT(run.Integer("transport.nic_failovers"), 0);
    replayed[policy] = run.Integer("collectives.replayed");
    EXPECT_EQ(Results(run), Results(Run(fault, {"--no-replay-cache"})));
    EXPECT_TRUE(Run(fault, {"--verify-replay-cache"}).has_result());
  }
  EXPECT_GT(replayed["PXN"], 6 * calls_ * 8 / 10);
  EXPECT_GT(replayed["REPLAN"], 0);
}

// Faults that begin and end within a collective leave the links as they were, but not its times.
TEST_F(ServersInStepTest, WhatAFaultFellIntoIsNotRepeated) {
  std::string faults;
  for (int i = 0; i < 12; ++i) {
    faults += fmt::format(
        "faults {{ link: \"server0/gpu1--server0/nvswitch2\" kind: DEGRADE rate: \"9Gbps\" at: "
        "\"{}us\" until: \"{}us\" }}\n",
        100 + 37 * i, 104 + 37 * i);
  }
  EXPECT_EQ(Results(Run(faults)), Results(Run(faults, {"--no-replay-cache"})));
}

// The root of a broadcast is done before the other rank begins: nothing runs then, and yet the
// network is not at rest, regardless of what is replayed.
TEST_F(ReplayCacheTest, WhatOneRankHasEndedBeforeTheOtherBeginsIsNotOver) {
  Trace trace;
  trace.origin = "test";
  trace.rank_count = 16;
  trace.operations.resize(trace.rank_count);
  trace.communicators = {{.name = "rail", .ranks = GlobalRanksOf({0, 8})},
                         {.name = "server", .ranks = GlobalRanksOf({1, 2})}};
  for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{8}, GlobalRank{1}, GlobalRank{2}}) {
    TraceOperation operation;
    operation.kind = CollectiveKind::kBroadcast;
    operation.communicator = rank == 1 || rank == 2 ? 1 : 0;
    operation.count = 9000;
    operation.compute_before_ps = (rank == 8 || rank == 2 ? 60 : 30) * kPsPerUs;
    trace.operations[rank].assign(8, operation);
    for (uint32_t i = 1; i < 8; ++i) {
      trace.operations[rank][i].compute_before_ps =
          (operation.communicator == 0 ? 54 : 71) * kPsPerUs;
    }
  }
  WriteTrace(scratch_.Path("job.trace"), trace);
  const std::string path =
      scratch_.Write("job.textproto", RailOptimized(2) + "workload { trace: \"job.trace\" }\n");
  const EndedRun run = RunFile(path);
  ASSERT_TRUE(run.has_result()) << run.exit.errors;
  EXPECT_GT(run.Integer("collectives.replayed"), 0);
  EXPECT_EQ(Results(run), Results(RunFile(path, {"--no-replay-cache"})));
}

// Two servers add up on a rail, and five others send to one there: their packets fill the leaf's
// buffer, which all of them share, to where its thresholds may depend on all of them.
TEST_F(ReplayCacheTest, WhatFillsASharedBufferHasAllOfItSimulated) {
  constexpr uint32_t kServers = 8;
  Trace trace;
  trace.origin = "test";
  trace.rank_count = 8 * kServers;
  trace.operations.resize(trace.rank_count);
  trace.communicators = {{.name = "pair", .ranks = GlobalRanksOf({0, 8})},
                         {.name = "others", .ranks = {}}};
  for (uint32_t server = 2; server < kServers; ++server) {
    trace.communicators[1].ranks.emplace_back(8 * server);
  }
  TraceOperation sum;
  sum.count = uint64_t{1} << 20;
  for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{8}})
    trace.operations[rank].assign(30, sum);
  TraceOperation send;
  send.communicator = 1;
  send.count = uint64_t{1} << 21;
  for (uint32_t from = 1; from < kServers - 2; ++from) {
    send.group = 1;
    send.kind = CollectiveKind::kSend;
    send.peer = 0;
    send.compute_before_ps = 500 * kPsPerUs;
    trace.operations[GlobalRank{16 + 8 * from}] = {send};
    send.kind = CollectiveKind::kRecv;
    send.peer = from;
    send.compute_before_ps = from == 1 ? 500 * kPsPerUs : 0;
    trace.operations[GlobalRank{16}].push_back(send);
  }
  WriteTrace(scratch_.Path("job.trace"), trace);
  const std::string path = scratch_.Write(
      "job.textproto", RailOptimized(kServers) + "workload { trace: \"job.trace\" }\n");
  const EndedRun run = RunFile(path);
  ASSERT_TRUE(run.has_result()) << run.exit.errors;
  EXPECT_THAT(run.exit.output, ::testing::HasSubstr("simulated twice"));
  EXPECT_EQ(run.Integer("collectives.replayed"), 0);
  EXPECT_EQ(Results(run), Results(RunFile(path, {"--no-replay-cache"})));
}

// Halves of a server, each in step for itself, and what is of all of it only once.
class HalvesOfAServerTest : public ReplayCacheTest {
 protected:
  static constexpr int64_t kCalls = 100;  // of a half

  EndedRun Run(bool meet, const std::vector<std::string>& arguments = {}) {
    Trace trace;
    trace.origin = "test";
    trace.rank_count = 8;
    trace.operations.resize(8);
    trace.communicators = {{.name = "first", .ranks = GlobalRanksOf({0, 1, 2, 3})},
                           {.name = "second", .ranks = GlobalRanksOf({4, 5, 6, 7})},
                           {.name = "all", .ranks = GlobalRanksOf({0, 1, 2, 3, 4, 5, 6, 7})}};
    for (GlobalRank rank{0}; rank < 8; ++rank) {
      TraceOperation operation;
      operation.communicator = rank / 4;
      operation.count = uint64_t{1} << 18;
      operation.compute_before_ps = (rank < 4 ? 50 : 1130) * kPsPerUs;
      trace.operations[rank].assign(rank < 4 ? 10 * kCalls : kCalls, operation);
      operation.communicator = 2;
      if (meet) trace.operations[rank].push_back(operation);
    }
    if (!meet) trace.communicators.pop_back();
    WriteTrace(scratch_.Path("job.trace"), trace);
    return RunFile(
        scratch_.Write("job.textproto", RailOptimized(1) + "workload { trace: \"job.trace\" }\n"),
        arguments);
  }
};

TEST_F(HalvesOfAServerTest, AreIndependentUnlessTheyMeet) {
  for (const bool meet : {false, true}) {
    const EndedRun run = Run(meet);
    ASSERT_TRUE(run.has_result()) << run.exit.errors;
    EXPECT_EQ(Results(run), Results(Run(meet, {"--no-replay-cache"})));
    if (meet) continue;
    EXPECT_GE(run.Integer("collectives.replayed"), 8 * kCalls);
  }
}

}  // namespace
}  // namespace railyard::testing
