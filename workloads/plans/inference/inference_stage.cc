// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/inference/inference_stage.h"

#include <algorithm>
#include <map>
#include <utility>

#include "simulator/units/divide_up.h"
#include "workloads/plans/parallelism/expert_calls.h"
#include "workloads/plans/program_writer.h"

namespace railyard {
namespace {

// Writes the steps that decoding and prefill ranks have in common.
class StepWriter {
 public:
  // `tensor`: size of the tensor group; `expert_place` with `exchanges` only.
  StepWriter(const Plan& plan, uint32_t tensor, const InferenceCommunicators& communicators,
             const InferenceExchanges* exchanges, uint32_t expert_place)
      : plan_(plan),
        model_(plan.model),
        inference_(std::get<Inference>(plan.job)),
        tensor_(tensor),
        communicators_(communicators),
        exchanges_(exchanges),
        expert_place_(expert_place),
        element_(DatatypeOf(model_.precision)),
        cost_(plan, tensor, exchanges != nullptr),
        expert_calls_(plan, communicators.expert, expert_place, writer_) {}

  ProgramWriter& writer() { return writer_; }

  void Embedding(const InferenceStep& step) {
    times_ = cost_.TimesOf(step);
    writer_.Compute(times_.embedding_ps);
    Reduce(step);
  }

  void Layers(const InferenceStep& step, uint32_t pass, uint32_t first, uint32_t end) {
    const bool has_tokens = step.tokens() > 0;
    if (has_tokens) times_ = cost_.TimesOf(step);
    for (uint32_t layer = first; layer < end; ++layer) {
      if (has_tokens) {
        Gather(step);
        writer_.Compute(times_.attention_ps);
        Reduce(step);
      }
      if (exchanges_ != nullptr && model_.HasExperts(layer)) {
        DividedExperts(step, pass, layer);
      } else if (has_tokens) {
        FeedForward(step, layer);
      }
    }
  }

  void Output(const InferenceStep& step) {
    Gather(step);
    writer_.Compute(times_.output_ps);
    OnTensorGroup(CollectiveKind::kAllGather, step.sequences * VocabularyShare(model_, tensor_));
  }

  uint64_t ActivationElements(const InferenceStep& step) const {
    return DivideUp(step.tokens(), IsSplit() ? tensor_ : 1) * model_.hidden;
  }

 private:
  bool IsSplit() const { return plan_.parallelism.sequence && exchanges_ != nullptr; }

  void FeedForward(const InferenceStep& step, uint32_t layer) {
    const bool has_experts = model_.HasExperts(layer);
    Gather(step);
    writer_.Compute(has_experts ? times_.experts_ps : times_.dense_ps);
    Reduce(step);
    if (has_experts && inference_.separate_shared_reduction) Reduce(step);
  }

  void DividedExperts(const InferenceStep& step, uint32_t pass, uint32_t layer) {
    if (!exchanges_->HasTokens(pass)) return;
    const ExpertExchange& exchange = exchanges_->At(pass, layer);
    const bool is_shared = model_.experts->shared_feed_forward > 0 && step.tokens() > 0;
    if (is_shared) Gather(step);
    if (step.tokens() > 0) writer_.Compute(times_.experts_ps);
    if (is_shared) Reduce(step);
    expert_calls_.GatherCounts();
    expert_calls_.Dispatch(exchange);
    writer_.Compute(cost_.RoutedPs(exchange.ReceivedBy(expert_place_),
                                   exchange.ActiveOn(expert_place_), exchange.MeanReceived()));
    expert_calls_.Combine(exchange);
  }

  // Reduces over the tensor group; with sequence parallelism each rank gets its part of the tokens.
  void Reduce(const InferenceStep& step) {
    if (IsSplit()) {
      OnTensorGroup(CollectiveKind::kReduceScatter, ActivationElements(step));
    } else {
      OnTensorGroup(CollectiveKind::kAllReduce, step.tokens() * model_.hidden);
    }
  }
  void Gather(const InferenceStep& step) {
    if (IsSplit()) OnTensorGroup(CollectiveKind::kAllGather, ActivationElements(step));
  }
  void OnTensorGroup(CollectiveKind kind, uint64_t count) {
    if (tensor_ == 1) return;
    writer_.Collective({.kind = kind,
                        .communicator = communicators_.tensor,
                        .count = count,
                        .datatype = element_});
  }

  const Plan& plan_;
  const ModelConfig& model_;
  const Inference& inference_;
  const uint32_t tensor_;
  const InferenceCommunicators& communicators_;
  const InferenceExchanges* const exchanges_;
  const uint32_t expert_place_;
  const Datatype element_;
  const InferenceCost cost_;
  InferenceCost::PartTimes times_;
  ProgramWriter writer_;
  ExpertCalls expert_calls_;
};

// Writes arrivals as operations of a separate stream: requests arrive at their times, independent
// of the rank's progress.
class ArrivalClock {
 public:
  explicit ArrivalClock(ProgramWriter& writer) : writer_(writer) {}

  // In the order of time.
  void Add(int64_t arrival_ps) {
    if (arrival_ps <= last_ps_) return;
    operations_[arrival_ps] =
        writer_.Add(PlanStream::kArrivals,
                    {.kind = CollectiveKind::kCompute, .compute_before_ps = arrival_ps - last_ps_},
                    ProgramWriter::kNone);
    last_ps_ = arrival_ps;
  }
  void WaitFor(int64_t arrival_ps) {
    if (arrival_ps > 0) writer_.WaitFor(operations_.at(arrival_ps));
  }

 private:
  ProgramWriter& writer_;
  int64_t last_ps_ = 0;
  std::map<int64_t, uint32_t> operations_;
};

int64_t LastArrivalPs(const Inference& inference, const InferenceStep& step) {
  int64_t arrival_ps = 0;
  for (const uint32_t request : step.joined) {
    arrival_ps = std::max(arrival_ps, inference.requests[request].arrival_ps);
  }
  return arrival_ps;
}

class StageWriter {
 public:
  StageWriter(const Plan& plan, const InferenceSchedule& schedule, const InferenceRank& rank,
              const InferenceCommunicators& communicators, const InferenceExchanges* exchanges)
      : plan_(plan),
        inference_(std::get<Inference>(plan.job)),
        schedule_(schedule),
        rank_(rank),
        communicators_(communicators),
        steps_(plan, plan.parallelism.tensor(), communicators, exchanges, rank.expert_place),
        writer_(steps_.writer()),
        arrivals_(writer_) {}

  std::vector<TraceOperation> Write() {
    if (inference_.prefill_tensor > 0) {
      ReceiveCaches();
    } else if (IsFirst()) {
      for (const Request& request : inference_.requests) arrivals_.Add(request.arrival_ps);
    }
    const auto& slots = schedule_.slots[rank_.replica];
    static const InferenceStep kNoTokens;
    for (uint32_t pass = 0; pass < InferenceExchanges::PassCount(schedule_); ++pass) {
      const auto& slot = slots[pass % slots.size()];
      const size_t index = pass / slots.size();
      if (index < slot.size()) {
        WriteStep(slot, index, pass);
      } else {
        Layers(kNoTokens, pass);
      }
    }
    writer_.Mark();  // the output of the last step, if no call follows it
    return writer_.Take();
  }

 private:
  uint32_t stages() const { return plan_.parallelism.pipeline(); }
  bool IsFirst() const { return rank_.stage == 0; }
  bool IsLast() const { return rank_.stage + 1 == stages(); }

  void Layers(const InferenceStep& step, uint32_t pass) {
    const auto [first, end] = InferenceLayersOf(plan_, rank_.stage);
    steps_.Layers(step, pass, first, end);
  }

  void WriteStep(const std::vector<InferenceStep>& slot, size_t index, uint32_t pass) {
    const InferenceStep& step = slot[index];
    if (inference_.prefill_tensor > 0) {
      for (const uint32_t request : step.joined) {
        for (const uint32_t operation : caches_[request]) writer_.WaitFor(operation);
      }
    } else if (IsFirst()) {
      arrivals_.WaitFor(LastArrivalPs(inference_, step));
    }
    if (IsFirst()) {
      if (index > 0 && stages() > 1) {
        Receive(PlanStream::kReceiveGradient, communicators_.tokens, slot[index - 1].sequences,
                Datatype::kInt32);
      }
      steps_.Embedding(step);
    } else {
      Receive(PlanStream::kReceiveActivation, communicators_.activation_in,
              steps_.ActivationElements(step), DatatypeOf(plan_.model.precision));
    }
    Layers(step, pass);
    if (!IsLast()) {
      Send(PlanStream::kSendActivation, communicators_.activation_out,
           steps_.ActivationElements(step), DatatypeOf(plan_.model.precision));
      return;
    }
    steps_.Output(step);
    if (index + 1 < slot.size() && stages() > 1) {
      Send(PlanStream::kSendGradient, communicators_.tokens, step.sequences, Datatype::kInt32);
    }
  }

  void Receive(PlanStream stream, uint32_t communicator, uint64_t count, Datatype datatype) {
    writer_.WaitFor(writer_.Add(stream,
                                {.kind = CollectiveKind::kRecv,
                                 .communicator = communicator,
                                 .count = count,
                                 .datatype = datatype,
                                 .peer = 0},
                                ProgramWriter::kNone));
  }
  void Send(PlanStream stream, uint32_t communicator, uint64_t count, Datatype datatype) {
    writer_.Add(stream,
                {.kind = CollectiveKind::kSend,
                 .communicator = communicator,
                 .count = count,
                 .datatype = datatype,
                 .peer = 1},
                writer_.Mark());
  }

  // In the order in which prefill sends them.
  void ReceiveCaches() {
    caches_.resize(inference_.requests.size());
    for (const InferenceStep& prefill : schedule_.prefills) {
      for (const uint32_t request : prefill.joined) {
        if (schedule_.replica_of[request] != rank_.replica ||
            inference_.requests[request].output_tokens == 1) {
          continue;
        }
        for (const auto& [communicator, elements] : communicators_.caches.front()) {
          caches_[request].push_back(
              writer_.Add(PlanStream::kCache,
                          {.kind = CollectiveKind::kRecv,
                           .communicator = communicator,
                           .count = elements * inference_.requests[request].prompt_tokens,
                           .datatype = DatatypeOf(plan_.model.precision),
                           .peer = 0},
                          ProgramWriter::kNone));
        }
      }
    }
  }

  const Plan& plan_;
  const Inference& inference_;
  const InferenceSchedule& schedule_;
  const InferenceRank rank_;
  const InferenceCommunicators& communicators_;
  StepWriter steps_;
  ProgramWriter& writer_;
  ArrivalClock arrivals_;
  std::vector<std::vector<uint32_t>> caches_;  // by request: operations that receive its cache
};

}  // namespace

std::pair<uint32_t, uint32_t> InferenceLayersOf(const Plan& plan, uint32_t stage) {
  const uint64_t layers = plan.model.layers;
  const uint64_t stages = plan.parallelism.pipeline();
  return {static_cast<uint32_t>(layers * stage / stages),
          static_cast<uint32_t>(layers * (stage + 1) / stages)};
}

uint64_t TokensOfPlace(uint64_t tokens, uint32_t place, uint32_t places) {
  return tokens * (place + 1) / places - tokens * place / places;
}

std::vector<uint64_t> InferenceExchanges::TokensOf(const Plan& plan,
                                                   const InferenceSchedule& schedule,
                                                   uint32_t group, uint32_t pass) {
  const Parallelism& parts = plan.parallelism;
  std::vector<uint64_t> tokens_of(parts.expert);
  for (uint32_t place = 0; place < parts.expert; ++place) {
    const uint32_t index = group * parts.expert + place;
    const auto& slots = schedule.slots[index / parts.tensor()];
    const auto& slot = slots[pass % slots.size()];
    if (pass / slots.size() >= slot.size()) continue;
    tokens_of[place] =
        TokensOfPlace(slot[pass / slots.size()].tokens(), index % parts.tensor(), parts.tensor());
  }
  return tokens_of;
}

InferenceExchanges::InferenceExchanges(const Plan& plan, const InferenceSchedule& schedule,
                                       uint32_t stage, uint32_t group) {
  const auto [first, end] = InferenceLayersOf(plan, stage);
  first_layer_ = std::clamp(plan.model.experts->dense_layers, first, end);
  layers_ = end - first_layer_;
  for (uint32_t pass = 0; pass < PassCount(schedule); ++pass) {
    const std::vector<uint64_t> tokens_of = TokensOf(plan, schedule, group, pass);
    const bool has_tokens =
        std::ranges::any_of(tokens_of, [](uint64_t tokens) { return tokens > 0; });
    has_tokens_.push_back(has_tokens);
    for (uint32_t layer = first_layer_; layer < end; ++layer) {
      exchanges_.push_back(
          has_tokens
              ? RouteTokens(plan,
                            {.group = group, .iteration = 0, .micro_batch = pass, .layer = layer},
                            tokens_of)
              : ExpertExchange{});
    }
  }
}

const ExpertExchange& InferenceExchanges::At(uint32_t pass, uint32_t layer) const {
  return exchanges_[size_t{pass} * layers_ + layer - first_layer_];
}

uint32_t InferenceExchanges::PassCount(const InferenceSchedule& schedule) {
  size_t steps = 0;
  for (const auto& replica : schedule.slots) {
    for (const auto& slot : replica) steps = std::max(steps, slot.size());
  }
  return static_cast<uint32_t>(steps * schedule.slots.front().size());
}

std::vector<TraceOperation> InferenceProgram(const Plan& plan, const InferenceSchedule& schedule,
                                             const InferenceRank& rank,
                                             const InferenceCommunicators& communicators,
                                             const InferenceExchanges* exchanges) {
  return StageWriter(plan, schedule, rank, communicators, exchanges).Write();
}

std::vector<TraceOperation> PrefillProgram(const Plan& plan, const InferenceSchedule& schedule,
                                           const InferenceCommunicators& communicators) {
  const auto& inference = std::get<Inference>(plan.job);
  StepWriter steps(plan, inference.prefill_tensor, communicators, nullptr, 0);
  ProgramWriter& writer = steps.writer();
  ArrivalClock arrivals(writer);
  for (const Request& request : inference.requests) arrivals.Add(request.arrival_ps);
  for (const InferenceStep& step : schedule.prefills) {
    arrivals.WaitFor(LastArrivalPs(inference, step));
    steps.Embedding(step);
    steps.Layers(step, 0, 0, plan.model.layers);
    steps.Output(step);
    const uint32_t computed = writer.Mark();
    for (const uint32_t request : step.joined) {
      const Request& of = inference.requests[request];
      if (of.output_tokens == 1) continue;
      for (const auto& [communicator, elements] :
           communicators.caches[schedule.replica_of[request]]) {
        writer.Add(PlanStream::kCache,
                   {.kind = CollectiveKind::kSend,
                    .communicator = communicator,
                    .count = elements * of.prompt_tokens,
                    .datatype = DatatypeOf(plan.model.precision),
                    .peer = 1},
                   computed);
      }
    }
  }
  return writer.Take();
}

}  // namespace railyard
