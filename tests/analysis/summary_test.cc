// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/writers/summary.h"

#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include "analysis/writers/summary_figures.h"
#include "simulator/units/units.h"
#include "tests/analysis/made_up_run.h"

namespace railyard {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::MadeUpRun;
using testing::MadeUpRunWithoutFaults;
using ::testing::Not;

rapidjson::Document Parse(const RunResult& run) {
  rapidjson::Document summary;
  summary.Parse<rapidjson::kParseValidateEncodingFlag>(SummaryJson(run).c_str());
  EXPECT_FALSE(summary.HasParseError());
  return summary;
}

// Adds the paths of numbers, as a study's figures are named but with N for an index.
void AddNumbers(const rapidjson::Value& value, const std::string& path,
                std::set<std::string>& numbers) {
  const auto below = [&path](const std::string& name) {
    return path.empty() ? name : path + "." + name;
  };
  if (value.IsObject()) {
    for (const auto& member : value.GetObject()) {
      AddNumbers(member.value, below(member.name.GetString()), numbers);
    }
  } else if (value.IsArray()) {
    for (const auto& element : value.GetArray()) AddNumbers(element, below("N"), numbers);
  } else if (value.IsNumber()) {
    numbers.insert(path);
  }
}

std::vector<std::string> Keys(const rapidjson::Value& object) {
  std::vector<std::string> keys;
  for (const auto& member : object.GetObject()) keys.emplace_back(member.name.GetString());
  return keys;
}

TEST(SummaryJsonTest, HasTheKeysOfTheContract) {
  const auto summary = Parse(MadeUpRun());
  EXPECT_THAT(Keys(summary),
              ElementsAre("schema_version", "scenario", "seed", "mode", "fingerprint",
                          "trajectory_hash", "status", "simulated_time_ps", "wall_seconds",
                          "cpu_seconds", "baseline_cpu_seconds", "peak_rss_bytes", "threads",
                          "threads_why", "division", "events", "packet_hops", "control_hops",
                          "short_form_share", "packets", "collectives", "by_kind", "tiers", "pairs",
                          "drops", "transport", "faults", "jobs", "payload", "conservation",
                          "estimate", "traffic", "in_network", "measured"));
  EXPECT_THAT(Keys(summary["collectives"]),
              ElementsAre("count", "calls", "simulated", "replayed", "replayed_by",
                          "verified_episodes", "never_replayed", "duration_ps", "stretch"));
  EXPECT_THAT(Keys(summary["collectives"]["replayed_by"]),
              ElementsAre("network", "part", "like_part"));
  EXPECT_THAT(Keys(summary["collectives"]["duration_ps"]),
              ElementsAre("min", "p50", "p90", "p99", "p999", "max"));
  EXPECT_THAT(Keys(summary["collectives"]["stretch"]),
              ElementsAre("mean", "p50", "p99", "p999", "max"));
  EXPECT_THAT(Keys(summary["by_kind"][0]),
              ElementsAre("kind", "count", "bytes", "duration_ps", "stretch", "busbw_GBps"));
  EXPECT_THAT(Keys(summary["tiers"][0]), ElementsAre("tier", "payload_bytes", "header_bytes",
                                                     "retransmitted_bytes", "payload_share"));
  EXPECT_THAT(Keys(summary["pairs"]), ElementsAre("active", "possible"));
  EXPECT_THAT(Keys(summary["drops"][0]), ElementsAre("reason", "count"));
  EXPECT_THAT(Keys(summary["transport"]),
              ElementsAre("retransmitted_packets", "timeouts", "ecn_marked", "cnp", "pfc_pause_ps",
                          "qp_errors", "port_failovers", "port_recoveries", "nic_failovers",
                          "missing_packets", "missing_bytes", "reliable_time_ps", "saved_ps"));
  EXPECT_THAT(Keys(summary["faults"][0]),
              ElementsAre("name", "kind", "target", "from_ps", "until_ps", "begins",
                          "dropped_packets", "retransmitted_bytes", "collectives_hit", "ranks_hit",
                          "bytes_hit", "time_to_detect_ps", "first_retransmission_ps",
                          "stretch_before", "stretch_during", "stretch_after", "time_to_recover_ps",
                          "time_to_full_busbw_ps", "added_ps"));
  EXPECT_THAT(
      Keys(summary["faults"][0]["added_ps"]),
      ElementsAre("queueing", "retransmission", "timeout", "rerouting", "slow_peer", "other"));
  EXPECT_THAT(Keys(summary["jobs"][0]),
              ElementsAre("name", "status", "gpus", "start_ps", "end_ps", "alone_time_ps",
                          "interference", "collective_interference", "restarts", "goodput",
                          "lost_ps", "effective_training_time_ratio", "rework_ps", "detection_ps",
                          "requeue_ps", "load_ps", "save_ps", "servers_replaced", "first_error_ps",
                          "ranks_with_error", "ranks_hung"));
  EXPECT_THAT(Keys(summary["payload"]),
              ElementsAre("total_bytes", "left_server_share", "reached_spine_share"));
  EXPECT_THAT(Keys(summary["conservation"]),
              ElementsAre("injected_bytes", "replicated_bytes", "delivered_bytes", "reduced_bytes",
                          "dropped_bytes", "in_flight_bytes", "ok"));
}

TEST(SummaryJsonTest, ComparesMeasuredDurations) {
  RunResult run = MadeUpRun();
  const auto unmeasured = Parse(run);
  EXPECT_EQ(unmeasured["measured"]["count"].GetInt(), 0);
  EXPECT_TRUE(unmeasured["measured"]["ratio"]["p50"].IsNull());
  EXPECT_EQ(unmeasured["measured"]["by_size"].Size(), 0u);
  CollectiveResult& collective = run.collectives[2];  // 10^8 bytes in 2 ms
  collective.last_start_ps = collective.first_start_ps + kPsPerMs / 2;
  collective.measured_ps = kPsPerMs;
  const auto measured = Parse(run);
  EXPECT_EQ(measured["measured"]["count"].GetInt(), 1);
  const auto& size = measured["measured"]["by_size"][0];
  EXPECT_THAT(Keys(size), ElementsAre("kind", "bytes", "ranks", "count", "measured_p50_ps",
                                      "simulated_p50_ps", "ratio"));
  EXPECT_STREQ(size["kind"].GetString(), "AllGather");
  EXPECT_EQ(size["bytes"].GetInt(), 100'000'000);
  EXPECT_EQ(size["measured_p50_ps"].GetInt64(), kPsPerMs);
  EXPECT_EQ(size["simulated_p50_ps"].GetInt64(), 3 * kPsPerMs / 2);
  EXPECT_EQ(size["ratio"]["p50"].GetDouble(), 1.5);
}

TEST(SummaryJsonTest, HasTheFiguresOfTheRun) {
  const auto summary = Parse(MadeUpRun());
  EXPECT_EQ(summary["schema_version"].GetInt(), 1);
  EXPECT_STREQ(summary["status"].GetString(), "COMPLETED");
  EXPECT_EQ(summary["short_form_share"].GetDouble(), 0.25);
  EXPECT_EQ(summary["collectives"]["count"].GetInt(), 3);
  EXPECT_EQ(summary["collectives"]["calls"].GetInt(), 12);
  EXPECT_EQ(summary["collectives"]["simulated"].GetInt(), 2);
  EXPECT_EQ(summary["collectives"]["replayed"].GetInt(), 1);
  EXPECT_EQ(summary["collectives"]["duration_ps"]["max"].GetInt64(), 10 * kPsPerMs);
  EXPECT_EQ(summary["collectives"]["stretch"]["max"].GetDouble(), 4);
  EXPECT_EQ(summary["by_kind"][1]["busbw_GBps"]["p50"].GetDouble(), 37.5);
  EXPECT_EQ(summary["tiers"][0]["payload_share"].GetDouble(), 0.75);
  EXPECT_EQ(summary["pairs"]["active"].GetInt(), 2);
  EXPECT_EQ(summary["drops"][0]["count"].GetInt(), 3);
  EXPECT_EQ(summary["transport"]["timeouts"].GetInt(), 1);
  EXPECT_EQ(summary["faults"][0]["time_to_recover_ps"].GetInt64(), 6 * kPsPerMs);
  EXPECT_EQ(summary["faults"][0]["retransmitted_bytes"].GetInt64(), 300);
  // From the fault's begin to the end of the one slow collective, the last but one.
  EXPECT_EQ(summary["faults"][0]["time_to_full_busbw_ps"].GetInt64(), 9 * kPsPerMs);
  EXPECT_EQ(summary["faults"][0]["added_ps"]["timeout"].GetInt64(), 5 * kPsPerMs);
  EXPECT_EQ(summary["faults"][0]["added_ps"]["queueing"].GetInt64(), -kPsPerMs / 2);
  EXPECT_EQ(summary["jobs"][0]["goodput"].GetDouble(), 0.75);
  EXPECT_EQ(summary["payload"]["left_server_share"].GetDouble(), 0.25);
  EXPECT_EQ(summary["payload"]["reached_spine_share"].GetDouble(), 0.125);
  ASSERT_EQ(summary["in_network"].Size(), 1u);
  EXPECT_STREQ(summary["in_network"][0]["switches"].GetString(), "NVSWITCH");
  EXPECT_STREQ(summary["in_network"][0]["operation"].GetString(), "REDUCE");
  EXPECT_EQ(summary["in_network"][0]["sent_bytes"].GetInt(), 120);
  EXPECT_EQ(summary["in_network"][0]["received_bytes"].GetInt(), 15);
  EXPECT_TRUE(summary["conservation"]["ok"].GetBool());
}

TEST(SummaryJsonTest, SaysThatBytesAreMissing) {
  RunResult run = MadeUpRun();
  ++run.conservation.injected_bytes;
  EXPECT_FALSE(Parse(run)["conservation"]["ok"].GetBool());
}

TEST(SummaryJsonTest, KeepsThe64thBitOfASeed) {
  RunResult run = MadeUpRun();
  run.seed = UINT64_MAX;
  EXPECT_EQ(Parse(run)["seed"].GetUint64(), UINT64_MAX);
}

TEST(SummaryJsonTest, StretchIsExactlyOneWithoutFaults) {
  const auto summary = Parse(MadeUpRunWithoutFaults());
  for (const auto& figure : summary["collectives"]["stretch"].GetObject()) {
    EXPECT_EQ(figure.value.GetDouble(), 1) << figure.name.GetString();
  }
}

TEST(SummaryJsonTest, FiguresThatDoNotExistAreNull) {
  RunResult run = MadeUpRun();
  run.has_baseline = false;
  run.faults[0].until_ps = kNeverPs;
  run.faults[0].time_to_recover_ps = -1;
  run.collectives.clear();
  const auto summary = Parse(run);
  EXPECT_TRUE(summary["collectives"]["stretch"]["max"].IsNull());
  EXPECT_TRUE(summary["collectives"]["duration_ps"]["min"].IsNull());
  EXPECT_TRUE(summary["faults"][0]["until_ps"].IsNull());
  EXPECT_TRUE(summary["faults"][0]["time_to_recover_ps"].IsNull());
  EXPECT_TRUE(summary["faults"][0]["time_to_full_busbw_ps"].IsNull());
  EXPECT_TRUE(summary["faults"][0]["added_ps"]["other"].IsNull());
  EXPECT_TRUE(summary["jobs"][0]["goodput"].IsNull());
  EXPECT_TRUE(summary["jobs"][0]["lost_ps"].IsNull());
}

TEST(SummaryJsonTest, IsValidWhateverBytesANameHolds) {
  RunResult run = MadeUpRun();
  run.scenario = "quote \" slash \\ line\n latin-1 \xE9 end";
  EXPECT_STREQ(Parse(run)["scenario"].GetString(),
               "quote \" slash \\ line\n latin-1 \xEF\xBF\xBD end");
}

TEST(SummaryJsonTest, IsTheSameTextForEqualResults) {
  EXPECT_EQ(SummaryJson(MadeUpRun()), SummaryJson(MadeUpRun()));
}

TEST(SummaryFiguresTest, NamesEveryNumberOfASummary) {
  const std::vector<std::string> figures = SummaryFigures();
  EXPECT_TRUE(std::ranges::is_sorted(figures));
  std::set<std::string> numbers;
  AddNumbers(Parse(MadeUpRun()), "", numbers);
  EXPECT_THAT(numbers, Contains("faults.N.time_to_recover_ps"));
  for (const std::string& number : numbers) EXPECT_THAT(figures, Contains(number));
}

TEST(SummaryFiguresTest, NamesThoseOfDividedAndOfEstimatedRuns) {
  const std::vector<std::string> figures = SummaryFigures();
  EXPECT_THAT(figures, Contains("division.shards.N.events"));
  EXPECT_THAT(figures, Contains("estimate.simulated.total_ps"));
  EXPECT_THAT(figures, Contains("jobs.N.interference"));
  for (const char* const no_number : {"division", "estimate", "status", "conservation.ok"}) {
    EXPECT_THAT(figures, Not(Contains(no_number)));
  }
}

}  // namespace
}  // namespace railyard
