// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/inference/inference_schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace railyard {
namespace {

// A request as a slot sees it.
struct Waiting {
  uint32_t request = 0;
  int64_t ready_ps = 0;  // by the clock of computed time
};

class SlotPlanner {
 public:
  SlotPlanner(const Plan& plan, const InferenceCost& cost)
      : plan_(plan), inference_(std::get<Inference>(plan.job)), cost_(cost) {}

  // `waiting` in the order of arrival.
  std::vector<InferenceStep> StepsOf(const std::vector<Waiting>& waiting) const {
    std::vector<InferenceStep> steps;
    std::vector<Running> running;
    int64_t clock_ps = 0;
    size_t next = 0;
    while (next < waiting.size() || !running.empty()) {
      if (running.empty()) clock_ps = std::max(clock_ps, waiting[next].ready_ps);
      InferenceStep step;
      const bool admits = running.empty() || inference_.continuous;
      for (Running& sequence : running) Decode(sequence, step);
      while (admits && next < waiting.size() && running.size() < inference_.batch &&
             waiting[next].ready_ps <= clock_ps) {
        Join(waiting[next++].request, running, step);
      }
      std::erase_if(running, [](const Running& sequence) { return sequence.left == 0; });
      if (step.tokens() == 0) continue;  // prefill has made all they wanted
      clock_ps = std::min(clock_ps + cost_.StepPs(step), kPlanPsMax);
      steps.push_back(std::move(step));
    }
    return steps;
  }

 private:
  struct Running {
    uint64_t context = 0;  // tokens so far
    uint32_t left = 0;     // tokens to make
  };

  static void Decode(Running& sequence, InferenceStep& step) {
    ++step.decoding;
    ++step.sequences;
    step.cached_tokens += sequence.context;
    ++sequence.context;
    --sequence.left;
  }

  void Join(uint32_t request, std::vector<Running>& running, InferenceStep& step) const {
    const Request& of = inference_.requests[request];
    // The first token is the prefill's; it is the first that decoding attends to beside the prompt.
    running.push_back({uint64_t{of.prompt_tokens} + 1, of.output_tokens - 1});
    if (inference_.prefill_tensor > 0) {
      if (running.back().left == 0) return;
      Decode(running.back(), step);
    } else {
      step.prompt_tokens += of.prompt_tokens;
      step.prompt_pairs += AttendedPairs(plan_.model, 1, of.prompt_tokens);
      ++step.sequences;
    }
    step.joined.push_back(request);
  }

  const Plan& plan_;
  const Inference& inference_;
  const InferenceCost& cost_;
};

}  // namespace

InferenceCost::InferenceCost(const Plan& plan, uint32_t tensor, bool expert_parallel)
    : plan_(plan),
      tensor_(tensor),
      expert_parallel_(expert_parallel),
      dense_(plan.model, 0, tensor, false),
      last_(plan.model, plan.model.layers - 1, tensor, false) {}

InferenceCost::PartTimes InferenceCost::TimesOf(const InferenceStep& step) const {
  if (plan_.compute.given) {
    const GivenTimes& given = *plan_.compute.given;
    return {.attention_ps = given.attention_ps,
            .dense_ps = given.feed_forward_ps,
            .experts_ps = expert_parallel_ ? 0 : given.feed_forward_ps,
            .embedding_ps = given.embedding_ps,
            .output_ps = given.output_layer_ps};
  }
  const ModelConfig& model = plan_.model;
  const uint64_t tokens = step.tokens();
  Work attention;
  if (step.decoding == 0) {
    attention = last_.Attention({.tokens = tokens, .attended_pairs = step.prompt_pairs});
  } else {
    // Prompts beside it are computed as such, with weights that are read once.
    attention = last_.Attention({.tokens = step.decoding,
                                 .attended_pairs = static_cast<double>(step.cached_tokens),
                                 .cached_tokens = step.cached_tokens});
    attention.flops +=
        last_.Attention({.tokens = step.prompt_tokens, .attended_pairs = step.prompt_pairs}).flops;
  }
  return {.attention_ps = TimePs(attention),
          .dense_ps = TimePs(dense_.FeedForward(tokens)),
          .experts_ps = TimePs(expert_parallel_ ? last_.SharedFeedForward(tokens)
                                                : last_.FeedForward(tokens)),
          .embedding_ps = TimePs(EmbeddingWork(model, tokens)),
          .output_ps = TimePs(OutputWork(model, step.sequences, tensor_))};
}

int64_t InferenceCost::RoutedPs(uint64_t tokens, uint32_t active, double mean) const {
  if (!plan_.compute.given) return TimePs(last_.RoutedFeedForward(tokens, active));
  if (mean == 0) return 0;
  return std::llround(static_cast<double>(plan_.compute.given->feed_forward_ps) *
                      static_cast<double>(tokens) / mean);
}

int64_t InferenceCost::StepPs(const InferenceStep& step) const {
  const PartTimes times = TimesOf(step);
  const ModelConfig& model = plan_.model;
  int64_t experts_ps = times.experts_ps;
  if (expert_parallel_) {
    const Experts& experts = *model.experts;
    const double received = static_cast<double>(step.tokens()) * experts.per_token / tensor_;
    const uint32_t held = experts.count / plan_.parallelism.expert;
    experts_ps += RoutedPs(static_cast<uint64_t>(received),
                           static_cast<uint32_t>(std::min<double>(held, received)), received);
  }
  const int64_t expert_layers = model.experts ? model.layers - model.experts->dense_layers : 0;
  return times.embedding_ps + times.output_ps + model.layers * times.attention_ps +
         (model.layers - expert_layers) * times.dense_ps + expert_layers * experts_ps;
}

int64_t InferenceCost::TimePs(const Work& work) const {
  return ComputeTimePs(plan_.compute, plan_.model.precision, work);
}

InferenceSchedule ScheduleInference(const Plan& plan) {
  const auto& inference = std::get<Inference>(plan.job);
  const Parallelism& parts = plan.parallelism;
  const auto count = static_cast<uint32_t>(inference.requests.size());
  InferenceSchedule schedule;
  std::vector<Waiting> waiting(count);
  for (uint32_t i = 0; i < count; ++i) waiting[i] = {i, inference.requests[i].arrival_ps};

  const uint32_t together = inference.continuous ? 1 : inference.batch;
  if (inference.prefill_tensor > 0) {
    const InferenceCost cost(plan, inference.prefill_tensor, false);
    int64_t clock_ps = 0;
    for (uint32_t first = 0; first < count; first += together) {
      InferenceStep step;
      for (uint32_t i = first; i < std::min(first + together, count); ++i) {
        const Request& request = inference.requests[i];
        step.prompt_tokens += request.prompt_tokens;
        step.prompt_pairs += AttendedPairs(plan.model, 1, request.prompt_tokens);
        ++step.sequences;
        step.joined.push_back(i);
        clock_ps = std::max(clock_ps, request.arrival_ps);
      }
      clock_ps = std::min(clock_ps + cost.StepPs(step), kPlanPsMax);
      for (const uint32_t request : step.joined) waiting[request].ready_ps = clock_ps;
      schedule.prefills.push_back(std::move(step));
    }
  }

  std::vector<std::vector<std::vector<Waiting>>> dealt(
      parts.data(), std::vector<std::vector<Waiting>>(parts.pipeline()));
  for (const Waiting& request : waiting) {
    const uint32_t deal = request.request / together;
    const uint32_t replica = deal % parts.data();
    dealt[replica][deal / parts.data() % parts.pipeline()].push_back(request);
    schedule.replica_of.push_back(replica);
  }
  const InferenceCost cost(plan, parts.tensor(), parts.expert > 1);
  const SlotPlanner planner(plan, cost);
  for (const auto& replica : dealt) {
    auto& slots = schedule.slots.emplace_back();
    for (const std::vector<Waiting>& slot : replica) slots.push_back(planner.StepsOf(slot));
  }
  return schedule;
}

uint64_t InferenceStepsBound(const Inference& inference) {
  uint64_t steps = 0;
  const size_t together = inference.continuous ? 1 : inference.batch;
  for (size_t first = 0; first < inference.requests.size(); first += together) {
    uint64_t longest = 0;
    for (size_t i = first; i < std::min(first + together, inference.requests.size()); ++i) {
      longest = std::max<uint64_t>(longest, inference.requests[i].output_tokens);
    }
    steps += longest;
  }
  return steps;
}

}  // namespace railyard
