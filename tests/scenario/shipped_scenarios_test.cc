// SPDX-License-Identifier: GPL-2.0-only
// Every scenario the project ships is valid, and says what its name promises.
#include <algorithm>

#include <gtest/gtest.h>

#include "simulator/scenario/load/scenario_loader.h"
#include "simulator/units/units.h"
#include "tests/support/reference_dir.h"
#include "workloads/collectives/replayable.h"

namespace railyard {
namespace {

std::unique_ptr<Scenario> LoadShipped(const std::string& name,
                                      const std::vector<std::string>& sets = {}) {
  Diagnostics diagnostics;
  auto scenario =
      LoadScenario(std::string(RAILYARD_SOURCE_DIR) + "/simulator/scenarios/" + name + ".textproto",
                   sets, diagnostics);
  EXPECT_EQ(diagnostics.ToString(), "");
  return scenario;
}

TEST(ShippedScenariosTest, TheFlapIsOf300MillisecondsOnANicLink) {
  const auto scenario = LoadShipped("h100_4x8_flap");
  ASSERT_NE(scenario, nullptr);
  EXPECT_EQ(scenario->name, "h100_4x8_flap");
  EXPECT_EQ(scenario->job.rank_count, 32u);
  EXPECT_EQ(scenario->stack.nic.ib_timeout, 20u);
  ASSERT_EQ(scenario->faults.size(), 1u);
  const FaultSpec& fault = scenario->faults[0];
  EXPECT_EQ(fault.timeline.until_ps - fault.timeline.at_ps, 300 * kPsPerMs);
  const LinkId link = fault.links.front();
  EXPECT_EQ(scenario->fabric.link(link).tier, Tier::kNicLeaf);
}

TEST(ShippedScenariosTest, TheIdleFlapIsTheSameOnASpineLink) {
  const auto flap = LoadShipped("h100_4x8_flap");
  const auto idle = LoadShipped("h100_4x8_flap_idle_link");
  ASSERT_TRUE(flap && idle);
  ASSERT_EQ(idle->faults.size(), 1u);
  EXPECT_EQ(idle->faults[0].timeline.at_ps, flap->faults[0].timeline.at_ps);
  EXPECT_EQ(idle->faults[0].timeline.until_ps, flap->faults[0].timeline.until_ps);
  const LinkId link = idle->faults[0].links.front();
  EXPECT_EQ(idle->fabric.link(link).tier, Tier::kLeafSpine);
}

TEST(ShippedScenariosTest, TheCutStays) {
  const auto scenario = LoadShipped("h100_4x8_cut", {"nccl.IB_TIMEOUT=14"});
  ASSERT_NE(scenario, nullptr);
  EXPECT_EQ(scenario->stack.nic.ib_timeout, 14u);
  EXPECT_EQ(scenario->stack.nic.ib_retry_cnt, 7u);
  ASSERT_EQ(scenario->faults.size(), 1u);
  EXPECT_EQ(scenario->faults[0].timeline.until_ps, kNeverPs);
}

TEST(ShippedScenariosTest, TheRingsHaveTheRanksAndBytesOfTheirNames) {
  const auto check = [](const char* name, uint32_t ranks, uint64_t bytes) {
    const auto scenario = LoadShipped(name);
    ASSERT_NE(scenario, nullptr);
    EXPECT_EQ(scenario->job.rank_count, ranks);
    ASSERT_EQ(scenario->job.collectives.size(), 1u);
    EXPECT_EQ(scenario->job.collectives[0].bytes, bytes);
  };
  check("ring_32_64mib", 32, 64u << 20);
  check("ring_128_64mib", 128, 64u << 20);
  check("ring_1024_256mib", 1024, 256u << 20);
}

TEST(ShippedScenariosTest, DeepSeekV3AnswersInSixHundredThousandAllReduces) {
  const auto scenario = LoadShipped("deepseek_v3_inference_600k");
  ASSERT_NE(scenario, nullptr);
  EXPECT_EQ(scenario->job.rank_count, 16u);
  EXPECT_EQ(scenario->job.collectives.size(), 8u * 416 * 182);
  EXPECT_EQ(scenario->job.parts[0].rank_skew_max_ps, 0);
}

// tp 8, pp 8, dp 16, 96 micro-batches: each passes 7 boundaries between stages twice, in 8 x 16
// places.
TEST(ShippedScenariosTest, Gpt3PassesSevenBoundariesTwicePerMicroBatch) {
  const auto scenario = LoadShipped("gpt_3_175b_1024");
  ASSERT_NE(scenario, nullptr);
  EXPECT_EQ(scenario->job.rank_count, 1024u);
  const auto is_transfer = [](const JobCollective& collective) {
    // 2,048 tokens of 12,288 values in BF16, an eighth on each rank.
    return collective.is_p2p() && collective.bytes == uint64_t{2048} * 12'288 * 2 / 8;
  };
  EXPECT_EQ(std::ranges::count_if(scenario->job.collectives, is_transfer), 96 * 7 * 2 * 8 * 16);
}

TEST(ShippedScenariosTest, TheFirstOperationsOfAJobAreAJob) {
  const auto scenario = LoadShipped("deepseek_v3_inference_600k",
                                    {"workload.operations_max=5000", "workload.rank_skew_max=3us"});
  ASSERT_NE(scenario, nullptr);
  EXPECT_EQ(scenario->job.collectives.size(), 5000u);
  EXPECT_EQ(scenario->job.operations[GlobalRank{15}].size(), 5000u);
  EXPECT_EQ(scenario->job.parts[0].rank_skew_max_ps, 3 * kPsPerUs);
}

TEST(ShippedScenariosTest, TheCapturedLogOf16RanksIsReadWithTheMissingEight) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const auto scenario =
      LoadShipped("nccl_log_16ranks", {"workload.nccl_log.files[0]=" + reference_dir +
                                       "/nccl-logs/nccl-2.27.5-16ranks-allreduce.log"});
  ASSERT_NE(scenario, nullptr);
  EXPECT_EQ(scenario->job.rank_count, 16u);
  ASSERT_EQ(scenario->job.collectives.size(), 1u);
  EXPECT_EQ(scenario->job.collectives[0].bytes, 4u);  // one float
  EXPECT_EQ(scenario->job.collectives[0].logged_algorithm, Algorithm::kTree);
  EXPECT_EQ(StatedChoice(scenario->job.collectives[0]),
            (ReplayChoice{Algorithm::kRing, Protocol::kSimple}));
  EXPECT_EQ(scenario->import_reports[0].ranks_reconstructed, 8u);
}

}  // namespace
}  // namespace railyard
