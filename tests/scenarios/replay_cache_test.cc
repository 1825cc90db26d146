// SPDX-License-Identifier: GPL-2.0-only
// The replay cache changes no result: random jobs that repeat themselves, with faults and
// congestion controls, with it and without it, and with every hit simulated as well.
#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/run/program.h"
#include "traces/trace_file.h"

namespace railyard::testing {
namespace {

constexpr int64_t kPsPerUs = 1'000'000;
constexpr uint32_t kSeeds = 15;  // of one test

// A job whose ranks make the same few calls again and again, and a scenario around it.
class RepetitiveJob {
 public:
  explicit RepetitiveJob(uint32_t seed) : random_(seed) {
    servers_ = 1 + Below(2);
    trace_.origin = "test";
    trace_.rank_count = servers_ * 8;
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

  const Trace& trace() const { return trace_; }

  std::string Scenario() {
    std::string text = RailOptimized(servers_) + "workload { trace: \"job.trace\" }\n";
    static const char* const kControls[] = {"",          "dcqcn {}", "dctcp {}",
                                            "timely {}", "hpcc {}",  "swift {}"};
    const std::string control = kControls[Below(2) == 0 ? 0 : Below(6)];
    if (!control.empty()) text += "nic { congestion_control { " + control + " } }\n";
    static const char* const kFlowControls[] = {"PFC", "CREDITS", "NONE"};
    text += fmt::format("network {{ network_flow_control: {} }}\n", kFlowControls[Below(3)]);
    text += fmt::format("nccl {{ IB_TIMEOUT: {} PXN_DISABLE: {} }}\n", 7 + Below(3), Below(2) == 1);
    text += "routing { detection_delay: \"20us\" convergence_delay: \"50us\" }\n";
    for (uint32_t i = Below(3); i > 0; --i) text += Fault();
    return text;
  }

 private:
  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }

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
    // Else nothing is ever at rest.
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
    switch (Below(6)) {
      case 0:
        return fault("DEGRADE rate: \"50Gbps\"");
      case 1:
        return fault("LOSS loss { probability: 0.01 }");
      case 2:
        return fault("DELAY delay: \"10us\" jitter: \"3us\"");
      case 3:
        return "faults { device: \"server0/gpu1\" kind: STRAGGLER speed: 0.5 " + times;
      default:
        return fault("LINK_DOWN");
    }
  }

  std::mt19937 random_;
  uint32_t servers_ = 1;
  Trace trace_;
  std::set<std::string> links_;
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
};

class RepetitiveJobTest : public ReplayCacheTest, public ::testing::WithParamInterface<uint32_t> {};

TEST_P(RepetitiveJobTest, HasTheSameResultsWithTheCache) {
  int64_t replayed = 0;
  for (uint32_t seed = GetParam(); seed < GetParam() + kSeeds; ++seed) {
    RepetitiveJob job(seed);
    const ScratchDirectory directory;
    WriteTrace(directory.Path("job.trace"), job.trace());
    const std::string text = job.Scenario();
    SCOPED_TRACE(fmt::format("seed {}:\n{}", seed, text));
    const std::string path = directory.Write("job.textproto", text);
    const EndedRun with = RunFile(path);
    const EndedRun without = RunFile(path, {"--no-replay-cache"});
    const EndedRun verified = RunFile(path, {"--verify-replay-cache", "--no-baseline"});
    ASSERT_TRUE(with.has_result() && without.has_result()) << with.exit.errors;
    EXPECT_EQ(Results(with), Results(without));
    EXPECT_EQ(without.Integer("collectives.replayed"), 0);
    EXPECT_EQ(with.Integer("collectives.simulated") + with.Integer("collectives.replayed"),
              without.Integer("collectives.simulated"));
    EXPECT_EQ(verified.exit.status, with.exit.status) << verified.exit.errors;
    EXPECT_EQ(verified.Text("fingerprint"), with.Text("fingerprint"));
    replayed += with.Integer("collectives.replayed");
  }
  EXPECT_GT(replayed, 0);
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
  // Opening connections, then at most one of each state, and the last.
  EXPECT_LE(run.Integer("collectives.simulated"), 1 + 18 + 1);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RepetitiveJobTest, ::testing::Range(1u, 61u, kSeeds));

}  // namespace
}  // namespace railyard::testing
