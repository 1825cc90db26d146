// SPDX-License-Identifier: GPL-2.0-only
#include "traces/pytorch_et/pytorch_et_reader.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/import/import.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

struct Imported {
  TraceImport import;
  Diagnostics diagnostics;
};

Imported Import(const std::vector<std::string>& texts) {
  const std::string directory = ::testing::TempDir() + "pytorch_et_reader_test_" +
                                ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  std::vector<std::string> paths;
  for (size_t i = 0; i < texts.size(); ++i) {
    paths.push_back(fmt::format("{}/et{}.json", directory, i));
    std::ofstream(paths.back()) << texts[i];
  }
  Imported imported;
  imported.import = ImportFiles(paths, kAutoFormat, {}, imported.diagnostics);
  std::filesystem::remove_all(directory);
  return imported;
}

std::string File(const std::string& nodes) {
  return R"({"schema": "1.0.1", "pid": 1, "start_ts": 5, "nodes": [)" + nodes + "]}";
}

std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// `values`: between the tensor and the rank stand sequence and group.
std::string Node(int id, const std::string& values) {
  return fmt::format(
      R"j({{"name": "record_param_comms", "id": {}, "inputs": [{}],
"input_types": ["Tensor(float)"], "outputs": [[9, 9, 0, 12, 4, "cuda:0"]]}})j",
      id, values);
}

TEST(PytorchEtReaderTest, CallsAreInTheOrderOfTheirNodes) {
  const std::string nodes =
      Node(7, R"([3, 4, 0, 8, 4, "cuda:0"], 2, 5555, 1, "broadcast", [], [], 0, 1, 2)") + "," +
      Node(5, R"([1, 2, 0, 12, 4, "cuda:0"], 1, 5555, 0, "allreduce", [], [], 0, 1, 2)") + "," +
      Node(8, R"(2, 5555, 0, "wait", [], [], -1, -1, 1)");
  const Imported imported = Import({File(nodes)});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.report.calls_seen(), 2u);
  const auto& program = imported.import.trace->operations[GlobalRank{0}];
  ASSERT_EQ(program.size(), 2u);
  EXPECT_EQ(program[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(program[0].count, 12u);
  EXPECT_EQ(program[1].kind, CollectiveKind::kBroadcast);
  EXPECT_EQ(program[1].root, 1u);
  EXPECT_EQ(imported.import.trace->rank_count, 2u);
}

// Each rank sends to the other and receives from it in one batch, whose end is marked or whose
// messages have one sequence number; then rank 0 sends by itself.
// Nodes of steps may come after those of their calls, as they end later.
TEST(PytorchEtReaderTest, StepsOfTheProfilerAreIterations) {
  const auto all_reduce = [](int id) {
    return Node(id, R"([1, 2, 0, 12, 4, "cuda:0"], 1, 5555, 0, "allreduce", [], [], 0, 1, 2)");
  };
  const auto step = [](int id, int number) {
    return fmt::format(R"({{"name": "ProfilerStep#{}", "id": {}}})", number, id);
  };
  const Imported imported =
      Import({File(all_reduce(5) + "," + all_reduce(7) + "," + step(3, 4) + "," + all_reduce(12) +
                   "," + all_reduce(15) + "," + step(10, 5)),
              File(step(3, 6) + "," + all_reduce(5))});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  std::vector<bool> begins;
  for (const TraceOperation& call : imported.import.trace->operations[GlobalRank{0}]) {
    begins.push_back(call.begins_iteration);
  }
  EXPECT_EQ(begins, (std::vector<bool>{false, false, true, false, true}));
}

TEST(PytorchEtReaderTest, BatchesOfMessagesAreGroups) {
  const auto mark = [](int id, const std::string& name) {
    return fmt::format(R"(,{{"name": "{}", "id": {}, "inputs": [], "outputs": []}})", name, id);
  };
  for (const bool has_marks : {true, false}) {
    const auto file = [&](uint32_t rank) {
      const auto message = [&](int id, const std::string& sequence, const std::string& name) {
        return "," + Node(id, fmt::format(R"([1, 2, 0, 12, 4, "cuda:0"], {}, ["0", ""], {}, "{}",
[], [], 0, 1, 2)",
                                          has_marks ? "0" : sequence, 1 - rank, name));
      };
      return File(Node(1, fmt::format(R"([1, 2, 0, 12, 4, "cuda:0"], 1, ["0", ""], {},
"allreduce", [], [], 0, 1, 2)",
                                      rank)) +
                  message(3, "[1, true]", "send") + message(5, "[1, true]", "recv") +
                  (has_marks ? mark(6, "nccl:coalesced") : "") +
                  message(8, "[2, true]", rank == 0 ? "send" : "recv") +
                  (has_marks ? mark(9, "nccl:send 0->1") : ""));
    };
    const Imported imported = Import({file(0), file(1)});
    ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
    EXPECT_EQ(imported.import.report.calls_imported(), 8u);
    const auto& program = imported.import.trace->operations[GlobalRank{1}];
    ASSERT_EQ(program.size(), 4u);
    EXPECT_NE(program[1].group, 0u);
    EXPECT_EQ(program[1].group, program[2].group);
    EXPECT_EQ(program[2].kind, CollectiveKind::kRecv);
    EXPECT_EQ(program[2].peer, 0u);
    EXPECT_EQ(program[3].group, 0u);
  }
}

// Each of 3 ranks sends to the next one before it receives, each message by itself. The first call
// says which rank it is.
TEST(PytorchEtReaderTest, LoneMessagesInACircleHaveCommunicatorsOfPairs) {
  std::vector<std::string> files;
  for (int rank = 0; rank < 3; ++rank) {
    const auto call = [](int id, const char* sequence, int of_rank, const char* name) {
      return Node(id, fmt::format(R"([1, 2, 0, 12, 4, "cuda:0"], {}, ["0", ""], {}, "{}", [], [],
0, 1, 3)",
                                  sequence, of_rank, name));
    };
    files.push_back(File(call(1, "[1, false]", rank, "allreduce") + "," +
                         call(3, "[1, true]", (rank + 1) % 3, "send") + "," +
                         call(5, "[2, true]", (rank + 2) % 3, "recv")));
  }
  const Imported imported = Import(files);
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.trace->communicators.size(), 4u);
  EXPECT_THAT(imported.import.report.ToString(), HasSubstr("wait for each other in a circle"));
}

// A collective's rank argument is the rank in its group. Rank 2 is the first of the group of ranks
// 2 and 3.
TEST(PytorchEtReaderTest, RanksAreThoseOfTheGroups) {
  std::vector<std::string> files;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string groups = fmt::format(
        R"j({{"name": "## process_group:init ##", "id": 2, "inputs": ["[{{\"pg_name\": \"1\",
\"uid\": \"77\", \"group_size\": 2, \"ranks\": [{}, {}]}}, {{\"pg_name\": \"0\", \"uid\": \"88\",
\"group_size\": 4, \"ranks\": []}}]"]}})j",
        rank / 2 * 2, rank / 2 * 2 + 1);
    files.push_back(File(
        OneLine(groups) + "," +
        Node(5,
             fmt::format(R"([1, 2, 0, 12, 4, "cuda:0"], 1, 77, {}, "allreduce", [], [], 0, 1, 2)",
                         rank % 2)) +
        "," +
        Node(6,
             fmt::format(R"([1, 2, 0, 12, 4, "cuda:0"], 1, 88, {}, "allreduce", [], [], 0, 1, 4)",
                         rank))));
  }
  const Imported imported = Import(files);
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  const Trace& trace = *imported.import.trace;
  EXPECT_EQ(trace.rank_count, 4u);
  EXPECT_EQ(imported.import.report.calls_imported(), 8u);
  EXPECT_EQ(imported.import.report.ranks_reconstructed, 0u);
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    ASSERT_EQ(trace.operations[GlobalRank{rank}].size(), 2u);
    EXPECT_THAT(trace.communicators[trace.operations[GlobalRank{rank}][0].communicator].ranks,
                ::testing::ElementsAre(rank / 2 * 2, rank / 2 * 2 + 1));
  }
}

TEST(PytorchEtReaderTest, HostileFilesAreFindingsOrCountedDrops) {
  const std::string good =
      Node(5, R"([1, 2, 0, 12, 4, "cuda:0"], 1, 5555, 0, "allreduce", [], [], 0, 1, 2)");
  struct Case {
    std::string text;
    std::string finding;
  };
  const std::vector<Case> cases = {
      {File(good).substr(0, 150), "the file ends early"},
      {File(std::string(1000, '[')), "nested too deeply"},
      {File(Node(5, R"("allreduce")")), "malformed record"},
      {File(Node(5, R"([1, 2, 0, 12, 4, "cuda:0"], 1, 5, 0, "dance", [], [], 0, 1, 2)")),
       "unsupported kind"},
      {File(Node(5, R"([1, 2, 0, 1e12, 4, "cuda:0"], 1, 5, 0, "allreduce", [], [], 0, 1, 2)")),
       "count 0"},
      {File(Node(5,
                 R"([1, 2, 0, 1000000000000000, 4, "x"], 1, 5, 0, "allreduce", [], [], 0, 1, 2)")),
       "out of range"},
      {File(Node(5, R"([1, 2, 0, 8, 4, "x"], 1, 5, 0, "allreduce", [], [], 0, 1, 4000000000)")),
       "communicator ambiguous"},
      {File(R"({"name": "x", "id": 1})"), "holds no collective call"},
  };
  for (const Case& c : cases) {
    const Imported imported = Import({c.text});
    EXPECT_FALSE(imported.import.trace) << c.finding;
    EXPECT_THAT(imported.diagnostics.ToString(), HasSubstr(c.finding));
  }
  const Imported twice = Import({File(good + "," + good)});
  ASSERT_TRUE(twice.import.trace);
  EXPECT_EQ(twice.import.report.DroppedFor(CallDropReason::kRecordedTwice).count, 1u);
}

}  // namespace
}  // namespace railyard
