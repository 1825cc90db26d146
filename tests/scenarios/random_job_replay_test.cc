// SPDX-License-Identifier: GPL-2.0-only
// The replay cache changes no result: random jobs that repeat themselves, with faults and
// congestion controls, with it and without it, and with every hit simulated as well.
#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/run/program.h"
#include "tests/scenarios/replay_cache_fixture.h"
#include "traces/trace/trace_file.h"

namespace railyard::testing {
namespace {

constexpr uint32_t kSeeds = 15;  // of one test

// A job and a scenario around it.
class RandomJob {
 public:
  const Trace& trace() const { return trace_; }

  std::string Scenario() {
    std::string text = RailOptimized(servers_) + "workload { trace: \"job.trace\" }\n";
    static const char* const kControls[] = {"",          "dcqcn {}", "dctcp {}",
                                            "timely {}", "hpcc {}",  "swift {}"};
    const std::string control =
        kControls[Below(2) == 0 ? 0 : Below(uint32_t{std::size(kControls)})];
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
    for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) {
      if (is_shared && rank > 0) {
        trace_.operations.SetProgram(rank, trace_.operations.program_of_rank(GlobalRank{0}));
        continue;
      }
      for (uint32_t i = 0; i < iterations; ++i) AddIteration(pattern, rank, skew_ps * rank);
    }
  }

 private:
  void AddCommunicators() {
    TraceCommunicator world{.name = "world", .ranks = {}};
    for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) world.ranks.emplace_back(rank);
    trace_.communicators.push_back(world);
    if (Below(2) == 0) return;
    for (uint32_t server = 0; server < servers_; ++server) {
      TraceCommunicator island{.name = fmt::format("island{}", server), .ranks = {}};
      for (uint32_t i = 0; i < 8; ++i) island.ranks.emplace_back(8 * server + i);
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
    std::vector<TraceOperation>& operations = trace_.operations[GlobalRank{rank}];
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
      for (uint32_t i = 0; i < group; ++i) island.ranks.emplace_back(first + i);
      trace_.communicators.push_back(island);
    }
    const auto rails = static_cast<uint32_t>(trace_.communicators.size());
    for (uint32_t rail = 0; rail < 8; ++rail) {
      TraceCommunicator of_rail{.name = fmt::format("rail{}", rail), .ranks = {}};
      for (uint32_t server = 0; server < servers_; ++server) {
        of_rail.ranks.emplace_back(8 * server + rail);
      }
      trace_.communicators.push_back(of_rail);
    }
    // Sometimes all of them meet, over NVLinks as well.
    const bool meets = Below(3) == 0;
    if (meets) {
      trace_.communicators.push_back({.name = "world", .ranks = {}});
      for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) {
        trace_.communicators.back().ranks.emplace_back(rank);
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
    for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) {
      std::vector<TraceOperation>& operations = trace_.operations[GlobalRank{rank}];
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
      trace_.communicators.back().ranks.emplace_back(first + i * apart);
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
    // Each server by more than the one before, or both beside the second half's first by half.
    const int64_t late_ps = Below(2) == 0 ? 0 : Below(7) * kPsPerUs;
    const bool is_tent = Below(2) == 0;
    for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) {
      TraceOperation call = operation;
      call.communicator = 1 + rank / 8 / group * 8 + rank % 8;
      const uint32_t server = rank / 8;
      call.compute_before_ps =
          50 * kPsPerUs + (is_tent ? std::min(server, servers_ - server) : server) * late_ps;
      for (uint32_t i = 0; i < calls; ++i) {
        trace_.operations[GlobalRank{rank}].push_back(call);
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
      trace_.operations[GlobalRank{from}].push_back(send);
      send.peer = from;
      send.kind = CollectiveKind::kRecv;
      trace_.operations[GlobalRank{to}].push_back(send);
    }
  }

  void AddWorld() {
    TraceOperation operation;
    operation.count = 1 + Below(1u << 16);
    operation.stream = Below(3);
    for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) {
      trace_.operations[GlobalRank{rank}].push_back(operation);
    }
  }
};
class RandomJobTest : public ReplayCacheTest, public ::testing::WithParamInterface<uint32_t> {
 protected:
  // Returns how many collectives were replayed.
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

TEST_P(RandomJobTest, HasTheSameResultsWithTheCacheWhereItIsNeverQuiescent) {
  ExpectSameResultsOverSeeds<BusyJob>();
}

TEST_P(RandomJobTest, HasTheSameResultsWithTheCacheWhereRailsAreAlike) {
  ExpectSameResultsOverSeeds<RailJob>();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomJobTest, ::testing::Range(391u, 451u, kSeeds));

}  // namespace
}  // namespace railyard::testing
