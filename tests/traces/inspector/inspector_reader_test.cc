// SPDX-License-Identifier: GPL-2.0-only
#include "traces/inspector/inspector_reader.h"

#include <filesystem>
#include <fstream>
#include <set>
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
using ::testing::Not;

struct Imported {
  TraceImport import;
  Diagnostics diagnostics;
};

Imported Import(const std::vector<std::string>& texts) {
  const std::string directory = ::testing::TempDir() + "inspector_test_" +
                                ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  for (size_t i = 0; i < texts.size(); ++i) {
    std::ofstream(fmt::format("{}/{}.log", directory, i)) << texts[i];
  }
  Imported imported;
  imported.import = ImportFiles({directory}, kAutoFormat, {}, imported.diagnostics);
  std::filesystem::remove_all(directory);
  return imported;
}

// Returns the header of a process, whose number is also that of its host.
std::string Header(const std::string& communicator, int rank, int size, int process) {
  return fmt::format(
      R"j("header": {{"id": "{}", "rank": {}, "n_ranks": {}}}, "metadata":
 {{"inspector_output_format_version": "v4.0", "hostname": "h{}", "pid": {}}})j",
      communicator, rank, size, process, process);
}

std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text + "\n";
}

std::string Call(const std::string& header, const std::string& kind, int sequence,
                 const std::string& bytes, const std::string& more = "") {
  return OneLine(fmt::format(R"j({{{}{}"coll_perf": {{"coll": "{}", "coll_sn": {},
 "coll_msg_size_bytes": {}, "coll_exec_time_us": 25{}}}}})j",
                             header, header.empty() ? "" : ", ", kind, sequence, bytes, more));
}

// A message of 400 us.
std::string Message(const std::string& header, const std::string& kind, int peer, int start_us) {
  const std::string times =
      start_us < 0 ? "" : fmt::format(R"(, "event_trace_ts": {{"p2p_start_ts": {}}})", start_us);
  return OneLine(fmt::format(R"j({{{}, "p2p_perf": {{"p2p": "{}", "p2p_sn": 1, "p2p_peer": {},
 "p2p_msg_size_bytes": 64, "p2p_exec_time_us": 400{}}}}})j",
                             header, kind, peer, times));
}

// In a ring of messages each rank sends before it receives: by themselves the Sends would wait for
// each other.
TEST(InspectorReaderTest, MessagesThatAreUnderWayTogetherAreAGroup) {
  for (const int start_us : {1000, -1}) {
    std::vector<std::string> texts;
    for (int rank = 0; rank < 3; ++rank) {
      const std::string header = Header("0xa", rank, 3, rank);
      const int later_us = start_us < 0 ? -1 : start_us + 400;
      texts.push_back(Message(header, "Send", (rank + 1) % 3, start_us) +
                      Message(header, "Recv", (rank + 2) % 3, start_us) +
                      Message(header, "Send", (rank + 1) % 3, later_us) +
                      Message(header, "Recv", (rank + 2) % 3, later_us));
    }
    const Imported imported = Import(texts);
    ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
    const auto& program = imported.import.trace->operations[GlobalRank{1}];
    ASSERT_EQ(program.size(), 4u);
    EXPECT_NE(program[0].group, 0u);
    EXPECT_EQ(program[0].group, program[1].group);
    EXPECT_EQ(program[2].group, program[3].group);
    EXPECT_NE(program[0].group, program[2].group);
    EXPECT_THAT(imported.import.report.ToString(), HasSubstr("Inspector records no groups"));
  }
}

// A dump has all collectives before all messages, and each rank's dumps end elsewhere: two
// AllReduces around a message are in one order on rank 0 and in another one on rank 1.
TEST(InspectorReaderTest, MessagesWithoutTimesDoNotWaitForCollectives) {
  const auto texts = [](int start_us) {
    const std::string first = Header("0xa", 0, 2, 0);
    const std::string second = Header("0xa", 1, 2, 1);
    return std::vector<std::string>{
        Call(first, "AllReduce", 1, "64") + Call(first, "AllReduce", 2, "64") +
            Message(first, "Send", 1, start_us),
        Call(second, "AllReduce", 1, "64") + Message(second, "Recv", 0, start_us) +
            Call(second, "AllReduce", 2, "64")};
  };
  const Imported imported = Import(texts(-1));
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{1}}) {
    const auto& program = imported.import.trace->operations[GlobalRank{rank}];
    ASSERT_EQ(program.size(), 3u);
    std::set<uint32_t> of_collectives;
    std::set<uint32_t> of_messages;
    for (const TraceOperation& operation : program) {
      (IsSendOrRecv(operation.kind) ? of_messages : of_collectives).insert(operation.stream);
    }
    EXPECT_EQ(of_collectives.size(), 1u);
    EXPECT_NE(of_messages, of_collectives);
  }
  EXPECT_THAT(imported.import.report.ToString(), HasSubstr("neither wait for the other"));
  // A message with a time has its place.
  const Imported timed = Import(texts(1000));
  ASSERT_TRUE(timed.import.trace) << timed.diagnostics.ToString();
  EXPECT_THAT(timed.import.report.ToString(), Not(HasSubstr("neither wait for the other")));
}

// inspectorStringToDatatype returns -1 for ncclUint8, whose size is multiplied with the count.
TEST(InspectorReaderTest, SizesOfUint8AreWhatIsMissingTo2To64) {
  std::vector<std::string> texts;
  for (int rank = 0; rank < 2; ++rank) {
    texts.push_back(Call(Header("0xa", rank, 2, rank), "AllReduce", 1, "18446744073709486080"));
  }
  const Imported imported = Import(texts);
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.trace->operations[GlobalRank{0}][0].count, 65'536u);
  EXPECT_THAT(imported.import.report.ToString(), HasSubstr("the sizes of 2 calls"));
}

TEST(InspectorReaderTest, MessagesOneAfterTheOtherAreNoGroup) {
  const std::string first = Header("0xa", 0, 2, 1);
  const std::string second = Header("0xa", 1, 2, 2);
  const Imported imported =
      Import({Message(first, "Send", 1, 1000) + Message(first, "Recv", 1, 1500),
              Message(second, "Recv", 0, 1000) + Message(second, "Send", 0, 1500)});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  for (const TraceOperation& operation : imported.import.trace->operations[GlobalRank{0}]) {
    EXPECT_EQ(operation.group, 0u);
  }
}

// One process with two GPUs, as with nccl-tests -g 2.
TEST(InspectorReaderTest, AProcessMayBeSeveralRanks) {
  const Imported imported = Import({Call(Header("0xa", 0, 2, 1), "AllReduce", 1, "64") +
                                    Call(Header("0xa", 1, 2, 1), "AllReduce", 1, "64")});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.trace->rank_count, 2u);
  EXPECT_EQ(imported.import.trace->operations[GlobalRank{0}].size(), 1u);
  EXPECT_EQ(imported.import.trace->operations[GlobalRank{1}].size(), 1u);
}

// A trace could not be read again if its names were not UTF-8.
TEST(InspectorReaderTest, NamesThatAreNotUtf8AreEscaped) {
  const Imported imported = Import({Call(Header("0x\xff", 0, 2, 1), "AllReduce", 1, "64") +
                                    Call(Header("0x\xff", 1, 2, 2), "AllReduce", 1, "64")});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.trace->communicators[0].name, "0x\\xff");
}

TEST(InspectorReaderTest, CallsAreMatchedByKindAndNumber) {
  const std::string first = Header("0xa", 0, 2, 1);
  const std::string second = Header("0xa", 1, 2, 2);
  const Imported imported = Import(
      {Call(first, "AllReduce", 7, "64", R"(, "coll_algo": "RING", "coll_proto": "LL")") +
           Call(first, "AllGather", 7, "32"),
       Call(second, "AllReduce", 6, "64") +
           Call(second, "AllReduce", 7, "64", R"(, "coll_algo": "RING", "coll_proto": "LL")") +
           Call(second, "AllGather", 7, "32")});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.report.calls_imported(), 4u);
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kIncompleteOnRank).count, 1u);
  const auto& program = imported.import.trace->operations[GlobalRank{1}];
  ASSERT_EQ(program.size(), 2u);
  EXPECT_EQ(program[0].algorithm, Algorithm::kRing);
  EXPECT_EQ(program[0].protocol, Protocol::kLl);
  EXPECT_EQ(program[0].count, 64u);
  EXPECT_EQ(program[0].measured_ps, 25'000'000);
  EXPECT_EQ(program[1].kind, CollectiveKind::kAllGather);
}

TEST(InspectorReaderTest, CallsAreInTheOrderOfTheirEventTraces) {
  const auto at = [](int time) {
    return fmt::format(R"(, "event_trace_ts": {{"coll_start_ts": {}}})", time);
  };
  const std::string header = Header("0xa", 0, 2, 1);
  const Imported imported = Import({Call(header, "AllReduce", 2, "64", at(2000)) +
                                    Call(header, "ReduceScatter", 1, "32", at(1000))});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.trace->operations[GlobalRank{0}][0].kind,
            CollectiveKind::kReduceScatter);
}

TEST(InspectorReaderTest, SubCommunicatorsAreRecognizedByTheProcessesInThem) {
  // A world of 4; ranks 1 and 3 are in a communicator of 2.
  std::string world;
  for (int rank = 0; rank < 4; ++rank) {
    world += Call(Header("0xa", rank, 4, rank), "AllReduce", 1, "64");
  }
  const Imported imported = Import({world + Call(Header("0xb", 0, 2, 1), "AllGather", 1, "8") +
                                    Call(Header("0xb", 1, 2, 3), "AllGather", 1, "8")});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  ASSERT_EQ(imported.import.trace->communicators.size(), 2u);
  EXPECT_THAT(imported.import.trace->communicators[1].ranks, ::testing::ElementsAre(1u, 3u));
  EXPECT_EQ(imported.import.report.calls_reconstructed, 0u);
}

// Two pairs and two that cross them: no communicator has all four processes.
TEST(InspectorReaderTest, JobsWithoutACommunicatorOfAllAreOrderedByName) {
  std::vector<std::string> files;
  for (int process = 0; process < 4; ++process) {
    const std::string pair = Header(process < 2 ? "0xa" : "0xb", process % 2, 2, process);
    const std::string across = Header(process % 2 == 0 ? "0xc" : "0xd", process / 2, 2, process);
    files.push_back(Call(pair, "AllReduce", 0, "64") + Call(across, "AllGather", 0, "32"));
  }
  const Imported imported = Import(files);
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  const Trace& trace = *imported.import.trace;
  EXPECT_EQ(trace.rank_count, 4u);
  EXPECT_EQ(imported.import.report.calls_imported(), 8u);
  EXPECT_THAT(imported.import.report.assumed,
              ::testing::Contains(HasSubstr("no communicator spans all of them")));
  EXPECT_THAT(trace.communicators[trace.operations[GlobalRank{3}][1].communicator].ranks,
              ::testing::ElementsAre(1, 3));
}

TEST(InspectorReaderTest, FromVersion43OnTheHeaderStandsInTheDumpsFirstLine) {
  const std::string stats =
      OneLine("{" + Header("0xa", 0, 2, 1) +
              R"(, "dump_stats": {"coll_records": 1024, "coll_dropped_since_last_dump": 512}})");
  const Imported imported = Import({stats + Call("", "AllReduce", 7, "64")});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.report.calls_imported(), 1u);
  EXPECT_THAT(imported.import.report.ToString(), HasSubstr("itself dropped 512 records"));
  EXPECT_THAT(imported.import.report.ToString(), HasSubstr("announce 1024 records, 1 are in"));
}

TEST(InspectorReaderTest, HostileLinesAreFindingsOrCountedDrops) {
  const std::string header = Header("0xa", 0, 2, 1);
  struct Case {
    std::string text;
    std::string finding;
  };
  const std::vector<Case> cases = {
      {Call(header, "AllReduce", 1, "64").substr(0, 150), "truncated line"},
      {Call("", "AllReduce", 1, "64"), "process unknown"},
      {Call(header, "Dance", 1, "64"), "unsupported kind"},
      {Call(header, "AllReduce", 1, "1000000000000000000"), "out of range"},
      {Call(header, "AllReduce", 1, "\"x\""), "sizes not recorded"},
      {Call(header, "AllReduce", 1, "NaN"), "sizes not recorded"},
      {Call(Header("0xa", 5, 2, 1), "AllReduce", 1, "64"), "process unknown"},
      {"{\"coll_perf\": " + std::string(10'000, '[') + "\n", "truncated line"},
      {OneLine("{" + header + "}"), "holds no collective call"}};
  for (const Case& c : cases) {
    const Imported imported = Import({c.text});
    EXPECT_FALSE(imported.import.trace) << c.finding;
    EXPECT_THAT(imported.diagnostics.ToString(), HasSubstr(c.finding));
  }
  const std::string call = Call(header, "AllReduce", 1, "64");
  const Imported twice = Import({call + call});
  ASSERT_TRUE(twice.import.trace);
  EXPECT_EQ(twice.import.report.DroppedFor(CallDropReason::kRecordedTwice).count, 1u);
}

TEST(InspectorReaderTest, GapsOfNumbersAreCounted) {
  const std::string first = Header("0xa", 0, 2, 1);
  const std::string second = Header("0xa", 1, 2, 2);
  std::string text;
  for (const int sequence : {1, 2, 7}) {
    text += Call(first, "AllReduce", sequence, "64") + Call(second, "AllReduce", sequence, "64");
  }
  const Imported imported = Import({text});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_THAT(imported.import.report.ToString(),
              HasSubstr("8 calls, by their coll_sn, are between"));
}

TEST(InspectorReaderTest, DurationsThatAreNoneAreCounted) {
  std::string text;
  for (const int rank : {0, 1}) {
    std::string call = Call(Header("0xa", rank, 2, rank), "AllReduce", 1, "64");
    call.replace(call.find("time_us\": 25"), 12, "time_us\": NaN");
    text += call;
  }
  const Imported imported = Import({text});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_THAT(imported.import.report.ToString(),
              HasSubstr("2 calls state a duration that is none"));
}

}  // namespace
}  // namespace railyard
