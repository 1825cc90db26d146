// SPDX-License-Identifier: GPL-2.0-only
// A run on several cores has the results of one on one core, or says why it took one.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

class ThreadsTest : public ProgramTest {
 protected:
  // `more` are blocks of the scenario.
  static std::string Collective(const std::string& kind, const std::string& bytes,
                                const std::string& more = "") {
    return RailOptimized(4) + Program(kind, bytes) + more;
  }
  static std::vector<std::string> Threads(int threads) {
    return {"--threads", std::to_string(threads), "--no-baseline"};
  }
  // Runs the scenario on one core and on `threads`, and compares all that they write but times.
  void ExpectSameResults(const std::string& scenario, int threads) {
    const EndedRun one = RunText(scenario, Threads(1));
    const EndedRun several = RunText(scenario, Threads(threads));
    ASSERT_EQ(one.exit.status, 0) << one.exit.errors;
    ASSERT_EQ(several.exit.status, 0) << several.exit.errors;
    EXPECT_EQ(several.Text("threads_why"), "");
    EXPECT_EQ(several.Integer("threads"), threads);
    EXPECT_EQ(one.Text("fingerprint"), several.Text("fingerprint"));
    for (const char* key : {"simulated_time_ps", "events", "packets", "packet_hops", "control_hops",
                            "transport.ecn_marked", "transport.cnp", "transport.pfc_pause_ps",
                            "conservation.delivered_bytes", "conservation.in_flight_bytes"}) {
      EXPECT_EQ(one.Integer(key), several.Integer(key)) << key;
    }
    for (const char* file : {"/collectives.csv", "/pairs.csv", "/links.csv", "/traffic.csv"}) {
      EXPECT_EQ(ReadText(one.directory + file), ReadText(several.directory + file)) << file;
    }
  }
  // Expects one core for that reason.
  void ExpectOneCore(const std::string& scenario, const std::vector<std::string>& options,
                     const std::string& why) {
    std::vector<std::string> arguments = options;
    arguments.insert(arguments.end(), {"--threads", "2", "--no-baseline"});
    const EndedRun run = RunText(scenario, arguments);
    ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
    EXPECT_EQ(run.Integer("threads"), 1);
    EXPECT_THAT(run.Text("threads_why"), HasSubstr(why));
  }
};

TEST_F(ThreadsTest, ARingHasTheSameResultsOnTwoAndThreeAndFourCores) {
  const std::string ring =
      Collective("ALL_REDUCE", "4MiB", "nic { congestion_control { dcqcn {} } }");
  for (const int threads : {2, 3, 4}) ExpectSameResults(ring, threads);
}

TEST_F(ThreadsTest, TheDivisionTellsWhatEachShardDid) {
  const EndedRun run = RunText(Collective("ALL_REDUCE", "1MiB"), Threads(4));
  const auto& division = run.summary["division"];
  const int64_t events = run.Integer("events");
  EXPECT_GT(division["windows"].GetInt64(), 0);
  EXPECT_GT(division["lookahead_ps"].GetInt64(), 0);
  // No window's events are fewer than a fourth of all, nor more than all.
  EXPECT_GE(division["serial_events"].GetInt64(), events / 4);
  EXPECT_LE(division["serial_events"].GetInt64(), events);
  ASSERT_EQ(division["shards"].Size(), 4u);
  int64_t events_of_shards = 0;
  int64_t switches = 0;
  for (const auto& shard : division["shards"].GetArray()) {
    EXPECT_EQ(shard["servers"].GetInt64(), 1);
    EXPECT_GT(shard["crossings"].GetInt64(), 0);
    events_of_shards += shard["events"].GetInt64();
    switches += shard["switches"].GetInt64();
  }
  EXPECT_EQ(events_of_shards, events);
  EXPECT_EQ(switches, 8 + 4);  // leaves, spines
}

TEST_F(ThreadsTest, ARunOnOneCoreHasNoDivision) {
  const EndedRun run = RunText(Collective("ALL_REDUCE", "1MiB"), Threads(1));
  EXPECT_TRUE(run.summary["division"].IsNull());
}

// The last rank of a Broadcast ends long after the first.
TEST_F(ThreadsTest, TheRunEndsWithTheLastCallEvenIfAShardHasNoneLeft) {
  ExpectSameResults(Collective("BROADCAST", "1MiB"), 4);
}

TEST_F(ThreadsTest, AllToAllHasTheSameResults) {
  ExpectSameResults(Collective("ALL_TO_ALL", "1MiB"), 2);
}

TEST_F(ThreadsTest, MoreThreadsThanServersAreAsManyAsServers) {
  const EndedRun run = RunText(Collective("ALL_REDUCE", "1MiB"), Threads(9));
  EXPECT_EQ(run.Integer("threads"), 4);
  EXPECT_THAT(run.Text("threads_why"), HasSubstr("only 4 servers"));
}

TEST_F(ThreadsTest, WhatCannotBeDividedRunsOnOneCoreAndSaysWhy) {
  const std::string ring = Collective("ALL_REDUCE", "1MiB");
  ExpectOneCore(ring + LinkDown("server0/nic1--leaf1", "150us", "400us"), {}, "faults");
  const std::string repeated = RailOptimized(4) + Program("ALL_REDUCE", "1MiB", "repeat: 2");
  ExpectOneCore(repeated, {}, "replay cache");
  ExpectOneCore(repeated, {"--no-replay-cache"}, "more than one collective");
  ExpectOneCore(ring + "nic { congestion_control { hpcc {} } }", {}, "telemetry");
}

TEST_F(ThreadsTest, ThreadsAreFromOneToSixtyFour) {
  EXPECT_EQ(RunText(Collective("ALL_REDUCE", "1MiB"), Threads(0)).exit.status, 2);
  EXPECT_EQ(RunText(Collective("ALL_REDUCE", "1MiB"), Threads(65)).exit.status, 2);
}

}  // namespace
}  // namespace railyard::testing
