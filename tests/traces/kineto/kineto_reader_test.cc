// SPDX-License-Identifier: GPL-2.0-only
#include "traces/kineto/kineto_reader.h"

#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/kineto/kineto_text.h"
#include "traces/kineto/kineto_time.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

TEST(KinetoTimeTest, DecimalsAreExact) {
  const auto time = ParseEventTime("4458676524670.502");
  ASSERT_TRUE(time);
  EXPECT_EQ(time->microseconds, 4'458'676'524'670);
  EXPECT_EQ(time->picoseconds, 502'000);
  EXPECT_EQ(ParseEventTime("1.5e3")->microseconds, 1500);
  for (const char* none : {"", "NaN", "Infinity", "1e300", "x", "99999999999999999999"}) {
    EXPECT_FALSE(ParseEventTime(none)) << none;
  }
  EXPECT_EQ(PicosecondsBetween({10, 500'000}, {12, 0}), 1'500'000);
  EXPECT_FALSE(PicosecondsBetween({0, 0}, {int64_t{1} << 59, 0}));
}

TEST(KinetoReaderTest, GapsAndDurationsAreThoseOfEachStream) {
  // The GPU begins at 100; stream 7 is free again at 130, stream 9 not before 150.
  const std::string events =
      R"({"ph": "X", "cat": "kernel", "name": "gemm", "ts": 100, "dur": 5, "args": {}},)" +
      Kernel("110.5", "19.5", 7, 1, kAllReduce) + "," + Kernel("140", "10", 9, 2, kAllReduce) +
      "," + Kernel("170", "1.25", 7, 3, kAllReduce);
  const Imported imported = Import({File(0, events)});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  const auto& program = imported.import.trace->operations[GlobalRank{0}];
  ASSERT_EQ(program.size(), 3u);
  EXPECT_EQ(program[0].compute_before_ps, 10'500'000);
  EXPECT_EQ(program[0].measured_ps, 19'500'000);
  EXPECT_EQ(program[1].stream, 1u);
  EXPECT_EQ(program[1].compute_before_ps, 40'000'000);
  EXPECT_EQ(program[2].stream, 0u);
  EXPECT_EQ(program[2].compute_before_ps, 40'000'000);
  EXPECT_EQ(program[2].measured_ps, 1'250'000);
  EXPECT_EQ(program[2].count, 1000u);
  // Rank 1 makes the same calls.
  EXPECT_EQ(imported.import.trace->operations[GlobalRank{1}].size(), 3u);
  EXPECT_EQ(imported.import.report.calls_reconstructed, 3u);
}

TEST(KinetoReaderTest, TimesMayBeIgnored) {
  const Imported imported = Import(
      {File(0, Kernel("10", "1", 7, 1, kAllReduce) + "," + Kernel("20", "1", 7, 2, kAllReduce))},
      {.ignore_times = true});
  ASSERT_TRUE(imported.import.trace);
  EXPECT_EQ(imported.import.trace->operations[GlobalRank{0}][1].compute_before_ps, 0);
}

// The execution trace of rank 0, version 1.0.1: each call's collective and elements.
std::string ExecutionTrace(const std::vector<std::pair<std::string, int>>& calls) {
  std::string nodes;
  for (const auto& [collective, elements] : calls) {
    nodes += fmt::format(
        R"j({}{{"name": "record_param_comms", "id": {}, "inputs": [[1, 2, 0, {}, 4, "cuda:0"], 7, 94,
0, "{}", [], []], "input_shapes": [[{}], [], [], [], [], [], []], "input_types": ["Tensor(float)",
"Int", "Int", "Int", "String", "GenericList[]", "GenericList[]"], "outputs": [[3, 4, 0, {}, 4,
"cuda:0"]], "output_shapes": [[{}]], "output_types": ["Tensor(float)"]}})j",
        nodes.empty() ? "" : ",", nodes.size() + 1, elements, collective, elements, elements,
        elements);
  }
  return R"({"schema": "1.0.1", "pid": 1, "time": "2023-09-07 16:10:01", "start_ts": 1,
"nodes": [)" +
         nodes + "]}";
}

TEST(KinetoReaderTest, AnExecutionTraceGivesSizesToKernelsInOrder) {
  const std::string profile =
      File(0, Kernel("30", "3", 7, 2, "") + "," + Kernel("10", "2", 7, 1, ""));
  const Imported imported =
      Import({profile, ExecutionTrace({{"all_reduce", 100}, {"all_reduce", 200}})});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.report.format, "kineto");
  EXPECT_EQ(imported.import.report.calls_seen(), 2u);
  const auto& program = imported.import.trace->operations[GlobalRank{0}];
  ASSERT_EQ(program.size(), 2u);
  EXPECT_EQ(program[0].count, 100u);
  EXPECT_EQ(program[0].measured_ps, 2'000'000);
  EXPECT_EQ(program[1].count, 200u);
  EXPECT_EQ(program[1].measured_ps, 3'000'000);
}

TEST(KinetoReaderTest, AnExecutionTraceOfOtherCallsIsNotGuessedAt) {
  const std::string profile =
      File(0, Kernel("10", "2", 7, 1, "") + "," + Kernel("30", "3", 7, 2, ""));
  const auto report_of = [&](const std::vector<std::pair<std::string, int>>& calls) {
    const Imported imported = Import({profile, ExecutionTrace(calls)});
    EXPECT_FALSE(imported.import.trace);
    EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kSizesNotRecorded).count, 2u);
    return imported.import.report.ToString();
  };
  EXPECT_THAT(report_of({{"all_reduce", 100}}), HasSubstr("1 calls are not 2 kernels"));
  EXPECT_THAT(report_of({{"all_reduce", 100}, {"all_to_all", 200}}),
              HasSubstr("call 2 is all_to_all, which ncclDevKernel_AllReduce_Sum_f32_RING_LL "
                        "cannot be"));
}

TEST(KinetoReaderTest, AKernelWithoutSizesHasThoseOfTheRecordThatLaunchedIt) {
  const std::string record =
      R"(,{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 1, "dur": 1, "args":
{"External id": 5, "Collective name": "broadcast", "dtype": "BFloat16", "In msg nelems": 64,
"Out msg nelems": 64, "Group size": 2, "Process Group Ranks": [0, 1], "Rank": 1}})";
  const Imported imported =
      Import({File(0, Kernel("1", "1", 7, 5, "") + "," + Kernel("3", "1", 7, 6, "") + record)});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kSizesNotRecorded).count, 1u);
  ASSERT_EQ(imported.import.trace->operations[GlobalRank{0}].size(), 1u);
  const TraceOperation& call = imported.import.trace->operations[GlobalRank{0}][0];
  EXPECT_EQ(call.kind, CollectiveKind::kBroadcast);
  EXPECT_EQ(call.datatype, Datatype::kBfloat16);
  EXPECT_EQ(call.root, 1u);
}

TEST(KinetoReaderTest, AnAllToAllOfUnequalPartsIsItsSendsAndReceives) {
  const auto exchange = [](const std::string& in, const std::string& out, int in_all, int out_all) {
    return Kernel("1", "1", 7, 1,
                  fmt::format(R"(, "Collective name": "all_to_allv", "In msg nelems": {},
"Out msg nelems": {}, "In split size": "{}", "Out split size": "{}", "Group size": 2,
"dtype": "Int", "Process Group Name": "0", "Process Group Ranks": "[0, 1]")",
                              in_all, out_all, in, out));
  };
  // Rows of 4 elements: rank 0 keeps 1 and sends 3, rank 1 sends 2 and keeps 0.
  const Imported imported = Import({File(0, exchange("[1, 3]", "[1, 2]", 16, 12)),
                                    File(1, exchange("[2, 0]", "[3, 0]", 8, 12))});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.report.by_kind[static_cast<size_t>(CollectiveKind::kAllToAll)].calls,
            2u);
  EXPECT_EQ(imported.import.report.by_kind[static_cast<size_t>(CollectiveKind::kAllToAll)].bytes,
            (16u + 8u) * 4u);
  const auto& program = imported.import.trace->operations[GlobalRank{0}];
  ASSERT_EQ(program.size(), 4u);
  EXPECT_EQ(program[2].kind, CollectiveKind::kSend);
  EXPECT_EQ(program[2].peer, 1u);
  EXPECT_EQ(program[2].count, 12u);
  EXPECT_EQ(program[3].count, 8u);
  EXPECT_EQ(program[3].all_to_all, 1u);
}

// PyTorch's saveNcclMeta() states the peer twice: "Rank" is a rank of the group, "Dst Rank" and
// "Src Rank" are global. Groups are [0, 2] and [3, 1].
TEST(KinetoReaderTest, PeersOfSubgroupsAreRanksOfTheirGroup) {
  const auto file = [](uint32_t rank, const std::string& name, const std::string& peer) {
    const bool is_even = rank % 2 == 0;
    std::string text = File(
        rank,
        Kernel("1", "1", 7, 1,
               fmt::format(R"(, "Collective name": "{}", "In msg nelems": 100,
"Out msg nelems": 100, "Group size": 2, "dtype": "Float", "Process Group Name": "{}",
"Process Group Ranks": "{}", {})",
                           name, is_even ? "even" : "odd", is_even ? "[0, 2]" : "[3, 1]", peer)));
    const std::string two = "\"world_size\": 2";
    return text.replace(text.find(two), two.size(), "\"world_size\": 4");
  };
  const std::vector<std::string> both = {file(0, "send", R"("Rank": 1, "Dst Rank": 2)"),
                                         file(1, "recv", R"("Rank": 0, "Src Rank": 3)"),
                                         file(2, "recv", R"("Rank": 0, "Src Rank": 0)"),
                                         file(3, "send", R"("Rank": 1, "Dst Rank": 1)")};
  const std::vector<std::string> global = {
      file(0, "send", R"("Dst Rank": 2)"), file(1, "recv", R"("Src Rank": 3)"),
      file(2, "recv", R"("Src Rank": 0)"), file(3, "send", R"("Dst Rank": 1)")};
  for (const auto& texts : {both, global}) {
    const Imported imported = Import(texts);
    ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
    EXPECT_EQ(imported.import.report.calls_imported(), 4u);
    for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{3}}) {
      ASSERT_EQ(imported.import.trace->operations[GlobalRank{rank}].size(), 1u);
      EXPECT_EQ(imported.import.trace->operations[GlobalRank{rank}][0].kind, CollectiveKind::kSend);
      EXPECT_EQ(imported.import.trace->operations[GlobalRank{rank}][0].peer, 1u);
    }
    EXPECT_EQ(imported.import.trace->operations[GlobalRank{1}][0].peer, 0u);
    EXPECT_EQ(imported.import.trace->operations[GlobalRank{2}][0].peer, 0u);
  }
  const Imported outside = Import({file(0, "send", R"("Dst Rank": 1)")});
  EXPECT_EQ(outside.import.report.DroppedFor(CallDropReason::kMalformedRecord).count, 1u);
  EXPECT_THAT(outside.import.report.ToString(), HasSubstr("its peer 1 is not in its group"));
}

// Returns the host's record of a Send or Recv to or from the other of two ranks, in a batch: the
// kernel is launched after it, when the batch ends.
std::string Message(const std::string& start, const std::string& name, uint32_t rank, int elements,
                    int external_id, const std::string& sequence = "") {
  return fmt::format(
      R"({{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 9, "tid": 9,
"ts": {}, "dur": 0.5, "args": {{"External id": {}, "Collective name": "{}", "dtype": "Float",
"In msg nelems": {}, "Out msg nelems": {}, "Group size": 2, "Process Group Name": "0",
"Process Group Ranks": "[0, 1]", "Rank": {}{}}}}})",
      start, external_id, name, elements, elements, 1 - rank, sequence);
}

std::string EndOfBatch(const std::string& start) {
  return fmt::format(
      R"({{"ph": "X", "cat": "user_annotation", "name": "nccl:coalesced", "pid": 9, "tid": 9,
"ts": {}, "dur": 1}})",
      start);
}

std::string SendRecvKernel(const std::string& start, const std::string& duration, int correlation,
                           int external_id) {
  return fmt::format(
      R"({{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv",
"pid": 0, "tid": 20, "ts": {}, "dur": {},
"args": {{"device": 0, "stream": 20, "correlation": {}, "External id": {}}}}})",
      start, duration, correlation, external_id);
}

// Each rank sends to the other and receives from it in one batch, twice, and once more by itself:
// without batches the two first Sends would wait for each other.
TEST(KinetoReaderTest, ABatchOfMessagesIsTheKernelThatRunsIt) {
  for (const bool has_marks : {true, false}) {
    const auto file = [&](uint32_t rank) {
      const auto sequence = [&](int number) {
        return has_marks ? "" : fmt::format(R"(, "Seq": {})", number);
      };
      const std::string mark = has_marks ? EndOfBatch("12") + "," + EndOfBatch("22") + "," : "";
      return File(rank, mark + Message("10", "send", rank, 100, 1, sequence(1)) + "," +
                            Message("11", "recv", rank, 100, 2, sequence(1)) + "," +
                            Message("20", "send", rank, 300, 3, sequence(2)) + "," +
                            Message("21", "recv", rank, 300, 4, sequence(2)) + "," +
                            Message("30", rank == 0 ? "send" : "recv", rank, 7, 5, sequence(3)) +
                            "," + SendRecvKernel("130", "2", 103, 5) + "," +
                            SendRecvKernel("115", "5", 102, 0) + "," +
                            SendRecvKernel("100", "10", 101, 0));
    };
    const Imported imported = Import({file(0), file(1)});
    ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
    EXPECT_EQ(imported.import.report.calls_seen(), 10u);
    EXPECT_EQ(imported.import.report.calls_imported(), 10u);
    const auto& program = imported.import.trace->operations[GlobalRank{1}];
    ASSERT_EQ(program.size(), 5u);
    EXPECT_NE(program[0].group, 0u);
    EXPECT_EQ(program[0].group, program[1].group);
    EXPECT_EQ(program[2].group, program[3].group);
    EXPECT_NE(program[0].group, program[2].group);
    EXPECT_EQ(program[4].group, 0u);
    EXPECT_EQ(program[0].kind, CollectiveKind::kSend);
    EXPECT_EQ(program[1].kind, CollectiveKind::kRecv);
    EXPECT_EQ(program[1].count, 100u);
    EXPECT_EQ(program[3].count, 300u);
    EXPECT_EQ(program[1].measured_ps, 10'000'000);
    EXPECT_EQ(program[2].compute_before_ps, 5'000'000);
    EXPECT_EQ(program[3].compute_before_ps, 0);
    EXPECT_EQ(program[4].measured_ps, 2'000'000);
  }
}

TEST(KinetoReaderTest, BatchesThatAreNotTheKernelsAreNotGuessedAt) {
  const Imported imported = Import({File(
      0, Message("10", "send", 0, 100, 1) + "," + EndOfBatch("12") + "," +
             SendRecvKernel("100", "10", 101, 0) + "," + SendRecvKernel("120", "10", 102, 0))});
  EXPECT_FALSE(imported.import.trace);
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kSizesNotRecorded).count, 2u);
  EXPECT_THAT(imported.import.report.ToString(),
              HasSubstr("1 batches of Sends and Recvs are not 2 kernels"));
}

// NCCL runs a group of many Sends and Recvs by several kernels.
TEST(KinetoReaderTest, KernelsOfOneLaunchAreOneCall) {
  const auto file = [](uint32_t rank) {
    return File(rank, Message("10", rank == 0 ? "send" : "recv", rank, 100, 5) + "," +
                          SendRecvKernel("100", "10", 101, 5) + "," +
                          SendRecvKernel("112", "8", 102, 5));
  };
  const Imported imported = Import({file(0), file(1)});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.report.calls_seen(), 2u);
  ASSERT_EQ(imported.import.trace->operations[GlobalRank{0}].size(), 1u);
  EXPECT_EQ(imported.import.trace->operations[GlobalRank{0}][0].measured_ps, 20'000'000);
}

// PyTorch lists 30 parts at most.
TEST(KinetoReaderTest, ListsOfPartsThatAreShortenedAreNoSizes) {
  const std::string exchange =
      Kernel("1", "1", 7, 1, R"(, "Collective name": "all_to_allv", "In msg nelems": 64,
"Out msg nelems": 64, "In split size": "[3, 1, ..., 1]", "Out split size": "[3, 1, ..., 1]",
"Group size": 32, "dtype": "Int", "Process Group Name": "0")");
  const Imported imported = Import({File(0, exchange)});
  EXPECT_FALSE(imported.import.trace);
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kSizesNotRecorded).count, 1u);
  EXPECT_THAT(imported.import.report.ToString(), HasSubstr("not all of its parts are listed"));
}

// RCCL runs AllReduces by kernels of MSCCL, too.
TEST(KinetoReaderTest, KernelsOfMscclAreCalls) {
  std::string kernel = Kernel("1", "1", 7, 1, kAllReduce);
  const std::string name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
  kernel.replace(kernel.find(name), name.size(),
                 "mscclKernel_Sum_float_Simple_false(ncclDevComm*, mscclAlgo*, mscclWork*)");
  const Imported imported = Import({File(0, kernel), File(1, kernel)});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.report.calls_imported(), 2u);
}

// RCCL runs small AllReduces by kernels of MSCCL++, PyTorch copies by copy engines.
TEST(KinetoReaderTest, CollectivesWithoutAKernelAreNoted) {
  const Imported imported =
      Import({File(0, HostRecord(1, "allreduce", 8, 8) + "," + HostRecord(2, "allreduce", 8, 8) +
                          "," + HostRecord(3, "wait", 8, 8) + "," + Kernel("20", "1", 7, 1, ""))});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.report.calls_imported(), 1u);
  EXPECT_THAT(
      imported.import.report.assumed,
      ::testing::Contains(HasSubstr("1 collectives that the host recorded have no kernel")));
}

TEST(KinetoReaderTest, AnAllGatherByBroadcastsIsOfUnequalSizes) {
  std::string kernel = Kernel("20", "1", 7, 1, "");
  kernel.replace(kernel.find("AllReduce_Sum_f32"), 17, "Broadcast");
  const Imported imported = Import({File(0, HostRecord(1, "all_gather", 100, 300) + "," + kernel)});
  EXPECT_FALSE(imported.import.trace);
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kSizesNotRecorded).count, 1u);
}

// As torchcomms records them: an AllGather's output is stated as its input, and an AllToAll's
// tensors as one part each.
TEST(KinetoReaderTest, TorchcommsStatesElementsInAWayOfItsOwn) {
  const char* const whole = R"(, "In split size": "[4096]", "Out split size": "[4096]")";
  const Imported imported =
      Import({File(0, HostRecord(1, "all_gather", 4096, 2048) + "," +
                          HostRecord(2, "all_to_all_single", 4096, 4096, whole) + "," +
                          HostRecord(3, "all_to_all_v_single", 4096, 4096, whole) + "," +
                          Kernel("20", "1", 7, 1, "") + "," + Kernel("30", "1", 7, 2, "") + "," +
                          Kernel("40", "1", 7, 3, ""))});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  const auto& program = imported.import.trace->operations[GlobalRank{0}];
  ASSERT_EQ(program.size(), 2u);
  EXPECT_EQ(program[0].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(program[0].count, 2048u);
  EXPECT_EQ(program[1].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(program[1].count, 2048u);
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kSizesNotRecorded).count, 1u);
}

TEST(KinetoReaderTest, HostileFilesAreFindingsOrCountedDrops) {
  const std::string nested(100'000, '[');
  const std::string huge =
      Kernel("1", "1", 7, 1,
             R"(, "Collective name": "allreduce", "In msg nelems": 1000000000000000,
"Group size": 2, "dtype": "Double", "Process Group Ranks": "[0, 1]")");
  struct Case {
    std::string text;
    std::string finding;
  };
  const std::vector<Case> cases = {
      {File(0, Kernel("1", "1", 7, 1, kAllReduce)).substr(0, 400), "the file ends early"},
      {File(0, nested), "nested too deeply"},
      {File(0, Kernel("NaN", "1", 7, 1, kAllReduce)), "malformed record"},
      {File(0, Kernel("1", "1", 7, 1, ", \"Collective name\": \"dance\", \"In msg nelems\": 1")),
       "unsupported kind"},
      {File(0, huge), "out of range"},
      {File(0, ""), "holds no collective call"},
      {File(4'000'000'000, Kernel("1", "1", 7, 1, kAllReduce)), "ranks (expected at most"},
  };
  for (const Case& c : cases) {
    const Imported imported = Import({c.text});
    EXPECT_FALSE(imported.import.trace) << c.finding;
    EXPECT_THAT(imported.diagnostics.ToString(), HasSubstr(c.finding));
    const ImportReport& report = imported.import.report;
    EXPECT_EQ(report.calls_seen(), report.calls_imported() + report.calls_dropped()) << c.finding;
  }
}

std::string Elements(const std::string& number) {
  return std::regex_replace(std::string(kAllReduce), std::regex("nelems\": 1000"),
                            "nelems\": " + number);
}

TEST(KinetoReaderTest, TextBehindTheDocumentIsAnError) {
  const std::string file = File(0, Kernel("1", "2", 7, 1, kAllReduce));
  const Imported imported = Import({file + "\n" + file});
  EXPECT_FALSE(imported.import.trace);
  EXPECT_THAT(imported.diagnostics.ToString(),
              HasSubstr(fmt::format("byte {}: text follows the JSON document", file.size() + 1)));
  EXPECT_TRUE(Import({file + " \r\n\t"}).import.trace);
}

TEST(KinetoReaderTest, AProfileOfTheHostAloneSaysWhatToCapture) {
  const Imported imported = Import(
      {File(0, fmt::format(
                   R"({{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 1, "dur": 2,
"args": {{"External id": 3{}}}}})",
                   kAllReduce))});
  EXPECT_FALSE(imported.import.trace);
  EXPECT_THAT(imported.diagnostics.ToString(), HasSubstr("ProfilerActivity.CUDA"));
}

TEST(KinetoReaderTest, DurationsThatAreNoneAreCounted) {
  std::string events;
  int correlation = 0;
  for (const char* duration : {"Infinity", "NaN", "1e300", "-1", "5"}) {
    ++correlation;
    events += (correlation == 1 ? "" : ",") +
              Kernel(std::to_string(100 * correlation), duration, 7, correlation, kAllReduce);
  }
  const Imported imported = Import({File(0, events)});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.report.calls_imported(), 5u);
  EXPECT_THAT(imported.import.report.ToString(),
              HasSubstr("4 calls state a duration that is none"));
}

TEST(KinetoReaderTest, NumbersOfElementsThatCannotBeAreDroppedForAReason) {
  std::string events;
  int correlation = 0;
  for (const char* elements : {"10000000000000000000000000", "-1", "1.5", "1000"}) {
    ++correlation;
    events += (correlation == 1 ? "" : ",") +
              Kernel(std::to_string(100 * correlation), "5", 7, correlation, Elements(elements));
  }
  const Imported imported = Import({File(0, events)});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  const ImportReport& report = imported.import.report;
  EXPECT_EQ(report.calls_imported(), 1u);
  EXPECT_EQ(report.DroppedFor(CallDropReason::kOutOfRange).count, 1u);
  EXPECT_EQ(report.DroppedFor(CallDropReason::kMalformedRecord).count, 2u);
  EXPECT_EQ(report.DroppedFor(CallDropReason::kMalformedRecord).first_lines[0].detail,
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL: -1 elements");
}

}  // namespace
}  // namespace railyard
