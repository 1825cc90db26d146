// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/model/model_loader.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "simulator/units/divide_up.h"
#include "workloads/plans/model/layered_presets.h"
#include "workloads/plans/model/model_presets.h"
#include "workloads/plans/plan_reader.h"
#include "workloads/plans/workload.pb.h"

namespace railyard {
namespace {

// Ten times what has been published or more: products of two fit 64 bits, counts fit memory.
constexpr uint32_t kLayersMax = 4'096;
constexpr uint32_t kWidthMax = 1'048'576;
constexpr uint32_t kHeadsMax = 65'536;
constexpr uint32_t kVocabularyMax = 16'777'216;
constexpr uint32_t kExpertsMax = 4'096;
constexpr uint32_t kKernelSmsMax = 254;
constexpr uint32_t kNvlinkRanksMax = 72;  // MAX_NUM_OF_RANKS_PER_NODE (csrc/hybrid_ep/config.cuh)

void LoadPreset(const PlanReader& reader, ModelConfig& model) {
  const std::string name = reader.cursor().Text("preset", "");
  if (const ModelPreset* const preset = FindModelPreset(name)) {
    model = preset->config;
    return;
  }
  std::vector<std::string> names;
  for (const ModelPreset& preset : ModelPresets()) names.emplace_back(preset.name);
  for (const LayeredPreset& preset : LayeredPresets()) names.emplace_back(preset.name);
  reader.Error("preset", UnknownName("model", name, names));
}

void LoadLatentAttention(const PlanReader& reader, ModelConfig& model) {
  LatentAttention latent = model.latent_attention.value_or(LatentAttention{});
  reader.Number("query_rank", 0, kWidthMax, latent.query_rank);
  reader.Required("kv_rank", 1, kWidthMax, "e.g. 512", latent.kv_rank);
  reader.Required("nope_head_dim", 1, kWidthMax, "e.g. 128", latent.nope_head_dim);
  reader.Required("rope_head_dim", 1, kWidthMax, "e.g. 64", latent.rope_head_dim);
  reader.Required("value_head_dim", 1, kWidthMax, "e.g. 128", latent.value_head_dim);
  model.latent_attention = latent;
}

void CheckGroups(const PlanReader& reader, const Experts& experts) {
  const char* const groups = reader.Has("groups") ? "groups" : "count";
  const char* const groups_per_token =
      reader.Has("groups_per_token") ? "groups_per_token" : "per_token";
  if (experts.count % experts.groups != 0) {
    reader.Error(groups, fmt::format("{} groups do not divide {} experts (expected {} groups)",
                                     experts.groups, experts.count,
                                     NearestDivisors(experts.count, experts.groups)));
    return;
  }
  if (experts.groups_per_token > experts.groups) {
    reader.Error(groups_per_token,
                 fmt::format("{} of {} groups (expected at most {})", experts.groups_per_token,
                             experts.groups, experts.groups));
    return;
  }
  if (experts.per_token % experts.groups_per_token != 0) {
    reader.Error(groups_per_token,
                 fmt::format("{} groups do not share {} experts evenly (expected {})",
                             experts.groups_per_token, experts.per_token,
                             NearestDivisors(experts.per_token, experts.groups_per_token)));
    return;
  }
  const uint32_t of_group = experts.per_token / experts.groups_per_token;
  const uint32_t group_size = experts.count / experts.groups;
  if (of_group > group_size && experts.per_token <= experts.count) {
    reader.Error(groups_per_token,
                 fmt::format("{} experts of a group of {} (expected {} groups or more)", of_group,
                             group_size, DivideUp(experts.per_token, group_size)));
  }
}

ExpertKernel KernelOf(int value) {
  switch (value) {
    case protos::Experts::DEEPEP:
      return ExpertKernel::kDeepEp;
    case protos::Experts::DEEPEP_LOW_LATENCY:
      return ExpertKernel::kDeepEpLowLatency;
    case protos::Experts::HYBRID_EP:
      return ExpertKernel::kHybridEp;
    default:
      return ExpertKernel::kNone;
  }
}

void LoadKernel(const PlanReader& reader, Experts& experts) {
  experts.kernel = KernelOf(reader.cursor().As<protos::Experts>().kernel());
  reader.Number("kernel_sms", 1, kKernelSmsMax, experts.kernel_sms);
  reader.Number("nvlink_ranks", 2, kNvlinkRanksMax, experts.nvlink_ranks);
  const bool is_deep_ep = experts.kernel == ExpertKernel::kDeepEp;
  const bool is_hybrid = experts.kernel == ExpertKernel::kHybridEp;
  if (reader.Has("kernel_sms") && !is_deep_ep && !is_hybrid) {
    reader.Error("kernel_sms", "means nothing here (expected kernel: DEEPEP or HYBRID_EP)");
  } else if (is_deep_ep && experts.kernel_sms % 2 != 0) {
    reader.Error("kernel_sms", fmt::format("{} is odd (expected {}: a channel takes two)",
                                           experts.kernel_sms, experts.kernel_sms + 1));
  }
  if (reader.Has("nvlink_ranks") && !is_hybrid) {
    reader.Error("nvlink_ranks", "means nothing here (expected kernel: HYBRID_EP)");
  }
}

void LoadExperts(const PlanReader& reader, ModelConfig& model) {
  Experts experts = model.experts.value_or(Experts{});
  reader.Required("count", 1, kExpertsMax, "e.g. 8", experts.count);
  reader.Required("per_token", 1, kExpertsMax, "e.g. 2", experts.per_token);
  reader.Required("feed_forward", 1, kWidthMax, "e.g. 14336", experts.feed_forward);
  reader.Number("shared_feed_forward", 0, kWidthMax, experts.shared_feed_forward);
  reader.Flag("shared_gate", experts.shared_gate);
  reader.Flag("router_bias", experts.router_bias);
  reader.Number("dense_layers", 0, kLayersMax, experts.dense_layers);
  reader.Number("groups", 1, kExpertsMax, experts.groups);
  reader.Number("groups_per_token", 1, kExpertsMax, experts.groups_per_token);
  LoadKernel(reader, experts);
  if (experts.count == 0) return;
  CheckGroups(reader, experts);
  if (experts.per_token > experts.count) {
    reader.Error("per_token", fmt::format("{} of {} experts (expected at most {})",
                                          experts.per_token, experts.count, experts.count));
  }
  if (experts.shared_gate && experts.shared_feed_forward == 0) {
    reader.Error("shared_gate", "there is no shared expert (expected shared_feed_forward)");
  }
  model.experts = experts;
}

// A preset's number of dense layers is that of its own number of layers.
void CheckDenseLayers(const ProtoCursor& cursor, const ModelConfig& model,
                      Diagnostics& diagnostics) {
  if (!model.experts || model.layers == 0 || model.experts->dense_layers < model.layers) return;
  const uint32_t dense = model.experts->dense_layers;
  if (cursor.Has("experts") && cursor.Child("experts").Has("dense_layers")) {
    const std::string why =
        fmt::format("{} of {} layers leave none with experts (expected at most {}, or no experts)",
                    dense, model.layers, model.layers - 1);
    cursor.Child("experts").Error(diagnostics, "dense_layers", why);
    return;
  }
  cursor.Error(diagnostics, "layers",
               fmt::format("{} are all dense: {} of the model's have no experts (expected more, or "
                           "experts.dense_layers)",
                           model.layers, dense));
}

// The preset's head width no longer holds if hidden or heads are replaced.
void LoadHeads(const PlanReader& reader, ModelConfig& model) {
  const bool was_multi_head = model.kv_heads == model.heads;
  const bool is_reshaped = reader.Has("hidden") || reader.Has("heads");
  reader.Required("hidden", 1, kWidthMax, "e.g. 4096", model.hidden);
  reader.Required("heads", 1, kHeadsMax, "e.g. 32", model.heads);
  if (reader.Has("kv_heads")) {
    reader.Number("kv_heads", 1, kHeadsMax, model.kv_heads);
  } else if (was_multi_head) {
    model.kv_heads = model.heads;
  }
  if (model.heads == 0 || model.hidden == 0) return;
  if (reader.Has("head_dim")) {
    reader.Number("head_dim", 1, kWidthMax, model.head_dim);
  } else if (is_reshaped || model.head_dim == 0) {
    const bool has_own_width = model.latent_attention || reader.Has("latent_attention");
    if (!has_own_width && model.hidden % model.heads != 0) {
      reader.Error("heads", fmt::format("{} heads do not divide hidden {} (expected {}, or "
                                        "head_dim)",
                                        model.heads, model.hidden,
                                        NearestDivisors(model.hidden, model.heads)));
    }
    model.head_dim = model.hidden / model.heads;
  }
  if (model.kv_heads > 0 && model.heads % model.kv_heads != 0) {
    reader.Error(
        reader.Has("kv_heads") ? "kv_heads" : "heads",
        fmt::format("{} heads cannot share {} key/value heads evenly (expected {} of "
                    "these)",
                    model.heads, model.kv_heads, NearestDivisors(model.heads, model.kv_heads)));
  }
  if (model.latent_attention || reader.Has("latent_attention")) {
    for (const char* const field : {"kv_heads", "head_dim"}) {
      if (reader.Has(field)) {
        reader.Error(field, "means nothing with latent attention (expected its own dimensions)");
      }
    }
  }
}

}  // namespace

std::optional<LayeredModel> LoadLayeredModel(const ProtoCursor& cursor, Diagnostics& diagnostics) {
  const PlanReader reader(cursor, diagnostics);
  const LayeredPreset* const preset = FindLayeredPreset(cursor.Text("preset", ""));
  if (preset == nullptr) return std::nullopt;
  LayeredModel model = preset->model;
  const google::protobuf::Descriptor& type = *cursor.message().GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const std::string& field = type.field(i)->name();
    if (field == "preset" || field == "precision" || !reader.Has(field.c_str())) continue;
    reader.Error(field.c_str(),
                 fmt::format("{} is no transformer (expected precision beside it, or none)",
                             Quote(preset->name)));
  }
  reader.ReadPrecision("precision", model.precision);
  return model;
}

std::optional<ModelConfig> LoadModel(const ProtoCursor& cursor, Diagnostics& diagnostics) {
  const int errors_before = diagnostics.error_count();
  const PlanReader reader(cursor, diagnostics);
  ModelConfig model;
  if (reader.Has("preset")) LoadPreset(reader, model);
  if (diagnostics.error_count() > errors_before || cursor.IsDoubtful("preset")) {
    return std::nullopt;  // what is missing otherwise cannot be known
  }
  reader.Required("layers", 1, kLayersMax, "e.g. 32", model.layers);
  LoadHeads(reader, model);
  if (reader.Has("experts")) {
    LoadExperts(PlanReader(cursor.Child("experts"), diagnostics), model);
  }
  CheckDenseLayers(cursor, model, diagnostics);
  if (!model.experts || model.experts->dense_layers > 0) {
    reader.Required("feed_forward", 1, kWidthMax, "e.g. 14336", model.feed_forward);
  } else if (reader.Has("feed_forward")) {
    reader.Error("feed_forward",
                 "all layers have experts (expected their width in experts, or "
                 "experts.dense_layers)");
  }
  reader.Flag("gated_feed_forward", model.gated_feed_forward);
  reader.Required("vocabulary", 1, kVocabularyMax, "e.g. 32000", model.vocabulary);
  reader.Number("positions", 0, kVocabularyMax, model.positions);
  reader.Number("token_types", 0, kWidthMax, model.token_types);
  reader.Flag("tied_embeddings", model.tied_embeddings);
  reader.Flag("linear_bias", model.linear_bias);
  reader.Flag("qkv_bias", model.qkv_bias);
  reader.Flag("norm_bias", model.norm_bias);
  reader.Flag("query_key_norm", model.query_key_norm);
  reader.Flag("embedding_norm", model.embedding_norm);
  reader.Flag("final_norm", model.final_norm);
  reader.Flag("pooler", model.pooler);
  reader.Flag("causal", model.causal);
  if (reader.Has("latent_attention")) {
    LoadLatentAttention(PlanReader(cursor.Child("latent_attention"), diagnostics), model);
  }
  if (reader.Has("precision")) {
    reader.ReadPrecision("precision", model.precision);
    model.weight_precision = model.precision;
  }
  reader.ReadPrecision("weight_precision", model.weight_precision);
  if (reader.Has("qkv_bias") && model.qkv_bias && model.linear_bias) {
    reader.Error("qkv_bias", "linear_bias has it already (expected one of them)");
  }
  if (diagnostics.error_count() > errors_before || cursor.IsDoubtfulSelf()) return std::nullopt;
  return model;
}

}  // namespace railyard
