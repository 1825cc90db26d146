// SPDX-License-Identifier: GPL-2.0-only
// The replay cache changes no result: random jobs that repeat themselves, with faults and
// congestion controls, with it and without it, and with every hit simulated as well.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/run/program.h"
#include "traces/trace/trace_file.h"

namespace railyard::testing {
namespace {

constexpr int64_t kPsPerUs = 1'000'000;
constexpr uint32_t kSeeds = 15;  // of one test

// A job and a scenario around it.
class RandomJob {
 public:
  const Trace& trace() const { return trace_; }

  std::string Scenario() {
    std::string text = RailOptimized(servers_) + "workload { trace: \"job.trace\" }\n";
    static const char* const kControls[] = {"",          "dcqcn {}", "dctcp {}",
                                            "timely {}", "hpcc {}",  "swift {}"};
    const std::string control = kControls[Below(2) == 0 ? 0 : Below(6)];
    if (!control.empty()) text += "nic { congestion_control { " + control + " } }\n";
    static const char* const kFlowControls[] = {"PFC", "CREDITS", "NONE"};
    text += fmt::format("network {{ network_flow_control: {} }}\n", kFlowControls[Below(3)]);
    text += "routing { detection_delay: \"20us\" convergence_delay: \"50us\" }\n";
    if (Below(3) == 0) return text + Failure();
    text += fmt::format("nccl {{ IB_TIMEOUT: {} PXN_DISABLE: {} }}\n", 7 + Below(3), Below(2) == 1);
    for (uint32_t i = Below(3); i > 0; --i) text += Fault();
    return text;
  }

 protected:
  RandomJob(uint32_t seed, uint32_t servers_min, uint32_t servers_max) : random_(seed) {
    servers_ = servers_min + Below(servers_max - servers_min + 1);
    trace_.origin = "test";
    trace_.rank_count = servers_ * 8;
  }

  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }

  uint32_t servers_ = 1;
  Trace trace_;

 private:
  std::string Fault() {
    std::string link;
    do {
      const uint32_t gpu = Below(8);
      link = Below(2) == 0 ? fmt::format("server{}/nic{}--leaf{}", Below(servers_), gpu, gpu)
                           : fmt::format("leaf{}--spine{}", gpu, Below(servers_));
    } while (!links_.insert(link).second);
    const uint32_t at_us = 50 + Below(2000);
    const std::string times =
        fmt::format("at: \"{}us\" until: \"{}us\" }}\n", at_us, at_us + 1 + Below(600));
    const auto fault = [&](const std::string& kind) {
      return fmt::format("faults {{ link: \"{}\" kind: {} {}", link, kind, times);
    };
    switch (Below(7)) {
      case 0:
        return fault("DEGRADE rate: \"50Gbps\"");
      case 1:
        return fault("LOSS loss { probability: 0.01 }");
      case 2:
        return fault("DELAY delay: \"10us\" jitter: \"3us\"");
      case 3:
        return "faults { device: \"server0/gpu1\" kind: STRAGGLER speed: 0.5 " + times;
      case 4:
        return "faults { link: \"server0/gpu2--server0/nvswitch1\" kind: DEGRADE rate: \"9Gbps\" " +
               times;
      default:
        return fault("LINK_DOWN");
    }
  }

  // A NIC that fails for longer than its queue pairs try, and what becomes of the job.
  std::string Failure() {
    static const char* const kWhatNext[] = {
        "nic_failover { policy: REPLAN }", "nic_failover { policy: PXN }",
        "restart { load: \"1ms\" requeue: \"2ms\" restarts_max: 3 }"};
    const uint32_t gpu = Below(8);
    const uint32_t at_us = 50 + Below(2000);
    std::string text = fmt::format(
        "nccl {{ IB_TIMEOUT: 5 IB_RETRY_CNT: {} }}\n{}\n"
        "faults {{ link: \"server{}/nic{}--leaf{}\" kind: LINK_DOWN at: \"{}us\"",
        1 + Below(2), kWhatNext[Below(3)], Below(servers_), gpu, gpu, at_us);
    if (Below(2) == 0) text += fmt::format(" until: \"{}us\"", at_us + 1000 + Below(20'000));
    return text + " }\n";
  }

  std::mt19937 random_;
  std::set<std::string> links_;
};

// One whose ranks make the same few calls again and again.
class RepetitiveJob : public RandomJob {
 public:
  explicit RepetitiveJob(uint32_t seed) : RandomJob(seed, 1, 2) {
    AddCommunicators();
    trace_.operations.resize(trace_.rank_count);
    const std::vector<TraceOperation> pattern = Pattern();
    const bool has_sends = std::any_of(
        pattern.begin(), pattern.end(),
        [](const TraceOperation& operation) { return operation.kind == CollectiveKind::kSend; });
    const bool is_shared = Below(2) == 0 && trace_.communicators.size() == 1 && !has_sends;
    const int64_t skew_ps = Below(2) == 0 ? 0 : Below(3000) * 1000;
    const uint32_t iterations = 8 + Below(24);
    for (uint32_t rank = 0; rank < trace_.rank_count; ++rank) {
      if (is_shared && rank > 0) {
        trace_.operations.SetProgram(rank, trace_.operations.program_of_rank(0));
        continue;
      }
      for (uint32_t i = 0; i < iterations; ++i) AddIteration(pattern, rank, skew_ps * rank);
    }
  }

 private:
  void AddCommunicators() {
    TraceCommunicator world{.name = "world", .ranks = {}};
    for (uint32_t rank = 0; rank < trace_.rank_count; ++rank) world.ranks.push_back(rank);
    trace_.communicators.push_back(world);
    if (Below(2) == 0) return;
    for (uint32_t server = 0; server < servers_; ++server) {
      TraceCommunicator island{.name = fmt::format("island{}", server), .ranks = {}};
      for (uint32_t i = 0; i < 8; ++i) island.ranks.push_back(8 * server + i);
      trace_.communicators.push_back(island);
    }
  }

  // Communicator 1 stands for the rank's island.
  std::vector<TraceOperation> Pattern() {
    static constexpr CollectiveKind kKinds[] = {
        CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
        CollectiveKind::kAllToAll, CollectiveKind::kSend};
    std::vector<TraceOperation> pattern(1 + Below(3));
    for (TraceOperation& operation : pattern) {
      operation.kind = kKinds[Below(5)];
      operation.communicator = trace_.communicators.size() > 1 ? Below(2) : 0;
      operation.count = 1 + Below(1u << (4 + Below(12)));
      operation.compute_before_ps = Below(4) == 0 ? 0 : Below(60) * kPsPerUs;
      operation.stream = Below(4) == 0 ? 1 : 0;
    }
    // Without the gap the network is never at rest.
    pattern.front().compute_before_ps += 40 * kPsPerUs;
    return pattern;
  }

  void AddIteration(const std::vector<TraceOperation>& pattern, uint32_t rank, int64_t skew_ps) {
    std::vector<TraceOperation>& operations = trace_.operations[rank];
    for (TraceOperation operation : pattern) {
      if (operation.communicator > 0) operation.communicator += rank / 8;
      operation.compute_before_ps += skew_ps;
      if (operation.kind != CollectiveKind::kSend) {
        operations.push_back(operation);
        continue;
      }
      // Each to the next, and from the one before.
      const uint32_t size = operation.communicator > 0 ? 8 : trace_.rank_count;
      const uint32_t own = operation.communicator > 0 ? rank % 8 : rank;
      operation.group = static_cast<uint32_t>(operations.size()) + 1;
      operation.peer = (own + 1) % size;
      operations.push_back(operation);
      operation.kind = CollectiveKind::kRecv;
      operation.peer = (own + size - 1) % size;
      operation.compute_before_ps = 0;
      operations.push_back(operation);
    }
  }
};

// One whose network is never at rest: groups of GPUs of each server are in step for themselves,
// while every rail adds up something all the time.
class BusyJob : public RandomJob {
 public:
  explicit BusyJob(uint32_t seed) : RandomJob(seed, 2, 3) {
    const uint32_t group = 2u << Below(3);
    for (uint32_t first = 0; first < trace_.rank_count; first += group) {
      TraceCommunicator island{.name = fmt::format("group{}", first), .ranks = {}};
      for (uint32_t i = 0; i < group; ++i) island.ranks.push_back(first + i);
      trace_.communicators.push_back(island);
    }
    const auto rails = static_cast<uint32_t>(trace_.communicators.size());
    for (uint32_t rail = 0; rail < 8; ++rail) {
      TraceCommunicator of_rail{.name = fmt::format("rail{}", rail), .ranks = {}};
      for (uint32_t server = 0; server < servers_; ++server) {
        of_rail.ranks.push_back(8 * server + rail);
      }
      trace_.communicators.push_back(of_rail);
    }
    // Sometimes all of them meet, over NVLinks as well.
    const bool meets = Below(3) == 0;
    if (meets) {
      trace_.communicators.push_back({.name = "world", .ranks = {}});
      for (uint32_t rank = 0; rank < trace_.rank_count; ++rank) {
        trace_.communicators.back().ranks.push_back(rank);
      }
    }
    std::vector<TraceOperation> pattern(1 + Below(3));
    for (TraceOperation& operation : pattern) {
      static constexpr CollectiveKind kKinds[] = {
          CollectiveKind::kAllReduce, CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
          CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll};
      operation.kind = kKinds[Below(5)];
      operation.count = 1 + Below(1u << (8 + Below(10)));
      operation.compute_before_ps = (10 + Below(60)) * kPsPerUs;
    }
    TraceOperation on_rail;
    on_rail.count = 1 + Below(1u << 16);
    on_rail.stream = 1;
    trace_.operations.resize(trace_.rank_count);
    for (uint32_t rank = 0; rank < trace_.rank_count; ++rank) {
      std::vector<TraceOperation>& operations = trace_.operations[rank];
      for (uint32_t i = 0; i < 60; ++i) {
        on_rail.communicator = rails + rank % 8;
        operations.push_back(on_rail);
        TraceOperation operation = pattern[i % pattern.size()];
        operation.communicator = rank / group;
        operation.compute_before_ps += int64_t{rank / 8} * 3 * kPsPerUs;
        operations.push_back(operation);
        if (!meets || i % 20 != 10) continue;
        operation.communicator = rails + 8;
        operation.stream = i % 2;
        operations.push_back(operation);
      }
    }
  }
};

// Groups of servers whose rails do alike at the same time, in rows without a pause, and what now
// and then falls into that: sends from rail to rail, from many to one, and what all ranks do.
class RailJob : public RandomJob {
 public:
  explicit RailJob(uint32_t seed) : RandomJob(seed, 4, 4) {
    trace_.operations.resize(trace_.rank_count);
    AddCommunicator("world", 0, trace_.rank_count, 1);
    const uint32_t group = Below(2) == 0 ? 2 : 4;  // servers
    for (uint32_t first = 0; first < servers_; first += group) {
      for (uint32_t rail = 0; rail < 8; ++rail) {
        AddCommunicator(fmt::format("rail{} of {}", rail, first), 8 * first + rail, group, 8);
      }
    }
    const auto rows = 2 + Below(4);
    for (uint32_t row = 0; row < rows; ++row) AddRow(group);
  }

 private:
  void AddCommunicator(const std::string& name, uint32_t first, uint32_t ranks, uint32_t apart) {
    trace_.communicators.push_back({.name = name, .ranks = {}});
    for (uint32_t i = 0; i < ranks; ++i) {
      trace_.communicators.back().ranks.push_back(first + i * apart);
    }
  }

  void AddRow(uint32_t group) {
    static constexpr CollectiveKind kKinds[] = {
        CollectiveKind::kAllReduce,     CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
        CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast, CollectiveKind::kAllToAll};
    TraceOperation operation;
    operation.kind = kKinds[Below(6)];
    operation.count = 1 + Below(1u << (8 + Below(13)));
    operation.stream = Below(2);
    const uint32_t calls = 3 + Below(12);
    const int64_t pause_ps = Below(3) == 0 ? Below(30) * kPsPerUs : 0;
    const int64_t late_ps = Below(2) == 0 ? 0 : Below(3) * kPsPerUs;  // each server
    for (uint32_t rank = 0; rank < trace_.rank_count; ++rank) {
      TraceOperation call = operation;
      call.communicator = 1 + rank / 8 / group * 8 + rank % 8;
      call.compute_before_ps = 50 * kPsPerUs + rank / 8 * late_ps;
      for (uint32_t i = 0; i < calls; ++i) {
        trace_.operations[rank].push_back(call);
        call.compute_before_ps = pause_ps;
      }
    }
    switch (Below(4)) {
      case 0:
        return AddSends();
      case 1:
        return AddWorld();
      default:
        return;
    }
  }

  // To one rank, beside what else there is.
  void AddSends() {
    const uint32_t to = Below(trace_.rank_count);
    const uint32_t senders = 1 + Below(6);
    TraceOperation send;
    send.kind = CollectiveKind::kSend;
    send.count = 1 + Below(1u << (10 + Below(11)));
    send.stream = 2;
    send.compute_before_ps = Below(200) * kPsPerUs;
    for (uint32_t i = 0; i < senders; ++i) {
      const uint32_t from = (to + 8 * (1 + i % (servers_ - 1)) + i / 3) % trace_.rank_count;
      send.peer = to;
      send.kind = CollectiveKind::kSend;
      trace_.operations[from].push_back(send);
      send.peer = from;
      send.kind = CollectiveKind::kRecv;
      trace_.operations[to].push_back(send);
    }
  }

  void AddWorld() {
    TraceOperation operation;
    operation.count = 1 + Below(1u << 16);
    operation.stream = Below(3);
    for (uint32_t rank = 0; rank < trace_.rank_count; ++rank) {
      trace_.operations[rank].push_back(operation);
    }
  }
};

class ReplayCacheTest : public ProgramTest {
 protected:
  static std::string Results(const EndedRun& run) {
    std::string text = run.Text("status") + " " + run.Text("fingerprint") + "\n";
    for (const char* file : {"/collectives.csv", "/pairs.csv", "/links.csv", "/traffic.csv"}) {
      text += ReadText(run.directory + file);
    }
    for (const char* figure :
         {"packets", "packet_hops", "control_hops", "transport.cnp", "transport.ecn_marked",
          "transport.pfc_pause_ps", "conservation.injected_bytes", "conservation.delivered_bytes",
          "conservation.replicated_bytes", "conservation.reduced_bytes"}) {
      text += fmt::format("{} {}\n", figure, run.Integer(figure));
    }
    return text;
  }

  // How many collectives were replayed.
  int64_t ExpectSameResults(RandomJob& job, uint32_t seed) {
    const ScratchDirectory directory;
    WriteTrace(directory.Path("job.trace"), job.trace());
    const std::string text = job.Scenario();
    SCOPED_TRACE(fmt::format("seed {}:\n{}", seed, text));
    const std::string path = directory.Write("job.textproto", text);
    const EndedRun with = RunFile(path);
    const EndedRun without = RunFile(path, {"--no-replay-cache"});
    const EndedRun verified = RunFile(path, {"--verify-replay-cache", "--no-baseline"});
    EXPECT_TRUE(with.has_result() && without.has_result()) << with.exit.errors;
    if (!with.has_result() || !without.has_result()) return 0;
    EXPECT_EQ(Results(with), Results(without));
    EXPECT_EQ(without.Integer("collectives.replayed"), 0);
    EXPECT_EQ(with.Integer("collectives.simulated") + with.Integer("collectives.replayed"),
              without.Integer("collectives.simulated"));
    EXPECT_EQ(verified.exit.status, with.exit.status) << verified.exit.errors;
    EXPECT_EQ(verified.Text("fingerprint"), with.Text("fingerprint"));
    return with.Integer("collectives.replayed");
  }
};

class RandomJobTest : public ReplayCacheTest, public ::testing::WithParamInterface<uint32_t> {
 protected:
  template <typename RandomJob>
  void ExpectSameResultsOverSeeds() {
    int64_t replayed = 0;
    for (uint32_t seed = GetParam(); seed < GetParam() + kSeeds; ++seed) {
      RandomJob job(seed);
      replayed += ExpectSameResults(job, seed);
    }
    EXPECT_GT(replayed, 0);
  }
};

TEST_P(RandomJobTest, HasTheSameResultsWithTheCacheWhereItIsRepetitive) {
  ExpectSameResultsOverSeeds<RepetitiveJob>();
}

TEST_P(RandomJobTest, HasTheSameResultsWithTheCacheWhereItIsNeverAtRest) {
  ExpectSameResultsOverSeeds<BusyJob>();
}

TEST_P(RandomJobTest, HasTheSameResultsWithTheCacheWhereRailsAreAlike) {
  ExpectSameResultsOverSeeds<RailJob>();
}

// Sixteen ranks that add up 14 KiB every 50 us: all states recur within a turn of the NVLink planes
// (18 packets on each pair of GPUs), and nothing new is simulated after that.
TEST_F(ReplayCacheTest, ARegularJobIsSimulatedOnce) {
  Trace trace;
  trace.origin = "test";
  trace.rank_count = 16;
  trace.communicators.push_back({.name = "world", .ranks = {}});
  for (uint32_t rank = 0; rank < 16; ++rank) trace.communicators[0].ranks.push_back(rank);
  trace.operations.resize(16);
  TraceOperation operation;
  operation.count = 7168;
  operation.datatype = Datatype::kBfloat16;
  operation.compute_before_ps = 50 * kPsPerUs;
  trace.operations[0].assign(20'000, operation);
  for (uint32_t rank = 1; rank < 16; ++rank) trace.operations.SetProgram(rank, 0);
  WriteTrace(scratch_.Path("job.trace"), trace);
  const EndedRun run = RunFile(
      scratch_.Write("job.textproto", RailOptimized(2) + "workload { trace: \"job.trace\" }\n"));
  ASSERT_TRUE(run.has_result()) << run.exit.errors;
  EXPECT_EQ(run.Integer("collectives.count"), 20'000);
  EXPECT_EQ(run.Integer("collectives.replayed") + run.Integer("collectives.simulated"), 20'000);
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
      for (uint32_t i = 0; i < 8; ++i) trace.communicators.back().ranks.push_back(8 * server + i);
    }
    for (uint32_t rail = 0; rail < 8; ++rail) {
      trace.communicators.push_back(
          {.name = fmt::format("rail{}", rail), .ranks = {rail, rail + 8}});
    }
    for (uint32_t rank = 0; rank < 16; ++rank) {
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
  // the same on all rails, at the same time. What may go on as the watchdog looks is not replayed.
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
  EXPECT_EQ(Results(run), Results(Run("", {"--no-replay-cache"})));
  EXPECT_TRUE(Run("", {"--verify-replay-cache"}).has_result());
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
  trace.communicators = {{.name = "rail", .ranks = {0, 8}}, {.name = "server", .ranks = {1, 2}}};
  for (const uint32_t rank : {0u, 8u, 1u, 2u}) {
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
  trace.communicators = {{.name = "pair", .ranks = {0, 8}}, {.name = "others", .ranks = {}}};
  for (uint32_t server = 2; server < kServers; ++server) {
    trace.communicators[1].ranks.push_back(8 * server);
  }
  TraceOperation sum;
  sum.count = uint64_t{1} << 20;
  for (const uint32_t rank : {0u, 8u}) trace.operations[rank].assign(30, sum);
  TraceOperation send;
  send.communicator = 1;
  send.count = uint64_t{1} << 21;
  for (uint32_t from = 1; from < kServers - 2; ++from) {
    send.group = 1;
    send.kind = CollectiveKind::kSend;
    send.peer = 0;
    send.compute_before_ps = 500 * kPsPerUs;
    trace.operations[16 + 8 * from] = {send};
    send.kind = CollectiveKind::kRecv;
    send.peer = from;
    send.compute_before_ps = from == 1 ? 500 * kPsPerUs : 0;
    trace.operations[16].push_back(send);
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
    trace.communicators = {{.name = "first", .ranks = {0, 1, 2, 3}},
                           {.name = "second", .ranks = {4, 5, 6, 7}},
                           {.name = "all", .ranks = {0, 1, 2, 3, 4, 5, 6, 7}}};
    for (uint32_t rank = 0; rank < 8; ++rank) {
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

TEST_F(HalvesOfAServerTest, AreApartUnlessTheyMeet) {
  for (const bool meet : {false, true}) {
    const EndedRun run = Run(meet);
    ASSERT_TRUE(run.has_result()) << run.exit.errors;
    EXPECT_EQ(Results(run), Results(Run(meet, {"--no-replay-cache"})));
    if (meet) continue;
    EXPECT_GE(run.Integer("collectives.replayed"), 8 * kCalls);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomJobTest, ::testing::Range(391u, 451u, kSeeds));

}  // namespace
}  // namespace railyard::testing
