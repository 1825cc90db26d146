// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/parallelism/parallelism_loader.h"

#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "workloads/plans/plan_reader.h"

namespace railyard {
namespace {

constexpr uint32_t kRanksMax = 65'536;
constexpr std::array<const char*, kDimensionCount> kFields = {"tensor", "context", "data",
                                                              "pipeline"};

Dimension DimensionOf(int value) {
  switch (value) {
    case protos::Parallelism::CONTEXT:
      return Dimension::kContext;
    case protos::Parallelism::DATA:
      return Dimension::kData;
    case protos::Parallelism::PIPELINE:
      return Dimension::kPipeline;
    default:
      return Dimension::kTensor;
  }
}

void LoadOrder(const PlanReader& reader, Parallelism& parallelism) {
  const auto& message = reader.cursor().As<protos::Parallelism>();
  if (message.order_size() == 0) return;
  std::array<bool, kDimensionCount> seen{};
  bool is_permutation = message.order_size() == static_cast<int>(kDimensionCount);
  for (int i = 0; is_permutation && i < message.order_size(); ++i) {
    const Dimension dimension = DimensionOf(message.order(i));
    is_permutation = !std::exchange(seen[static_cast<size_t>(dimension)], true);
    parallelism.order[static_cast<size_t>(i)] = dimension;
  }
  if (!is_permutation) {
    reader.cursor().Error(reader.diagnostics(), "order",
                          "names not each dimension once (expected TENSOR, CONTEXT, DATA and "
                          "PIPELINE, each once)",
                          0);
  }
}

void LoadRankAt(const PlanReader& reader, uint64_t rank_count, Parallelism& parallelism) {
  const auto& message = reader.cursor().As<protos::Parallelism>();
  if (message.rank_at_size() == 0) return;
  if (static_cast<uint64_t>(message.rank_at_size()) != rank_count) {
    reader.cursor().Error(reader.diagnostics(), "rank_at",
                          fmt::format("{} ranks of {} (expected each from 0 to {} once)",
                                      message.rank_at_size(), rank_count, rank_count - 1),
                          0);
    return;
  }
  std::vector<bool> seen(rank_count);
  for (int i = 0; i < message.rank_at_size(); ++i) {
    const uint32_t rank = message.rank_at(i);
    if (rank >= rank_count || seen[rank]) {
      reader.cursor().Error(
          reader.diagnostics(), "rank_at",
          fmt::format("{} {} (expected each from 0 to {} once)", rank,
                      rank >= rank_count ? "does not exist" : "is there twice", rank_count - 1),
          i);
      return;
    }
    seen[rank] = true;
    parallelism.rank_at.push_back(rank);
  }
}

void CheckExpertParallelism(const ProtoCursor& cursor, const Parallelism& parallelism,
                            const ModelConfig& model, Diagnostics& diagnostics) {
  const uint32_t expert = parallelism.expert;
  if (!model.experts) {
    cursor.Error(diagnostics, "expert", "the model has no experts (expected none)");
    return;
  }
  if (model.experts->count % expert != 0) {
    cursor.Error(diagnostics, "expert",
                 fmt::format("{} does not divide model.experts.count {} (expected {})", expert,
                             model.experts->count, NearestDivisors(model.experts->count, expert)));
  }
  if (parallelism.StageRanks() % expert != 0) {
    cursor.Error(
        diagnostics, "expert",
        fmt::format("{} does not divide tensor {} x context {} x data {} = {} (expected "
                    "{})",
                    expert, parallelism.tensor(), parallelism.context(), parallelism.data(),
                    parallelism.StageRanks(), NearestDivisors(parallelism.StageRanks(), expert)));
  }
  if (parallelism.tensor() > 1 && !parallelism.sequence) {
    cursor.Error(diagnostics, "expert",
                 "the ranks of a tensor group have the same tokens (expected sequence: true, or "
                 "tensor: 1)");
  }
}

}  // namespace

std::string WhyNotTensor(uint32_t tensor, const ModelConfig& model, bool has_whole_experts) {
  const auto divides = [tensor](const char* what, uint32_t number) {
    return number % tensor == 0 ? std::string()
                                : fmt::format("does not divide {} {}", what, number);
  };
  std::string problem = divides("model.heads", model.heads);
  if (problem.empty() && !model.latent_attention && tensor % model.kv_heads != 0) {
    problem = divides("model.kv_heads", model.kv_heads);
  }
  if (problem.empty()) problem = divides("model.feed_forward", model.feed_forward);
  if (problem.empty() && model.experts) {
    if (!has_whole_experts) {
      problem = divides("model.experts.feed_forward", model.experts->feed_forward);
    }
    if (problem.empty()) {
      problem = divides("model.experts.shared_feed_forward", model.experts->shared_feed_forward);
    }
  }
  return problem;
}

Parallelism LoadParallelism(const ProtoCursor& cursor, Diagnostics& diagnostics) {
  const int errors_before = diagnostics.error_count();
  const PlanReader reader(cursor, diagnostics);
  Parallelism parallelism;
  uint64_t product = 1;
  for (size_t i = 0; i < kDimensionCount; ++i) {
    reader.Number(kFields[i], 1, kRanksMax, parallelism.parts[i]);
    product *= parallelism.parts[i];
  }
  reader.Number("expert", 1, kRanksMax, parallelism.expert);
  reader.Flag("sequence", parallelism.sequence);
  if (reader.Has("sequence") && parallelism.sequence && parallelism.tensor() == 1) {
    reader.Error("sequence",
                 "divides what tensor parallelism leaves whole (expected tensor: 2 or "
                 "more)");
  }
  LoadOrder(reader, parallelism);
  if (diagnostics.error_count() > errors_before || cursor.IsDoubtfulSelf()) return parallelism;
  if (product > kRanksMax) {
    reader.Error("ranks", fmt::format("{} in all (expected at most {})", product, kRanksMax));
    return parallelism;
  }
  const uint64_t ranks = cursor.Number(diagnostics, "ranks", product, 1, kRanksMax);
  if (reader.Has("ranks") && ranks != product) {
    const uint64_t others = product / parallelism.data();
    const std::string other =
        ranks % others == 0
            ? fmt::format("data: {}", ranks / others)
            : fmt::format("a multiple of {}, e.g. {}", others,
                          (ranks + others / 2) / others > 0 ? (ranks + others / 2) / others * others
                                                            : others);
    reader.Error("ranks",
                 fmt::format("{} is not tensor {} x context {} x data {} x pipeline {} = {} "
                             "(expected {}, or {})",
                             ranks, parallelism.tensor(), parallelism.context(), parallelism.data(),
                             parallelism.pipeline(), product, product, other));
  }
  LoadRankAt(reader, product, parallelism);
  return parallelism;
}

void CheckParallelism(const ProtoCursor& cursor, const Parallelism& parallelism,
                      const ModelConfig& model, Diagnostics& diagnostics) {
  const uint32_t tensor = parallelism.tensor();
  const auto why_not = [&](uint32_t parts) {
    return WhyNotTensor(parts, model, parallelism.expert > 1);
  };
  const std::string problem = why_not(tensor);
  if (!problem.empty()) {
    uint32_t below = tensor;
    while (!why_not(below).empty()) --below;  // 1 divides everything
    uint32_t above = tensor;
    while (above <= model.heads && !why_not(above).empty()) ++above;
    cursor.Error(diagnostics, "tensor",
                 fmt::format("{} {} (expected {}{})", tensor, problem, below,
                             above <= model.heads ? fmt::format(" or {}", above) : ""));
  }
  if (parallelism.pipeline() > model.layers) {
    cursor.Error(diagnostics, "pipeline",
                 fmt::format("{} stages of {} layers (expected at most {})", parallelism.pipeline(),
                             model.layers, model.layers));
  }
  if (parallelism.expert > 1) CheckExpertParallelism(cursor, parallelism, model, diagnostics);
}

}  // namespace railyard
