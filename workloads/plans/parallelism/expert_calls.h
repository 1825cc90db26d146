// SPDX-License-Identifier: GPL-2.0-only
// What one rank of an expert-parallel group calls for a layer: an AllGather of how many tokens each
// rank has for each expert, so that all know what to expect, an AllToAllv to the experts and one
// back (Megatron-LM, MoEAlltoAllTokenDispatcher in
// megatron/core/transformer/moe/token_dispatcher.py). Each token goes once for each of its experts,
// those of the rank itself too. Where the plan says so, an AllToAllv is two, within groups and
// between them (workloads/collectives/hierarchical_exchange.h).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "traces/trace/trace.h"
#include "workloads/plans/parallelism/expert_traffic.h"
#include "workloads/plans/plan.h"
#include "workloads/plans/program_writer.h"

namespace railyard {

class ExpertCalls {
 public:
  // All must outlive this. `communicator`: of the group, in which the rank has `place`.
  ExpertCalls(const Plan& plan, uint32_t communicator, uint32_t place, ProgramWriter& writer);

  void GatherCounts();
  // Tokens to their experts, or gradients of what came back from them.
  void Dispatch(const ExpertExchange& exchange);
  // Back again.
  void Combine(const ExpertExchange& exchange);
  // AllToAllvs so far.
  uint32_t count() const { return count_; }

 private:
  // `tokens(from, to)`.
  using Tokens = std::function<uint64_t(uint32_t from, uint32_t to)>;
  void AllToAllV(const ExpertExchange& exchange, bool is_dispatch);
  void Exchange(uint32_t ranks, Datatype datatype, const Tokens& tokens);

  const ModelConfig& model_;
  const uint32_t hierarchical_groups_of_;
  const uint32_t loss_tolerance_ppm_;
  const Datatype dispatch_;
  const Datatype combine_;
  const uint32_t communicator_;
  const uint32_t place_;
  ProgramWriter& writer_;
  uint32_t count_ = 0;
};

}  // namespace railyard
