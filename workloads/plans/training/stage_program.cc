// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/training/stage_program.h"

#include <algorithm>
#include <utility>

#include "workloads/plans/model/layer_work.h"
#include "workloads/plans/parallelism/activation_calls.h"
#include "workloads/plans/parallelism/expert_calls.h"
#include "workloads/plans/parallelism/pipeline_schedule.h"
#include "workloads/plans/parallelism/stage_group.h"
#include "workloads/plans/program_writer.h"
#include "workloads/plans/training/gradient_buckets.h"
#include "workloads/plans/training/stage_weights.h"
#include "workloads/plans/training/training_times.h"

namespace railyard {
namespace {

class StageSynthesis {
 public:
  StageSynthesis(const Plan& plan, uint32_t stage, const StageExchanges* exchanges,
                 uint32_t expert_place)
      : plan_(plan),
        model_(plan.model),
        training_(std::get<Training>(plan.job)),
        parts_(plan.parallelism),
        tuning_(training_.fine_tuning),
        stage_(stage),
        shape_{training_.schedule, parts_.pipeline(), training_.virtual_stages,
               training_.micro_batches},
        times_(plan),
        weights_(plan, stage),
        exchanges_(exchanges),
        expert_place_(expert_place),
        activations_(plan, writer_),
        data_(training_, model_.precision, PlanStream::kData,
              static_cast<uint32_t>(StageGroup::kData), parts_.data() * parts_.context(), writer_),
        expert_data_(training_, model_.precision, PlanStream::kExpertData,
                     static_cast<uint32_t>(StageGroup::kExpertData), parts_.ExpertGroups(),
                     writer_),
        expert_calls_(plan, static_cast<uint32_t>(StageGroup::kExpert), expert_place, writer_) {}

  std::vector<TraceOperation> Write() {
    const std::vector<StageTask> tasks = StageTasks(shape_, stage_);
    for (iteration_ = 0; iteration_ < training_.iterations; ++iteration_) {
      BeginIteration();
      if (iteration_ == 0 && training_.ddp_broadcasts) {
        data_.Broadcast(weights_.Parameters(false));
        expert_data_.Broadcast(weights_.Parameters(true));
        before_last_end_ = last_end_ = writer_.Mark();
      }
      for (const StageTask& task : tasks) {
        WriteTask(task);
        before_last_end_ = std::exchange(last_end_, writer_.Mark());
      }
      EndIteration();
    }
    writer_.Mark();
    return writer_.Take();
  }
  // Each AllToAllv written has its layer here.
  std::vector<uint32_t> TakeExchangedLayers() { return std::move(exchanged_layers_); }

 private:
  uint32_t VirtualStage(const StageTask& task) const { return task.chunk * shape_.stages + stage_; }
  bool IsFirst(const StageTask& task) const { return VirtualStage(task) == 0; }
  bool IsLast(const StageTask& task) const {
    return VirtualStage(task) + 1 == shape_.stages * shape_.chunks;
  }
  bool SplitsBackward() const { return training_.schedule == PipelineScheduleKind::kZeroBubble; }

  void WriteTask(const StageTask& task) {
    const auto [first_layer, end_layer] = LayersOf(plan_, VirtualStage(task));
    micro_batch_ = task.micro_batch;
    if (task.work == StageWork::kForward) {
      if (!IsFirst(task)) Receive(PlanStream::kReceiveActivation, StageGroup::kActivationIn);
      if (IsFirst(task)) EmbeddingForward();
      for (uint32_t layer = first_layer; layer < end_layer; ++layer) {
        GatherLayer(layer);
        LayerForward(layer);
      }
      if (IsLast(task)) OutputForward();
      if (!IsLast(task)) Send(PlanStream::kSendActivation, StageGroup::kActivationOut);
      return;
    }
    if (!HasBackward(task)) return;
    const bool has_inputs = task.work == StageWork::kBackward;
    const bool has_weights = !has_inputs || !SplitsBackward();
    const bool reduces = has_weights && data_.BeginBackward(task.micro_batch);
    expert_reduces_ = has_weights && expert_data_.BeginBackward(task.micro_batch);
    if (has_inputs && !IsLast(task)) {
      Receive(PlanStream::kReceiveGradient, StageGroup::kGradientIn);
    }
    if (IsLast(task)) OutputBackward(has_inputs, has_weights, reduces);
    const uint32_t last_layer = std::max(first_layer, tuning_.frozen_layers);
    for (uint32_t layer = end_layer; layer-- > last_layer;) {
      if (has_inputs) GatherLayer(layer);
      LayerBackward(layer, has_inputs, has_weights, reduces);
    }
    if (IsFirst(task) && !tuning_.FreezesAny()) EmbeddingBackward(has_inputs, has_weights, reduces);
    if (reduces) data_.EndBackward(false);
    if (expert_reduces_) expert_data_.EndBackward(false);
    if (has_inputs && PassesGradientsOn(task)) {
      Send(PlanStream::kSendGradient, StageGroup::kGradientOut);
    }
  }

  // Returns whether anything of a task's part of the model is trained, or below it.
  bool HasBackward(const StageTask& task) const {
    return IsLast(task) || LayersOf(plan_, VirtualStage(task)).second > tuning_.frozen_layers;
  }
  bool PassesGradientsOn(const StageTask& task) const {
    if (IsFirst(task)) return false;
    return !tuning_.FreezesAny() ||
           LayersOf(plan_, VirtualStage(task)).first > tuning_.frozen_layers;
  }
  // True for the lowest trained layer, below which no gradients are needed.
  bool IsLowest(uint32_t layer) const {
    return tuning_.FreezesAny() && layer == tuning_.frozen_layers;
  }

  // --- The passes through the parts of the model.

  void EmbeddingForward() {
    data_.GatherUnit(weights_.embedding().elements);
    writer_.Compute(times_.embedding_ps());
    activations_.ReduceOutput();
  }

  void LayerForward(uint32_t layer) {
    activations_.GatherAttentionInput();
    activations_.GatherContext();
    writer_.Compute(times_.attention_ps() + times_.AdapterPs(layer, WeightUse::kAttention));
    activations_.ReduceOutput();
    if (HasDividedExperts(layer)) {
      ExpertForward(layer);
      return;
    }
    activations_.GatherInput();
    writer_.Compute(times_.FeedForwardPs(layer) + times_.AdapterPs(layer, WeightUse::kFeedForward));
    activations_.ReduceOutput();
  }

  bool HasDividedExperts(uint32_t layer) const {
    return exchanges_ != nullptr && model_.HasExperts(layer);
  }
  const ExpertExchange& ExchangeOf(uint32_t layer) const {
    return exchanges_->At(iteration_, micro_batch_, layer);
  }

  bool HasSharedExpert() const { return model_.experts->shared_feed_forward > 0; }

  void ExpertForward(uint32_t layer) {
    const ExpertExchange& exchange = ExchangeOf(layer);
    if (HasSharedExpert()) activations_.GatherInput();
    writer_.Compute(times_.SharedPs());
    if (HasSharedExpert()) activations_.ReduceOutput();
    expert_calls_.GatherCounts();
    expert_calls_.Dispatch(exchange);
    writer_.Compute(times_.RoutedPs(exchange, expert_place_));
    expert_calls_.Combine(exchange);
    exchanged_layers_.resize(expert_calls_.count(), layer);
  }

  void ExpertBackward(uint32_t layer, bool has_inputs, bool has_weights) {
    const ExpertExchange& exchange = ExchangeOf(layer);
    if (has_inputs) expert_calls_.Dispatch(exchange);
    ComputeBackward(times_.RoutedPs(exchange, expert_place_), has_inputs, has_weights);
    if (expert_reduces_) {
      for (const uint64_t elements : weights_.Layer(layer).experts) expert_data_.Ready(elements);
      if (training_.zero == 3) expert_data_.CloseBucket();
    }
    if (has_inputs) expert_calls_.Combine(exchange);
    exchanged_layers_.resize(expert_calls_.count(), layer);
    if (HasSharedExpert()) {
      PartBackward(times_.SharedPs(), {has_inputs, has_weights});
    } else {
      ComputeBackward(times_.SharedPs(), has_inputs, has_weights);
    }
  }

  void GatherLayer(uint32_t layer) {
    data_.GatherUnit(weights_.Layer(layer).elements);
    if (!HasDividedExperts(layer)) return;
    expert_data_.GatherUnit(weights_.Layer(layer).expert_elements);
  }

  void OutputForward() {
    data_.GatherUnit(weights_.output().elements);
    activations_.GatherInput();
    writer_.Compute(times_.output_ps());
    activations_.ReduceLoss();
  }

  // The gradients that a part's backward pass computes.
  struct Gradients {
    bool has_inputs = false;
    bool has_weights = false;  // of the model's own
    int64_t adapter_ps = 0;    // forward time of its adapters, which are trained in both cases
    bool has_adapters = false;
    bool output_is_divided = true;
    bool of_attention = false;
    bool is_passed_on = true;  // a part before it needs its input's gradient
  };

  // `ps` is the forward time. Tensor parallelism: gradients come in divided (sequence parallel) and
  // go out reduced; the weights' gradients need the whole input again.
  void PartBackward(int64_t ps, const Gradients& gradients) {
    const bool has_inputs = gradients.has_inputs;
    if (has_inputs && gradients.output_is_divided) activations_.GatherInput();
    if (gradients.has_weights || gradients.has_adapters) {
      if (gradients.of_attention) {
        activations_.GatherAttentionInputAgain();
      } else {
        activations_.GatherInput();
      }
    }
    ComputeBackward(ps, has_inputs, gradients.has_weights);
    ComputeBackward(gradients.adapter_ps, has_inputs, gradients.has_adapters);
    if (!has_inputs || !gradients.is_passed_on) return;
    if (gradients.of_attention) {
      activations_.ReduceAttentionInput();
    } else {
      activations_.ReduceOutput();
    }
  }

  void ComputeBackward(int64_t ps, bool has_inputs, bool has_weights) {
    const int64_t share_ps = times_.GradientPs(ps);
    writer_.Compute((has_inputs ? share_ps : 0) + (has_weights ? share_ps : 0));
  }

  void LayerBackward(uint32_t layer, bool has_inputs, bool has_weights, bool reduces) {
    if (has_inputs && training_.recompute == Recompute::kFull) LayerForward(layer);
    const LayerUnit& unit = weights_.Layer(layer);
    const bool trains_base = has_weights && tuning_.TrainsBase(layer);
    const bool needs_attention = !IsLowest(layer) || !tuning_.lora || tuning_.lora->IsOfAttention();
    if (HasDividedExperts(layer)) {
      ExpertBackward(layer, has_inputs, trains_base);
    } else {
      PartBackward(times_.FeedForwardPs(layer),
                   {.has_inputs = has_inputs,
                    .has_weights = trains_base,
                    .adapter_ps = times_.AdapterPs(layer, WeightUse::kFeedForward),
                    .has_adapters = has_weights && tuning_.lora && !unit.feed_forward.empty(),
                    .is_passed_on = needs_attention});
    }
    if (reduces) Ready(unit.feed_forward);
    if (needs_attention) {
      AttentionBackward(layer, has_inputs, has_weights);
      if (reduces) Ready(unit.attention);
    }
    if (reduces) CloseUnit();
  }

  void AttentionBackward(uint32_t layer, bool has_inputs, bool has_weights) {
    if (has_inputs) activations_.GatherContext();
    PartBackward(
        times_.attention_ps(),
        {.has_inputs = has_inputs,
         .has_weights = has_weights && tuning_.TrainsBase(layer),
         .adapter_ps = times_.AdapterPs(layer, WeightUse::kAttention),
         .has_adapters = has_weights && tuning_.lora && !weights_.Layer(layer).attention.empty(),
         .of_attention = true,
         .is_passed_on = !IsLowest(layer)});
    if (has_inputs) activations_.ReduceContext();
  }

  // ZeRO 3 reduces what it gathers together.
  void CloseUnit() {
    if (training_.zero == 3) data_.CloseBucket();
  }

  void OutputBackward(bool has_inputs, bool has_weights, bool reduces) {
    if (has_inputs) data_.GatherUnit(weights_.output().elements);
    const bool is_frozen = tuning_.FreezesAny() && (tuning_.lora || model_.tied_embeddings);
    PartBackward(times_.output_ps(),
                 {.has_inputs = has_inputs && tuning_.frozen_layers < model_.layers,
                  .has_weights = has_weights && !is_frozen,
                  .output_is_divided = false});
    if (!reduces) return;
    Ready(weights_.output().weights);
    CloseUnit();
  }

  void EmbeddingBackward(bool has_inputs, bool has_weights, bool reduces) {
    if (has_inputs) activations_.GatherInput();
    if (has_weights) writer_.Compute(times_.GradientPs(times_.embedding_ps()));
    if (reduces) Ready(weights_.embedding().weights);
  }

  void Ready(const std::vector<uint64_t>& weights) {
    for (const uint64_t elements : weights) data_.Ready(elements);
  }

  // --- Pipeline. Communicators of two: rank 0 sends, rank 1 receives.

  void Receive(PlanStream stream, StageGroup group) {
    writer_.WaitFor(writer_.Add(stream,
                                {.kind = CollectiveKind::kRecv,
                                 .communicator = static_cast<uint32_t>(group),
                                 .count = activations_.BoundaryElements(),
                                 .datatype = DatatypeOf(model_.precision),
                                 .peer = 0},
                                before_last_end_));
  }

  void Send(PlanStream stream, StageGroup group) {
    writer_.Add(stream,
                {.kind = CollectiveKind::kSend,
                 .communicator = static_cast<uint32_t>(group),
                 .count = activations_.BoundaryElements(),
                 .datatype = DatatypeOf(model_.precision),
                 .peer = 1},
                writer_.Mark());
  }

  // --- The begin and the end of an iteration.

  void BeginIteration() {
    if (iteration_ > 0) writer_.BeginIteration();
    const bool has_barrier = training_.log_interval > 0 && iteration_ % training_.log_interval == 0;
    if (has_barrier) Barrier();
    const int64_t zero_ps = times_.ZeroGradientsPs(weights_);
    writer_.Compute(zero_ps);
    if (has_barrier || zero_ps > 0) before_last_end_ = last_end_ = writer_.Mark();
  }

  void EndIteration() {
    for (GradientBuckets* const data : {&data_, &expert_data_}) {
      data->EndBackward(true);
      if (data->last() != ProgramWriter::kNone) writer_.WaitFor(data->last());
    }
    activations_.SumWholeGradients(weights_.summed_elements());
    if (weights_.TrainsTiedEmbedding()) {
      writer_.Collective({.kind = CollectiveKind::kAllReduce,
                          .communicator = static_cast<uint32_t>(StageGroup::kEmbedding),
                          .count = VocabularyShare(model_, parts_.tensor()) * model_.hidden,
                          .datatype = DatatypeOf(training_.gradient_precision)});
    }
    if (training_.gradient_clipping) {
      writer_.Collective({.kind = CollectiveKind::kAllReduce,
                          .communicator = static_cast<uint32_t>(StageGroup::kNorm),
                          .count = 1,
                          .datatype = Datatype::kFloat32});
    }
    writer_.Compute(times_.OptimizerPs(weights_));
    data_.GatherParameters();
    expert_data_.GatherParameters();
    before_last_end_ = last_end_ = writer_.Mark();
  }

  // torch.distributed.barrier: ProcessGroupNCCL adds up one value.
  void Barrier() {
    writer_.Collective({.kind = CollectiveKind::kAllReduce,
                        .communicator = static_cast<uint32_t>(StageGroup::kAll),
                        .count = 1,
                        .datatype = Datatype::kFloat32});
  }

  const Plan& plan_;
  const ModelConfig& model_;
  const Training& training_;
  const Parallelism& parts_;
  const FineTuning& tuning_;
  const uint32_t stage_;
  const PipelineShape shape_;
  const TrainingTimes times_;
  const StageWeights weights_;
  const StageExchanges* const exchanges_;  // nullptr without expert parallelism
  const uint32_t expert_place_;
  ProgramWriter writer_;
  ActivationCalls activations_;
  GradientBuckets data_;
  GradientBuckets expert_data_;
  ExpertCalls expert_calls_;
  std::vector<uint32_t> exchanged_layers_;
  // State of the part being written:
  uint32_t iteration_ = 0;
  uint32_t micro_batch_ = 0;
  bool expert_reduces_ = false;
  // The operations that end the last task and the one before it.
  uint32_t last_end_ = ProgramWriter::kNone;
  uint32_t before_last_end_ = ProgramWriter::kNone;
};

}  // namespace

std::vector<TraceOperation> StageProgram(const Plan& plan, uint32_t stage,
                                         const StageExchanges* exchanges, uint32_t expert_place) {
  return StageSynthesis(plan, stage, exchanges, expert_place).Write();
}

std::vector<uint32_t> ExchangedLayers(const Plan& plan, uint32_t stage) {
  Plan one_iteration = plan;
  std::get<Training>(one_iteration.job).iterations = 1;
  const StageExchanges exchanges(one_iteration, stage, 0);
  StageSynthesis synthesis(one_iteration, stage, &exchanges, 0);
  synthesis.Write();
  return synthesis.TakeExchangedLayers();
}

uint64_t StageOperationsBound(const Plan& plan) {
  const auto& training = std::get<Training>(plan.job);
  const ModelConfig& model = plan.model;
  constexpr uint64_t kPerLayer = 40;       // collectives and computation, both passes, done twice
  constexpr uint64_t kPerMicroBatch = 32;  // of a chunk: its ends and the pipeline
  const uint64_t weights_per_layer = training.fine_tuning.lora ? 48 : 32;
  const uint64_t stage_layers = model.layers / plan.parallelism.pipeline() + 1;
  const uint64_t weights =
      (stage_layers + 1) * (weights_per_layer + (model.experts ? model.experts->count : 0));
  const uint64_t reductions = training.zero >= 2 ? training.micro_batches : 1;
  // A layer's AllToAllvs: two forward, two backward, two where it is done again.
  constexpr uint64_t kAllToAlls = 6;
  const uint64_t peers = plan.parallelism.expert > 1 ? ExpertPeersBound(plan) : 0;
  return uint64_t{training.iterations} *
             (training.micro_batches * (stage_layers * (kPerLayer + kAllToAlls * 2 * peers) +
                                        training.virtual_stages * kPerMicroBatch) +
              2 * weights * reductions) +
         (training.ddp_broadcasts ? weights : 0);
}

}  // namespace railyard
