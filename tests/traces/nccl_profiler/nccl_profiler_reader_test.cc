// SPDX-License-Identifier: GPL-2.0-only
// Files as the example profiler plug-in writes them, made here from its documented form.
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/imported_files.h"
#include "workloads/job/job.h"

namespace railyard {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ImportedFiles;
using ::testing::Not;
using ::testing::Pair;

constexpr const char* kWorld = "1234567890123456789";

std::string Begin(const std::string& name, const std::string& category, uint64_t process,
                  double time_us, const std::string& fields) {
  return fmt::format(
      "{{\"name\": \"{}\", \"cat\": \"{}\", \"ph\": \"b\", \"id\": 0, \"pid\": {}, \"tid\": 1, "
      "\"ts\": {:.6f}, \"args\": {{{}}}}},\n",
      name, category, process, time_us, fields);
}
std::string End(const std::string& name, const std::string& category, uint64_t process,
                double time_us) {
  return fmt::format(
      "{{\"name\": \"{}\", \"cat\": \"{}\", \"ph\": \"e\", \"id\": 0, \"pid\": {}, \"tid\": 1, "
      "\"ts\": {:.6f}}},\n",
      name, category, process, time_us);
}

struct Collective {
  std::string name = "AllReduce";
  uint64_t sequence = 0;
  uint64_t count = 0;
  double time_us = 0;
  std::string communicator = kWorld;
  std::string datatype = "ncclFloat32";
};

std::string CollectiveOf(uint32_t rank, uint64_t process, const Collective& call) {
  return Begin(call.name, "COLL", process, call.time_us,
               fmt::format("\"SeqNum\": {}, \"CommHash\": {}, \"Rank\": {}, \"Count\": {}, "
                           "\"Datatype\": \"{}\", \"Algorithm\": \"RING\", \"Protocol\": "
                           "\"SIMPLE\", \"nChannels\": 16",
                           call.sequence, call.communicator, rank, call.count, call.datatype)) +
         Begin("KernelCh", "GPU", process, call.time_us + 5, "\"Channel\": 0") +
         End("KernelCh", "GPU", process, call.time_us + 25) +
         Begin("KernelCh", "GPU", process, call.time_us + 6, "\"Channel\": 1") +
         End("KernelCh", "GPU", process, call.time_us + 30.5) +
         End(call.name, "COLL", process, call.time_us + 31);
}

std::string Message(const std::string& name, uint32_t rank, uint32_t peer, uint64_t process,
                    uint64_t count, double time_us) {
  return Begin(name, "P2P", process, time_us,
               fmt::format("\"CommHash\": {}, \"Rank\": {}, \"Peer\": {}, \"Count\": {}, "
                           "\"Datatype\": \"ncclInt8\", \"nChannels\": 2",
                           kWorld, rank, peer, count)) +
         End(name, "P2P", process, time_us + 1);
}

std::string File(const std::string& events) { return "[\n" + events + "{}]\n"; }

class NcclProfilerReaderTest : public ::testing::Test {
 protected:
  ImportedFiles files_;
};

TEST_F(NcclProfilerReaderTest, CallsHaveSizesAlgorithmsAndTheTimeOfTheirKernels) {
  std::vector<std::string> paths;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const uint64_t process = 100 + rank;
    const std::string group = Begin("Group", "GROUP", process, 60, "\"groupId\": 1") +
                              Message("Send", rank, 1 - rank, process, 77, 60) +
                              Message("Recv", rank, 1 - rank, process, 77, 61) +
                              End("Group", "GROUP", process, 62);
    paths.push_back(files_.Write(
        fmt::format("trace_{}_{}.json", kWorld, rank),
        File(
            CollectiveOf(rank, process, {.count = 1000, .time_us = 10}) +
            CollectiveOf(rank, process,
                         {.name = "AllGather", .count = 8, .time_us = 40, .datatype = "ncclInt8"}) +
            group)));
  }
  const TraceImport& import = files_.Import(paths);
  ASSERT_TRUE(import.trace) << files_.findings();
  EXPECT_EQ(import.report.format, "nccl-profiler");
  EXPECT_THAT(files_.Kind(CollectiveKind::kAllReduce), Pair(2, 8000));
  EXPECT_THAT(files_.Kind(CollectiveKind::kAllGather), Pair(2, 16));
  EXPECT_THAT(files_.Kind(CollectiveKind::kSend), Pair(2, 154));
  const auto& program = import.trace->operations[GlobalRank{1}];
  ASSERT_EQ(program.size(), 4u);
  EXPECT_EQ(program[0].count, 1000u);
  EXPECT_EQ(program[0].algorithm, Algorithm::kRing);
  EXPECT_EQ(program[0].protocol, Protocol::kSimple);
  EXPECT_EQ(program[0].measured_ps, 25'500'000);  // from 15 to 40.5 us
  EXPECT_NE(program[2].group, 0u);
  EXPECT_EQ(program[2].group, program[3].group);
  Diagnostics diagnostics;
  EXPECT_TRUE(BuildJob(*import.trace, diagnostics)) << diagnostics.ToString();
}

// Each process has the world and a communicator of two ranks, in files of their own; the clock is
// that of the process.
TEST_F(NcclProfilerReaderTest, FilesOfAProcessAreOneProgramInTheOrderOfItsClock) {
  std::vector<std::string> paths;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const uint64_t process = 100 + rank;
    paths.push_back(files_.Write(
        fmt::format("trace_{}_{}.json", kWorld, rank),
        File(CollectiveOf(rank, process, {.sequence = 0, .count = 10, .time_us = 10}) +
             CollectiveOf(rank, process, {.sequence = 1, .count = 30, .time_us = 200}))));
    const std::string half = rank % 2 == 0 ? "77" : "88";
    paths.push_back(
        files_.Write(fmt::format("trace_{}_{}.json", half, rank / 2),
                     File(CollectiveOf(rank / 2, process,
                                       {.count = 20, .time_us = 100, .communicator = half}))));
  }
  const TraceImport& import = files_.Import(paths);
  ASSERT_TRUE(import.trace) << files_.findings();
  EXPECT_EQ(import.trace->rank_count, 4u);
  const auto& program = import.trace->operations[GlobalRank{2}];
  ASSERT_EQ(program.size(), 3u);
  EXPECT_EQ(program[0].count, 10u);
  EXPECT_EQ(program[1].count, 20u);
  EXPECT_EQ(program[2].count, 30u);
  EXPECT_THAT(import.trace->communicators[program[1].communicator].ranks, ElementsAre(0, 2));
}

// ncclDatatypeToString has no name for ncclUint8 alone.
TEST_F(NcclProfilerReaderTest, TheUnknownTypeIsUint8) {
  std::vector<std::string> paths;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    paths.push_back(files_.Write(
        fmt::format("trace_{}_{}.json", kWorld, rank),
        File(CollectiveOf(rank, 7 + rank, {.count = 100, .time_us = 10, .datatype = "Unknown"}))));
  }
  const TraceImport& import = files_.Import(paths);
  ASSERT_TRUE(import.trace) << files_.findings();
  EXPECT_EQ(import.trace->operations[GlobalRank{0}][0].datatype, Datatype::kUint8);
  EXPECT_EQ(import.trace->operations[GlobalRank{0}][0].count, 100u);
}

TEST_F(NcclProfilerReaderTest, RootsAreThoseOfTheApiCallAround) {
  std::vector<std::string> paths;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const uint64_t process = 7 + rank;
    // 2.28 wrote the datatype and the stream without quotation marks.
    paths.push_back(files_.Write(
        fmt::format("trace_{}_{}.json", kWorld, rank),
        File(Begin("Broadcast", "COLL_API", process, 9,
                   "\"count\": 10, \"datatype\": ncclInt8, \"root\": 1, \"GraphCaptured\":0, "
                   "\"Stream\": 0x4142e90") +
             CollectiveOf(
                 rank, process,
                 {.name = "Broadcast", .count = 10, .time_us = 10, .datatype = "ncclInt8"}) +
             End("Broadcast", "COLL_API", process, 50))));
  }
  const TraceImport& import = files_.Import(paths);
  ASSERT_TRUE(import.trace) << files_.findings();
  EXPECT_EQ(import.trace->operations[GlobalRank{0}][0].root, 1u);
  EXPECT_THAT(import.report.assumed, Not(Contains(HasSubstr("roots are rank 0"))));
}

TEST_F(NcclProfilerReaderTest, OverwrittenEventsAndMissingRanksAreInTheReport) {
  const std::string path = files_.Write(
      "trace.json",
      File(CollectiveOf(0, 7, {.sequence = 40, .count = 10, .time_us = 10}) +
           CollectiveOf(0, 7, {.sequence = 41, .count = 10, .time_us = 20}) +
           Begin("AllReduce", "CE_COLL", 7, 30, "\"eventId\": 1, \"count\": 5") +
           Begin("AllReduce", "COLL", 7, 31, "\"SeqNum\": 42, \"CommHash\": 1, \"Rank\": 0") +
           Begin("AllReduce", "COLL", 7, 32, "\"SeqNum\": 43, \"CommHash\": x, \"Rank\": 0")));
  const TraceImport& import = files_.Import({path}, {.ranks = 4});
  ASSERT_TRUE(import.trace) << files_.findings();
  EXPECT_EQ(import.trace->rank_count, 4u);
  EXPECT_EQ(import.report.calls_reconstructed, 6u);
  EXPECT_EQ(files_.Dropped(CallDropReason::kUnsupportedKind), 1u);
  EXPECT_EQ(files_.Dropped(CallDropReason::kSizesNotRecorded), 1u);
  EXPECT_EQ(files_.Dropped(CallDropReason::kMalformedRecord), 1u);
  EXPECT_THAT(import.report.assumed, Contains(HasSubstr("40 calls, by their SeqNum")));
}

// Two servers' processes with one number: which of them a file of another communicator is of is not
// known.
TEST_F(NcclProfilerReaderTest, ProcessNumbersThatTwoRanksHaveAreNotGuessed) {
  std::vector<std::string> paths;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    paths.push_back(files_.Write(fmt::format("world_{}.json", rank),
                                 File(CollectiveOf(rank, 7, {.count = 10, .time_us = 10}))));
  }
  paths.push_back(files_.Write(
      "other.json", File(CollectiveOf(0, 7, {.count = 5, .time_us = 20, .communicator = "5"}))));
  const TraceImport& import = files_.Import(paths);
  ASSERT_TRUE(import.trace) << files_.findings();
  EXPECT_EQ(import.trace->rank_count, 2u);
  EXPECT_EQ(files_.Dropped(CallDropReason::kUnknownRank), 1u);
}

// The plug-in writes a file for each communicator, with and without calls.
TEST_F(NcclProfilerReaderTest, CommunicatorsWithoutCallsHaveFiles) {
  const std::vector<std::string> paths = {
      files_.Write("trace_5_0.json", "[\n{}]"),
      files_.Write("trace_1_0.json", File(CollectiveOf(0, 7, {.count = 10, .time_us = 10})))};
  const TraceImport& import = files_.Import(paths);
  ASSERT_TRUE(import.trace) << files_.findings();
  EXPECT_EQ(import.report.calls_seen(), 1u);
}

// The plug-in prints what an entry of its pool had of an earlier call, too.
TEST_F(NcclProfilerReaderTest, KernelsBeforeTheCallAreOfAnother) {
  std::string call = CollectiveOf(0, 7, {.count = 10, .time_us = 1000});
  call.insert(call.find("{\"name\": \"KernelCh\""),
              Begin("KernelCh", "GPU", 7, 20, "\"Channel\": 5") + End("KernelCh", "GPU", 7, 21));
  const TraceImport& import = files_.Import({files_.Write("trace.json", File(call))});
  ASSERT_TRUE(import.trace) << files_.findings();
  EXPECT_EQ(import.trace->operations[GlobalRank{0}][0].measured_ps, 25'500'000);
}

// Rank 0's pool kept the last two of the messages, rank 1's the last three.
TEST_F(NcclProfilerReaderTest, MessagesOfDifferentWindowsAreMatchedFromTheLastOn) {
  std::vector<std::string> paths;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    std::string events;
    for (uint64_t i = rank == 0 ? 1 : 0; i < 3; ++i) {
      events += Message(rank == 0 ? "Send" : "Recv", rank, 1 - rank, 100 + rank, 10 + i,
                        10 + static_cast<double>(i));
    }
    paths.push_back(files_.Write(fmt::format("trace_{}.json", rank), File(events)));
  }
  const TraceImport& import = files_.Import(paths);
  ASSERT_TRUE(import.trace) << files_.findings();
  EXPECT_EQ(import.trace->operations[GlobalRank{1}].size(), 2u);
  EXPECT_EQ(import.trace->operations[GlobalRank{1}][0].count, 11u);
  EXPECT_EQ(files_.Dropped(CallDropReason::kIncompleteOnRank), 1u);
}

// Each replay of a graph prints its messages within the events of the one call that was captured,
// and its collectives with the number that this had.
TEST_F(NcclProfilerReaderTest, ReplaysOfAGraphAreCallsOfTheirOwn) {
  std::vector<std::string> paths;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const uint64_t process = 100 + rank;
    const auto messages = [&](const char* name) {
      std::string text = Begin(name, "P2P_API", process, 20, "\"count\": 8");
      for (int replay = 0; replay < 3; ++replay) {
        text += Message(name, rank, 1 - rank, process, 8, 30 + 100 * replay);
      }
      return text + End(name, "P2P_API", process, 900);
    };
    std::string events;
    for (int replay = 0; replay < 3; ++replay) {
      events += CollectiveOf(rank, process, {.count = 10, .time_us = 10.0 + 100 * replay});
    }
    paths.push_back(
        files_.Write(fmt::format("trace_{}.json", rank),
                     File(events + Begin("Group", "GROUP_API", process, 19, "") + messages("Send") +
                          messages("Recv") + End("Group", "GROUP_API", process, 901))));
  }
  const TraceImport& import = files_.Import(paths);
  ASSERT_TRUE(import.trace) << files_.findings();
  EXPECT_EQ(import.report.calls_dropped(), 0u);
  const auto& program = import.trace->operations[GlobalRank{1}];
  ASSERT_EQ(program.size(), 9u);
  for (size_t replay = 0; replay < 3; ++replay) {
    EXPECT_EQ(program[3 * replay].kind, CollectiveKind::kAllReduce);
    EXPECT_EQ(program[3 * replay + 1].group, program[3 * replay + 2].group);
  }
  EXPECT_NE(program[1].group, program[4].group);
  EXPECT_THAT(import.report.assumed, Contains(HasSubstr("replays of a CUDA graph")));
}

// Two tensor groups and two data groups: none has all ranks.
TEST_F(NcclProfilerReaderTest, TheUserMaySayThatProcessesAreTheRanks) {
  std::vector<std::string> paths;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const uint64_t process = 100 + rank;
    const std::string tensor = std::to_string(50 + rank / 2);
    const std::string data = std::to_string(60 + rank % 2);
    paths.push_back(files_.Write(
        fmt::format("trace_{}.json", rank),
        File(CollectiveOf(rank % 2, process, {.count = 10, .time_us = 10, .communicator = tensor}) +
             CollectiveOf(rank / 2, process, {.count = 20, .time_us = 20, .communicator = data}))));
  }
  const TraceImport& import = files_.Import(paths, {.ranks = 4});
  ASSERT_TRUE(import.trace) << files_.findings();
  EXPECT_EQ(import.trace->rank_count, 4u);
  EXPECT_EQ(import.report.calls_dropped(), 0u);
  EXPECT_EQ(import.report.calls_reconstructed, 0u);
  const auto& program = import.trace->operations[GlobalRank{3}];
  EXPECT_THAT(import.trace->communicators[program[0].communicator].ranks, ElementsAre(2, 3));
  EXPECT_THAT(import.trace->communicators[program[1].communicator].ranks, ElementsAre(1, 3));
}

}  // namespace
}  // namespace railyard
