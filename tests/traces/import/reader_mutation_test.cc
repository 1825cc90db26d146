// SPDX-License-Identifier: GPL-2.0-only
// Whatever becomes of the bytes of a file, it is read or refused with a reason, and every call is
// accounted for (ImportedFiles::Import).
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/traces/imported_files.h"
#include "tests/traces/nsys/nsys_file.h"
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

std::string Aicb() {
  return "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp: 1 all_gpus: 4\n2\n"
         "a -1 1000 ALLREDUCE 64 2000 ALLGATHER 128 3000 REDUCESCATTER 256 100\n"
         "b -1 10 NONE 0 20 ALLTOALL_EP 8 30 ALLREDUCE 512 0\n";
}

std::string ChakraJson() {
  return R"({"workload_graph": [{"Id": 1, "Name": "k", "NodeType": 4, "runtime": 3, "data_deps": []},
      {"Id": 2, "Name": "n", "NodeType": 7, "data_deps": [1], "comm_type": 5, "comm_size": 77}]})";
}

// A profile of one of two ranks: a kernel with its own sizes, one that its launch states.
std::string Kineto() {
  return R"j({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2,
 "pg_config": [{"pg_name": "0", "ranks": [0, 1]}], "nccl_version": "2.27.5"}, "traceEvents": [
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(a)", "pid": 0,
 "tid": 7, "ts": 10.5, "dur": 3.25, "args": {"device": 0, "stream": 7, "correlation": 1,
 "External id": 1, "Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000,
 "Group size": 2, "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}},
{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 11, "dur": 1, "args":
 {"External id": 5, "Collective name": "all_to_allv", "dtype": "BFloat16", "In msg nelems": 64,
 "Out msg nelems": 64, "In split size": "[32, 32]", "Out split size": "[32, 32]", "Group size": 2,
 "Process Group Name": "0", "Process Group Ranks": [0, 1], "Rank": 0}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv(b)", "pid": 0, "tid": 9, "ts": 20,
 "dur": 4, "args": {"device": 0, "stream": 9, "correlation": 2, "External id": 5}}]})j";
}

std::string ExecutionTrace() {
  return R"j({"schema": "1.0.1", "pid": 1, "time": "2023-09-07 16:10:01", "start_ts": 1, "nodes": [
{"name": "record_param_comms", "id": 3, "inputs": [[1, 2, 0, 64, 4, "cuda:0"], 7, 94, 0,
 "all_reduce", [], []], "input_shapes": [[64], [], [], [], [], [], []], "input_types":
 ["Tensor(float)", "Int", "Int", "Int", "String", "GenericList[]", "GenericList[]"],
 "outputs": [[3, 4, 0, 64, 4, "cuda:0"]], "output_shapes": [[64]], "output_types":
 ["Tensor(float)"]}]})j";
}

std::string FlightRecorder() {
  return R"j({"version": "2.5", "pg_config": {"0": {"name": "0", "desc": "default_pg",
"ranks": "[0, 1]"}}, "entries": [{"record_id": 0, "process_group": ["0", "default_pg"],
"collective_seq_id": 1, "profiling_name": "nccl:all_reduce", "input_sizes": [[3, 4]],
"input_dtypes": ["Float"], "output_sizes": [[3, 4]], "output_dtypes": ["Float"],
"state": "started", "duration_ms": 0.25, "is_p2p": false}]})j";
}

// {"version": "2.5", "entries": [{"record_id": 0, "process_group": "0", "profiling_name": ...}]},
// protocol 2.
std::string Pickle() {
  const auto text = [](const std::string& value) {
    return std::string("X") + static_cast<char>(value.size()) + std::string(3, '\0') + value;
  };
  const std::string sizes = std::string("](](K\x03K\x04") + "ee";
  const std::string entry =
      "}(" + text("record_id") + std::string("K\0", 2) + text("process_group") + "(" + text("0") +
      text("default_pg") + "t" + text("collective_seq_id") + "K\x01" + text("profiling_name") +
      text("nccl:all_reduce") + text("input_sizes") + sizes + text("input_dtypes") + "](" +
      text("Float") + "e" + text("output_sizes") + sizes + text("state") + text("completed") + "u";
  return "\x80\x02}(" + text("version") + text("2.5") + text("pg_config") + "}(" + text("0") +
         "}(" + text("ranks") + text("[0, 1]") + "uu" + text("entries") + "](" + entry + "eu.";
}

std::string Inspector() {
  return R"j({"header": {"id": "0xa", "rank": 0, "n_ranks": 2}, "metadata":)j"
         R"j( {"inspector_output_format_version": "v4.0", "hostname": "h", "pid": 1}, "coll_perf":)j"
         R"j( {"coll": "AllReduce", "coll_sn": 7, "coll_msg_size_bytes": 64,)j"
         R"j( "coll_exec_time_us": 25, "coll_algo": "RING", "coll_proto": "LL"}})j"
         "\n";
}

std::string NcclTests() {
  return "# Collective test starting: all_reduce_perf\n"
         "# nThread 1 nGpus 2 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 1 iters: 20\n"
         "#  Rank  0 Group  0 Pid 10 on host device 0 [0x07] H100\n"
         "#  Rank  1 Group  0 Pid 10 on host device 1 [0x0a] H100\n"
         "          64            16     float     sum      -1    13.07    0.00    0.00      0    "
         "12.91    0.00    0.00      0\n";
}

std::string NcclTestsJson() {
  return R"j({"version": 2, "start_time": "2025", "args": ["sendrecv_perf"], "nccl_version": 22903,
"config": {"nthreads": 1, "ngpus": 2, "devices": [{"rank": 0, "group": 0}]}, "results": [{"size": 64,
"count": 16, "type": "float", "redop": "none", "root": "-1", "out_of_place": {"time": 1.5},
"in_place": {"time": 2.5}}]})j";
}

// The export as bytes, written and read again in a directory of the test's own.
std::string Nsys() {
  const std::string path = ::testing::TempDir() + "/reader_mutation_test.sqlite";
  std::filesystem::remove(path);
  { testing::NsysFile(path).AddTwoRanks(); }
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  std::filesystem::remove(path);
  return bytes.str();
}

struct MutatedFile {
  const char* name;
  std::string (*bytes)();
  ImportOptions options = {};
};

class ReaderMutationTest : public ::testing::TestWithParam<MutatedFile> {
 protected:
  // Changes, removes, repeats or cuts off a few bytes.
  std::string Mutated(std::string bytes) {
    for (size_t edits = 1 + Below(4); edits > 0; --edits) {
      const size_t at = Below(bytes.size());
      switch (Below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random_());
          break;
        case 1:
          bytes.erase(at, 1 + Below(8));
          break;
        case 2:
          bytes.insert(at, bytes.substr(Below(bytes.size()), 1 + Below(16)));
          break;
        default:
          bytes.resize(at + 1);
          break;
      }
      if (bytes.empty()) bytes = "x";
    }
    return bytes;
  }

 private:
  size_t Below(size_t end) { return static_cast<size_t>(random_() % end); }

  std::mt19937 random_{1};
};

// RAILYARD_MUTATION_SECONDS in the environment goes on for so long.
TEST_P(ReaderMutationTest, EveryCallIsAccountedFor) {
  constexpr int kRounds = 600;
  const char* const seconds = std::getenv("RAILYARD_MUTATION_SECONDS");
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::seconds(seconds == nullptr ? 0 : std::atoi(seconds));
  const MutatedFile& file = GetParam();
  const std::string whole = file.bytes();
  ImportedFiles files;
  ASSERT_TRUE(files.Import({files.Write(file.name, whole)}, file.options).trace)
      << files.findings();
  int traces = 0;
  for (int round = 0; round < kRounds || std::chrono::steady_clock::now() < end; ++round) {
    const TraceImport& import =
        files.Import({files.Write(file.name, Mutated(whole))}, file.options);
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

INSTANTIATE_TEST_SUITE_P(
    Formats, ReaderMutationTest,
    ::testing::Values(
        MutatedFile{"job.0.et", Chakra, {.ranks = 4}},
        MutatedFile{"job.0.json", ChakraJson, {.ranks = 4}},
        MutatedFile{"job.goal", [] { return GoalTextOf(Goal()); }},
        MutatedFile{"job.bin", [] { return GoalBinaryOf(Goal()); }},
        MutatedFile{"job.txt", Aicb, {.ranks = 4}}, MutatedFile{"kineto.json", Kineto},
        MutatedFile{"execution_trace.json", ExecutionTrace},
        MutatedFile{"flight_recorder_0", FlightRecorder}, MutatedFile{"pickle_0", Pickle},
        MutatedFile{"inspector.log", Inspector}, MutatedFile{"nccl_tests.txt", NcclTests},
        MutatedFile{"nccl_tests.json", NcclTestsJson}, MutatedFile{"nsys.sqlite", Nsys}),
    [](const auto& test) {
      std::string name = test.param.name;
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

}  // namespace
}  // namespace railyard
