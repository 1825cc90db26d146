// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/stage_program.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "workloads/plans/expert_calls.h"
#include "workloads/plans/gradient_buckets.h"
#include "workloads/plans/layer_work.h"
#include "workloads/plans/optimizer.h"
#include "workloads/plans/pipeline_schedule.h"
#include "workloads/plans/program_writer.h"

namespace railyard {
namespace {

constexpr double kBackwardRatio = 2;  // gradients of inputs and of weights, one forward's each

// Forward times of the parts of a model for one micro-batch on one GPU.
struct PartTimes {
  int64_t attention_ps = 0;
  std::array<int64_t, 2> feed_forward_ps{};  // of layers without experts, and with
  int64_t embedding_ps = 0;
  int64_t output_ps = 0;
  double backward_ratio = kBackwardRatio;
};

PartTimes TimesOf(const Plan& plan) {
  const auto& training = std::get<Training>(plan.job);
  const ModelConfig& model = plan.model;
  if (plan.compute.given) {
    const GivenTimes& given = *plan.compute.given;
    return {.attention_ps = given.attention_ps,
            .feed_forward_ps = {given.feed_forward_ps, given.feed_forward_ps},
            .embedding_ps = given.embedding_ps,
            .output_ps = given.output_layer_ps,
            .backward_ratio = given.backward_ratio};
  }
  const uint32_t tensor = plan.parallelism.tensor();
  const uint32_t context = plan.parallelism.context();
  const uint64_t tokens = uint64_t{training.micro_batch} * training.sequence / context;
  const AttentionInput input{
      .tokens = tokens,
      .attended_pairs = AttendedPairs(model, training.micro_batch, training.sequence) / context};
  const LayerWork first(model, 0, tensor);
  const LayerWork last(model, model.layers - 1, tensor);
  const auto time = [&](const Work& work) {
    return ComputeTimePs(plan.compute, model.precision, work);
  };
  return {.attention_ps = time(last.Attention(input)),
          .feed_forward_ps = {time(first.FeedForward(tokens)), time(last.FeedForward(tokens))},
          .embedding_ps = time(EmbeddingWork(model, tokens)),
          .output_ps = time(OutputWork(model, tokens, tensor))};
}

// Weights of one rank that are gathered together with ZeRO 3, in elements.
struct Unit {
  uint64_t elements = 0;
  uint64_t whole_elements = 0;  // that the tensor group does not divide
};
struct LayerUnit : Unit {
  std::vector<uint64_t> attention;  // by weight, in the order of the backward pass
  std::vector<uint64_t> feed_forward;
  std::vector<uint64_t> experts;  // of this rank, with expert parallelism
};
struct EndUnit : Unit {
  std::vector<uint64_t> weights;  // likewise
};

class StageSynthesis {
 public:
  StageSynthesis(const Plan& plan, uint32_t stage, const StageExchanges* exchanges,
                 uint32_t expert_place)
      : plan_(plan),
        model_(plan.model),
        training_(std::get<Training>(plan.job)),
        parts_(plan.parallelism),
        stage_(stage),
        shape_{training_.schedule, parts_.pipeline(), training_.virtual_stages,
               training_.micro_batches},
        tokens_(uint64_t{training_.micro_batch} * training_.sequence / parts_.context()),
        activation_(DatatypeOf(model_.precision)),
        times_(TimesOf(plan)),
        exchanges_(exchanges),
        expert_place_(expert_place),
        last_layer_(model_, model_.layers - 1, parts_.tensor()),
        data_(training_, model_.precision, PlanStream::kData,
              static_cast<uint32_t>(StageGroup::kData), parts_.data() * parts_.context(), writer_),
        expert_data_(training_, model_.precision, PlanStream::kExpertData,
                     static_cast<uint32_t>(StageGroup::kExpertData), parts_.ExpertGroups(),
                     writer_),
        expert_calls_(plan, static_cast<uint32_t>(StageGroup::kExpert), expert_place, writer_) {
    CountWeights();
  }

  std::vector<TraceOperation> Write() {
    const std::vector<StageTask> tasks = StageTasks(shape_, stage_);
    for (iteration_ = 0; iteration_ < training_.iterations; ++iteration_) {
      if (iteration_ > 0) writer_.BeginIteration();
      for (const StageTask& task : tasks) {
        WriteTask(task);
        before_last_end_ = std::exchange(last_end_, writer_.Mark());
      }
      EndIteration();
    }
    writer_.Mark();
    return writer_.Take();
  }

  int64_t OptimizerPs() const {
    if (plan_.compute.given) return plan_.compute.given->optimizer_ps;
    const double dense_ranks = training_.zero > 0 ? parts_.data() * parts_.context() : 1;
    const double expert_ranks = training_.zero > 0 ? parts_.ExpertGroups() : 1;
    const double elements = static_cast<double>(stage_elements_) / dense_ranks +
                            static_cast<double>(stage_expert_elements_) / expert_ranks;
    return ComputeTimePs(plan_.compute, model_.precision,
                         OptimizerWork(elements, training_.gradient_precision, model_.precision));
  }

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
    const bool has_inputs = task.work == StageWork::kBackward;
    const bool has_weights = !has_inputs || !SplitsBackward();
    const bool reduces = has_weights && data_.Reduces(task.micro_batch);
    expert_reduces_ = has_weights && expert_data_.Reduces(task.micro_batch);
    if (has_inputs && !IsLast(task)) {
      Receive(PlanStream::kReceiveGradient, StageGroup::kGradientIn);
    }
    if (IsLast(task)) OutputBackward(has_inputs, has_weights, reduces);
    for (uint32_t layer = end_layer; layer-- > first_layer;) {
      if (has_inputs) GatherLayer(layer);
      LayerBackward(layer, has_inputs, has_weights, reduces);
    }
    if (IsFirst(task)) EmbeddingBackward(has_inputs, has_weights, reduces);
    if (reduces) data_.EndBackward(false);
    if (expert_reduces_) expert_data_.EndBackward(false);
    if (has_inputs && !IsFirst(task)) {
      Send(PlanStream::kSendGradient, StageGroup::kGradientOut);
    }
  }

  // --- Computation and what tensor and context parallelism add to it.

  void EmbeddingForward() {
    data_.GatherUnit(embedding_.elements);
    writer_.Compute(times_.embedding_ps);
    ReduceOutput();
  }

  void LayerForward(uint32_t layer) {
    GatherInput();
    GatherContext();
    writer_.Compute(times_.attention_ps);
    ReduceOutput();
    if (HasDividedExperts(layer)) {
      ExpertForward(layer);
      return;
    }
    GatherInput();
    writer_.Compute(times_.feed_forward_ps[Kind(layer)]);
    ReduceOutput();
  }

  bool HasDividedExperts(uint32_t layer) const {
    return exchanges_ != nullptr && model_.HasExperts(layer);
  }
  const ExpertExchange& ExchangeOf(uint32_t layer) const {
    return exchanges_->At(iteration_, micro_batch_, layer);
  }

  // The routed experts of this rank. A given time is that of the mean load.
  int64_t RoutedPs(const ExpertExchange& exchange) const {
    const uint64_t received = exchange.ReceivedBy(expert_place_);
    if (plan_.compute.given) {
      const uint64_t tokens = tokens_ / parts_.tensor();
      const auto mean = static_cast<double>(tokens * model_.experts->per_token);
      return std::llround(static_cast<double>(plan_.compute.given->feed_forward_ps) *
                          static_cast<double>(received) / mean);
    }
    return ComputeTimePs(plan_.compute, model_.precision,
                         last_layer_.RoutedFeedForward(received, exchange.ActiveOn(expert_place_)));
  }

  // The router and the shared expert, which tensor parallelism divides.
  int64_t SharedPs() const {
    if (plan_.compute.given) return 0;
    return ComputeTimePs(plan_.compute, model_.precision, last_layer_.SharedFeedForward(tokens_));
  }
  bool HasSharedExpert() const { return model_.experts->shared_feed_forward > 0; }

  void ExpertForward(uint32_t layer) {
    const ExpertExchange& exchange = ExchangeOf(layer);
    if (HasSharedExpert()) GatherInput();
    writer_.Compute(SharedPs());
    if (HasSharedExpert()) ReduceOutput();
    expert_calls_.GatherCounts();
    expert_calls_.Dispatch(exchange);
    writer_.Compute(RoutedPs(exchange));
    expert_calls_.Combine(exchange);
  }

  void ExpertBackward(uint32_t layer, bool has_inputs, bool has_weights) {
    const ExpertExchange& exchange = ExchangeOf(layer);
    if (has_inputs) expert_calls_.Dispatch(exchange);
    ComputeBackward(RoutedPs(exchange), has_inputs, has_weights);
    if (expert_reduces_) {
      for (const uint64_t elements : layers_[Kind(layer)].experts) expert_data_.Ready(elements);
      if (training_.zero == 3) expert_data_.CloseBucket();
    }
    if (has_inputs) expert_calls_.Combine(exchange);
    if (HasSharedExpert()) {
      PartBackward(SharedPs(), has_inputs, has_weights, true);
    } else {
      ComputeBackward(SharedPs(), has_inputs, has_weights);
    }
  }

  void GatherLayer(uint32_t layer) {
    data_.GatherUnit(layers_[Kind(layer)].elements);
    if (!HasDividedExperts(layer)) return;
    uint64_t elements = 0;
    for (const uint64_t expert : layers_[Kind(layer)].experts) elements += expert;
    expert_data_.GatherUnit(elements);
  }

  void OutputForward() {
    data_.GatherUnit(output_.elements);
    GatherInput();
    writer_.Compute(times_.output_ps);
    if (parts_.tensor() == 1) return;
    // Cross entropy over a divided vocabulary: largest logit, the label's logit, sum of
    // exponentials.
    for (int i = 0; i < 3; ++i) {
      OnTensorGroup(CollectiveKind::kAllReduce, tokens_, Datatype::kFloat32);
    }
  }

  // `ps` is the forward time. Tensor parallelism: gradients come in divided (sequence parallel) and
  // go out reduced; the weights' gradients need the whole input again.
  void PartBackward(int64_t ps, bool has_inputs, bool has_weights, bool output_is_divided) {
    if (has_inputs && output_is_divided) GatherInput();
    if (has_weights) GatherInput();
    ComputeBackward(ps, has_inputs, has_weights);
    if (has_inputs) ReduceOutput();
  }

  void ComputeBackward(int64_t ps, bool has_inputs, bool has_weights) {
    const auto share_ps =
        static_cast<int64_t>(std::llround(static_cast<double>(ps) * times_.backward_ratio / 2));
    writer_.Compute((has_inputs ? share_ps : 0) + (has_weights ? share_ps : 0));
  }

  void LayerBackward(uint32_t layer, bool has_inputs, bool has_weights, bool reduces) {
    if (has_inputs && training_.recompute == Recompute::kFull) LayerForward(layer);
    const LayerUnit& unit = layers_[Kind(layer)];
    if (HasDividedExperts(layer)) {
      ExpertBackward(layer, has_inputs, has_weights);
    } else {
      PartBackward(times_.feed_forward_ps[Kind(layer)], has_inputs, has_weights, true);
    }
    if (reduces) Ready(unit.feed_forward);
    if (has_inputs) GatherContext();
    PartBackward(times_.attention_ps, has_inputs, has_weights, true);
    if (has_inputs) ReduceContext();
    if (!reduces) return;
    Ready(unit.attention);
    if (training_.zero == 3) data_.CloseBucket();
  }

  void OutputBackward(bool has_inputs, bool has_weights, bool reduces) {
    if (has_inputs) data_.GatherUnit(output_.elements);
    PartBackward(times_.output_ps, has_inputs, has_weights, false);
    if (!reduces) return;
    Ready(output_.weights);
    if (training_.zero == 3) data_.CloseBucket();
  }

  void EmbeddingBackward(bool has_inputs, bool has_weights, bool reduces) {
    if (has_inputs) GatherInput();
    if (has_weights) {
      writer_.Compute(static_cast<int64_t>(
          std::llround(static_cast<double>(times_.embedding_ps) * times_.backward_ratio / 2)));
    }
    if (reduces) Ready(embedding_.weights);
  }

  void Ready(const std::vector<uint64_t>& weights) {
    for (const uint64_t elements : weights) data_.Ready(elements);
  }

  void OnTensorGroup(CollectiveKind kind, uint64_t count, Datatype datatype) {
    writer_.Collective({.kind = kind,
                        .communicator = static_cast<uint32_t>(StageGroup::kTensor),
                        .count = count,
                        .datatype = datatype});
  }

  void ReduceOutput() {
    if (parts_.tensor() == 1) return;
    const uint64_t elements = tokens_ * model_.hidden;
    if (parts_.sequence) {
      OnTensorGroup(CollectiveKind::kReduceScatter, elements / parts_.tensor(), activation_);
    } else {
      OnTensorGroup(CollectiveKind::kAllReduce, elements, activation_);
    }
  }

  void GatherInput() {
    if (parts_.tensor() == 1 || !parts_.sequence) return;
    OnTensorGroup(CollectiveKind::kAllGather, tokens_ * model_.hidden / parts_.tensor(),
                  activation_);
  }

  // Elements of keys and values that one rank has of its part of the sequence.
  uint64_t KeyValueElements() const {
    const uint64_t heads_share =
        model_.latent_attention ? 1 : std::min(parts_.tensor(), model_.kv_heads);
    return tokens_ * CacheElementsPerToken(model_) / heads_share;
  }
  void GatherContext() { OnContextGroup(CollectiveKind::kAllGather); }
  void ReduceContext() { OnContextGroup(CollectiveKind::kReduceScatter); }
  void OnContextGroup(CollectiveKind kind) {
    if (parts_.context() == 1) return;
    writer_.Collective({.kind = kind,
                        .communicator = static_cast<uint32_t>(StageGroup::kContext),
                        .count = KeyValueElements(),
                        .datatype = activation_});
  }

  // --- Pipeline. Communicators of two: rank 0 sends, rank 1 receives.

  uint64_t BoundaryElements() const {
    return tokens_ * model_.hidden / (parts_.sequence ? parts_.tensor() : 1);
  }

  void Receive(PlanStream stream, StageGroup group) {
    writer_.WaitFor(writer_.Add(stream,
                                {.kind = CollectiveKind::kRecv,
                                 .communicator = static_cast<uint32_t>(group),
                                 .count = BoundaryElements(),
                                 .datatype = activation_,
                                 .peer = 0},
                                before_last_end_));
  }

  void Send(PlanStream stream, StageGroup group) {
    writer_.Add(stream,
                {.kind = CollectiveKind::kSend,
                 .communicator = static_cast<uint32_t>(group),
                 .count = BoundaryElements(),
                 .datatype = activation_,
                 .peer = 1},
                writer_.Mark());
  }

  // --- The end of an iteration.

  void EndIteration() {
    for (GradientBuckets* const data : {&data_, &expert_data_}) {
      data->EndBackward(true);
      if (data->last() != ProgramWriter::kNone) writer_.WaitFor(data->last());
    }
    // Each rank of a tensor group saw its part of the sequence only.
    if (parts_.sequence && whole_elements_ > 0) {
      OnTensorGroup(CollectiveKind::kAllReduce, whole_elements_,
                    DatatypeOf(training_.gradient_precision));
    }
    if (HasEmbeddingCopy() || (IsShared() && stage_ == 0)) {
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
    writer_.Compute(OptimizerPs());
    data_.GatherParameters();
    expert_data_.GatherParameters();
    before_last_end_ = last_end_ = writer_.Mark();
  }

  // --- Weights of this rank.

  bool IsShared() const { return model_.tied_embeddings && shape_.stages > 1; }
  // The last stage's own copy of a tied embedding.
  bool HasEmbeddingCopy() const { return IsShared() && stage_ + 1 == shape_.stages; }

  static size_t KindOf(bool has_experts) { return has_experts ? 1 : 0; }
  size_t Kind(uint32_t layer) const { return KindOf(model_.HasExperts(layer)); }

  uint64_t ShareOf(const Weight& weight) const {
    const uint64_t tensor = parts_.tensor();
    return weight.split ? (weight.elements + tensor - 1) / tensor : weight.elements;
  }

  void AddWeight(const Weight& weight, std::vector<uint64_t>& part, Unit& unit) const {
    part.push_back(ShareOf(weight));
    unit.elements += ShareOf(weight);
    if (!weight.split) unit.whole_elements += weight.elements;
  }

  void CountWeights() {
    for (const uint32_t layer : {0u, model_.layers - 1}) {
      LayerUnit unit;
      for (const Weight& weight : LayerWeights(model_, layer)) {
        if (parts_.expert > 1 && weight.use == WeightUse::kRoutedExpert) {
          if (unit.experts.size() < model_.experts->count / parts_.expert) {
            unit.experts.push_back(weight.elements);
          }
          continue;
        }
        AddWeight(weight, weight.use == WeightUse::kAttention ? unit.attention : unit.feed_forward,
                  unit);
      }
      // The backward pass comes to the last first.
      std::reverse(unit.attention.begin(), unit.attention.end());
      std::reverse(unit.feed_forward.begin(), unit.feed_forward.end());
      layers_[Kind(layer)] = std::move(unit);
    }
    for (const Weight& weight : EmbeddingWeights(model_)) {
      AddWeight(weight, embedding_.weights, embedding_);
    }
    for (const Weight& weight : OutputWeights(model_)) AddWeight(weight, output_.weights, output_);
    if (HasEmbeddingCopy()) AddWeight(EmbeddingWeights(model_).front(), output_.weights, output_);
    std::reverse(embedding_.weights.begin(), embedding_.weights.end());
    std::reverse(output_.weights.begin(), output_.weights.end());

    for (uint32_t chunk = 0; chunk < shape_.chunks; ++chunk) {
      const auto [first, end] = LayersOf(plan_, chunk * shape_.stages + stage_);
      for (uint32_t layer = first; layer < end; ++layer) {
        AddToStage(layers_[Kind(layer)]);
        for (const uint64_t expert : layers_[Kind(layer)].experts) stage_expert_elements_ += expert;
      }
    }
    if (stage_ == 0) AddToStage(embedding_);
    if (stage_ + 1 == shape_.stages) AddToStage(output_);
  }

  void AddToStage(const Unit& unit) {
    stage_elements_ += unit.elements;
    whole_elements_ += unit.whole_elements;
  }

  const Plan& plan_;
  const ModelConfig& model_;
  const Training& training_;
  const Parallelism& parts_;
  const uint32_t stage_;
  const PipelineShape shape_;
  const uint64_t tokens_;  // of a micro-batch, on one rank
  const Datatype activation_;
  const PartTimes times_;
  const StageExchanges* const exchanges_;  // nullptr without expert parallelism
  const uint32_t expert_place_;
  const LayerWork last_layer_;       // which has experts if any has
  std::array<LayerUnit, 2> layers_;  // by Kind
  EndUnit embedding_;
  EndUnit output_;
  uint64_t stage_elements_ = 0;         // of all weights of this rank but divided experts
  uint64_t stage_expert_elements_ = 0;  // of these
  uint64_t whole_elements_ = 0;         // of those that the tensor group does not divide
  ProgramWriter writer_;
  GradientBuckets data_;
  GradientBuckets expert_data_;
  ExpertCalls expert_calls_;
  // Of what is being written:
  uint32_t iteration_ = 0;
  uint32_t micro_batch_ = 0;
  bool expert_reduces_ = false;
  // The operations that end the last task and the one before it.
  uint32_t last_end_ = ProgramWriter::kNone;
  uint32_t before_last_end_ = ProgramWriter::kNone;
};

}  // namespace

StageExchanges::StageExchanges(const Plan& plan, uint32_t stage, uint32_t group)
    : layer_index_(plan.model.layers) {
  const auto& training = std::get<Training>(plan.job);
  const Parallelism& parts = plan.parallelism;
  std::vector<uint32_t> layers;
  for (uint32_t chunk = 0; chunk < training.virtual_stages; ++chunk) {
    const auto [first, end] = LayersOf(plan, chunk * parts.pipeline() + stage);
    for (uint32_t layer = first; layer < end; ++layer) {
      if (!plan.model.HasExperts(layer)) continue;
      layer_index_[layer] = layers.size();
      layers.push_back(layer);
    }
  }
  layers_ = layers.size();
  micro_batches_ = training.micro_batches;
  const std::vector<uint64_t> tokens_of(
      parts.expert,
      uint64_t{training.micro_batch} * training.sequence / parts.context() / parts.tensor());
  for (uint32_t iteration = 0; iteration < training.iterations; ++iteration) {
    for (uint32_t micro_batch = 0; micro_batch < micro_batches_; ++micro_batch) {
      for (const uint32_t layer : layers) {
        exchanges_.push_back(RouteTokens(plan, {group, iteration, micro_batch, layer}, tokens_of));
      }
    }
  }
}

const ExpertExchange& StageExchanges::At(uint32_t iteration, uint32_t micro_batch,
                                         uint32_t layer) const {
  return exchanges_[(size_t{iteration} * micro_batches_ + micro_batch) * layers_ +
                    layer_index_[layer]];
}

std::vector<TraceOperation> StageProgram(const Plan& plan, uint32_t stage,
                                         const StageExchanges* exchanges, uint32_t expert_place) {
  return StageSynthesis(plan, stage, exchanges, expert_place).Write();
}

int64_t StageOptimizerPs(const Plan& plan, uint32_t stage) {
  return StageSynthesis(plan, stage, nullptr, 0).OptimizerPs();
}

uint64_t StageOperationsBound(const Plan& plan) {
  const auto& training = std::get<Training>(plan.job);
  const ModelConfig& model = plan.model;
  constexpr uint64_t kPerLayer = 40;       // collectives and computation, both passes, done twice
  constexpr uint64_t kPerMicroBatch = 32;  // of a chunk: its ends and the pipeline
  constexpr uint64_t kWeightsPerLayer = 32;
  const uint64_t stage_layers = model.layers / plan.parallelism.pipeline() + 1;
  const uint64_t weights =
      (stage_layers + 1) * (kWeightsPerLayer + (model.experts ? model.experts->count : 0));
  const uint64_t reductions = training.zero >= 2 ? training.micro_batches : 1;
  // A layer's AllToAllvs: two forward, two backward, two where it is done again.
  constexpr uint64_t kAllToAlls = 6;
  const uint64_t peers = plan.parallelism.expert > 1 ? plan.parallelism.expert : 0;
  return uint64_t{training.iterations} *
         (training.micro_batches * (stage_layers * (kPerLayer + kAllToAlls * 2 * peers) +
                                    training.virtual_stages * kPerMicroBatch) +
          2 * weights * reductions);
}

std::pair<uint32_t, uint32_t> LayersOf(const Plan& plan, uint32_t virtual_stage) {
  const auto& training = std::get<Training>(plan.job);
  const uint64_t layers = plan.model.layers;
  const uint64_t stages = uint64_t{plan.parallelism.pipeline()} * training.virtual_stages;
  return {static_cast<uint32_t>(layers * virtual_stage / stages),
          static_cast<uint32_t>(layers * (virtual_stage + 1) / stages)};
}

}  // namespace railyard
