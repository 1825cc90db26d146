// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_tests/nccl_tests_reader.h"

#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/traces/imported_files.h"
#include "traces/nccl_tests/nccl_tests_line.h"
#include "workloads/job/job.h"

namespace railyard {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::ImportedFiles;

// Returns what a program prints before its rows (src/util.cu of nccl-tests 2.18).
std::string Head(const std::string& test, int ranks) {
  std::string head =
      "# nccl-tests version 2.18.3 nccl-headers=23003 nccl-library=22903\n"
      "# Collective test starting: " +
      test +
      "\n"
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 1 iters: 20 agg "
      "iters: 1 validation: 1 graph: 0 unalign: 0\n#\n# Using devices\n";
  for (int rank = 0; rank < ranks; ++rank) {
    head += fmt::format(
        "#  Rank {:2} Group  0 Pid {:6} on   gpu-node device {:2} [0000:0a:00] NVIDIA H100\n", rank,
        100 + rank, rank);
  }
  return head +
         "#\n#       size         count      type   redop    root     time   algbw   busbw\n";
}

std::string Row(uint64_t bytes, uint64_t count, const std::string& times,
                const std::string& type = "float", int root = -1) {
  return fmt::format("{:12}  {:12}  {:>8}  {:>6}  {:>6}  {}\n", bytes, count, type, "sum", root,
                     times);
}

const char* const kTimes = "  29.25    0.04    0.06       0    12.50    0.08    0.12       0";

TEST(NcclTestsReaderTest, EachHalfOfARowIsACallWithItsTime) {
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write(
      "out.txt", "srun: job 7 queued\n" + Head("all_reduce_perf", 4) + Row(1024, 256, kTimes) +
                     Row(2048, 1024, kTimes, "half") + "# Avg bus bandwidth    : 0.09\n")});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.report.format, "nccl-tests");
  EXPECT_EQ(import.report.nccl_version, "2.29.3");
  EXPECT_EQ(files.Kind(CollectiveKind::kAllReduce), std::pair(uint64_t{4}, uint64_t{6144}));
  EXPECT_EQ(import.trace->rank_count, 4u);
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    const auto& program = import.trace->operations[GlobalRank{rank}];
    ASSERT_EQ(program.size(), 4u);
    EXPECT_EQ(program[0].measured_ps, 29'250 * kPsPerNs);
    EXPECT_EQ(program[1].measured_ps, 12'500 * kPsPerNs);
    EXPECT_EQ(program[2].datatype, Datatype::kFloat16);
    EXPECT_EQ(program[2].count, 1024u);
  }
  Diagnostics diagnostics;
  const auto job = BuildJob(*import.trace, diagnostics);
  ASSERT_TRUE(job) << diagnostics.ToString();
  ASSERT_EQ(job->collectives.size(), 4u);
  EXPECT_EQ(job->collectives[1].measured_ps, 12'500 * kPsPerNs);
}

struct TestCase {
  const char* program;
  CollectiveKind kind;
  uint64_t count;  // elements of 4 bytes, of 4 KiB on 4 ranks
  int root;
};

class NcclTestsKindTest : public ::testing::TestWithParam<TestCase> {};

// Counts are those of src/*.cu: the size is that of the larger buffer, the count the API's.
TEST_P(NcclTestsKindTest, IsReplayable) {
  const TestCase& c = GetParam();
  ImportedFiles files;
  const TraceImport& import = files.Import(
      {files.Write("out.txt", Head(c.program, 4) + Row(4096, c.count, kTimes, "float", c.root))});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(files.Kind(c.kind).first, 2u);
  Diagnostics diagnostics;
  const auto job = BuildJob(*import.trace, diagnostics);
  ASSERT_TRUE(job) << diagnostics.ToString();
  ASSERT_EQ(job->collectives.size(), 2u);
  EXPECT_EQ(job->collectives[0].kind, c.kind);
  EXPECT_EQ(job->collectives[0].bytes, 4096u);
  EXPECT_EQ(job->collectives[0].rank_count, 4u);
  EXPECT_EQ(job->collectives[0].root, c.root < 0 ? 0u : static_cast<uint32_t>(c.root));
  EXPECT_EQ(job->collectives[0].measured_ps, 29'250 * kPsPerNs);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, NcclTestsKindTest,
    ::testing::Values(TestCase{"all_reduce_perf", CollectiveKind::kAllReduce, 1024, -1},
                      TestCase{"all_gather_perf", CollectiveKind::kAllGather, 256, -1},
                      TestCase{"reduce_scatter_perf", CollectiveKind::kReduceScatter, 256, -1},
                      TestCase{"broadcast_perf", CollectiveKind::kBroadcast, 1024, 2},
                      TestCase{"reduce_perf", CollectiveKind::kReduce, 1024, 3},
                      TestCase{"alltoall_perf", CollectiveKind::kAllToAll, 256, -1},
                      TestCase{"gather_perf", CollectiveKind::kGather, 256, 0},
                      TestCase{"scatter_perf", CollectiveKind::kScatter, 256, 1},
                      TestCase{"sendrecv_perf", CollectiveKind::kSend, 1024, -1}),
    [](const auto& param) { return std::string(param.param.program); });

TEST(NcclTestsReaderTest, JsonSaysWhatTheTextSays) {
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write("out.json", R"({"version": 2,
    "start_time": "2025-01-01 00:00:00", "args": ["./build/all_gather_perf", "-J", "out.json"],
    "env": ["PATH=/bin"], "nccl_version": 22903, "config": {"nthreads": 1, "ngpus": 2, "devices": [
      {"rank": 0, "group": 0, "pid": 1, "hostname": "a", "device": 0},
      {"rank": 2, "group": 0, "pid": 2, "hostname": "b", "device": 0}]},
    "results": [{"size": 4096, "count": 256, "type": "float", "redop": "none", "root": "    -1",
      "out_of_place": {"time": 29.250000, "alg_bw": 0.1, "bus_bw": 0.1, "nwrong": 0.000000},
      "in_place": {"time": 12.500000, "alg_bw": 0.1, "bus_bw": 0.1, "nwrong": null},
      "actual_iterations": 20, "experiment_name": "all_gather_perf"},
      {"size": 4096, "count": 256, "type": "float", "redop": "none", "root": "    -1",
      "out_of_place": null, "in_place": {"time": "nan"}}],
    "end_time": "2025-01-01 00:00:01"})")});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.report.nccl_version, "2.29.3");
  EXPECT_EQ(files.Kind(CollectiveKind::kAllGather), std::pair(uint64_t{2}, uint64_t{8192}));
  EXPECT_EQ(files.Dropped(CallDropReason::kMalformedRecord), 1u);
  EXPECT_EQ(import.trace->rank_count, 4u);  // two processes of two GPUs
  EXPECT_EQ(import.trace->operations[GlobalRank{3}][0].measured_ps, 29'250 * kPsPerNs);
}

TEST(NcclTestsReaderTest, TablesOfDifferentNumbersOfRanksAreOneJob) {
  ImportedFiles files;
  const TraceImport& import =
      files.Import({files.Write("a.txt", Head("all_reduce_perf", 2) + Row(1024, 256, kTimes) +
                                             Head("all_reduce_perf", 4) + Row(2048, 512, kTimes))});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.trace->rank_count, 4u);
  EXPECT_EQ(import.trace->operations[GlobalRank{1}].size(), 4u);
  EXPECT_EQ(import.trace->operations[GlobalRank{2}].size(), 2u);
  Diagnostics diagnostics;
  ASSERT_TRUE(BuildJob(*import.trace, diagnostics)) << diagnostics.ToString();
}

TEST(NcclTestsReaderTest, WhatIsNotStatedIsTakenFromTheNameOfTheFileAndTheOptionOrDropped) {
  const std::string old =
      "# nThread 1 nGpus 4 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 1 iters: 20\n" +
      Row(1024, 256, kTimes);
  ImportedFiles files;
  const std::string named = files.Write("all_reduce_perf.txt", old);
  ASSERT_TRUE(files.Import({named}, {.ranks = 4}).trace) << files.findings();
  EXPECT_THAT(files.import().report.assumed, Contains(HasSubstr("in the name of their file")));
  EXPECT_FALSE(files.Import({named}).trace);
  EXPECT_EQ(files.Dropped(CallDropReason::kRanksMissing), 2u);
  EXPECT_FALSE(files.Import({files.Write("out.txt", old)}, {.ranks = 4}).trace);
  EXPECT_EQ(files.Dropped(CallDropReason::kUnnamedOperation), 2u);
  EXPECT_THAT(files.findings(), HasSubstr("out.txt:2:1: error: none of the 2 calls"));
  EXPECT_THAT(files.findings(), HasSubstr("e.g. all_reduce_perf.txt"));
}

TEST(NcclTestsReaderTest, RowsThatCannotBeAreDroppedForAReason) {
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write(
      "out.txt", Head("broadcast_perf", 4) + Row(1024, 256, kTimes, "float", 0) +
                     Row(1024, 255, kTimes, "float", 0) + Row(0, 0, kTimes, "float", 0) +
                     Row(1024, 256, kTimes, "float", 4) + Row(1024, 256, kTimes, "quad", 0) +
                     Row(1024, 256, "0.00 0 0 0 N/A 0 0 N/A", "float", 0) +
                     Row(uint64_t{1} << 62, uint64_t{1} << 60, kTimes, "float", 0))});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(files.Kind(CollectiveKind::kBroadcast).first, 2u);
  EXPECT_EQ(files.Dropped(CallDropReason::kMalformedRecord), 3u);  // two sizes and a time of 0
  EXPECT_EQ(files.Dropped(CallDropReason::kZeroCount), 2u);
  EXPECT_EQ(files.Dropped(CallDropReason::kOutOfRange), 4u);
  EXPECT_EQ(files.Dropped(CallDropReason::kUnknownDatatype), 2u);
}

TEST(NcclTestsReaderTest, DefectiveRowsOfATableAreCounted) {
  ImportedFiles files;
  const std::string row = Row(1024, 256, kTimes);
  const TraceImport& import = files.Import({files.Write(
      "out.txt", "7 nodes\n" + Head("all_reduce_perf", 4) + row +
                     "100000000000000000000 256 float sum -1" + kTimes + "\n" +
                     "1024 25x6 float sum -1" + kTimes + "\n" + "[2026-11-27] a line of the job\n" +
                     "# Avg bus bandwidth    : 0.09\n2 nodes are released\n" +
                     Head("all_reduce_perf", 4) + row.substr(0, row.size() / 2))});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(files.Kind(CollectiveKind::kAllReduce).first, 2u);
  EXPECT_EQ(files.Dropped(CallDropReason::kMalformedRecord), 2u);
  ASSERT_EQ(files.Dropped(CallDropReason::kTruncatedLine), 1u);
  EXPECT_THAT(import.report.DroppedFor(CallDropReason::kTruncatedLine).first_lines[0].detail,
              HasSubstr("(expected 13 or more)"));
  EXPECT_EQ(import.report.DroppedFor(CallDropReason::kMalformedRecord).first_lines[1].detail,
            "its count is 25x6 (expected a number of 64 bits)");
}

TEST(NcclTestsReaderTest, PrefixesOfLaunchersAreNotPartOfARow) {
  const std::string text = Head("all_gather_perf", 4) + Row(1024, 64, kTimes);
  for (const std::string prefix :
       {"0: ", " 12: ", "[0] ", "[1,0]<stdout>:", "[1,0]<stdout>: ",
        "[prterun-host-7@1,0]<stdout>: ", "node-1: ", "[pod/nccl-tests-0/main] ", "worker-1  | ",
        "2026-01-31T12:00:00.000000000Z stdout F ", "2026-02-03T10:11:12.123456789Z ",
        "[pod/x/launcher] 2026-02-03T10:11:12Z ", "2026-02-03T10:11:12.123456Z 01O ",
        "Feb 03 10:11:12 ", "Tue Feb  3 10:11:12 2026[1,0]<stdout>:"}) {
    std::string prefixed;
    size_t begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      prefixed += prefix + text.substr(begin, end + 1 - begin);
      begin = end + 1;
    }
    ImportedFiles files;
    ASSERT_TRUE(files.Import({files.Write("out.txt", prefixed)}).trace)
        << prefix << files.findings();
    EXPECT_EQ(files.Kind(CollectiveKind::kAllGather).first, 2u) << prefix;
    EXPECT_EQ(files.import().trace->rank_count, 4u) << prefix;
  }
}

// As rccl-tests prints: no version line, devices of AMD, and its own names of 8-bit floats.
TEST(NcclTestsReaderTest, TablesOfRcclTestsAreRead) {
  std::string text =
      "# Collective test starting: reduce_scatter_perf\n"
      "# nThread 1 nGpus 2 minBytes 4096 maxBytes 4096 step: 2(factor) warmup iters: 5 iters: 20 "
      "agg iters: 1 validation: 1 graph: 0\n#\nrccl-tests: Version develop:448c4c7\n"
      "# Using devices\n";
  for (int rank = 0; rank < 2; ++rank) {
    text += fmt::format(
        "#   Rank {0:2} Pid  1584 on mi300-node device {0:2} [0000:0{0}:00.0] AMD Instinct "
        "MI300X\n",
        rank);
  }
  ImportedFiles files;
  const TraceImport& import =
      files.Import({files.Write("out.txt", text + Row(4096, 2048, kTimes, "fp8_e4m3") +
                                               Row(4096, 1024, kTimes, "bfloat16"))});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.trace->rank_count, 2u);
  EXPECT_EQ(files.Kind(CollectiveKind::kReduceScatter), std::pair(uint64_t{4}, uint64_t{16384}));
  EXPECT_EQ(import.trace->operations[GlobalRank{1}][0].datatype, Datatype::kFloat8E4M3);
  EXPECT_EQ(import.trace->operations[GlobalRank{1}][2].datatype, Datatype::kBfloat16);
}

// A log without its calls (NCCL_DEBUG=WARN, or INFO without NCCL_DEBUG_SUBSYS) says less than the
// table that it surrounds, and one with them more.
TEST(NcclTestsReaderTest, ALogOfNcclAroundTheTableIsReadAsALogIfItHasCalls) {
  const std::string table = Head("all_reduce_perf", 4) + Row(1024, 256, kTimes);
  const std::string call =
      "host:1:1 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 256 datatype 7 "
      "op 0 root 0 comm 0x3 [nranks=4] stream 0x4\n";
  for (const std::string line :
       {"host:1:1 [0] NCCL INFO NCCL version 2.29.3\n", "host:1:1 [0] NCCL WARN a warning\n"}) {
    ImportedFiles files;
    ASSERT_TRUE(files.Import({files.Write("out.txt", line + table)}).trace) << files.findings();
    EXPECT_EQ(files.import().report.format, "nccl-tests");
    ImportedFiles log;
    log.Import({log.Write("out.txt", line + call + table)});
    EXPECT_EQ(log.import().report.format, "nccl-log");
  }
}

// src/util.cu: jsonKey(report_cputime ? "cpu_time" : "time"); the text's header has "cputime".
TEST(NcclTestsReaderTest, TimesOfTheCpuAreNoDurations) {
  ImportedFiles files;
  std::string text = Head("all_reduce_perf", 4) + Row(1024, 256, kTimes);
  text.replace(text.find("    time "), 9, " cputime ");
  const TraceImport& import = files.Import(
      {files.Write("a.txt", text), files.Write("b.json", R"({"start_time": "2025-01-01 00:00:00",
    "args": ["./build/all_reduce_perf"], "nccl_version": 22903, "config": {"devices": [
      {"rank": 0, "group": 0}, {"rank": 1, "group": 0}, {"rank": 2, "group": 0},
      {"rank": 3, "group": 0}]},
    "results": [{"size": 1024, "count": 256, "type": "float", "redop": "sum", "root": "-1",
      "out_of_place": {"cpu_time": 29.25, "alg_bw": 0.1}, "in_place": {"cpu_time": 12.5}}]})")});
  ASSERT_TRUE(import.trace) << files.findings();
  ASSERT_EQ(import.trace->operations[GlobalRank{0}].size(), 4u);
  for (const TraceOperation& operation : import.trace->operations[GlobalRank{0}]) {
    EXPECT_EQ(operation.measured_ps, 0);
  }
  EXPECT_THAT(import.report.assumed, Contains(HasSubstr("have no measured duration")));
}

TEST(NcclTestsReaderTest, NoCallOfAFileThatIsCutShortIsImported) {
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write("b.json", R"({"start_time": "2025-01-01",
    "args": ["./build/all_reduce_perf"], "config": {"devices": [{"rank": 0}, {"rank": 1}]},
    "results": [{"size": 1024, "count": 256, "type": "float", "redop": "sum", "root": "-1",
      "out_of_place": {"time": 29.25}, "in_place": null},)")});
  EXPECT_FALSE(import.trace);
  EXPECT_EQ(files.Kind(CollectiveKind::kAllReduce), std::pair(uint64_t{0}, uint64_t{0}));
  EXPECT_EQ(import.report.calls_seen(), import.report.calls_dropped());
}

// MAX_LINE of src/common.cu: a process lists its devices in 2,048 bytes, then "...".
TEST(NcclTestsReaderTest, ACutListOfDevicesIsCountedByProcesses) {
  std::string text =
      "# Collective test starting: all_reduce_perf\n"
      "# nThread 2 nGpus 16 minBytes 1024 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20 "
      "agg iters: 1 validation: 1 graph: 0\n";
  for (int process = 0; process < 2; ++process) {
    for (int device = 0; device < 22; ++device) {
      text += fmt::format("#  Rank {:2} Group  0 Pid {:6} on  cpx device {:2} [0000:05:00] AMD\n",
                          32 * process + device, 100 + process, device);
    }
    text += fmt::format("#  Rank {} Group  0 Pid   1...\n", 32 * process + 22);
  }
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write("out.txt", text + Row(1024, 256, kTimes))});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.trace->rank_count, 64u);
  EXPECT_THAT(import.report.assumed, Contains(HasSubstr("has cut its list of devices")));
}

// `-O` of rccl-tests runs one half, `-S` and `-A` add a time stamp, and algorithm, protocol and
// channels.
TEST(NcclTestsReaderTest, RowsOfOneHalfAreOneCall) {
  for (const std::string more :
       {"", "  RING   SIMPLE   56", "  2026-02-03 10:11:12  RING  LL  8"}) {
    ImportedFiles files;
    const TraceImport& import = files.Import(
        {files.Write("out.txt", Head("all_reduce_perf", 4) +
                                    Row(1024, 256, "41.00   50.00   93.75       0" + more))});
    ASSERT_TRUE(import.trace) << files.findings();
    ASSERT_EQ(import.trace->operations[GlobalRank{0}].size(), 1u) << more;
    EXPECT_EQ(import.trace->operations[GlobalRank{0}][0].measured_ps, 41 * kPsPerUs);
    EXPECT_EQ(import.report.calls_dropped(), 0u);
    EXPECT_THAT(import.report.assumed, Contains(HasSubstr("rows of one half")));
  }
}

TEST(NcclTestsReaderTest, ALogFarBehindTheHeadIsFound) {
  const std::string table = Head("all_reduce_perf", 2) + Row(1024, 256, kTimes);
  std::string log;
  for (int rank = 0; rank < 2; ++rank) {
    log += fmt::format(
        "host:{0}:1 [{0}] NCCL INFO ncclCommInitRank comm 0x{1} rank {0} nranks 2 cudaDev {0} "
        "nvmlDev {0} busId {1}000 commId 0xa - Init COMPLETE\n",
        rank, rank + 1);
  }
  for (int line = 0; line < 3'000; ++line) {
    log += "host:1:1 [1] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n";
  }
  for (int rank = 0; rank < 2; ++rank) {
    log += fmt::format(
        "host:{0}:1 [{0}] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 256 "
        "datatype 7 op 0 root 0 comm 0x{1} [nranks=2] stream 0x4\n",
        rank, rank + 1);
  }
  std::string unknown;
  for (int line = 0; line < 6'000; ++line) unknown += "a line of the job that says nothing\n";
  for (const std::string& head : {table, unknown}) {
    ImportedFiles files;
    ASSERT_TRUE(files.Import({files.Write("out.txt", head + log)}).trace) << files.findings();
    EXPECT_EQ(files.import().report.format, "nccl-log");
    EXPECT_EQ(files.Kind(CollectiveKind::kAllReduce).first, 2u);
  }
}

// writeResultHeader of src/util.cu names what `-B` and the statistics of iterations add.
TEST(NcclTestsLineTest, TheHeaderSaysWhereTimesAre) {
  NcclTestsColumns columns;
  EXPECT_TRUE(TakeNcclTestsHeader("#    out-of-place    in-place", columns));
  ASSERT_TRUE(TakeNcclTestsHeader(
      "# size count type redop root time algbw busbw #wrong #bitdiff time algbw busbw #wrong "
      "#bitdiff",
      columns));
  const auto bitwise = ParseNcclTestsLine("8 2 float sum -1 1.5 0 0 0 17 2.5 0 0 0 17", columns);
  ASSERT_TRUE(bitwise);
  EXPECT_EQ(bitwise->out_of_place_us, "1.5");
  EXPECT_EQ(bitwise->in_place_us, "2.5");
  EXPECT_FALSE(columns.are_cpu_times);
  // Older tests of collectives without a root have no columns for it.
  columns = {};
  ASSERT_TRUE(TakeNcclTestsHeader(
      "#  size count type cputime algbw busbw error cputime algbw busbw error", columns));
  const auto old = ParseNcclTestsLine("8 2 float 1.5 0 0 0 2.5 0 0 0", columns);
  ASSERT_TRUE(old);
  EXPECT_EQ(old->root, "-1");
  EXPECT_EQ(old->in_place_us, "2.5");
  EXPECT_FALSE(TakeNcclTestsHeader("#        (B)    (elements)     (us)  (GB/s)", columns));
  EXPECT_TRUE(columns.are_cpu_times);
  columns = {};
  EXPECT_TRUE(TakeNcclTestsHeader("#    in-place", columns));
  ASSERT_TRUE(TakeNcclTestsHeader("# size count type redop root time algbw busbw #wrong", columns));
  const auto in_place = ParseNcclTestsLine("8 2 float sum -1 1.5 0 0 0", columns);
  ASSERT_TRUE(in_place);
  EXPECT_EQ(in_place->out_of_place_us, "");
  EXPECT_EQ(in_place->in_place_us, "1.5");
}

TEST(NcclTestsLineTest, StatisticsAndTimeStampsMoveColumns) {
  const auto plain = ParseNcclTestsLine("8 2 float sum -1 1.5 0 0 0 2.5 0 0 0 2025-01-01 00:00:00");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->out_of_place_us, "1.5");
  EXPECT_EQ(plain->in_place_us, "2.5");
  const auto statistics =
      ParseNcclTestsLine("8 2 float sum -1 1.5 0 0 0 1 1 1 1 2.5 0 0 0 2 2 2 2");
  ASSERT_TRUE(statistics);
  EXPECT_EQ(statistics->out_of_place_us, "1.5");
  EXPECT_EQ(statistics->in_place_us, "2.5");
  EXPECT_FALSE(ParseNcclTestsLine("8 2 float sum -1 1.5 0 0 0 2.5 0 0"));
  EXPECT_FALSE(ParseNcclTestsLine("# 8 2 float sum -1 1.5 0 0 0 2.5 0 0 0"));
  EXPECT_FALSE(ParseMeasuredUs("nan"));
  EXPECT_FALSE(ParseMeasuredUs("1e400"));
  EXPECT_FALSE(ParseMeasuredUs("0.0001"));
}

}  // namespace
}  // namespace railyard
