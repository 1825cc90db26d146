// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_line.h"

#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "traces/nccl_log/nccl_log_call_record.h"

namespace railyard {
namespace {

constexpr const char* kFields =
    "opCount 1a sendbuff 0x7f0000000100 recvbuff 0x7f0000000200 count 64 datatype 7 op 0 root 3 "
    "comm 0x55aa00000010 [nranks=8] stream 0x55aa00000020";

// Keeps the text that the records point into.
struct Parsed {
  explicit Parsed(std::string line) : text(std::move(line)), records(ParseNcclLogLine(text)) {}
  std::string text;
  std::vector<LogRecord> records;

  template <typename Record>
  std::vector<Record> All() const {
    std::vector<Record> all;
    for (const LogRecord& record : records) {
      if (const Record* one = std::get_if<Record>(&record)) all.push_back(*one);
    }
    return all;
  }
  template <typename Record>
  Record Only() const {
    EXPECT_EQ(records.size(), 1u) << text;
    return All<Record>().empty() ? Record() : All<Record>().front();
  }
};

void ExpectFields(const LogCall& call) {
  EXPECT_EQ(call.defect, CallDefect::kNone) << call.defect_detail;
  EXPECT_EQ(call.op_count, 0x1au);
  EXPECT_EQ(call.count, 64u);
  EXPECT_EQ(call.datatype, Datatype::kFloat32);
  EXPECT_EQ(call.root, 3u);
  EXPECT_EQ(call.communicator, 0x55aa00000010u);
  EXPECT_EQ(call.rank_count, 8u);
  EXPECT_EQ(call.stream, 0x55aa00000020u);
}

void ExpectPrefix(const std::optional<LogPrefix>& prefix, std::string_view host, uint64_t pid,
                  uint64_t tid, std::optional<uint32_t> device) {
  ASSERT_TRUE(prefix);
  EXPECT_EQ(prefix->host, host);
  EXPECT_EQ(prefix->pid, pid);
  EXPECT_EQ(prefix->tid, tid);
  EXPECT_EQ(prefix->device, device);
}

TEST(NcclLogLineTest, ReadsTheCallLineSince237) {
  const Parsed line(fmt::format("node0:12:34 [5] NCCL INFO Broadcast: {}", kFields));
  const auto call = line.Only<LogCall>();
  ExpectFields(call);
  ExpectPrefix(call.prefix, "node0", 12, 34, 5);
  EXPECT_EQ(call.kind, CollectiveKind::kBroadcast);
  EXPECT_FALSE(call.rank);
}

TEST(NcclLogLineTest, KnowsEveryNameNcclPrints) {
  const std::pair<const char*, CollectiveKind> kinds[] = {
      {"AllReduce", CollectiveKind::kAllReduce},
      {"AllGather", CollectiveKind::kAllGather},
      {"ReduceScatter", CollectiveKind::kReduceScatter},
      {"Broadcast", CollectiveKind::kBroadcast},
      {"Reduce", CollectiveKind::kReduce},
      {"Send", CollectiveKind::kSend},
      {"Recv", CollectiveKind::kRecv},
      {"AlltoAll", CollectiveKind::kAllToAll},
      {"AllToAll", CollectiveKind::kAllToAll},
      {"AllToAllPivot", CollectiveKind::kAllToAll},
      {"AlltoAllPivot", CollectiveKind::kAllToAll},
      {"Gather", CollectiveKind::kGather},
      {"Scatter", CollectiveKind::kScatter}};
  for (const auto& [name, kind] : kinds) {
    const Parsed line(fmt::format("n:1:2 [0] NCCL INFO {}: {}", name, kFields));
    const auto call = line.Only<LogCall>();
    ExpectFields(call);
    EXPECT_EQ(call.kind, kind) << name;
    EXPECT_EQ(call.name, name);
  }
}

TEST(NcclLogLineTest, EqualBuffersAreSeen) {
  for (const bool same : {true, false}) {
    const Parsed line(fmt::format(
        "n:1:2 [0] NCCL INFO AlltoAll: opCount 0 sendbuff 0x7f01 recvbuff {} count 7 datatype 9 op "
        "0 root 0 comm 0x55 [nranks=2] stream (nil)",
        same ? "0x7f01" : "0x7f02"));
    EXPECT_EQ(line.Only<LogCall>().same_buffers, same);
  }
}

TEST(NcclLogLineTest, OneSidedOperationsAndUnknownNamesAreUnsupported) {
  for (const char* name : {"PutSignal", "Signal", "WaitSignal", "AllGatherV"}) {
    const Parsed line(fmt::format("n:1:2 [0] NCCL INFO {}: {}", name, kFields));
    const auto call = line.Only<LogCall>();
    EXPECT_EQ(call.defect, CallDefect::kUnsupportedKind) << name;
    EXPECT_EQ(call.defect_detail, name);
  }
}

TEST(NcclLogLineTest, SendAndReceiveBuffersMayBeNil) {
  // The buffer of a Send is in recvbuff since 2.12, in sendbuff before.
  for (const char* buffers : {"sendbuff (nil) recvbuff 0x7f01", "sendbuff 0x7f01 recvbuff (nil)"}) {
    const Parsed line(
        fmt::format("n:1:2 [0] NCCL INFO Send: opCount 0 {} count 7 datatype 9 op 0 "
                    "root 1 comm 0x55 [nranks=2] stream (nil)",
                    buffers));
    const auto call = line.Only<LogCall>();
    EXPECT_EQ(call.defect, CallDefect::kNone) << call.defect_detail;
    EXPECT_EQ(call.count, 7u);
    EXPECT_EQ(call.root, 1u);
    EXPECT_EQ(call.stream, 0u);
  }
}

TEST(NcclLogLineTest, TheFormUpTo235NamesNoOperation) {
  const Parsed line(
      "n:1:2 [0] NCCL INFO opCount 3 sendbuff 0x7f01 recvbuff 0x7f02 count 8 size 4 datatype 7 op "
      "0 "
      "comm 0x55 [nranks=4] stream 0x66");
  const auto call = line.Only<LogCall>();
  EXPECT_EQ(call.defect, CallDefect::kUnnamed);
  EXPECT_TRUE(call.name.empty());
  EXPECT_EQ(call.rank_count, 4u);
}

TEST(NcclLogLineTest, ReadsRcclsTailAndAccumulator) {
  const Parsed tail(
      fmt::format("n:1:2 [0] NCCL INFO AllReduce: {} task 0 globalrank 170", kFields));
  ExpectFields(tail.Only<LogCall>());
  EXPECT_EQ(tail.Only<LogCall>().rank, 170u);
  std::string fields = kFields;
  fields.insert(fields.find("count 64"), "acc (nil) ");
  ExpectFields(Parsed("n:1:2 [0] NCCL INFO AllReduce: " + fields).Only<LogCall>());
}

TEST(NcclLogLineTest, EveryCutBeforeTheStreamIsATruncatedCall) {
  const std::string whole = fmt::format("n:1:2 [0] NCCL INFO AllReduce: {}", kFields);
  const size_t mark_end = whole.find("opCount") + std::string("opCount").size();
  const size_t stream = whole.find("stream 0x") + std::string("stream 0x").size();
  for (size_t length = mark_end; length <= stream; ++length) {
    const Parsed line(whole.substr(0, length));
    EXPECT_EQ(line.Only<LogCall>().defect, CallDefect::kTruncated) << line.text;
    EXPECT_FALSE(line.Only<LogCall>().defect_detail.empty());
  }
  EXPECT_TRUE(Parsed(whole.substr(0, mark_end - 1)).records.empty());
}

TEST(NcclLogLineTest, AnUnknownDatatypeIsADefect) {
  std::string fields = kFields;
  fields.replace(fields.find("datatype 7"), 10, "datatype 12");
  const auto call = Parsed("n:1:2 [0] NCCL INFO AllReduce: " + fields).Only<LogCall>();
  EXPECT_EQ(call.defect, CallDefect::kUnknownDatatype);
  EXPECT_EQ(call.defect_detail, "datatype 12");
}

TEST(NcclLogLineTest, NumbersThatDoNotFitAreDefects) {
  for (const auto& [from, to] :
       {std::pair("count 64", "count 99999999999999999999"), std::pair("count 64", "count -1"),
        std::pair("root 3", "root 4294967296"), std::pair("[nranks=8]", "[nranks=]"),
        std::pair("comm 0x55aa00000010", "comm 0x")}) {
    std::string fields = kFields;
    fields.replace(fields.find(from), std::string(from).size(), to);
    EXPECT_EQ(Parsed("n:1:2 [0] NCCL INFO AllReduce: " + fields).Only<LogCall>().defect,
              CallDefect::kTruncated)
        << to;
  }
}

TEST(NcclLogLineTest, UserDefinedReductionsHaveAnyOperatorNumber) {
  std::string fields = kFields;
  fields.replace(fields.find("op 0"), 4, "op -2147483643");
  ExpectFields(Parsed("n:1:2 [0] NCCL INFO AllReduce: " + fields).Only<LogCall>());
}

TEST(NcclLogLineTest, LaunchersMayPrependTheirOwnText) {
  for (const char* launcher :
       {"[1,3]<stdout>:", "[1,3]<stderr>: ", "(RayTrainWorker pid=4711) ",
        "(RayTrainWorker pid=4711, ip=192.0.2.7) ", "3: ", "[2026-05-05 06:16:47] ",
        "[2026-05-05T06:16:47.123456] ", "worker-0  | ", "2026-05-05T06:16:47Z stdout F ",
        "[rank3]:", "\t"}) {
    const Parsed line(fmt::format("{}node0:12:34 [5] NCCL INFO AllReduce: {}", launcher, kFields));
    const auto call = line.Only<LogCall>();
    ExpectFields(call);
    ExpectPrefix(call.prefix, "node0", 12, 34, 5);
  }
}

TEST(NcclLogLineTest, ThePrefixMayLackTheDeviceOrHaveNone) {
  ExpectPrefix(
      Parsed(fmt::format("a.b-c_9:12:34 NCCL INFO AllReduce: {}", kFields)).Only<LogCall>().prefix,
      "a.b-c_9", 12, 34, std::nullopt);
  ExpectPrefix(
      Parsed(fmt::format("h:12:34 [-1] NCCL INFO AllReduce: {}", kFields)).Only<LogCall>().prefix,
      "h", 12, 34, std::nullopt);
  ExpectPrefix(
      Parsed(fmt::format("h:12:34 [2] INFO AllReduce: {}", kFields)).Only<LogCall>().prefix, "h",
      12, 34, 2);
}

TEST(NcclLogLineTest, TheNearestOfTwoPrefixesCounts) {
  const Parsed line(fmt::format("a:1:2 [0] NCCL INFO b:3:4 [1] NCCL INFO AllReduce: {}", kFields));
  ExpectPrefix(line.Only<LogCall>().prefix, "b", 3, 4, 1);
}

TEST(NcclLogLineTest, ALostPrefixIsNotReplacedByAnother) {
  EXPECT_FALSE(Parsed(fmt::format("AllReduce: {}", kFields)).Only<LogCall>().prefix);
  EXPECT_FALSE(Parsed(fmt::format("a:1:2 [0] NCCL INFO Channel 00 : 0 AllReduce: {}", kFields))
                   .Only<LogCall>()
                   .prefix);
}

TEST(NcclLogLineTest, CallsGluedTogetherAreAllFound) {
  const Parsed line(
      fmt::format("a:1:2 [0] NCCL INFO AllReduce: {0}b:3:4 [1] NCCL INFO Reduce: {0} "
                  "ReduceScatter: {0}",
                  kFields));
  const auto calls = line.All<LogCall>();
  ASSERT_EQ(calls.size(), 3u);
  for (const LogCall& call : calls) EXPECT_EQ(call.defect, CallDefect::kNone);
  // "b" is a hexadecimal digit: the pointer must not swallow it.
  EXPECT_EQ(calls[0].stream, 0x55aa00000020u);
  ExpectPrefix(calls[1].prefix, "b", 3, 4, 1);
  EXPECT_EQ(calls[1].kind, CollectiveKind::kReduce);
  EXPECT_FALSE(calls[2].prefix);
  EXPECT_EQ(calls[2].kind, CollectiveKind::kReduceScatter);
}

TEST(NcclLogLineTest, ACallThatAnotherLineCutsIntoIsTruncatedAndTheOtherIsWhole) {
  const Parsed line(fmt::format(
      "a:1:2 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x7fb:3:4 [1] NCCL INFO AllReduce: {}",
      kFields));
  const auto calls = line.All<LogCall>();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].defect, CallDefect::kTruncated);
  EXPECT_EQ(calls[0].defect_detail, "no \"sendbuff\"");
  ExpectFields(calls[1]);
  EXPECT_TRUE(!calls[1].prefix || calls[1].prefix->glued_host != calls[1].prefix->host);
}

TEST(NcclLogLineTest, OtherMessagesBetweenCallsAreFound) {
  const Parsed line(
      fmt::format("a:1:2 [0] NCCL INFO AllReduce: {0}\ta:1:2 [0] NCCL INFO AllReduce: "
                  "256 Bytes -> Algo RING proto LL channel{{Lo..Hi}}={{0..1}} a:1:2 "
                  "[0] NCCL INFO Reduce: {0}",
                  kFields));
  ASSERT_EQ(line.records.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<LogTuning>(line.records[1]));
}

// ---- Init lines. ----

LogInit Init(const std::string& message) {
  static std::vector<Parsed> kept;  // the views of the result point into the line
  kept.reserve(100);
  kept.emplace_back("n0:7:8 [3] NCCL INFO " + message);
  return kept.back().Only<LogInit>();
}

TEST(NcclLogLineTest, ReadsTheInitLineOfEveryVersion) {
  for (const char* message :
       {"comm 0x55aa rank 3 nranks 8 cudaDev 3 busId 1b000 - Init COMPLETE",  // to 2.14
        "comm 0x55aa rank 3 nranks 8 cudaDev 3 nvmlDev 3 - Init COMPLETE",    // 2.4
        "comm 0x55aa rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 1b000 commId 0x1f - Init COMPLETE",
        "ncclCommInitRank comm 0x55aa rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 1b000 commId 0x1f "
        "- "
        "Init COMPLETE",
        "ncclCommInitRankConfig comm 0x55aa rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 1b000 commId "
        "0x1f - Init COMPLETE"}) {
    const LogInit init = Init(message);
    EXPECT_EQ(init.phase, LogInit::Phase::kComplete) << message;
    EXPECT_EQ(init.communicator, 0x55aau);
    EXPECT_EQ(init.rank, 3u);
    EXPECT_EQ(init.rank_count, 8u);
    EXPECT_EQ(init.cuda_device, 3u);
    EXPECT_FALSE(init.parent);
    EXPECT_TRUE(init.comm_id.empty() || init.comm_id == "0x1f") << init.comm_id;
  }
  EXPECT_EQ(Init("comm 0x55aa rank 3 nranks 8 - COMPLETE").phase, LogInit::Phase::kComplete);
}

// RCCL prints further words before the dash, not all of them keys with a value.
TEST(NcclLogLineTest, ReadsTheInitLineOfRccl) {
  for (const char* message :
       {"comm 0x55aa rank 3 nranks 8 cudaDev 3 busId c1000 used 27440 bytes - Init COMPLETE",
        "comm 0x55aa rank 3 nranks 8 cudaDev 3 busId c1000 commId 0x1f localSize 296 used 27440 "
        "bytes - Init COMPLETE",
        "ncclCommInitRank comm 0x55aa rank 3 nranks 8 cudaDev 3 busId c1000 commId 0x1f localSize "
        "296 used 27440 bytes on core 7 - Init COMPLETE"}) {
    const LogInit init = Init(message);
    EXPECT_EQ(init.phase, LogInit::Phase::kComplete) << message;
    EXPECT_EQ(init.rank, 3u);
    EXPECT_EQ(init.rank_count, 8u);
    EXPECT_EQ(init.cuda_device, 3u);
  }
}

TEST(NcclLogLineTest, ReadsTheStartOfAnInitialization) {
  for (const char* message :
       {"ncclCommInitRank comm 0x55aa rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 1b000 commId 0x1f "
        "- "
        "Init START",
        "[Rank 3] ncclCommInitRank comm 0x55aa rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 1b000 "
        "commId 0x1f - Init START"}) {
    const LogInit init = Init(message);
    EXPECT_EQ(init.phase, LogInit::Phase::kStart) << message;
    EXPECT_EQ(init.comm_id, "0x1f");
    EXPECT_EQ(init.rank, 3u);
  }
}

TEST(NcclLogLineTest, ReadsSplitsOfEveryVersion) {
  const std::string head =
      "ncclCommSplit comm 0x55aa rank 1 nranks 4 cudaDev 3 nvmlDev 3 busId 1b000 parent 0x55bb ";
  const LogInit v221 = Init(head + "color 2 key 9 commId 0x77 - Init START");
  EXPECT_EQ(v221.parent, 0x55bbu);
  EXPECT_EQ(v221.color, 2);
  EXPECT_EQ(v221.comm_id, "0x77");
  EXPECT_FALSE(v221.split_count);
  // No blank before the dash of START.
  const LogInit v223 = Init(head + "color -1 key 9- Init START");
  EXPECT_EQ(v223.phase, LogInit::Phase::kStart);
  EXPECT_EQ(v223.color, -1);
  EXPECT_TRUE(v223.comm_id.empty());
  for (const char* word : {"splitCount", "childCount"}) {
    for (const char* end : {"9- Init START", "9 - Init COMPLETE"}) {
      const LogInit init = Init(fmt::format("{}{} 5 color 2 key {}", head, word, end));
      EXPECT_EQ(init.split_count, 5u);
      EXPECT_EQ(init.color, 2);
    }
  }
}

TEST(NcclLogLineTest, ReadsTheTopologyLineOfACommunicator) {
  const LogInit init =
      Init("comm 0x55aa rank 3 nRanks 16 nNodes 2 localRanks 8 localRank 3 MNNVL 0");
  EXPECT_EQ(init.phase, LogInit::Phase::kInfo);
  EXPECT_EQ(init.rank, 3u);
  EXPECT_EQ(init.rank_count, 16u);
}

TEST(NcclLogLineTest, ReadsInitTimings) {
  for (const char* message :
       {"Init timings - ncclCommInitRank: rank 5 nranks 16 total 1.58 (kernels",
        "Init timings: rank 5 nranks 16 total 1.58 (kernels 0.26"}) {
    const Parsed line(fmt::format("n0:7:8 [3] NCCL INFO {}", message));
    const auto timings = line.Only<LogInitTimings>();
    EXPECT_EQ(timings.rank, 5u);
    EXPECT_EQ(timings.rank_count, 16u);
    EXPECT_EQ(timings.prefix.pid, 7u);
  }
}

TEST(NcclLogLineTest, ReadsTheEndOfACommunicator) {
  for (const char* message :
       {"comm 0x55aa rank 3 nranks 8 cudaDev 3 busId 1b000 - Destroy COMPLETE",
        "comm 0x55aa rank 3 nranks 8 cudaDev 3 busId 1b000 - Abort COMPLETE",
        "Destroyed comm 0x55aa rank 3"}) {
    const Parsed line(fmt::format("n0:7:8 [3] NCCL INFO {}", message));
    EXPECT_EQ(line.Only<LogDestroy>().communicator, 0x55aau) << message;
  }
  EXPECT_TRUE(
      Parsed("n0:7:8 [3] NCCL INFO comm 0x55aa rank 3 nranks 8 cudaDev 3 busId 1b000 - Abort "
             "START")
          .records.empty());
}

TEST(NcclLogLineTest, ReadsTuningLinesOfEveryVersion) {
  const Parsed v220("n:1:2 [0] NCCL INFO 4096 Bytes -> Algo 1 proto 2 time 12.5");
  EXPECT_FALSE(v220.Only<LogTuning>().kind);
  EXPECT_EQ(v220.Only<LogTuning>().bytes, 4096u);
  EXPECT_EQ(v220.Only<LogTuning>().algorithm, Algorithm::kRing);
  EXPECT_EQ(v220.Only<LogTuning>().protocol, Protocol::kSimple);
  EXPECT_FALSE(v220.Only<LogTuning>().bytes_are_per_rank);
  const Parsed v223("n:1:2 [0] NCCL INFO AllGather: 4096 Bytes -> Algo 0 proto 0 time 12.5");
  EXPECT_EQ(v223.Only<LogTuning>().kind, CollectiveKind::kAllGather);
  EXPECT_EQ(v223.Only<LogTuning>().algorithm, Algorithm::kTree);
  EXPECT_EQ(v223.Only<LogTuning>().protocol, Protocol::kLl);
  EXPECT_FALSE(v223.Only<LogTuning>().bytes_are_per_rank);
  const std::pair<const char*, Algorithm> algorithms[] = {
      {"TREE", Algorithm::kTree},
      {"RING", Algorithm::kRing},
      {"COLLNET_DIRECT", Algorithm::kCollnetDirect},
      {"COLLNET_CHAIN", Algorithm::kCollnetChain},
      {"NVLS", Algorithm::kNvls},
      {"NVLS_TREE", Algorithm::kNvlsTree},
      {"PAT", Algorithm::kPat}};
  for (const auto& [name, algorithm] : algorithms) {
    const Parsed line(fmt::format(
        "n:1:2 [0] NCCL INFO AllReduce: 4 Bytes -> Algo {} proto LL128 channel{{Lo..Hi}}={{0..3}}",
        name));
    EXPECT_EQ(line.Only<LogTuning>().algorithm, algorithm);
    EXPECT_EQ(line.Only<LogTuning>().protocol, Protocol::kLl128);
    EXPECT_TRUE(line.Only<LogTuning>().bytes_are_per_rank);
  }
}

TEST(NcclLogLineTest, ReadsTheVersion) {
  EXPECT_EQ(Parsed("NCCL version 2.27.5+cuda12.9").Only<LogVersion>().version, "2.27.5");
  EXPECT_EQ(Parsed("n:1:2 [0] NCCL INFO NCCL version 2.26.2+cuda12.8").Only<LogVersion>().version,
            "2.26.2");
  EXPECT_TRUE(Parsed("NCCL version unknown").records.empty());
}

TEST(NcclLogLineTest, OtherLinesHoldNoRecords) {
  for (const char* line :
       {"", "# a comment", "n:1:2 [0] NCCL INFO Connected all rings",
        "n:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
        "n:1:2 [0] NCCL INFO misc/utils.cc:233 memory stack hunk malloc(65536)",
        "n:1:2 [0] NCCL INFO 16 coll channels, 16 collnet channels, 0 nvls channels",
        "n:1:2 [0] NCCL INFO comm 0x55 rank 1 nranks 2 busId 1b000 -",
        "n:1:2 [0] NCCL INFO comm 0x55 rank 1", "n:1:2 [0] NCCL INFO comm (nil) rank 1 nranks 2",
        "n:1:2 [0] NCCL INFO AllReduce: 4 Bytes -> Algo MAGIC proto LL",
        "n:1:2 [0] NCCL INFO AllReduce: 4 Bytes -> Algo 7 proto 0",
        "comm 0x55 rank 1 nranks 2 - Init COMPLETE", "opCount", "opCount 1 slicesteps 2"}) {
    EXPECT_TRUE(Parsed(line).records.empty()) << line;
  }
}

TEST(NcclLogLineTest, CountsCallsWhoseMarkEndsBehindAPosition) {
  const std::string text = "xAllReduce: opCount 0 Send: opCount 1";
  EXPECT_EQ(CountNcclCalls(text, 0), 2u);
  EXPECT_EQ(CountNcclCalls(text, text.find("opCount") + 7), 1u);
  EXPECT_EQ(CountNcclCalls(text, text.size()), 0u);
}

}  // namespace
}  // namespace railyard
