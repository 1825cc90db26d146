// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/training/layered_plan.h"

#include <utility>
#include <vector>

#include "workloads/plans/parallelism/rank_groups.h"
#include "workloads/plans/program_writer.h"
#include "workloads/plans/trace_builder.h"
#include "workloads/plans/training/gradient_buckets.h"
#include "workloads/plans/training/optimizer.h"

namespace railyard {
namespace {

constexpr uint32_t kDataCommunicator = 0;
constexpr uint32_t kEmbeddingCommunicator = 1;

class LayeredSynthesis {
 public:
  LayeredSynthesis(const Plan& plan, uint32_t place)
      : plan_(plan),
        model_(*plan.layered),
        training_(std::get<Training>(plan.job)),
        ranks_(plan.parallelism.data()),
        place_(place),
        data_(training_, model_.precision, PlanStream::kData, kDataCommunicator, ranks_, writer_) {}

  std::vector<TraceOperation> Write() {
    for (uint32_t i = 0; i < training_.iterations; ++i) {
      if (i > 0) writer_.BeginIteration();
      if (training_.ddp_broadcasts) Broadcasts(i == 0);
      for (uint32_t micro_batch = 0; micro_batch < training_.micro_batches; ++micro_batch) {
        reduces_ = data_.BeginBackward(micro_batch);
        MicroBatch();
        if (reduces_) data_.EndBackward(false);
      }
      EndIteration();
    }
    writer_.Mark();
    return writer_.Take();
  }

 private:
  // DistributedDataParallel's broadcasts: parameters and buffers at its start, and buffers before
  // the first forward pass of each iteration (broadcast_buffers). A batch norm has a running mean
  // and variance for each channel, and counts its batches. Buckets hold one type each, of both
  // buffers and parameters.
  void Broadcasts(bool is_start) {
    std::vector<uint64_t> weights;
    uint64_t statistics = 0;
    uint64_t counters = 0;
    for (const auto* const layers : {&model_.bottom, &model_.layers}) {
      for (const ConvolutionalLayer& layer : *layers) {
        for (const uint64_t elements : layer.Weights()) weights.push_back(elements);
        if (!layer.batch_norm) continue;
        statistics += 2 * uint64_t{layer.out_channels};
        ++counters;
      }
    }
    if (is_start) {
      const bool is_one_type = model_.precision == Precision::kFp32;
      if (is_one_type) weights.push_back(statistics);
      data_.Broadcast(weights);
      if (!is_one_type) data_.BroadcastBuffers(statistics, Datatype::kFloat32);
      data_.BroadcastBuffers(counters, Datatype::kInt64);
    }
    data_.BroadcastBuffers(statistics, Datatype::kFloat32);
    data_.BroadcastBuffers(counters, Datatype::kInt64);
  }

  void MicroBatch() {
    uint32_t rows = ProgramWriter::kNone;
    if (model_.tables) {
      Compute({.flops = 0, .memory_bytes = LookUpBytes(plan_, place_)});
      rows = ExchangeRows(true);
    }
    for (const ConvolutionalLayer& layer : model_.bottom) Compute(WorkOf(layer, 1));
    if (model_.tables) {
      writer_.WaitFor(rows);
      Compute(Interaction(1));
    }
    for (const ConvolutionalLayer& layer : model_.layers) Compute(WorkOf(layer, 1));

    Backward(model_.layers, training_.fine_tuning.frozen_layers);
    if (model_.tables) {
      Compute(Interaction(2));
      rows = ExchangeRows(false);
    }
    Backward(model_.bottom, 0);
    if (!model_.tables) return;
    writer_.WaitFor(rows);
    // The rows are read and written.
    Compute({.flops = 0, .memory_bytes = 2 * LookUpBytes(plan_, place_)});
  }

  // Gradients of inputs and of weights, one forward pass's work each; not of the first `frozen`
  // layers, nor of the inputs that they would be for.
  void Backward(const std::vector<ConvolutionalLayer>& layers, size_t frozen) {
    for (size_t layer = layers.size(); layer-- > frozen;) {
      Compute(WorkOf(layers[layer], frozen > 0 && layer == frozen ? 1 : 2));
      if (!reduces_) continue;
      const std::vector<uint64_t> weights = layers[layer].Weights();
      for (auto elements = weights.rbegin(); elements != weights.rend(); ++elements) {
        data_.Ready(*elements);
      }
    }
  }

  void EndIteration() {
    data_.EndBackward(true);
    if (data_.last() != ProgramWriter::kNone) writer_.WaitFor(data_.last());
    const double shared_by = training_.zero > 0 ? ranks_ : 1;
    Compute(OptimizerWork(static_cast<double>(TrainedParameterCount()) / shared_by,
                          training_.gradient_precision, model_.precision));
    data_.GatherParameters();
  }

  uint64_t TrainedParameterCount() const {
    uint64_t count = DenseParameterCount(model_);
    for (uint32_t layer = 0; layer < training_.fine_tuning.frozen_layers; ++layer) {
      for (const uint64_t elements : model_.layers[layer].Weights()) count -= elements;
    }
    return count;
  }

  Work WorkOf(const ConvolutionalLayer& layer, double passes) const {
    uint64_t elements = 0;
    for (const uint64_t weight : layer.Weights()) elements += weight;
    return {
        .flops = passes * layer.Flops() * training_.micro_batch,
        .memory_bytes = passes * static_cast<double>(elements) * PrecisionBytes(model_.precision)};
  }

  Work Interaction(double passes) const {
    return {.flops = passes * model_.InteractionFlops() * training_.micro_batch, .memory_bytes = 0};
  }

  // Rows to the ranks of their samples, or gradients back to the ranks of their tables. Returns the
  // operation to wait for.
  uint32_t ExchangeRows(bool is_forward) {
    const uint32_t computed = writer_.Mark();
    if (ranks_ == 1) return computed;
    ++exchanges_;
    std::vector<TraceOperation> calls;
    const auto add = [&](CollectiveKind kind, uint32_t peer, uint64_t tables) {
      if (tables == 0) return;
      calls.push_back({.kind = kind,
                       .communicator = kEmbeddingCommunicator,
                       .count = tables * training_.micro_batch * model_.tables->width,
                       .datatype = DatatypeOf(model_.precision),
                       .peer = peer,
                       .group = exchanges_,
                       .all_to_all = exchanges_});
    };
    const uint32_t own = TablesOf(plan_, place_);
    for (uint32_t peer = 0; peer < ranks_; ++peer) {
      const uint32_t others = TablesOf(plan_, peer);
      add(CollectiveKind::kSend, peer, is_forward ? own : others);
      add(CollectiveKind::kRecv, peer, is_forward ? others : own);
    }
    return writer_.AddGroup(PlanStream::kEmbedding, calls, computed);
  }

  void Compute(const Work& work) {
    writer_.Compute(ComputeTimePs(plan_.compute, model_.precision, work));
  }

  const Plan& plan_;
  const LayeredModel& model_;
  const Training& training_;
  const uint32_t ranks_;
  const uint32_t place_;
  ProgramWriter writer_;
  GradientBuckets data_;
  uint32_t exchanges_ = 0;
  bool reduces_ = false;  // the micro-batch that is being written
};

}  // namespace

uint32_t TablesOf(const Plan& plan, uint32_t place) {
  const auto tables = static_cast<uint32_t>(plan.layered->tables->rows.size());
  const uint32_t ranks = plan.parallelism.data();
  return tables / ranks + (place < tables % ranks ? 1 : 0);
}

double LookUpBytes(const Plan& plan, uint32_t place) {
  const LayeredModel& model = *plan.layered;
  return static_cast<double>(TablesOf(plan, place)) * std::get<Training>(plan.job).micro_batch *
         plan.parallelism.data() * model.tables->width * PrecisionBytes(model.precision);
}

uint64_t LayeredOperationCount(const Plan& plan) {
  const auto& training = std::get<Training>(plan.job);
  const LayeredModel& model = *plan.layered;
  const uint64_t layers = model.layers.size() + model.bottom.size();
  constexpr uint64_t kPerLayer = 8;  // computation and reduction of four weights at most
  // Bounds all other operations, broadcasts included.
  constexpr uint64_t kPerMicroBatch = 24;
  const uint64_t calls = model.tables ? 4 * uint64_t{plan.parallelism.data()} : 0;
  return plan.parallelism.data() * uint64_t{training.iterations} *
         (training.micro_batches * (2 * layers * kPerLayer + kPerMicroBatch + calls) +
          2 * layers * kPerLayer);
}

Trace SynthesizeLayered(const Plan& plan) {
  const RankGroups groups(plan.parallelism);
  TraceBuilder builder(groups.rank_count());
  const std::vector<GlobalRank> ranks = groups.GroupOf(PlanPlace{}, Dimension::kData);
  builder.AddCommunicator("data 0", ranks);
  if (plan.layered->tables) builder.AddCommunicator("embeddings 0", ranks);
  if (!plan.layered->tables) {
    builder.SetProgram(ranks, LayeredSynthesis(plan, 0).Write());
    return builder.Take("plan");
  }
  for (uint32_t place = 0; place < ranks.size(); ++place) {
    builder.SetProgram(ranks[place], LayeredSynthesis(plan, place).Write());
  }
  return builder.Take("plan");
}

}  // namespace railyard
