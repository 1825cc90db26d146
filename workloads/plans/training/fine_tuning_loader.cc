// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/training/fine_tuning_loader.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

namespace railyard {
namespace {

std::optional<LoraMatrix> MatrixOf(int matrix) {
  switch (matrix) {
    case protos::Lora::QUERY:
      return LoraMatrix::kQuery;
    case protos::Lora::KEY:
      return LoraMatrix::kKey;
    case protos::Lora::VALUE:
      return LoraMatrix::kValue;
    case protos::Lora::ATTENTION_OUTPUT:
      return LoraMatrix::kAttentionOutput;
    case protos::Lora::GATE:
      return LoraMatrix::kGate;
    case protos::Lora::UP:
      return LoraMatrix::kUp;
    case protos::Lora::DOWN:
      return LoraMatrix::kDown;
    default:
      return std::nullopt;
  }
}

// Returns why a model has no such matrix; empty if it has.
const char* WhyNone(LoraMatrix matrix, const ModelConfig& model) {
  if (matrix <= LoraMatrix::kAttentionOutput) return "";
  if (model.experts) {
    return "feed-forward networks of a model with experts are not adapted (expected QUERY, KEY, "
           "VALUE or ATTENTION_OUTPUT)";
  }
  if (matrix == LoraMatrix::kGate && !model.gated_feed_forward) {
    return "the feed-forward network has no gate (expected UP or DOWN, or "
           "model.gated_feed_forward)";
  }
  return "";
}

Lora LoadLora(const PlanReader& reader, const ModelConfig& model) {
  Lora lora;
  reader.Required("rank", 1, std::max(model.hidden, 1u), "e.g. 16", lora.rank);
  const auto& message = reader.cursor().As<protos::Lora>();
  const auto error = [&](int index, const char* what) {
    reader.cursor().Error(reader.diagnostics(), "matrices", what, index);
  };
  for (int i = 0; i < message.matrices_size(); ++i) {
    const auto matrix = MatrixOf(message.matrices(i));
    if (!matrix) {
      error(i, "is none (expected QUERY, KEY, VALUE, ATTENTION_OUTPUT, GATE, UP or DOWN)");
    } else if (const char* const why = WhyNone(*matrix, model); *why != '\0') {
      error(i, why);
    } else if (std::ranges::count(lora.matrices, *matrix) > 0) {
      error(i, "is there twice (expected each matrix once)");
    } else {
      lora.matrices.push_back(*matrix);
    }
  }
  if (message.matrices_size() == 0) lora.matrices = {LoraMatrix::kQuery, LoraMatrix::kValue};
  return lora;
}

// Returns the largest number of layers that may be frozen so that something is trained.
uint32_t FrozenLayersMax(const Plan& plan, const FineTuning& tuning) {
  if (plan.layered) return static_cast<uint32_t>(plan.layered->layers.size()) - 1;
  const bool has_head = !tuning.lora && !OutputWeights(plan.model).empty();
  return plan.model.layers - (has_head ? 0 : 1);
}

}  // namespace

FineTuning LoadFineTuning(const PlanReader& training, const Plan& plan) {
  FineTuning tuning;
  if (!training.Has("fine_tuning")) return tuning;
  const PlanReader reader(training.cursor().Child("fine_tuning"), training.diagnostics());
  if (!reader.Has("frozen_layers") && !reader.Has("lora")) {
    training.Error("fine_tuning", "freezes nothing (expected frozen_layers or lora)");
    return tuning;
  }
  if (plan.layered && plan.layered->tables) {
    training.Error("fine_tuning", "the model has embedding tables (expected none)");
    return tuning;
  }
  if (reader.Has("lora")) {
    if (plan.layered) {
      reader.Error("lora", "the model is no transformer (expected none, or frozen_layers)");
    } else if (plan.model.latent_attention) {
      reader.Error("lora", "matrices of latent attention are not adapted (expected frozen_layers)");
    } else {
      tuning.lora =
          LoadLora(PlanReader(reader.cursor().Child("lora"), reader.diagnostics()), plan.model);
    }
  }
  if (plan.layered || plan.model.layers > 0) {
    reader.Number("frozen_layers", tuning.lora ? 0 : 1, FrozenLayersMax(plan, tuning),
                  tuning.frozen_layers);
  }
  return tuning;
}

}  // namespace railyard
