// SPDX-License-Identifier: GPL-2.0-only
// Holds a checked and complete plan: the contents of a plan's text in plain types.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "workloads/plans/model/compute_cost.h"
#include "workloads/plans/model/layered_model.h"
#include "workloads/plans/model/model_config.h"
#include "workloads/plans/plan/expert_routing.h"

namespace railyard {

enum class Dimension : uint8_t { kTensor, kContext, kData, kPipeline };
inline constexpr size_t kDimensionCount = 4;

struct Parallelism {
  // Holds the parts by dimension.
  std::array<uint32_t, kDimensionCount> parts = {1, 1, 1, 1};
  bool sequence = false;
  // The dimensions, beginning with the one whose neighbours are consecutive ranks.
  std::array<Dimension, kDimensionCount> order = {Dimension::kTensor, Dimension::kContext,
                                                  Dimension::kData, Dimension::kPipeline};
  std::vector<uint32_t> rank_at;  // by place in that order; if empty, the place itself
  uint32_t expert = 1;            // ranks over which experts are divided; 1 if they are not

  uint32_t tensor() const { return parts[0]; }
  uint32_t context() const { return parts[1]; }
  uint32_t data() const { return parts[2]; }
  uint32_t pipeline() const { return parts[3]; }
  uint32_t RankCount() const { return tensor() * context() * data() * pipeline(); }
  // These return the number of ranks of a stage and its number of expert groups, each of which
  // divides the experts over `expert` ranks.
  uint32_t StageRanks() const { return tensor() * context() * data(); }
  uint32_t ExpertGroups() const { return StageRanks() / expert; }
};

enum class PipelineScheduleKind : uint8_t { kOneFOneB, kInterleaved, kZeroBubble };
enum class Recompute : uint8_t { kNone, kFull };

// Describes the trained part of the model, which is all of it by default.
struct FineTuning {
  uint32_t frozen_layers = 0;  // from the bottom; if there are any, the embeddings are frozen too
  std::optional<Lora> lora;    // if set, all is frozen except its adapters

  bool FreezesAny() const { return frozen_layers > 0 || lora; }
  bool TrainsBase(uint32_t layer) const { return !lora && layer >= frozen_layers; }
  bool TrainsEnds() const { return !lora; }  // trains the output layer, unless it is the embedding
  bool HasAdapters(uint32_t layer) const { return lora && layer >= frozen_layers; }
};

struct Training {
  uint32_t sequence = 0;
  uint32_t micro_batch = 0;
  uint32_t micro_batches = 0;
  uint32_t iterations = 1;
  PipelineScheduleKind schedule = PipelineScheduleKind::kOneFOneB;
  uint32_t virtual_stages = 1;
  uint32_t zero = 0;
  Precision gradient_precision = Precision::kBf16;
  uint64_t gradient_bucket_bytes = uint64_t{25} << 20;
  bool overlap_gradients = true;
  Recompute recompute = Recompute::kNone;
  bool gradient_clipping = false;
  uint32_t log_interval = 0;  // iterations between barriers; 0 without barriers
  FineTuning fine_tuning;
  bool ddp_broadcasts = false;
};

struct Request {
  int64_t arrival_ps = 0;
  uint32_t prompt_tokens = 0;
  uint32_t output_tokens = 0;  // 1 or more; prefill generates the first
};

struct Inference {
  std::vector<Request> requests;  // in the order of arrival
  uint32_t batch = 1;             // requests at a time
  bool continuous = false;        // requests join and leave individually
  bool separate_shared_reduction = false;
  uint32_t prefill_tensor = 0;  // ranks of the prefill group; 0 without such a group
};

// The largest number of operations of a plan; more would need more memory than usual machines have.
inline constexpr uint64_t kPlanOperationsMax = 40'000'000;

struct Plan {
  std::string name;
  ModelConfig model;                    // a transformer, unless the next field is set
  std::optional<LayeredModel> layered;  // another kind of model
  Parallelism parallelism;
  ComputeSettings compute;
  ExpertRouting routing;
  std::variant<Training, Inference> job;

  // Returns the tokens of a micro-batch on one rank: its part of the sequence. Precondition: `job`
  // is a Training.
  uint64_t MicroBatchTokens() const {
    const auto& training = std::get<Training>(job);
    return uint64_t{training.micro_batch} * training.sequence / parallelism.context();
  }
  Precision precision() const { return layered ? layered->precision : model.precision; }
};

}  // namespace railyard
