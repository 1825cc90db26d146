// SPDX-License-Identifier: GPL-2.0-only
// A trace written in another format is read back as the same job, and written again as the same
// bytes.
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/support/reference_dir.h"
#include "tests/traces/imported_files.h"
#include "tests/traces/transform/small_traces.h"
#include "traces/chakra/chakra_writer.h"
#include "traces/goal/goal_binary.h"
#include "traces/goal/goal_writer.h"

namespace railyard {
namespace {

using testing::Call;
using testing::ExpectMatches;
using ::testing::HasSubstr;
using testing::ImportedFiles;
using ::testing::Pair;

// Collectives on two communicators and two streams, gaps, and a group of messages.
Trace Mixed() {
  Trace trace;
  trace.origin = "test";
  trace.rank_count = 4;
  trace.communicators = {{.name = "world", .ranks = GlobalRanksOf({0, 1, 2, 3})},
                         {.name = "even", .ranks = GlobalRanksOf({0, 2})},
                         {.name = "odd", .ranks = GlobalRanksOf({1, 3})}};
  trace.operations.resize(4);
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    auto& program = trace.operations[rank];
    program.push_back(Call(CollectiveKind::kAllReduce, 0, 400));
    TraceOperation gathered = Call(CollectiveKind::kAllGather, 1 + rank % 2, 50);
    gathered.compute_before_ps = 3'000'000;
    program.push_back(gathered);
    TraceOperation beside = Call(CollectiveKind::kBroadcast, 0, 70);
    beside.stream = 1;
    beside.root = 2;
    beside.after = 1;
    program.push_back(beside);
    for (const CollectiveKind kind : {CollectiveKind::kSend, CollectiveKind::kRecv}) {
      TraceOperation message = Call(kind, 0, 9);
      message.peer = kind == CollectiveKind::kSend ? (rank + 1) % 4 : (rank + 3) % 4;
      message.group = 1;
      program.push_back(message);
    }
    program.push_back(Call(CollectiveKind::kReduceScatter, 0, 25));
  }
  return trace;
}

std::map<std::string, std::string> ChakraOf(const Trace& trace) {
  std::map<std::string, std::string> files;
  Diagnostics diagnostics;
  EXPECT_TRUE(WriteChakra(
      trace, "job", "t",
      [&](const std::string& name, const std::string& bytes) { files[name] = bytes; },
      diagnostics));
  return files;
}

// Two communicators of all ranks, of which the ranks call on one or the other first.
TEST(TraceExportTest, CommunicatorsOfAllRanksStaySeparateInChakra) {
  Trace trace = Mixed();
  std::vector<GlobalRank> ranks;
  for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) ranks.push_back(rank);
  trace.communicators = {{.name = "a", .ranks = ranks}, {.name = "b", .ranks = ranks}};
  for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
    TraceOperation reduced = Call(CollectiveKind::kAllReduce, 0, 400);
    TraceOperation gathered = Call(CollectiveKind::kAllGather, 1, 100);
    gathered.stream = 1;
    trace.operations[rank] = {rank == 0 ? reduced : gathered, rank == 0 ? gathered : reduced};
  }
  ImportedFiles files;
  std::vector<std::string> paths;
  for (const auto& [name, bytes] : ChakraOf(trace)) paths.push_back(files.Write(name, bytes));
  const TraceImport& import = files.Import(paths);
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.report.calls_dropped(), 0u);
  EXPECT_EQ(import.trace->communicators.size(), 2u);
}

TEST(TraceExportTest, ChakraIsWrittenAgainAsTheSameBytes) {
  const auto written = ChakraOf(Mixed());
  EXPECT_EQ(written.size(), 5u);  // four ranks, and the groups
  ImportedFiles files;
  std::vector<std::string> paths;
  for (const auto& [name, bytes] : written) paths.push_back(files.Write(name, bytes));
  const TraceImport& import = files.Import(paths);
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.report.calls_dropped(), 0u);
  // ReduceScatter states what a rank sends: four times 25 bytes.
  EXPECT_THAT(files.Kind(CollectiveKind::kReduceScatter), Pair(4, 400));
  EXPECT_THAT(files.Kind(CollectiveKind::kSend), Pair(4, 36));
  ExpectMatches(*import.trace);
  EXPECT_EQ(ChakraOf(*import.trace), written);
}

// ASTRA-sim's feeder refuses a file without a node that can begin.
TEST(TraceExportTest, ARankWithoutCallsHasANodeInChakra) {
  Trace trace = Mixed();
  trace.communicators = {{.name = "pair", .ranks = GlobalRanksOf({0, 1})}};
  for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
    trace.operations[rank] = {};
    if (rank < 2) trace.operations[rank] = {Call(CollectiveKind::kAllReduce, 0, 400)};
  }
  const auto written = ChakraOf(trace);
  ImportedFiles files;
  std::vector<std::string> paths;
  for (const auto& [name, bytes] : written) {
    EXPECT_THAT(bytes, HasSubstr(name.ends_with(".json") ? "[0, 1]" : "_NODE_0")) << name;
    paths.push_back(files.Write(name, bytes));
  }
  const TraceImport& import = files.Import(paths);
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.trace->rank_count, 4u);
  EXPECT_EQ(ChakraOf(*import.trace), written);
}

std::string GoalOf(const Trace& trace) {
  Diagnostics diagnostics;
  const auto schedule = GoalOfTrace(trace, "t", diagnostics);
  return schedule ? GoalTextOf(*schedule) : diagnostics.ToString();
}

TEST(TraceExportTest, GoalIsWrittenAgainAsTheSameBytes) {
  const std::string written = GoalOf(Mixed());
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write("job.goal", written)});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.report.calls_dropped(), 0u);
  // A ring AllReduce of 400 over 4 ranks: 6 steps of 100 a rank. ReduceScatter: 3 of 25; AllGather
  // over 2: 1 of 50; Broadcast: 3 hops of 70; and 4 messages of 9.
  EXPECT_THAT(files.Kind(CollectiveKind::kSend),
              Pair(24 + 12 + 4 + 3 + 4, 2400 + 300 + 200 + 210 + 36));
  ExpectMatches(*import.trace);
  EXPECT_EQ(GoalOf(*import.trace), written);
}

// Imports a file, and what is written of it as GOAL, which `files` has then.
void ExpectGoalIsWrittenAgain(const std::string& path, ImportedFiles& files) {
  files.Import({path});
  ASSERT_TRUE(files.import().trace) << files.findings();
  const std::string written = GoalOf(*files.import().trace);
  files.Import({files.Write("again.goal", written)});
  ASSERT_TRUE(files.import().trace) << files.findings();
  EXPECT_TRUE(GoalOf(*files.import().trace) == written);
}

TEST(TraceExportTest, ReferenceTreeInGoalIsWrittenAgainAsTheSameBytes) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportedFiles files;
  ExpectGoalIsWrittenAgain(reference_dir + "/traces/goal/binary_tree_32.goal", files);
  EXPECT_THAT(files.Kind(CollectiveKind::kSend), Pair(31, 31));
}

// Its messages wait for few others.
TEST(TraceExportTest, ReferenceAllReduceOfManyMessagesIsWrittenAgainAsTheSameBytes) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportedFiles files;
  ExpectGoalIsWrittenAgain(reference_dir + "/traces/aicb-workload/all_reduce.txt", files);
  EXPECT_EQ(files.import().report.calls_imported(), 4256u);
}

// Imports what is written of a trace as Chakra, which `files` has then.
void ExpectChakraIsWrittenAgain(const Trace& trace, ImportedFiles& files) {
  const auto written = ChakraOf(trace);
  std::vector<std::string> paths;
  for (const auto& [name, bytes] : written) paths.push_back(files.Write(name, bytes));
  files.Import(paths);
  ASSERT_TRUE(files.import().trace) << files.findings();
  EXPECT_TRUE(ChakraOf(*files.import().trace) == written);
}

TEST(TraceExportTest, ReferenceRingInChakraIsWrittenAgainAsTheSameBytes) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportedFiles files;
  files.Import({reference_dir + "/traces/astra-sim-et/custom_ring_allreduce_8npus_1MB"});
  ASSERT_TRUE(files.import().trace) << files.findings();
  const Trace trace = *files.import().trace;
  ExpectChakraIsWrittenAgain(trace, files);
  EXPECT_THAT(files.Kind(CollectiveKind::kSend), Pair(8 * 14, 8 * 14 * 131072));
}

// Computations on which nothing depends, more of them at once than GPUs run kernels.
TEST(TraceExportTest, ReferenceGraphOfPyTorchInChakraIsWrittenAgainAsTheSameBytes) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportedFiles files;
  files.Import({reference_dir + "/traces/chakra-feeder-et.tar.gz"});
  ASSERT_TRUE(files.import().trace) << files.findings();
  const Trace trace = *files.import().trace;
  ExpectChakraIsWrittenAgain(trace, files);
  files.Import({files.Write("job.goal", GoalOf(trace))});
  ASSERT_TRUE(files.import().trace) << files.findings();
  EXPECT_TRUE(GoalOf(*files.import().trace) == GoalOf(trace));
}

// Draws programs of three ranks that make the same calls in one order, on streams drawn for each,
// with computation, gaps and dependencies between them.
class RandomTrace {
 public:
  explicit RandomTrace(uint32_t seed) : random_(seed) {}

  Trace Draw() {
    Trace trace;
    trace.origin = "test";
    trace.rank_count = 3;
    trace.communicators = {{.name = "all", .ranks = GlobalRanksOf({0, 1, 2})},
                           {.name = "pair", .ranks = GlobalRanksOf({0, 2})}};
    trace.operations.resize(trace.rank_count);
    for (int i = 0; i < 40; ++i) AddCall(trace);
    return trace;
  }

 private:
  void AddCall(Trace& trace) {
    constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                         CollectiveKind::kSend};
    CollectiveKind kind = kKinds[Below(3)];
    const uint32_t communicator = kind == CollectiveKind::kSend ? 1 : Below(2);
    uint32_t peer = kind == CollectiveKind::kSend ? 1 : 0;
    for (const GlobalRank rank : trace.communicators[communicator].ranks) {
      std::vector<TraceOperation>& program = trace.operations[rank];
      while (Below(3) > 0) Append(Call(CollectiveKind::kCompute, 0, 0), program);
      TraceOperation call = Call(kind, communicator, 4);
      call.peer = peer;
      Append(call, program);
      if (kind == CollectiveKind::kSend) kind = CollectiveKind::kRecv;
      peer = 0;
    }
  }

  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }

  void Append(TraceOperation operation, std::vector<TraceOperation>& program) {
    operation.stream = Below(6);
    operation.compute_before_ps = Below(3) * kPsPerUs;
    if (!program.empty() && Below(2) == 0) {
      operation.after = 1 + Below(static_cast<uint32_t>(program.size()));
    }
    program.push_back(operation);
  }

  std::mt19937 random_;
};

TEST(TraceExportTest, AnyTraceIsWrittenAgainAsTheSameBytes) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const Trace trace = RandomTrace(seed).Draw();
    ImportedFiles files;
    ExpectChakraIsWrittenAgain(trace, files);
    files.Import({files.Write("job.goal", GoalOf(trace))});
    ASSERT_TRUE(files.import().trace) << files.findings();
    EXPECT_EQ(GoalOf(*files.import().trace), GoalOf(trace));
  }
}

}  // namespace
}  // namespace railyard
