// SPDX-License-Identifier: GPL-2.0-only
// Changing any field of a model changes its operations. A field without a value here fails the
// test.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "tests/workloads/plans/loaded_plan.h"
#include "workloads/plans/synthesis/synthesize.h"
#include "workloads/plans/workload.pb.h"

namespace railyard {
namespace {

constexpr const char* kPlan =
    "model { layers: 6 hidden: 512 heads: 16 kv_heads: 8 head_dim: 64 feed_forward: 2048\n"
    "  vocabulary: 32000\n"
    "  experts { count: 8 per_token: 2 feed_forward: 512 shared_feed_forward: 512 dense_layers: 2 "
    "}\n"
    "}\n"
    "parallelism { tensor: 2 context: 2 data: 2 }\n"
    "compute { accelerator: \"h100-sxm\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
    "training { sequence: 4096 micro_batch: 1 micro_batches: 1 }\n";

constexpr const char* kExpertPlan =
    "model { layers: 6 hidden: 512 heads: 16 kv_heads: 8 head_dim: 64 feed_forward: 2048\n"
    "  vocabulary: 32000\n"
    "  experts { count: 8 per_token: 4 feed_forward: 512 shared_feed_forward: 512 dense_layers: 2\n"
    "    groups: 4 groups_per_token: 2 }\n"
    "}\n"
    "parallelism { tensor: 2 data: 4 sequence: true expert: 4 }\n"
    "compute { accelerator: \"h100-sxm\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
    "training { sequence: 512 micro_batch: 1 micro_batches: 1 }\n";

constexpr const char* kKernelPlan =
    "model { layers: 2 hidden: 512 heads: 16 vocabulary: 32000\n"
    "  experts { count: 8 per_token: 4 feed_forward: 512 kernel: HYBRID_EP } }\n"
    "parallelism { data: 4 expert: 4 }\n"
    "compute { accelerator: \"h100-sxm\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
    "training { sequence: 64 micro_batch: 1 micro_batches: 1 }\n";

constexpr const char* kLatentPlan =
    "model { layers: 2 hidden: 512 heads: 16 feed_forward: 2048 vocabulary: 32000\n"
    "  latent_attention { query_rank: 128 kv_rank: 64 nope_head_dim: 32 rope_head_dim: 16 "
    "value_head_dim: 32 }\n"
    "}\n"
    "parallelism { tensor: 2 context: 2 data: 2 }\n"
    "compute { accelerator: \"h100-sxm\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
    "training { sequence: 4096 micro_batch: 1 micro_batches: 1 }\n";

using Values = std::map<std::string, std::string>;

const Values kModelValues = {
    {"preset", "\"mixtral-8x7b\""},
    {"layers", "7"},
    {"hidden", "768"},
    {"heads", "32"},
    {"kv_heads", "4"},
    {"head_dim", "32"},
    {"feed_forward", "1024"},
    {"gated_feed_forward", "true"},
    {"vocabulary", "64000"},
    {"positions", "128"},
    {"token_types", "2"},
    {"tied_embeddings", "true"},
    {"linear_bias", "true"},
    {"qkv_bias", "true"},
    {"norm_bias", "true"},
    {"query_key_norm", "true"},
    {"embedding_norm", "true"},
    {"final_norm", "false"},
    {"pooler", "true"},
    {"causal", "false"},
    {"precision", "FP32"},
    {"weight_precision", "FP8"},
};
const Values kExpertValues = {
    {"count", "16"},           {"per_token", "2"},
    {"feed_forward", "1024"},  {"shared_feed_forward", "256"},
    {"shared_gate", "true"},   {"router_bias", "true"},
    {"dense_layers", "3"},     {"groups", "2"},
    {"groups_per_token", "4"},
};

const Values kLatentValues = {
    {"query_rank", "64"},    {"kv_rank", "128"},       {"nope_head_dim", "64"},
    {"rope_head_dim", "32"}, {"value_head_dim", "64"},
};

bool SameOperations(const Trace& a, const Trace& b) {
  for (GlobalRank rank{0}; rank < a.rank_count; ++rank) {
    if (a.operations[rank] != b.operations[rank]) return false;
  }
  return a.rank_count == b.rank_count;
}

// Sets each field of the message to its other value, one at a time.
void ExpectEachFieldChanges(const google::protobuf::Descriptor& type, const char* text,
                            const std::string& prefix, const Values& values,
                            const std::vector<std::string>& elsewhere) {
  const LoadedPlan reference(text);
  ASSERT_EQ(reference.findings, "");
  const Trace operations = Synthesize(*reference.plan);
  for (int i = 0; i < type.field_count(); ++i) {
    const std::string name = type.field(i)->name();
    if (std::find(elsewhere.begin(), elsewhere.end(), name) != elsewhere.end()) continue;
    const auto value = values.find(name);
    ASSERT_NE(value, values.end()) << "no other value for " << prefix << name;
    const LoadedPlan changed(text, {prefix + name + "=" + value->second});
    EXPECT_EQ(changed.findings, "");
    ASSERT_TRUE(changed.plan.has_value()) << name;
    EXPECT_FALSE(SameOperations(operations, Synthesize(*changed.plan))) << prefix << name;
  }
}

TEST(ModelFieldsTest, EveryFieldOfAModelChangesItsOperations) {
  ExpectEachFieldChanges(*protos::Model::descriptor(), kPlan, "model.", kModelValues,
                         {"experts", "latent_attention"});
}

TEST(ModelFieldsTest, EveryFieldOfExpertsChangesTheOperations) {
  ExpectEachFieldChanges(*protos::Experts::descriptor(), kExpertPlan, "model.experts.",
                         kExpertValues, {"kernel", "kernel_sms", "nvlink_ranks"});
  Values undivided = kExpertValues;
  undivided["per_token"] = "4";
  ExpectEachFieldChanges(*protos::Experts::descriptor(), kPlan, "model.experts.", undivided,
                         {"groups", "groups_per_token", "kernel", "kernel_sms", "nvlink_ranks"});
  const Values of_kernels = {
      {"kernel", "DEEPEP_LOW_LATENCY"}, {"kernel_sms", "8"}, {"nvlink_ranks", "2"}};
  std::vector<std::string> others;
  for (const auto& entry : kExpertValues) others.push_back(entry.first);
  ExpectEachFieldChanges(*protos::Experts::descriptor(), kKernelPlan, "model.experts.", of_kernels,
                         others);
}

TEST(ModelFieldsTest, EveryFieldOfLatentAttentionChangesTheOperations) {
  ExpectEachFieldChanges(*protos::LatentAttention::descriptor(), kLatentPlan,
                         "model.latent_attention.", kLatentValues, {});
}

}  // namespace
}  // namespace railyard
