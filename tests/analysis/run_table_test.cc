// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/tables/run_table.h"

#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/tables/text_table.h"
#include "simulator/units/units.h"
#include "tests/analysis/made_up_run.h"

namespace railyard {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::MadeUpRun;
using testing::MadeUpRunWithoutFaults;
using ::testing::Not;

// Lines from the one that is `title` up to the next empty one.
std::string Section(const std::string& text, const std::string& title) {
  std::istringstream lines(text);
  std::string section;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == title) inside = true;
    if (line.empty()) inside = false;
    if (inside) section += line + "\n";
  }
  return section;
}

void ExpectFitsTheTerminal(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
    for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line;
  }
}

TEST(TextTableTest, LinesColumnsUp) {
  TextTable table({{"name", Align::kLeft}, {"n"}});
  table.AddRow({"a", "1,000"});
  table.AddLine("    a line of its own");
  table.AddRow({"longer", ""});
  EXPECT_EQ(table.ToString(),
            "name        n\n"
            "a       1,000\n"
            "    a line of its own\n"
            "longer\n");
}

TEST(TextTableTest, CountsAUtf8CharacterAsOneColumn) {
  TextTable table({{"a", Align::kLeft}, {"b", Align::kLeft}});
  table.AddRow({"\xC3\xA9\xC3\xA9", "x"});
  table.AddRow({"ee", "x"});
  EXPECT_EQ(table.ToString(), "a   b\n\xC3\xA9\xC3\xA9  x\nee  x\n");
}

TEST(TextTableDeathTest, StopsAtARowOfAnotherLength) {
  TextTable table({{"a"}});
  EXPECT_DEATH(table.AddRow({"1", "2"}), "another number of cells");
}

TEST(RunTableTest, SaysWhatTheRunWas) {
  const std::string text = PrintRunTable(MadeUpRun());
  EXPECT_THAT(text, HasSubstr("made_up: COMPLETED\n"
                              "Fabric two-by-two: 4 GPUs in 2 servers, 2 cables. Seed 7.\n"
                              "Simulated " +
                              FormatDuration(20 * kPsPerMs) +
                              " in 0.50 s of run time (CPU 0.25 s, fault-free run 0.12 s more; "));
  ExpectFitsTheTerminal(text);
}

TEST(RunTableTest, ShowsEachKindsDurationBusbwAndStretch) {
  const std::string section = Section(PrintRunTable(MadeUpRun()), "Collectives by kind");
  EXPECT_THAT(section, ContainsRegex("AllReduce +2 +191 MiB +" + FormatDuration(kPsPerMs) + " +" +
                                     FormatDuration(10 * kPsPerMs) + " +15.0 GB/s +1 +4.000\n"));
  EXPECT_THAT(section, ContainsRegex("AllGather +1 .* 37.5 GB/s +1 +1\n"));
}

TEST(RunTableTest, ListsTheMostStretchedFirstThenTheLongest) {
  const std::string section =
      Section(PrintRunTable(MadeUpRun()), "Slowest collectives, by stretch, then by duration");
  const size_t hit = section.find("\n1  AllReduce");
  const size_t longer = section.find("\n2  AllGather");
  const size_t shorter = section.find("\n0  AllReduce");
  ASSERT_NE(hit, std::string::npos) << section;
  ASSERT_NE(longer, std::string::npos) << section;
  ASSERT_NE(shorter, std::string::npos) << section;
  EXPECT_LT(hit, longer);
  EXPECT_LT(longer, shorter);
  EXPECT_THAT(section, HasSubstr("    log: TREE/LL, replayed: RING/SIMPLE\n"));
}

TEST(RunTableTest, ListsAtMostEightCollectives) {
  RunResult run = MadeUpRun();
  run.collectives.resize(50, run.collectives[2]);
  const std::string section =
      Section(PrintRunTable(run), "Slowest collectives, by stretch, then by duration");
  // The title, the column titles, eight rows, and one line for the AllReduce replayed otherwise.
  EXPECT_EQ(std::count(section.begin(), section.end(), '\n'), 11) << section;
}

TEST(RunTableTest, CountsWhatWasReplayedOtherwiseThanLogged) {
  EXPECT_THAT(PrintRunTable(MadeUpRun()),
              HasSubstr("AllReduce: log: TREE/LL, replayed: RING/SIMPLE (2 collectives)"));
  RunResult run = MadeUpRun();
  for (CollectiveResult& collective : run.collectives) collective.logged = collective.replayed;
  EXPECT_THAT(PrintRunTable(run), Not(HasSubstr("log:")));
}

TEST(RunTableTest, ShowsBytesPerTierAndWhereThePayloadWent) {
  const std::string text = PrintRunTable(MadeUpRun());
  EXPECT_THAT(text, ContainsRegex("NVLINK +2 +" + FormatBytes(6000) + " +75.0 % "));
  EXPECT_THAT(text, ContainsRegex("NIC_LEAF +2 .* " + FormatBytes(300) + "\n"));
  EXPECT_THAT(text, HasSubstr("25.0 % left its server and 12.5 % reached the spine."));
  EXPECT_THAT(text, HasSubstr("2 of 12 possible pairs of GPUs talked (16.7 %)."));
}

TEST(RunTableTest, TellsTheStoryOfAFault) {
  EXPECT_EQ(Section(PrintRunTable(MadeUpRun()), "Faults and losses"),
            "Faults and losses\n"
            "  flap: LINK_DOWN on server0/nic0--leaf0, from " +
                FormatDuration(3 * kPsPerMs) + " to " + FormatDuration(4 * kPsPerMs) +
                "\n"
                "    lost 3 packets, hit 1 collective and 4 ranks\n"
                "    first retransmission at " +
                FormatDuration(9 * kPsPerMs) + ", recovered " + FormatDuration(6 * kPsPerMs) +
                " after the fault began\n"
                "    largest stretch before it 1, during 4.000, after 1\n"
                "    collectives took " +
                FormatDuration(15 * kPsPerMs / 2) +
                " longer: time-outs 66.7 %, other 16.7 %, retransmission 13.3 %, slow or\n"
                "      late peers 6.7 %, rerouting 3.3 %, less queueing 6.7 %\n"
                "  dropped for LINK_DOWN: 3 packets (300 B)\n");
}

TEST(RunTableTest, TellsOfAFaultThatNeverEndsAndOfOneThatDidNothing) {
  RunResult run = MadeUpRun();
  run.faults[0].until_ps = kNeverPs;
  run.faults[0].time_to_recover_ps = -1;
  EXPECT_THAT(PrintRunTable(run), HasSubstr("until the end\n"));
  EXPECT_THAT(PrintRunTable(run), HasSubstr("never recovered\n"));
  run.faults[0].dropped_packets = 0;
  run.faults[0].ranks_hit = 0;
  run.drops.clear();
  EXPECT_THAT(PrintRunTable(run), HasSubstr("nothing to recover from\n    largest stretch before "
                                            "it 1, during 4.000\n"));
  EXPECT_THAT(PrintRunTable(run), HasSubstr("  no packet was dropped\n"));
}

// A run that ended before one began knows when it was to begin.
TEST(RunTableTest, FaultsThatNeverBeganAreCountedAndNoMore) {
  RunResult run = MadeUpRun();
  for (const char* const name : {"a", "b", "c", "d"}) {
    run.faults.push_back({.name = name,
                          .kind = "LINK_DOWN",
                          .target = "leaf0--spine0",
                          .from_ps = name[0] == 'a' ? 30 * kPsPerMs : kNeverPs,
                          .until_ps = kNeverPs,
                          .collectives = {}});
  }
  const std::string section = Section(PrintRunTable(run), "Faults and losses");
  EXPECT_THAT(section, HasSubstr("  4 faults never began: a, b, c, …\n"));
  EXPECT_THAT(section, Not(HasSubstr("leaf0--spine0")));
  EXPECT_THAT(section, HasSubstr("  flap: LINK_DOWN on server0/nic0--leaf0, from "));
}

TEST(RunTableTest, WhatCollectivesTookLessIsSaidToo) {
  RunResult run = MadeUpRun();
  run.collectives[1].added = {.queueing_ps = -kPsPerMs};
  EXPECT_THAT(PrintRunTable(run),
              HasSubstr("    collectives took " + FormatDuration(kPsPerMs) + " less\n"));
}

TEST(RunTableTest, SaysWhatRestartsCost) {
  RunResult run = MadeUpRun();
  run.jobs[0].restart = {.restarts = 2,
                         .rework_ps = 3 * kPsPerMs,
                         .detection_ps = kPsPerMs,
                         .requeue_ps = 4 * kPsPerMs,
                         .load_ps = 2 * kPsPerMs,
                         .save_ps = 3 * kPsPerMs,
                         .servers_replaced = 1,
                         .last_failure = "rank 1 gave up\nmore"};
  // 15 ms without faults, of which 3 ms save checkpoints, in 20 ms.
  EXPECT_EQ(Section(PrintRunTable(run), "Restarts"),
            "Restarts\n"
            "  " +
                run.jobs[0].name +
                " restarted 2 times; goodput 75.0 %, effective training time 60.0 %\n"
                "    restarts took 10 ms: 3 ms of rework since the last checkpoint, 1 ms until all "
                "ranks had ended, 4\n"
                "      ms in the queue, 2 ms of loading checkpoints\n"
                "    saving checkpoints takes 3 ms without any failure\n"
                "    1 server replaced by spares\n"
                "    last failure: rank 1 gave up\n");
  EXPECT_THAT(PrintRunTable(MadeUpRun()), Not(HasSubstr("Restarts")));
}

TEST(RunTableTest, ShowsOnlyTransportCountersThatCounted) {
  EXPECT_THAT(PrintRunTable(MadeUpRun()),
              HasSubstr("  3 packet retransmissions, 1 retransmission time-out\n"));
  EXPECT_THAT(PrintRunTable(MadeUpRunWithoutFaults()), Not(HasSubstr("Transport")));
}

TEST(RunTableTest, AccountsForEveryByte) {
  EXPECT_EQ(Section(PrintRunTable(MadeUpRun()), "Every byte is accounted for"),
            "Every byte is accounted for\n"
            "  4,300 injected = 4,000 delivered + 300 dropped + 0 in flight\n");
  RunResult run = MadeUpRun();
  run.conservation.in_flight_bytes = 1;
  EXPECT_EQ(Section(PrintRunTable(run), "BYTES ARE NOT ACCOUNTED FOR"),
            "BYTES ARE NOT ACCOUNTED FOR\n"
            "  4,300 injected IS NOT 4,000 delivered + 300 dropped + 1 in flight\n");
  run.conservation = {
      .injected_bytes = 10, .replicated_bytes = 5, .delivered_bytes = 12, .reduced_bytes = 3};
  EXPECT_THAT(
      PrintRunTable(run),
      HasSubstr("10 injected + 5 replicated = 12 delivered + 3 reduced + 0 dropped + 0 in flight"));
}

TEST(RunTableTest, ExplainsAnAbortedJob) {
  RunResult run = MadeUpRun();
  run.status = RunStatus::kJobAborted;
  run.status_detail = "rank 1 gave up after 8 transmissions\nrank 2 waits for rank 1";
  run.collectives[1].completed = false;
  run.collectives[1].last_end_ps = kNeverPs;
  const std::string text = PrintRunTable(run);
  EXPECT_THAT(text, HasSubstr("made_up: JOB_ABORTED\n"
                              "  rank 1 gave up after 8 transmissions\n"
                              "  rank 2 waits for rank 1\n"));
  EXPECT_THAT(text, HasSubstr("1 collective did not complete: without duration, busbw and "
                              "stretch.\n"));
}

TEST(RunTableTest, SaysWhatStretchMeansHere) {
  EXPECT_THAT(PrintRunTable(MadeUpRun()), HasSubstr("in the same run without its faults."));
  EXPECT_THAT(PrintRunTable(MadeUpRunWithoutFaults()), HasSubstr("No faults: every stretch is 1."));
  RunResult run = MadeUpRun();
  run.has_baseline = false;
  EXPECT_THAT(PrintRunTable(run), HasSubstr("stretch is unknown."));
}

TEST(RunTableTest, DoesNotShowAStretchAsOneThatIsNot) {
  RunResult run = MadeUpRun();
  run.collectives[1].last_end_ps =
      run.collectives[1].first_start_ps + run.collectives[1].baseline_duration_ps + 1;
  EXPECT_THAT(PrintRunTable(run), HasSubstr(" >1.000\n"));
  run.collectives[1].last_end_ps -= 2;
  EXPECT_THAT(PrintRunTable(run), HasSubstr(" <1.000\n"));
}

TEST(RunTableTest, FitsTheTerminalWhateverTheNamesHold) {
  RunResult run = MadeUpRun();
  run.scenario = std::string(300, 's');
  run.fabric = std::string(300, 'f');
  run.status_detail = "\x1B[2J" + std::string(300, 'd') + "\r\n\n";
  run.notes = {std::string(300, 'n'), "one two " + std::string(90, 'w') + " three\tfour"};
  run.drops[0].reason = std::string(300, 'r');
  run.faults[0].name = std::string(300, 'n');
  run.faults[0].target = std::string(300, 't');
  run.links[0].tier = run.texts->Keep(std::string(300, 't'));
  run.seed = UINT64_MAX;
  for (CollectiveResult& collective : run.collectives) {
    collective.kind = run.texts->Keep("ReduceScatter" + std::string(300, 'k'));
    collective.communicator = run.texts->Keep(std::string(300, 'c'));
    collective.logged = run.texts->Keep(std::string(300, 'l'));
    collective.bytes = uint64_t{1} << 50;
    collective.baseline_duration_ps = 3;
  }
  run.conservation = {.injected_bytes = UINT64_MAX / 2 - 3,
                      .replicated_bytes = UINT64_MAX / 3,
                      .delivered_bytes = UINT64_MAX / 2,
                      .reduced_bytes = UINT64_MAX / 3};
  ExpectFitsTheTerminal(PrintRunTable(run));
}

TEST(RunTableTest, OfAnEmptyRunIsStillATable) {
  const std::string text = PrintRunTable(RunResult());
  EXPECT_THAT(text, HasSubstr("0 of 0 possible pairs of GPUs talked (0.0 %)."));
  ExpectFitsTheTerminal(text);
}

}  // namespace
}  // namespace railyard
