// SPDX-License-Identifier: GPL-2.0-only
// Whatever becomes of the bytes of a file, it is read or refused with a reason, and every call is
// accounted for (ImportedFiles::Import).
#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/traces/imported_files.h"
#include "traces/chakra/chakra_message.h"
#include "traces/goal/goal_binary.h"
#include "workloads/job/job.h"

namespace railyard {
namespace {

using testing::ImportedFiles;

std::string Chakra() {
  std::string bytes;
  AppendChakraMetadata(bytes);
  for (uint64_t i = 0; i < 12; ++i) {
    ChakraNode node;
    node.id = i;
    node.name = "n";
    if (i > 0) node.data_deps = {i - 1, i / 2};
    node.type = i % 3 == 0 ? 4 : 7;
    node.duration_us = i;
    if (i % 3 != 0) {
      node.comm_type = i % 8;
      node.comm_size = 100 * i;
    }
    AppendChakraNode(node, bytes);
  }
  return bytes;
}

GoalSchedule Goal() {
  GoalSchedule schedule;
  schedule.ranks.resize(3);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    schedule.ranks[rank] = {
        {.kind = GoalKind::kCalc, .size = 5},
        {.kind = GoalKind::kSend, .peer = (rank + 1) % 3, .size = 9, .tag = 1, .waits_for = {0}},
        {.kind = GoalKind::kRecv, .peer = (rank + 2) % 3, .size = 9, .tag = 1, .waits_for = {0}},
        {.kind = GoalKind::kCalc, .size = 7, .waits_for = {1, 2}}};
  }
  return schedule;
}

const std::string& Aicb() {
  static const std::string kText =
      "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp: 1 all_gpus: 4\n2\n"
      "a -1 1000 ALLREDUCE 64 2000 ALLGATHER 128 3000 REDUCESCATTER 256 100\n"
      "b -1 10 NONE 0 20 ALLTOALL_EP 8 30 ALLREDUCE 512 0\n";
  return kText;
}

const std::string& ChakraJson() {
  static const std::string kText =
      R"({"workload_graph": [{"Id": 1, "Name": "k", "NodeType": 4, "runtime": 3, "data_deps": []},
      {"Id": 2, "Name": "n", "NodeType": 7, "data_deps": [1], "comm_type": 5, "comm_size": 77}]})";
  return kText;
}

class ReaderMutationTest : public ::testing::TestWithParam<std::pair<const char*, std::string>> {};

TEST_P(ReaderMutationTest, EveryCallIsAccountedFor) {
  const auto& [name, whole] = GetParam();
  ImportedFiles files;
  std::mt19937 random(1);
  const auto below = [&](size_t end) { return static_cast<size_t>(random() % end); };
  int traces = 0;
  for (int round = 0; round < 600; ++round) {
    std::string bytes = whole;
    // The first round reads the file as it is.
    const size_t edits = round == 0 ? 0 : 1 + below(4);
    for (size_t i = 0; i < edits; ++i) {
      const size_t at = below(bytes.size());
      switch (below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, 1 + below(8));
          break;
        case 2:
          bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(16)));
          break;
        default:
          bytes.resize(at + 1);
          break;
      }
      if (bytes.empty()) bytes = "x";
    }
    const TraceImport& import = files.Import({files.Write(name, bytes)}, {.ranks = 4});
    if (!import.trace) {
      ASSERT_NE(files.findings(), "") << round;
      continue;
    }
    ++traces;
    Diagnostics diagnostics;
    BuildJob(*import.trace, diagnostics);  // its calls may not match; it ends
  }
  EXPECT_GT(traces, 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, ReaderMutationTest,
                         ::testing::Values(std::pair("job.0.et", Chakra()),
                                           std::pair("job.0.json", ChakraJson()),
                                           std::pair("job.goal", GoalTextOf(Goal())),
                                           std::pair("job.bin", GoalBinaryOf(Goal())),
                                           std::pair("job.txt", Aicb())),
                         [](const auto& info) {
                           std::string name = info.param.first;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace railyard
