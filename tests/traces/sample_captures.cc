// SPDX-License-Identifier: GPL-2.0-only
#include "tests/traces/sample_captures.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "simulator/processes/temporary_directory.h"
#include "tests/traces/nsys/nsys_file.h"
#include "traces/chakra/chakra_message.h"
#include "traces/goal/goal_binary.h"

namespace railyard::testing {
namespace {

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

// Two ranks, all of whose lines are of one file.
std::string NcclLog() {
  std::string log;
  for (const int rank : {0, 1}) {
    const std::string host = fmt::format("host:1{0}:2{0}", rank);
    log += fmt::format("{} [0] NCCL INFO NCCL version 2.27.5+cuda12.9\n", host);
    const auto add = [&](const std::string& what) {
      log += fmt::format("{} [{}] NCCL INFO {}\n", host, rank, what);
    };
    add(
        fmt::format("ncclCommInitRank comm 0xa{0} rank {0} nranks 2 cudaDev 0 nvmlDev 0 busId 1000 "
                    "commId 0x5a3c - Init COMPLETE",
                    rank));
    add(fmt::format(
        "AllReduce: opCount 0 sendbuff 0x7f10 recvbuff 0x7f20 count 1024 datatype 7 op 0 "
        "root 0 comm 0xa{} [nranks=2] stream 0x55d0",
        rank));
    add(
        fmt::format("{}: opCount 1 sendbuff (nil) recvbuff 0x7f20 count 77 datatype 9 op 0 root {} "
                    "comm 0xa{} [nranks=2] stream 0x55d0",
                    rank == 0 ? "Send" : "Recv", 1 - rank, rank));
  }
  return log;
}

std::string NcclProfiler() {
  const auto event = [](const std::string& name, const std::string& category,
                        const std::string& rest) {
    return R"({"name": ")" + name + R"(", "cat": ")" + category +
           R"(", "id": 0, "pid": 7, "tid": 1, )" + rest + "},\n";
  };
  const std::string times = R"("ph": "b", "ts": 10.5, "args": {)";
  return "[\n" + event("Group", "GROUP", times + "\"groupId\": 1}") +
         event("AllReduce", "COLL_API", times + R"("count": 4, "root": 0, "Stream": 0x41})") +
         event("AllReduce", "COLL",
               times + R"("SeqNum": 3, "CommHash": 99, "Rank": 0, "Count": 4, "Datatype": )" +
                   R"("ncclFloat32", "Algorithm": "RING", "Protocol": "LL", "nChannels": 2})") +
         event("KernelCh", "GPU", times + "\"Channel\": 0}") +
         event("KernelCh", "GPU", R"("ph": "e", "ts": 20.25)") +
         event("AllReduce", "COLL", R"("ph": "e", "ts": 21.0)") +
         event("Group", "GROUP", R"("ph": "e", "ts": 22.0)") + "{}]\n";
}

std::string Nsys() {
  const TemporaryDirectory directory;
  const std::string path = directory.File("export.sqlite");
  { NsysFile(path).AddTwoRanks(); }
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

}  // namespace

std::vector<SampleCapture> SampleCaptures() {
  return {
      {.file = "job.0.et", .format = "chakra", .bytes = Chakra(), .options = {.ranks = 4}},
      {.file = "job.0.json", .format = "chakra", .bytes = ChakraJson(), .options = {.ranks = 4}},
      {.file = "job.goal", .format = "goal", .bytes = GoalTextOf(Goal())},
      {.file = "job.bin", .format = "goal", .bytes = GoalBinaryOf(Goal())},
      {.file = "job.txt", .format = "aicb", .bytes = Aicb(), .options = {.ranks = 4}},
      {.file = "kineto.json", .format = "kineto", .bytes = Kineto()},
      {.file = "execution_trace.json", .format = "pytorch-et", .bytes = ExecutionTrace()},
      {.file = "flight_recorder_0", .format = "flight-recorder", .bytes = FlightRecorder()},
      {.file = "pickle_0", .format = "flight-recorder", .bytes = Pickle()},
      {.file = "inspector.log", .format = "inspector", .bytes = Inspector()},
      {.file = "nccl.log", .format = "nccl-log", .bytes = NcclLog()},
      {.file = "nccl_profiler.json",
       .format = "nccl-profiler",
       .bytes = NcclProfiler(),
       .options = {.ranks = 4}},
      {.file = "nccl_tests.txt", .format = "nccl-tests", .bytes = NcclTests()},
      {.file = "nccl_tests.json", .format = "nccl-tests", .bytes = NcclTestsJson()},
      {.file = "nsys.sqlite", .format = "nsys", .bytes = Nsys()}};
}

}  // namespace railyard::testing
