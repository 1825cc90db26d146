// SPDX-License-Identifier: GPL-2.0-only
// Tests the traffic of a mixture of experts whose experts are divided over ranks.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/plans/loaded_plan.h"
#include "traces/trace/trace_check.h"
#include "workloads/job/job.h"
#include "workloads/plans/parallelism/expert_gate.h"
#include "workloads/plans/synthesis/routed_tokens.h"
#include "workloads/plans/synthesis/synthesize.h"
#include "workloads/plans/training/stage_exchanges.h"

namespace railyard {
namespace {

// 4 layers, 3 of them with 16 experts of which a token takes 4; 2 micro-batches of 256 tokens.
constexpr const char* kPlan =
    "model { layers: 4 hidden: 256 heads: 8 feed_forward: 512 vocabulary: 1024\n"
    "  experts { count: 16 per_token: 4 feed_forward: 128 dense_layers: 1 } }\n"
    "parallelism { data: 8 expert: 4 }\n"
    "compute { accelerator: \"h100-sxm\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
    "training { sequence: 256 micro_batch: 1 micro_batches: 2 }\n"
    "expert_routing { gate: ZIPF zipf_exponent: 0.8 }\n";

Plan PlanOf(const std::vector<std::string>& sets = {}) {
  const LoadedPlan loaded(kPlan, sets);
  EXPECT_EQ(loaded.findings, "");
  return loaded.plan.value_or(Plan{});
}

// A CSV file that outlives the plans that name it.
class CapturedFile {
 public:
  explicit CapturedFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              (std::string("railyard_captured_") +
               ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".csv")) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~CapturedFile() { std::filesystem::remove(path_); }
  CapturedFile(const CapturedFile&) = delete;
  CapturedFile& operator=(const CapturedFile&) = delete;

  std::string path() const { return path_.string(); }
  // Returns the sets that make a plan follow it.
  std::vector<std::string> Sets() const {
    std::string captured = "expert_routing.captured=\"";
    captured += path();
    captured += '"';
    return {"expert_routing.gate=CAPTURED", "expert_routing.zipf_exponent=", captured};
  }

 private:
  std::filesystem::path path_;
};

struct Sent {
  uint64_t all_to_alls = 0;
  uint64_t bytes = 0;  // with what a rank keeps
};
Sent SentBy(const Trace& trace, uint32_t rank) {
  Sent sent;
  for (const TraceOperation& operation : trace.operations[GlobalRank{rank}]) {
    sent.all_to_alls = std::max<uint64_t>(sent.all_to_alls, operation.all_to_all);
    if (operation.kind == CollectiveKind::kSend && operation.all_to_all > 0) {
      sent.bytes += operation.count * DatatypeBytes(operation.datatype);
    }
  }
  return sent;
}
uint64_t BytesOf(const Trace& trace) {
  uint64_t bytes = 0;
  for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) bytes += SentBy(trace, rank).bytes;
  return bytes;
}

// tokens x top-k x hidden x bytes, there and back, forward and backward.
TEST(ExpertPlanTest, TotalsAreTokensTimesExpertsTimesHiddenTimesBytes) {
  const uint64_t once = 8UL * 2 * 256 * 3 * 4 * 256 * 2;  // over ranks, micro-batches and layers
  for (const char* const gate : {"UNIFORM", "ZIPF", "DIRICHLET"}) {
    std::vector<std::string> sets = {std::string("expert_routing.gate=") + gate};
    if (std::string(gate) != "ZIPF") sets.emplace_back("expert_routing.zipf_exponent=");
    const Trace trace = Synthesize(PlanOf(sets));
    EXPECT_EQ(BytesOf(trace), 4 * once) << gate;
    EXPECT_EQ(SentBy(trace, 5).all_to_alls, 4u * 2 * 3);
  }
  EXPECT_EQ(BytesOf(Synthesize(PlanOf({"training.recompute=FULL"}))), 6 * once);
  EXPECT_EQ(BytesOf(Synthesize(PlanOf({"expert_routing.dispatch_precision=FP8"}))), 3 * once);
  // With tensor parallelism a rank has its part of the sequence.
  EXPECT_EQ(BytesOf(Synthesize(PlanOf(
                {"parallelism.tensor=2", "parallelism.sequence=true", "parallelism.expert=16"}))),
            4 * once);
}

// In two steps: ranks send within groups, then to their own place in others; nothing is lost.
TEST(ExpertPlanTest, InTwoStepsSendsStayInGroupsOrOnTheirPlace) {
  const Plan plan = PlanOf({"expert_routing.hierarchical_groups_of=2"});
  const Trace trace = Synthesize(plan);
  const Trace direct = Synthesize(PlanOf());
  EXPECT_EQ(SentBy(trace, 5).all_to_alls, 2 * SentBy(direct, 5).all_to_alls);
  // The expert groups of 4 are {0, 1} and {2, 3}.
  const auto received = [](const Trace& of, uint32_t rank, bool only_last_step) {
    uint64_t bytes = 0;
    for (const TraceOperation& call : of.operations[GlobalRank{rank}]) {
      if (call.kind != CollectiveKind::kRecv || call.all_to_all == 0) continue;
      if (only_last_step && call.all_to_all % 2 == 1) continue;
      if (call.peer / 2 != rank % 4 / 2) bytes += call.count;
    }
    return bytes;
  };
  for (GlobalRank rank{0}; rank < 8; ++rank) {
    for (const TraceOperation& call : trace.operations[GlobalRank{rank}]) {
      if (call.kind != CollectiveKind::kSend || call.all_to_all == 0) continue;
      const uint32_t place = rank % 4;
      if (call.all_to_all % 2 == 1) {
        EXPECT_EQ(call.peer, place ^ 1u);
      } else {
        EXPECT_EQ(call.peer, place ^ 2u);
      }
    }
    // The data from the other group is the same, whichever rank hands it over.
    EXPECT_EQ(received(trace, rank, true), received(direct, rank, false));
  }
  const LoadedPlan wrong(kPlan, {"expert_routing.hierarchical_groups_of=3"});
  EXPECT_THAT(wrong.findings,
              ::testing::HasSubstr("expert_routing.hierarchical_groups_of: 3 does not divide the 4 "
                                   "ranks of an expert-parallel group into several groups "
                                   "(expected e.g. 2)"));
}

TEST(ExpertPlanTest, ToleratedLossIsOfAllToAllvsAlone) {
  const Trace trace = Synthesize(PlanOf({"expert_routing.loss_tolerance=0.01"}));
  for (const TraceOperation& call : trace.operations[GlobalRank{3}]) {
    EXPECT_EQ(call.loss_tolerance_ppm, call.all_to_all > 0 ? 10'000u : 0u);
  }
  const LoadedPlan wrong(kPlan, {"expert_routing.loss_tolerance=1"});
  EXPECT_THAT(wrong.findings, ::testing::HasSubstr("expert_routing.loss_tolerance: 1 is out of "
                                                   "range (expected 0 to 0.999999)"));
}

// Over all tokens of a layer each expert gets its share of the gate, within 5 standard deviations
// of independent tokens.
TEST(ExpertPlanTest, LoadsOfExpertsAreTheGates) {
  const Plan plan = PlanOf({"training.micro_batches=64"});
  const StageExchanges exchanges(plan, 0, 1);
  for (const uint32_t layer : {1u, 3u}) {
    const std::vector<double> shares = GateShares(*plan.model.experts, plan.routing, layer - 1, 0);
    std::vector<double> got(16);
    for (uint32_t micro_batch = 0; micro_batch < 64; ++micro_batch) {
      const ExpertExchange& exchange = exchanges.At(0, micro_batch, layer);
      for (size_t i = 0; i < got.size(); ++i) got[i] += exchange.per_expert[i];
      for (GlobalRank rank{0}; rank < 4; ++rank) {
        uint64_t of_experts = 0;
        for (uint32_t i = 0; i < 4; ++i) of_experts += exchange.per_expert[4 * rank + i];
        EXPECT_EQ(exchange.ReceivedBy(rank), of_experts);
      }
    }
    const double tokens = 64 * 4 * 256;
    for (size_t i = 0; i < got.size(); ++i) {
      const double probability = 4 * shares[i];
      EXPECT_NEAR(got[i] / tokens, probability,
                  5 * std::sqrt(probability * (1 - probability) / tokens) + 1e-9);
    }
  }
}

// A run of r equal tokens multiplies the variance of counts: with correlation c by (1 + c) / (1 -
// c), here 9. Ratios of sums of squares over 3 x 64 x 16 counts.
TEST(ExpertPlanTest, CorrelatedTokensSpreadTheLoad) {
  const auto variance = [](const std::vector<std::string>& sets) {
    const Plan plan = PlanOf(sets);
    const StageExchanges exchanges(plan, 0, 0);
    double sum = 0;
    for (uint32_t layer = 1; layer < 4; ++layer) {
      const std::vector<double> shares =
          GateShares(*plan.model.experts, plan.routing, layer - 1, 0);
      for (uint32_t micro_batch = 0; micro_batch < 64; ++micro_batch) {
        const ExpertExchange& exchange = exchanges.At(0, micro_batch, layer);
        for (size_t i = 0; i < shares.size(); ++i) {
          const double off = exchange.per_expert[i] - 4 * 256 * 4 * shares[i];
          sum += off * off;
        }
      }
    }
    return sum;
  };
  const double ratio = variance({"training.micro_batches=64", "expert_routing.correlation=0.8"}) /
                       variance({"training.micro_batches=64"});
  EXPECT_NEAR(ratio, 9, 1.5);
}

// Capacity ceil(1 x 256 x 4 / 16) = 64 tokens of each rank for each expert; what is sent and what
// is dropped are all there were.
TEST(ExpertPlanTest, WhatIsAboveAnExpertsCapacityIsDropped) {
  const Plan plan = PlanOf({"expert_routing.capacity_factor=1"});
  EXPECT_EQ(ExpertCapacity(*plan.model.experts, 1, 256), 64u);
  EXPECT_EQ(ExpertCapacity(*plan.model.experts, 1.01, 256), 65u);
  for (uint32_t group = 0; group < 2; ++group) {
    const StageExchanges exchanges(plan, 0, group);
    for (const uint32_t tokens : exchanges.At(0, 0, 1).per_expert) EXPECT_LE(tokens, 4 * 64u);
  }
  const RoutedTokens routed = RoutedTokensOf(plan);
  EXPECT_GT(routed.dropped, 0u);
  EXPECT_EQ(routed.sent + routed.dropped, 8u * 2 * 256 * 3 * 4);
  EXPECT_EQ(BytesOf(Synthesize(plan)), 4 * routed.sent * 256 * 2);
  EXPECT_EQ(RoutedTokensOf(PlanOf()).dropped, 0u);
}

// Gradients of dense weights go over all 8 ranks, those of a rank's 4 experts over the 2 that hold
// the same: 3 layers x 4 experts x 2 x 256 x 128.
TEST(ExpertPlanTest, ExpertsAreReducedAmongThoseThatHoldThem) {
  const Trace trace = Synthesize(PlanOf());
  std::map<std::string, uint64_t> elements;
  std::map<std::string, std::set<size_t>> sizes;
  for (const TraceOperation& operation : trace.operations[GlobalRank{6}]) {
    if (operation.kind != CollectiveKind::kAllReduce) continue;
    const TraceCommunicator& communicator =
        trace.communicators[trace.CommunicatorOf(GlobalRank{6}, operation.communicator)];
    const std::string name = communicator.name.substr(0, communicator.name.find(' '));
    elements[name] += operation.count;
    sizes[name].insert(communicator.ranks.size());
    if (name == "expert-data") {
      EXPECT_EQ(communicator.ranks, GlobalRanksOf({2, 6}));
    }
  }
  EXPECT_EQ(elements["expert-data"], 3u * 4 * 2 * 256 * 128);
  EXPECT_EQ(sizes["data"], std::set<size_t>{8});
  // 4 layers' attention and two norms each, 3 routers, a dense network, two embeddings and a norm.
  EXPECT_EQ(elements["data"],
            4u * (4 * 256 * 256 + 2 * 256) + 3 * 256 * 16 + 2 * 256 * 512 + 2 * 1024 * 256 + 256);
}

// A rank with twice the tokens computes its experts twice as long.
TEST(ExpertPlanTest, ExpertsComputeForTheTokensTheyGet) {
  const Plan plan = PlanOf({"training.micro_batches=1", "compute.memory_utilisation=1"});
  const Trace trace = Synthesize(plan);
  const StageExchanges exchanges(plan, 0, 0);
  const ExpertExchange& exchange = exchanges.At(0, 0, 1);
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    // The first AllToAllv back is preceded by the experts: 2 x 2 x 256 x 128 operations a token, at
    // half of 989.5 TFLOP/s, or their weights once at 3,350 GB/s.
    int64_t compute_ps = 0;
    for (const TraceOperation& operation : trace.operations[GlobalRank{rank}]) {
      if (operation.all_to_all == 2 && operation.compute_before_ps > 0) {
        compute_ps = operation.compute_before_ps;
      }
    }
    const double flops = 4.0 * 256 * 128 * static_cast<double>(exchange.ReceivedBy(rank));
    const double bytes = 2.0 * 2 * 256 * 128 * exchange.ActiveOn(rank);
    EXPECT_NEAR(static_cast<double>(compute_ps),
                1e12 * std::max(flops / (0.5 * 989.5e12), bytes / 3350e9), 1);
  }
}

TEST(ExpertPlanTest, RanksFitTogether) {
  for (const std::vector<std::string>& sets : std::vector<std::vector<std::string>>{
           {},
           {"parallelism.expert=8"},
           {"parallelism.pipeline=2", "training.schedule=ZERO_BUBBLE"},
           {"parallelism.pipeline=2", "training.schedule=INTERLEAVED", "training.virtual_stages=2"},
           {"parallelism.context=2", "training.recompute=FULL"},
           {"parallelism.tensor=2", "parallelism.sequence=true", "training.zero=ZERO_3"},
           {"training.zero=ZERO_2", "training.iterations=2"},
           {"model.experts.shared_feed_forward=256", "parallelism.tensor=2",
            "parallelism.sequence=true"},
           {"parallelism.order=[PIPELINE, DATA, TENSOR, CONTEXT]"}}) {
    const Plan plan = PlanOf(sets);
    const Trace trace = Synthesize(plan);
    EXPECT_LE(trace.operations.OperationCount(), OperationCount(plan));
    Diagnostics diagnostics;
    EXPECT_TRUE(CheckTrace(trace, "plan", diagnostics));
    const auto job = BuildJob(trace, diagnostics);
    EXPECT_EQ(diagnostics.ToString(), "");
    ASSERT_TRUE(job.has_value());
    uint64_t all_to_alls = 0;
    for (const JobCollective& collective : job->collectives) {
      all_to_alls += collective.is_all_to_all_v ? 1 : 0;
    }
    EXPECT_GT(all_to_alls, 0u);
    EXPECT_EQ(all_to_alls % (2UL * 3), 0u);
  }
}

bool SameOperations(const Trace& a, const Trace& b) {
  bool same = a.rank_count == b.rank_count;
  for (GlobalRank rank{0}; same && rank < a.rank_count; ++rank) {
    same = a.operations[GlobalRank{rank}] == b.operations[GlobalRank{rank}];
  }
  return same;
}

TEST(ExpertPlanTest, EveryFieldOfRoutingChangesTheOperations) {
  const CapturedFile captured("iteration,layer,expert,tokens\n0,0,3,5\n0,1,4,5\n0,2,5,5\n");
  const std::vector<std::string> base = {"training.iterations=2"};
  const Trace reference = Synthesize(PlanOf(base));
  for (const std::vector<std::string>& change : std::vector<std::vector<std::string>>{
           {"expert_routing.gate=UNIFORM", "expert_routing.zipf_exponent="},
           {"expert_routing.gate=DIRICHLET", "expert_routing.zipf_exponent="},
           {"expert_routing.zipf_exponent=0.9"},
           captured.Sets(),
           {"expert_routing.correlation=0.5"},
           {"expert_routing.drift_iterations=1"},
           {"expert_routing.capacity_factor=1.1"},
           {"expert_routing.seed=2"},
           {"expert_routing.dispatch_precision=FP8"},
           {"parallelism.expert=8"},
           {"parallelism.expert=1", "expert_routing="}}) {
    std::vector<std::string> sets = base;
    sets.insert(sets.end(), change.begin(), change.end());
    EXPECT_FALSE(SameOperations(reference, Synthesize(PlanOf(sets)))) << change.front();
  }
  const std::vector<std::string> dirichlet = {"expert_routing.gate=DIRICHLET",
                                              "expert_routing.zipf_exponent="};
  std::vector<std::string> narrow = dirichlet;
  narrow.emplace_back("expert_routing.dirichlet_concentration=0.2");
  EXPECT_FALSE(SameOperations(Synthesize(PlanOf(dirichlet)), Synthesize(PlanOf(narrow))));
}

// Expert 3 of the first layer, and so on: of each token's 4 experts one is it, and the others are
// any, for a token takes an expert once.
TEST(ExpertPlanTest, CapturedRoutingIsFollowed) {
  const CapturedFile captured(
      "iteration,layer,expert,tokens\n"
      "0,0,0,10\n0,0,1,20\n0,0,2,30\n0,0,3,25\n0,0,4,15\n"
      "0,1,9,1\n0,1,8,1\n0,1,7,1\n0,1,6,1\n"
      "0,2,0,1\n0,2,5,1\n0,2,10,1\n0,2,15,1\n");
  const Plan plan = PlanOf(captured.Sets());
  const std::vector<double> shares = GateShares(*plan.model.experts, plan.routing, 0, 0);
  // 30 of 100 are more than one of four: a quarter; the others share the rest as they did.
  EXPECT_DOUBLE_EQ(shares[2], 0.25);
  EXPECT_DOUBLE_EQ(shares[3], 0.25);
  EXPECT_NEAR(shares[1] / shares[4], 20.0 / 15, 1e-12);
  const StageExchanges exchanges(plan, 0, 0);
  for (const uint32_t expert : {6u, 7u, 8u, 9u}) {
    EXPECT_EQ(exchanges.At(0, 1, 2).per_expert[expert], 4u * 256);
  }
}

TEST(ExpertPlanTest, WhatCannotBeIsRefused) {
  const auto findings = [](const std::vector<std::string>& sets) {
    std::string text = LoadedPlan(kPlan, sets).findings;
    for (const std::string& set : sets) {
      const std::string place = "--set " + set + ": ";
      if (const size_t at = text.find(place); at != std::string::npos) text.erase(at, place.size());
    }
    return text;
  };
  EXPECT_EQ(findings({"parallelism.expert=3"}),
            "error: parallelism.expert: 3 does not divide model.experts.count 16 (expected 2 or "
            "4)\n--set parallelism.expert=3: error: parallelism.expert: 3 does not divide tensor "
            "1 x context 1 x data 8 = 8 (expected 2 or 4)\n");
  EXPECT_EQ(findings({"parallelism.expert=16"}),
            "error: parallelism.expert: 16 does not divide tensor 1 x context 1 x data 8 = 8 "
            "(expected 8)\n");
  EXPECT_EQ(findings({"parallelism.tensor=2"}),
            ":3:23: error: parallelism.expert: the ranks of a tensor group have the same tokens "
            "(expected sequence: true, or tensor: 1)\n");
  EXPECT_EQ(findings({"model.experts=", "expert_routing="}),
            ":3:23: error: parallelism.expert: the model has no experts (expected none)\n");
  EXPECT_EQ(findings({"parallelism.expert=1"}),
            ":6:1: error: expert_routing: experts are divided by tensor parallelism, whatever the "
            "tokens (expected parallelism.expert: 2 or more)\n");
  EXPECT_EQ(findings({"model.experts.groups=3"}),
            "error: model.experts.groups: 3 groups do not divide 16 experts (expected 2 or 4 "
            "groups)\n");
  EXPECT_EQ(findings({"model.experts.groups_per_token=2"}),
            "error: model.experts.groups_per_token: 2 of 1 groups (expected at most 1)\n");
  EXPECT_EQ(findings({"model.experts.groups=4", "model.experts.groups_per_token=3"}),
            "error: model.experts.groups_per_token: 3 groups do not share 4 experts evenly "
            "(expected 2 or 4)\n");
  EXPECT_EQ(
      findings({"model.experts.groups=8"}),
      ":2:23: error: model.experts.per_token: 4 experts of a group of 2 (expected 2 groups or "
      "more)\n");
  EXPECT_EQ(findings({"expert_routing.gate=UNIFORM"}),
            ":6:29: error: expert_routing.zipf_exponent: means nothing here (expected gate: "
            "ZIPF)\n");
  EXPECT_EQ(findings({"expert_routing.gate=CAPTURED", "expert_routing.zipf_exponent="}),
            ":6:1: error: expert_routing.captured: missing (expected a CSV file, e.g. "
            "\"routing.csv\")\n");
  EXPECT_EQ(findings({"expert_routing={ drift_iterations: 3 }"}),
            "error: expert_routing.drift_iterations: the gate is uniform already (expected gate: "
            "ZIPF, DIRICHLET or CAPTURED)\n");
  EXPECT_EQ(findings({"expert_routing.correlation=0"}), "");
  EXPECT_EQ(findings({"training.micro_batches=65536", "training.sequence=4096"}),
            ":5:1: error: training: 6.44e+09 tokens to route, over all layers and iterations "
            "(expected at most 1e+08: fewer samples, layers or iterations)\n"
            ":5:1: error: training: up to 247468544 operations of GPUs that differ (expected at "
            "most 40000000: fewer tokens, micro-batches or iterations)\n");
}

TEST(ExpertPlanTest, CapturedRoutingThatCannotBeIsRefused) {
  const auto findings = [](const std::string& text, const std::vector<std::string>& more = {}) {
    const CapturedFile captured(text);
    std::vector<std::string> sets = captured.Sets();
    sets.insert(sets.end(), more.begin(), more.end());
    std::string found = LoadedPlan(kPlan, sets).findings;
    for (size_t at = 0; (at = found.find(captured.path())) != std::string::npos;) {
      found.erase(at, captured.path().size());
    }
    return found;
  };
  const std::string header = "iteration,layer,expert,tokens\n";
  EXPECT_EQ(
      findings("layer,expert\n"),
      ":1:1: error: there is no column iteration (expected \"iteration,layer,expert,tokens\", "
      "among others or not)\n");
  EXPECT_EQ(findings(header), ":1:1: error: has no rows (expected one or more)\n");
  EXPECT_EQ(findings(header + "0,0,1,2\n0,0,1\n0,3,0,1\n0,0,16,1\n"),
            ":3:1: error: 3 cells (expected 4, as in the first line)\n"
            ":4:3: error: layer: \"3\" (expected a whole number, 0 to 2)\n"
            ":5:5: error: expert: \"16\" (expected a whole number, 0 to 15)\n");
  EXPECT_EQ(
      findings(header + "0,0,1,2\n0,2,1,2\n"),
      ":1:1: error: layer 1 of iteration 0 has no tokens (expected rows for each of the 3 layers "
      "with experts)\n");
  const std::string rows = "0,0,1,2\n0,1,1,2\n0,2,1,2\n1,0,1,2\n1,1,1,2\n1,2,1,2\n";
  EXPECT_THAT(findings(header + rows, {"training=",
                                       "inference={ queries: 8 batch: 1 prompt_tokens: 8 "
                                       "output_tokens: 2 }"}),
              ::testing::HasSubstr("expert_routing.captured: 2 iterations (expected one: inference "
                                   "has none)"));
  EXPECT_NE(findings(header + rows, {"training.iterations=3"})
                .find("error: expert_routing.captured: 2 iterations of 3 (expected one for all, or "
                      "3 or more)\n"),
            std::string::npos);
  EXPECT_NE(LoadedPlan(kPlan, {"expert_routing.gate=CAPTURED", "expert_routing.zipf_exponent=",
                               "expert_routing.captured=\"/none.csv\""})
                .findings.find("error: expert_routing.captured: /none.csv: "),
            std::string::npos);
}

}  // namespace
}  // namespace railyard
