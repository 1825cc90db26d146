// SPDX-License-Identifier: GPL-2.0-only
// Whatever a plan says, it is refused with findings, or every call of its job meets its like.
#include <cctype>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/workloads/plans/loaded_plan.h"
#include "traces/trace/trace_check.h"
#include "workloads/job/job.h"
#include "workloads/plans/synthesis/synthesize.h"

namespace railyard {
namespace {

const std::vector<std::string> kPlans = {
    "model { layers: 4 hidden: 64 heads: 4 feed_forward: 128 vocabulary: 256 tied_embeddings: true "
    "}\n"
    "parallelism { tensor: 2 context: 1 data: 2 pipeline: 2 sequence: true }\n"
    "compute { accelerator: \"h100-sxm\" utilisation: 0.4 memory_utilisation: 0.8 }\n"
    "training { sequence: 64 micro_batch: 1 micro_batches: 4 schedule: INTERLEAVED\n"
    "  virtual_stages: 2 zero: ZERO_1 gradient_bucket: \"1KiB\" recompute: FULL\n"
    "  gradient_clipping: true log_interval: 2 }\n",
    "model { layers: 4 hidden: 64 heads: 4 feed_forward: 128 vocabulary: 256\n"
    "  experts { count: 8 per_token: 2 feed_forward: 32 shared_feed_forward: 32 dense_layers: 1\n"
    "    groups: 4 groups_per_token: 2 } }\n"
    "parallelism { tensor: 1 data: 4 pipeline: 1 expert: 4 sequence: false }\n"
    "compute { accelerator: \"h100-sxm\" utilisation: 0.4 memory_utilisation: 0.8 }\n"
    "training { sequence: 32 micro_batch: 1 micro_batches: 2 iterations: 2 zero: ZERO_3 }\n"
    "expert_routing { gate: ZIPF zipf_exponent: 1 drift_iterations: 2 capacity_factor: 1 }\n",
    "model { layers: 4 hidden: 64 heads: 4 kv_heads: 2 feed_forward: 128 vocabulary: 256\n"
    "  experts { count: 8 per_token: 2 feed_forward: 32 dense_layers: 1 } }\n"
    "parallelism { tensor: 2 data: 2 pipeline: 2 expert: 2 sequence: true }\n"
    "compute { accelerator: \"h100-sxm\" utilisation: 0.4 memory_utilisation: 0.8 }\n"
    "inference { queries: 6 batch: 2 prompt_tokens: 10 output_tokens: 4\n"
    "  arrivals { queries_per_second: 10000 } prefill { tensor: 2 } }\n"
    "expert_routing { gate: DIRICHLET dirichlet_concentration: 0.5 correlation: 0.5 }\n",
    "model { preset: \"dlrm-criteo-1tb\" precision: FP16 }\n"
    "parallelism { data: 4 }\n"
    "compute { accelerator: \"a100-sxm4-80gb\" utilisation: 0.4 memory_utilisation: 0.8 }\n"
    "training { micro_batch: 3 micro_batches: 2 iterations: 2 zero: ZERO_2 }\n"};

// Another number, a word of elsewhere in the plan, or nothing, in place of a word.
std::string Mutated(const std::string& text, std::mt19937& random) {
  const auto below = [&](size_t bound) { return random() % bound; };
  const auto word_at = [&](size_t at) {
    const auto is_word = [&](size_t i) {
      return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0 ||
                                 text[i] == '_' || text[i] == '.');
    };
    while (at < text.size() && !is_word(at)) ++at;
    size_t end = at;
    while (is_word(end)) ++end;
    return std::pair{at, end - at};
  };
  auto [at, size] = word_at(below(text.size()));
  // Numbers first: what is left of a plan without a word is seldom one.
  const auto is_digit = [&](size_t i) {
    return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
  };
  for (int tries = 0; tries < 8 && !is_digit(at); ++tries) {
    std::tie(at, size) = word_at(below(text.size()));
  }
  if (size == 0) return text;
  std::string word;
  if (is_digit(at) && below(8) != 0) {
    constexpr const char* kNumbers[] = {"0", "1", "2",  "3",  "4",  "5",   "6",          "7",
                                        "8", "9", "12", "16", "-1", "0.5", "4294967295", "1e30"};
    word = kNumbers[below(std::size(kNumbers))];
  } else if (below(4) != 0) {
    const auto [other, other_size] = word_at(below(text.size()));
    word = text.substr(other, other_size);
  }
  std::string mutated = text;
  return mutated.replace(at, size, word);
}

TEST(PlanFuzzTest, APlanIsRefusedOrItsCallsMatch) {
  constexpr uint64_t kOperationsMax = 200'000;
  std::mt19937 random(20'260);
  int refused = 0;
  int matched = 0;
  for (int i = 0; i < 1'500; ++i) {
    std::string text = kPlans[static_cast<size_t>(i) % kPlans.size()];
    for (auto mutations = 1 + random() % 2; mutations > 0; --mutations) {
      text = Mutated(text, random);
    }
    const LoadedPlan loaded(text);
    if (!loaded.plan) {
      ASSERT_NE(loaded.findings.find("error: "), std::string::npos) << text;
      ++refused;
      continue;
    }
    if (OperationCount(*loaded.plan) > kOperationsMax) continue;
    const Trace trace = Synthesize(*loaded.plan);
    Diagnostics diagnostics;
    ASSERT_TRUE(CheckTrace(trace, "plan", diagnostics)) << text << diagnostics.ToString();
    ASSERT_TRUE(BuildJob(trace, diagnostics).has_value()) << text << diagnostics.ToString();
    ++matched;
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(matched, 200) << refused;
}

}  // namespace
}  // namespace railyard
