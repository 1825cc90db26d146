// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/schedule_files/schedule_file_loader.h"

#include <fstream>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenario/loaded_scenario.h"
#include "tests/text_proto/text_file.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

// Two ranks exchange halves, then sums: 0 has the first half's, 1 the second's.
const std::string kHalves =
    "collective: ALL_REDUCE ranks: 2 chunks: 2\n"
    "lanes { rank: 0 channel: 1\n"
    "  steps { chunk: 1 send_to: 1 load_local: true }\n"
    "  steps { chunk: 0 recv_from: 1 load_local: true reduce: true keep: true store: true }\n"
    "  steps { chunk: 0 send_to: 1 load_kept: true }\n"
    "  steps { chunk: 1 recv_from: 1 store: true }\n"
    "}\n"
    "lanes { rank: 1 channel: 1\n"
    "  steps { chunk: 0 send_to: 0 load_local: true }\n"
    "  steps { chunk: 1 recv_from: 0 load_local: true reduce: true keep: true store: true }\n"
    "  steps { chunk: 1 send_to: 0 load_kept: true }\n"
    "  steps { chunk: 0 recv_from: 0 store: true }\n"
    "}\n";

std::string With(std::string text, const std::string& old, const std::string& now) {
  const size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), now);
}

std::string FindingsOf(const std::string& text) {
  const TextFile file(text);
  Diagnostics diagnostics;
  const auto algorithm = LoadScheduleFile(file.path(), diagnostics);
  EXPECT_EQ(algorithm == nullptr, diagnostics.HasErrors());
  return file.WithoutPath(diagnostics.ToString());
}

TEST(ScheduleFileLoaderTest, AnAlgorithmIsAScheduleForAnyNumberOfBytes) {
  const TextFile file(kHalves);
  Diagnostics diagnostics;
  const auto algorithm = LoadScheduleFile(file.path(), diagnostics);
  ASSERT_NE(algorithm, nullptr) << diagnostics.ToString();
  EXPECT_EQ(algorithm->channel_count, 2u);
  // 100 B: chunks of 64 and 36 B, in slots of 40 B: twice over.
  const ExplicitSchedule schedule(algorithm, 100, 40, {});
  const LaneId lane{RankIndex{0}, 1, 0, 0};
  EXPECT_EQ(schedule.BatchCount(RankIndex{0}, 0), 0u);
  ASSERT_EQ(schedule.StepCount(lane), 8u);
  EXPECT_EQ(schedule.StepAt(lane, 0).offset_bytes, 64u);
  EXPECT_EQ(schedule.StepAt(lane, 0).bytes, 36u);
  EXPECT_EQ(schedule.StepAt(lane, 4).bytes, 0u);
  EXPECT_EQ(schedule.StepAt(lane, 5).offset_bytes, 40u);
  EXPECT_EQ(schedule.StepAt(lane, 5).bytes, 24u);
  EXPECT_EQ(ExplicitSchedule(algorithm, 0, 40, {}).BatchCount(RankIndex{0}, 1), 0u);
}

TEST(ScheduleFileLoaderTest, WhatIsNotDeliveredIsSaidAtItsStep) {
  const std::string expected =
      " (expected every rank to end with every contribution to its result once)\n";
  EXPECT_EQ(
      FindingsOf(With(kHalves, "chunk: 1 recv_from: 0 load_local: true reduce: true",
                      "chunk: 1 recv_from: 0")),
      ":10:3: error: lanes[1].steps[1]: rank 1, channel 1, batch 0, lane 0, step 1: stores 16 "
      "B at offset 16 without the contribution of rank 1" +
          expected);
  EXPECT_EQ(FindingsOf(With(kHalves, "  steps { chunk: 1 recv_from: 1 store: true }\n",
                            "  steps { chunk: 1 recv_from: 1 keep: true }\n")),
            ":2:1: error: lanes[0]: rank 0 never stores the bytes from 16 on" + expected);
  EXPECT_EQ(FindingsOf(With(kHalves, "  steps { chunk: 1 recv_from: 1 store: true }\n", "")),
            ":2:1: error: lanes[0]: channel 1: rank 0 never receives 1 of the messages of rank 1" +
                expected);
  EXPECT_EQ(FindingsOf(With(kHalves, "steps { chunk: 0 send_to: 0 load_local: true }",
                            "steps { chunk: 0 send_to: 0 load_kept: true }")),
            ":9:3: error: lanes[1].steps[0]: rank 1, channel 1, batch 0, lane 0, step 0: loads "
            "offset 0, where it has kept nothing" +
                expected);
  // A rank without lanes: nothing arrives there.
  EXPECT_THAT(FindingsOf(With(kHalves, "ranks: 2", "ranks: 3")),
              HasSubstr("without the contribution of rank 2"));
}

// Both ranks send all their chunks before they receive: eight slots hold eight messages.
TEST(ScheduleFileLoaderTest, WhatStallsForLackOfSlotsIsSaidAtTheStepThatWaits) {
  const auto exchange = [](int chunks) {
    std::string text = "collective: ALL_REDUCE ranks: 2 chunks: " + std::to_string(chunks) + "\n";
    for (int rank = 0; rank < 2; ++rank) {
      text += "lanes { rank: " + std::to_string(rank) + "\n";
      const std::string peer = std::to_string(1 - rank);
      for (int chunk = 0; chunk < chunks; ++chunk) {
        text += "  steps { chunk: " + std::to_string(chunk) + " send_to: " + peer +
                " load_local: true }\n";
      }
      for (int chunk = 0; chunk < chunks; ++chunk) {
        text += "  steps { chunk: " + std::to_string(chunk) + " recv_from: " + peer +
                " load_local: true reduce: true store: true }\n";
      }
      text += "}\n";
    }
    return text;
  };
  EXPECT_EQ(FindingsOf(exchange(8)), "");
  EXPECT_EQ(
      FindingsOf(exchange(9)),
      ":11:3: error: lanes[0].steps[8]: rank 0, channel 0, batch 0, lane 0, step 8: waits for "
      "ever to send to rank 1, which takes none of the 8 messages that are there already "
      "(expected at most 8 on a connection before the first is received)\n");
}

TEST(ScheduleFileLoaderTest, EveryMistakeIsSaidAtItsPlace) {
  EXPECT_EQ(FindingsOf("ranks: 1 root: 0"),
            ":1:1: error: collective: missing (expected ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, "
            "ALL_TO_ALL, BROADCAST or REDUCE)\n"
            ":1:1: error: ranks: 1 is out of range (expected 2 to 1024)\n"
            ":1:10: error: root: AllReduce has none (expected no root, or BROADCAST or REDUCE)\n");
  EXPECT_EQ(FindingsOf("collective: ALL_GATHER ranks: 2\nlanes { rank: 2 steps { chunk: 2 } }\n"
                       "lanes { channel: 64 }"),
            ":2:9: error: lanes[0].rank: 2 is out of range (expected 0 to 1)\n"
            ":2:25: error: lanes[0].steps[0].chunk: 2 is out of range (expected 0 to 1)\n"
            ":3:1: error: lanes[1].rank: missing (expected whose steps these are)\n"
            ":3:1: error: lanes[1].steps: missing (expected one or more)\n"
            ":3:9: error: lanes[1].channel: 64 is out of range (expected 0 to 63)\n");
  EXPECT_EQ(FindingsOf("collective: REDUCE ranks: 2"),
            ":1:1: error: lanes: missing (expected those of every rank)\n");
  EXPECT_EQ(FindingsOf("collective: REDUCE ranks: 2\n"
                       "lanes { rank: 1 steps { send_to: 0 load_local: true } }\n"
                       "lanes { rank: 1 steps { send_to: 0 load_local: true } }\n"),
            ":3:25: error: lanes[1].steps[0].send_to: lanes[0] does so too: which of them gets a "
            "message is open (expected one lane, or another channel)\n");
}

// Rank s sends block r x 2 + s to rank r.
const std::string kSwap =
    "collective: ALL_TO_ALL ranks: 2\n"
    "lanes { rank: 0\n"
    "  steps { chunk: 0 load_local: true store: true }\n"
    "  steps { chunk: 2 send_to: 1 load_local: true }\n"
    "  steps { chunk: 1 recv_from: 1 store: true }\n"
    "}\n"
    "lanes { rank: 1\n"
    "  steps { chunk: 3 load_local: true store: true }\n"
    "  steps { chunk: 1 send_to: 0 load_local: true }\n"
    "  steps { chunk: 2 recv_from: 0 store: true }\n"
    "}\n";

TEST(ScheduleFileLoaderTest, AnAllToAllHasABlockOfEachPair) {
  EXPECT_EQ(FindingsOf(kSwap), "");
  EXPECT_EQ(FindingsOf(With(kSwap, "chunk: 0 ", "chunk: 4 ")),
            ":3:11: error: lanes[0].steps[0].chunk: 4 is out of range (expected 0 to 3)\n");
  EXPECT_THAT(
      FindingsOf(With(kSwap, "chunk: 2 send_to", "chunk: 3 send_to")),
      HasSubstr(
          ":4:3: error: lanes[0].steps[1]: rank 0, channel 0, batch 0, lane 0, step 1: loads data "
          "outside its own block"));
  EXPECT_THAT(FindingsOf(With(kSwap, "  steps { chunk: 3 load_local: true store: true }\n", "")),
              HasSubstr("rank 1 never stores the bytes from 48 on"));
  const TextFile file(kSwap);
  Diagnostics diagnostics;
  const auto algorithm = LoadScheduleFile(file.path(), diagnostics);
  ASSERT_NE(algorithm, nullptr) << diagnostics.ToString();
  // 100 B to each rank.
  const ExplicitSchedule schedule(algorithm, 100, 1'000, {});
  const Step sent = schedule.StepAt({.rank = RankIndex{0}}, 1);
  EXPECT_EQ(sent.offset_bytes, 200u);
  EXPECT_EQ(sent.bytes, 100u);
}

TEST(ScheduleFileLoaderTest, AScenarioRunsItForCollectivesOfItsKind) {
  const auto findings = [](const char* kind, const char* schedule) {
    const TextFile file(
        "fabric { rail_optimized { servers: 2 gpus_per_server: 1 } }\n"
        "workload { program { collectives { kind: " +
        std::string(kind) + " bytes: \"1MiB\" } } schedule: \"" + schedule + "\" }\n");
    std::ofstream(file.directory() + "/halves.textproto") << kHalves;
    Diagnostics diagnostics;
    const auto scenario = LoadScenario(file.path(), {}, diagnostics);
    EXPECT_EQ(scenario == nullptr, diagnostics.HasErrors());
    return file.WithoutPath(diagnostics.ToString());
  };
  EXPECT_EQ(findings("ALL_REDUCE", "halves.textproto"), "");
  EXPECT_THAT(findings("BROADCAST", "halves.textproto"),
              HasSubstr("error: workload.schedule: is of AllReduce over 2 ranks, and the job has "
                        "none (expected a schedule of one of its collectives)\n"));
  EXPECT_THAT(findings("ALL_REDUCE", "none.textproto"), HasSubstr("there is no such file"));
}

// Loads a scenario of four GPUs with these collectives and the algorithm kSwap. Returns nullptr
// with findings.
std::unique_ptr<Scenario> LoadWithSwap(const std::string& collectives, Diagnostics& diagnostics) {
  const TextFile file(
      "fabric { rail_optimized { servers: 2 gpus_per_server: 2 } }\n"
      "workload { schedule: \"swap.textproto\" program { " +
      collectives + " } }\n");
  std::ofstream(file.directory() + "/swap.textproto") << kSwap;
  return LoadScenario(file.path(), {}, diagnostics);
}

// AllToAlls are planned as a whole then, and others as their Sends and Recvs.
TEST(ScheduleFileLoaderTest, AnAllToAllOfItsRanksIsNotMadeOfSendsAndRecvs) {
  Diagnostics diagnostics;
  const auto scenario = LoadWithSwap(
      "collectives { kind: ALL_TO_ALL bytes: \"1MiB\" groups_of: 2 }\n"
      "collectives { kind: ALL_TO_ALL bytes: \"1MiB\" }",
      diagnostics);
  ASSERT_NE(scenario, nullptr) << diagnostics.ToString();
  for (const JobCollective& collective : scenario->job.collectives) {
    EXPECT_EQ(collective.is_p2p(), collective.rank_count == 4);
  }
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    const auto& operations = scenario->job.operations[GlobalRank{rank}];
    ASSERT_EQ(operations.size(), 2u);
    EXPECT_FALSE(operations[0].is_p2p);
    EXPECT_EQ(operations[0].p2p_count, 0u);
    EXPECT_TRUE(operations[1].is_p2p);
  }
}

TEST(ScheduleFileLoaderTest, AllToAllvsAreSaidToStayAsTheyAre) {
  Diagnostics diagnostics;
  EXPECT_EQ(
      LoadWithSwap("collectives { kind: ALL_TO_ALL bytes: \"1MiB\" hierarchical_groups_of: 2 }",
                   diagnostics),
      nullptr);
  EXPECT_THAT(diagnostics.ToString(), HasSubstr("the job has AllToAllvs alone"));
}

TEST(ScheduleFileLoaderTest, OneAmongSeveralJobsHasNone) {
  const TextFile file(std::string(kFabric) +
                      "jobs { workload { program { ranks: 2 collectives { kind: ALL_REDUCE bytes: "
                      "\"1MiB\" } } schedule: \"halves.textproto\" } }\n");
  std::ofstream(file.directory() + "/halves.textproto") << kHalves;
  Diagnostics diagnostics;
  EXPECT_EQ(LoadScenario(file.path(), {}, diagnostics), nullptr);
  EXPECT_EQ(file.WithoutPath(diagnostics.ToString()),
            ":2:87: error: jobs[0].workload.schedule: is not run among several jobs (expected no "
            "schedule, or a workload in place of jobs)\n");
}

}  // namespace
}  // namespace railyard
