// SPDX-License-Identifier: GPL-2.0-only
// Inference over pipelines, replicas, divided experts, and with requests that come and go.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/workloads/plans/loaded_plan.h"
#include "tests/workloads/plans/trace_calls.h"
#include "traces/trace/trace_check.h"
#include "workloads/job/job.h"
#include "workloads/plans/inference/inference_schedule.h"
#include "workloads/plans/inference/inference_stage.h"
#include "workloads/plans/inference/requests.h"
#include "workloads/plans/synthesis/synthesize.h"

namespace railyard {
namespace {

constexpr const char* kDense =
    "model { layers: 4 hidden: 256 heads: 8 kv_heads: 4 head_dim: 32 feed_forward: 512\n"
    "  vocabulary: 1024 }\n"
    "parallelism { tensor: 2 }\n"
    "compute { accelerator: \"h100-sxm\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
    "inference { queries: 8 batch: 2 prompt_tokens: 100 output_tokens: 5 }\n";

constexpr const char* kExperts =
    "model { layers: 4 hidden: 256 heads: 8 vocabulary: 1024 feed_forward: 512\n"
    "  experts { count: 16 per_token: 4 feed_forward: 128 dense_layers: 1 } }\n"
    "parallelism { data: 4 expert: 4 }\n"
    "compute { accelerator: \"h100-sxm\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
    "inference { queries: 8 batch: 2 prompt_tokens: 100 output_tokens: 5 }\n";

Plan PlanOf(const char* text, const std::vector<std::string>& sets = {}) {
  const LoadedPlan loaded(text, sets);
  EXPECT_EQ(loaded.findings, "");
  return loaded.plan.value_or(Plan{});
}

// A trace whose calls match.
Trace TraceOf(const Plan& plan) {
  Trace trace = Synthesize(plan);
  EXPECT_LE(trace.operations.OperationCount(), OperationCount(plan) * trace.rank_count);
  Diagnostics diagnostics;
  EXPECT_TRUE(CheckTrace(trace, "plan", diagnostics));
  EXPECT_TRUE(BuildJob(trace, diagnostics).has_value());
  EXPECT_EQ(diagnostics.ToString(), "");
  return trace;
}
Trace TraceOf(const char* text, const std::vector<std::string>& sets = {}) {
  return TraceOf(PlanOf(text, sets));
}

// 4 batches of 2, each a prefill of 200 tokens and 4 steps of 2: every boundary carries each
// token's 256 numbers once, and the 2 tokens of all 10 steps of each of 2 slots but the last go
// back to the first stage.
TEST(ServingPlanTest, APipelinePassesActivationsOnAndTokensBack) {
  const Trace trace = TraceOf(kDense, {"parallelism.pipeline=2"});
  ASSERT_EQ(trace.rank_count, 4u);
  const uint64_t tokens = uint64_t{4} * (200 + 4 * 2);
  for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{1}}) {
    const Calls sent = CallsOf(trace, rank, CollectiveKind::kSend, "activations");
    EXPECT_EQ(sent.count, 4u * 5);
    EXPECT_EQ(sent.elements, tokens * 256);
    EXPECT_EQ(CallsOf(trace, rank + 2, CollectiveKind::kRecv, "activations").elements,
              tokens * 256);
    EXPECT_EQ(CallsOf(trace, rank + 2, CollectiveKind::kSend, "tokens").elements, 2u * 9 * 2);
    // The embedding and two layers' two AllReduces; the second stage has no embedding.
    EXPECT_EQ(CallsOf(trace, rank, CollectiveKind::kAllReduce, "tensor").elements,
              5 * tokens * 256);
    EXPECT_EQ(CallsOf(trace, rank + 2, CollectiveKind::kAllReduce, "tensor").elements,
              4 * tokens * 256);
    EXPECT_EQ(CallsOf(trace, rank, CollectiveKind::kAllGather, "tensor").count, 0u);
  }
}

TEST(ServingPlanTest, ReplicasShareTheQueries) {
  const Trace whole = TraceOf(kDense);
  const Trace halves = TraceOf(kDense, {"parallelism.data=2"});
  ASSERT_EQ(halves.rank_count, 4u);
  for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{2}}) {
    EXPECT_EQ(2 * CallsOf(halves, rank, CollectiveKind::kAllReduce, "tensor").elements,
              CallsOf(whole, 0, CollectiveKind::kAllReduce, "tensor").elements);
  }
}

// tokens x top-k x hidden x bytes there and back, over 3 layers: each of 8 queries has 100 tokens
// of prompt and 4 that decode.
TEST(ServingPlanTest, ExpertsGetEveryToken) {
  for (const std::vector<std::string>& sets : std::vector<std::vector<std::string>>{
           {},
           {"inference.queries=6", "inference.batch=1"},
           {"parallelism.tensor=2", "parallelism.sequence=true", "parallelism.data=2"},
           {"parallelism.pipeline=2"}}) {
    const Plan plan = PlanOf(kExperts, sets);
    const Trace trace = TraceOf(plan);
    uint64_t elements = 0;
    for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
      elements += CallsOf(trace, rank, CollectiveKind::kSend, "expert").elements;
    }
    const uint64_t queries = std::get<Inference>(plan.job).requests.size();
    EXPECT_EQ(elements, 2u * queries * 104 * 3 * 4 * 256) << sets.size();
  }
}

// At most 4 at a time, some of which join while others decode; each is worked on once, and gets all
// its tokens: the first with its prompt, 19 more.
// One query on four replicas: 64 tokens go to 128 experts, 32 to each GPU from an even gate, which
// take 100 us there. Whatever the gate draws, the GPUs take 400 us together in each of two layers,
// those without a token of their own as well. Beside that there are two attentions of 10 us, the
// embedding and the output.
TEST(ServingPlanTest, StatedTimesAreThoseOfAnEvenGate) {
  const Trace trace = TraceOf(
      "model { layers: 2 hidden: 512 heads: 8 vocabulary: 1000\n"
      "  experts { count: 8 per_token: 2 feed_forward: 256 } }\n"
      "parallelism { data: 4 expert: 4 }\n"
      "compute { given { attention: \"10us\" feed_forward: \"100us\" embedding: \"1us\"\n"
      "  output_layer: \"2us\" } }\n"
      "inference { queries: 1 batch: 1 prompt_tokens: 64 output_tokens: 1 }\n");
  int64_t compute_ps = 0;
  for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
    int64_t of_rank_ps = 0;
    for (const TraceOperation& operation : trace.operations[GlobalRank{rank}])
      of_rank_ps += operation.compute_before_ps;
    EXPECT_GT(of_rank_ps, 0) << rank;
    compute_ps += of_rank_ps;
  }
  EXPECT_NEAR(static_cast<double>(compute_ps), 823e6, 16);
}

TEST(ServingPlanTest, QueriesJoinAndLeave) {
  const Plan plan =
      PlanOf(kDense, {"inference.queries=40", "inference.batch=4", "inference.output_tokens=20",
                      "inference.arrivals={ queries_per_second: 20000 seed: 3 }"});
  const InferenceSchedule schedule = ScheduleInference(plan);
  ASSERT_EQ(schedule.slots.size(), 1u);
  std::set<uint32_t> joined;
  uint64_t decoded = 0;
  bool is_mixed = false;
  for (const InferenceStep& step : schedule.slots[0][0]) {
    EXPECT_LE(step.sequences, 4u);
    EXPECT_EQ(step.prompt_tokens, 100 * step.joined.size());
    joined.insert(step.joined.begin(), step.joined.end());
    decoded += step.decoding;
    is_mixed = is_mixed || (step.decoding > 0 && step.prompt_tokens > 0);
  }
  EXPECT_EQ(joined.size(), 40u);
  EXPECT_EQ(decoded, 40u * 19);
  EXPECT_TRUE(is_mixed);
  EXPECT_LT(schedule.slots[0][0].size(), 40u * 20);
  TraceOf(plan);
}

// Gaps of a Poisson process are exponential: mean and standard deviation are both the rate's
// inverse, within 5 % for 20,000.
TEST(ServingPlanTest, ArrivalsArePoisson) {
  const std::vector<Request> requests = PoissonRequests(20'001, 1, 1, 50, 7);
  double sum = 0;
  double square_sum = 0;
  for (size_t i = 1; i < requests.size(); ++i) {
    const double gap =
        1e-12 * static_cast<double>(requests[i].arrival_ps - requests[i - 1].arrival_ps);
    sum += gap;
    square_sum += gap * gap;
  }
  const double mean = sum / 20'000;
  EXPECT_NEAR(mean * 50, 1, 0.05);
  EXPECT_NEAR(std::sqrt(square_sum / 20'000 - mean * mean) * 50, 1, 0.05);
}

// The step that a query joins waits for an operation that ends at its arrival, whatever came
// before.
TEST(ServingPlanTest, AQueryDoesNotBeginBeforeItArrives) {
  const std::string path =
      (std::filesystem::temp_directory_path() / "railyard_serving_requests.csv").string();
  std::ofstream(path) << "arrival_us,prompt_tokens,output_tokens\n0,10,2\n5000,20,1\n9000,30,1\n";
  std::string arrivals = "inference={ batch: 2 arrivals { requests: \"";
  arrivals += path;
  arrivals += "\" } }";
  const Trace trace = TraceOf(kDense, {arrivals});
  std::filesystem::remove(path);
  std::map<uint32_t, uint64_t> wait_of;  // by number of the operation waited for: time
  uint64_t clock_ps = 0;
  std::set<uint64_t> waited;
  const std::vector<TraceOperation>& operations = trace.operations[GlobalRank{0}];
  const uint32_t arrivals_stream = operations[0].stream;
  for (uint32_t i = 0; i < operations.size(); ++i) {
    if (operations[i].stream == arrivals_stream) {
      clock_ps += static_cast<uint64_t>(operations[i].compute_before_ps);
      wait_of[i + 1] = clock_ps;
    } else if (const auto at = wait_of.find(operations[i].after); at != wait_of.end()) {
      waited.insert(at->second);
    }
  }
  EXPECT_EQ(waited, (std::set<uint64_t>{5'000'000'000, 9'000'000'000}));
  // 30 prompt tokens of the last; 10 and 20 of the others.
  EXPECT_EQ(CallsOf(trace, 0, CollectiveKind::kAllReduce, "tensor").elements, 9u * 61 * 256);
}

// Keys and values of every prompt token, once: 2 x 4 heads x 32 in each of 4 layers, divided over
// the tensor group.
TEST(ServingPlanTest, PrefillSendsItsKeysAndValues) {
  for (const auto& [prefill, pipeline] : {std::pair{2u, 1u}, {4u, 1u}, {1u, 1u}, {2u, 2u}}) {
    const Trace trace = TraceOf(
        kDense,
        {std::string("inference.prefill={ tensor: ").append(std::to_string(prefill)).append(" }"),
         std::string("parallelism.pipeline=").append(std::to_string(pipeline))});
    const uint32_t decoding = 2 * pipeline;
    ASSERT_EQ(trace.rank_count, decoding + prefill);
    uint64_t sent = 0;
    for (uint32_t rank = decoding; rank < trace.rank_count; ++rank) {
      sent += CallsOf(trace, rank, CollectiveKind::kSend, "cache").elements;
      if (prefill > 1) {
        EXPECT_EQ(CallsOf(trace, rank, CollectiveKind::kAllReduce, "prefill").elements,
                  9u * 800 * 256);
      }
    }
    EXPECT_EQ(sent, 800u * 2 * 4 * 32 * 4);
    for (GlobalRank rank{0}; rank < decoding; ++rank) {
      EXPECT_EQ(CallsOf(trace, rank, CollectiveKind::kRecv, "cache").elements, sent / decoding);
    }
    // Decoding has no prompts: 4 batches of 4 steps of 2.
    EXPECT_EQ(CallsOf(trace, 0, CollectiveKind::kAllReduce, "tensor").elements,
              (pipeline == 1 ? 9u : 5u) * 4 * 4 * 2 * 256);
  }
}

TEST(ServingPlanTest, EveryCombinationFitsTogether) {
  for (const std::vector<std::string>& sets : std::vector<std::vector<std::string>>{
           {"inference.arrivals={ queries_per_second: 5000 }", "inference.prefill={ tensor: 1 }",
            "parallelism.pipeline=2"},
           {"inference.arrivals={ queries_per_second: 50000 }", "parallelism.pipeline=2"},
           {"inference.prefill={ tensor: 2 }", "parallelism.tensor=2", "parallelism.sequence=true"},
           {"parallelism.order=[PIPELINE, DATA, TENSOR, CONTEXT]", "parallelism.pipeline=2"}}) {
    TraceOf(kExperts, sets);
  }
}

TEST(ServingPlanTest, EveryFieldOfInferenceChangesTheOperations) {
  const std::vector<std::string> base = {"inference.arrivals={ queries_per_second: 20000 seed: 3 }",
                                         "inference.prefill={ tensor: 2 }"};
  const Trace reference = TraceOf(kDense, base);
  for (const char* const set :
       {"inference.queries=9", "inference.batch=1", "inference.prompt_tokens=50",
        "inference.output_tokens=6", "inference.arrivals.queries_per_second=20001",
        "inference.arrivals.seed=4", "inference.prefill.tensor=4", "inference.prefill=",
        "inference.arrivals=", "parallelism.data=2", "parallelism.pipeline=2"}) {
    const Trace changed = TraceOf(kDense, {base[0], base[1], set});
    bool same = changed.rank_count == reference.rank_count;
    for (GlobalRank rank{0}; same && rank < reference.rank_count; ++rank) {
      same = changed.operations[GlobalRank{rank}] == reference.operations[GlobalRank{rank}];
    }
    EXPECT_FALSE(same) << set;
  }
}

TEST(ServingPlanTest, WhatCannotBeIsRefused) {
  const auto findings = [](const std::string& set, const char* text = kDense) {
    std::string found = LoadedPlan(text, {set}).findings;
    const std::string place = "--set " + set + ": ";
    for (size_t at = 0; (at = found.find(place)) != std::string::npos;) {
      found.erase(at, place.size());
    }
    return found;
  };
  EXPECT_EQ(findings("inference.prefill={ tensor: 3 }"),
            "error: inference.prefill.tensor: 3 ranks and parallelism.tensor 2 do not divide one "
            "another (expected 2 or 4)\n");
  EXPECT_EQ(findings("inference.prefill={ tensor: 16 }"),
            "error: inference.prefill.tensor: 16 does not divide model.heads 8 (expected 8)\n");
  EXPECT_EQ(findings("inference.prefill={ tensor: 4 }", kExperts), "");
  EXPECT_NE(LoadedPlan(kDense, {"model.feed_forward=514", "inference.prefill={ tensor: 4 }"})
                .findings.find("error: inference.prefill.tensor: 4 does not divide "
                               "model.feed_forward 514 (expected 2)\n"),
            std::string::npos);
  EXPECT_EQ(findings("inference.arrivals={}"),
            "error: inference.arrivals.queries_per_second: missing (expected e.g. 10, or "
            "requests)\n");
  EXPECT_EQ(findings("inference.arrivals={ requests: \"/none.csv\" seed: 3 }").substr(0, 120),
            std::string(":5:13: error: inference.queries: means nothing beside arrivals.requests "
                        "(expected one of them)\n:5:33: error: inference.prom")
                .substr(0, 120));
  EXPECT_EQ(findings("inference.shared_reduction=SEPARATE", kExperts),
            "error: inference.shared_reduction: the model has no shared expert (expected none)\n");
}

TEST(ServingPlanTest, RequestsThatCannotBeAreRefused) {
  const auto findings = [](const std::string& rows) {
    const std::string path =
        (std::filesystem::temp_directory_path() / "railyard_serving_wrong.csv").string();
    std::ofstream(path) << "arrival_us,prompt_tokens,output_tokens\n" << rows;
    Diagnostics diagnostics;
    LoadRequests(path, diagnostics);
    std::filesystem::remove(path);
    std::string found = diagnostics.ToString();
    for (size_t at = 0; (at = found.find(path)) != std::string::npos;) {
      found.erase(at, path.size());
    }
    return found;
  };
  EXPECT_EQ(findings(""), ":1:1: error: has no rows (expected one or more)\n");
  EXPECT_EQ(findings("0,1,2\n5,0,1\n"),
            ":3:1: error: a request without tokens (expected 1 or more of each)\n");
  EXPECT_EQ(findings("7,1,2\n5,2,1\n"),
            ":3:1: error: arrives before the request above (expected rows in the order of "
            "arrival)\n");
  EXPECT_EQ(findings("7,x,2\n"),
            ":2:3: error: prompt_tokens: \"x\" (expected a whole number, 0 to 16777216)\n");
}

}  // namespace
}  // namespace railyard
