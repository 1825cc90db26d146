// SPDX-License-Identifier: GPL-2.0-only
// Pictures of who talks to whom, and bytes per pair, from (model, p, t, d) alone.
#include "workloads/plans/plan_volume.h"

#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/reference_dir.h"
#include "tests/workloads/plans/loaded_plan.h"
#include "workloads/plans/synthesis/synthesize.h"

namespace railyard {
namespace {

PlanVolume VolumeOfParts(uint32_t pipeline, uint32_t tensor, uint32_t data) {
  const LoadedPlan loaded(
      "model { layers: 8 hidden: 512 heads: 8 feed_forward: 2048 vocabulary: 32768 }\n"
      "parallelism { tensor: " +
      std::to_string(tensor) + " pipeline: " + std::to_string(pipeline) +
      " data: " + std::to_string(data) +
      " }\n"
      "compute { accelerator: \"rtx-3090\" utilisation: 0.3 memory_utilisation: 0.5 }\n"
      "training { sequence: 128 micro_batch: 1 micro_batches: 8 }\n");
  EXPECT_EQ(loaded.findings, "");
  return loaded.plan ? VolumeOf(Synthesize(*loaded.plan)) : PlanVolume{};
}

// The second study's pictures: GPUs are divided into stages of t x d consecutive ones, a stage into
// tensor groups of t neighbours; ranks of equal place in tensor groups of a stage are a data group,
// ranks of equal place in neighbouring stages talk both ways.
void ExpectPicture(uint32_t pipeline, uint32_t tensor, uint32_t data) {
  const PlanVolume volume = VolumeOfParts(pipeline, tensor, data);
  const uint32_t stage_size = tensor * data;
  std::set<std::pair<uint32_t, uint32_t>> expected;
  for (uint32_t rank = 0; rank < stage_size * pipeline; ++rank) {
    const uint32_t stage = rank / stage_size;
    const uint32_t in_tensor = rank % tensor;
    const uint32_t in_data = rank % stage_size / tensor;
    if (tensor > 1) expected.emplace(rank, rank - in_tensor + (in_tensor + 1) % tensor);
    if (data > 1) {
      expected.emplace(rank, stage * stage_size + (in_data + 1) % data * tensor + in_tensor);
    }
    if (stage + 1 < pipeline) expected.emplace(rank, rank + stage_size);
    if (stage > 0) expected.emplace(rank, rank - stage_size);
  }
  std::set<std::pair<uint32_t, uint32_t>> pairs;
  for (const auto& [pair, bytes] : volume.pairs) pairs.insert(pair);
  EXPECT_EQ(pairs, expected) << pipeline << " " << tensor << " " << data;
}

TEST(PlanVolumeTest, ThePublishedPicturesOf64And32Gpus) {
  ExpectPicture(4, 4, 4);
  ExpectPicture(2, 8, 4);
  ExpectPicture(4, 2, 4);
}

// (p, t, d) = (4, 2, 4), 2 layers a stage, in BF16. Rank 8 is in the second stage: its tensor group
// all-reduces 4 x 2 x 8 times 128 x 512 elements; its data group its half of 2 layers once; each
// boundary 8 times 128 x 512 elements each way.
TEST(PlanVolumeTest, BytesPerPairAreTheClosedForms) {
  const PlanVolume volume = VolumeOfParts(4, 2, 4);
  const uint64_t activations = uint64_t{128} * 512 * 2;
  const uint64_t parameters = uint64_t{2} * ((4 * 512 * 512 + 2 * 512 * 2048) / 2 +
                                             2 * 512);  // and two norms, which are whole
  EXPECT_EQ(volume.pairs.at({GlobalRank{8}, GlobalRank{9}}),
            uint64_t{4} * 2 * 8 * activations * 2 * 1 / 2);
  EXPECT_EQ(volume.pairs.at({GlobalRank{8}, GlobalRank{10}}), parameters * 2 * 2 * 3 / 4);
  EXPECT_EQ(volume.pairs.at({GlobalRank{8}, GlobalRank{16}}), 8 * activations);
  EXPECT_EQ(volume.pairs.at({GlobalRank{8}, GlobalRank{0}}), 8 * activations);
}

TEST(PlanVolumeTest, EveryShippedPlanTalks) {
  for (const auto& entry : std::filesystem::directory_iterator(std::string(RAILYARD_SOURCE_DIR) +
                                                               "/workloads/examples")) {
    if (entry.path().string().find("16384") != std::string::npos) continue;  // takes seconds
    Diagnostics diagnostics;
    const auto plan = LoadPlanFile(entry.path().string(), {}, diagnostics);
    ASSERT_TRUE(plan.has_value()) << diagnostics.ToString();
    EXPECT_FALSE(VolumeOf(Synthesize(*plan)).pairs.empty()) << entry.path();
  }
}

}  // namespace
}  // namespace railyard
