// SPDX-License-Identifier: GPL-2.0-only
// Writes the calls of one rank of an expert-parallel group for a layer: an AllGather of the numbers
// of tokens that each rank has for each expert, an AllToAllv to the experts and another one back
// (Megatron-LM, MoEAlltoAllTokenDispatcher in megatron/core/transformer/moe/token_dispatcher.py).
// Each token is sent once for each of its experts, including those of the rank itself. If the plan
// says so, an AllToAllv becomes two, within groups and between them
// (workloads/collectives/hierarchical_exchange.h).
//
// With an expert kernel (Experts::kernel) there is no AllGather, and the calls are the kernel's
// hops: each call states the rank whose tokens it carries (ExpertCall).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "traces/trace/trace.h"
#include "workloads/plans/parallelism/expert_traffic.h"
#include "workloads/plans/plan/plan.h"
#include "workloads/plans/program_writer.h"

namespace railyard {

// Returns an upper bound on the peers of a rank in one exchange. A kernel has hops between servers
// in addition to those within them, and a server has at least two ranks.
inline uint64_t ExpertPeersBound(const Plan& plan) {
  const uint64_t ranks = plan.parallelism.expert;
  const bool has_kernel = plan.model.experts && plan.model.experts->kernel != ExpertKernel::kNone;
  return has_kernel ? ranks + ranks / 2 : ranks;
}

class ExpertCalls {
 public:
  // All must outlive this. `communicator` is that of the group, and `place` is the rank's place in
  // it.
  ExpertCalls(const Plan& plan, uint32_t communicator, uint32_t place, ProgramWriter& writer);

  void GatherCounts();
  // Sends tokens to their experts, or the gradients of the experts' outputs.
  void Dispatch(const ExpertExchange& exchange);
  // Sends the results back.
  void Combine(const ExpertExchange& exchange);
  // Returns the number of AllToAllvs so far.
  uint32_t count() const { return count_; }

 private:
  // Returns the tokens from one rank to another.
  using Tokens = std::function<uint64_t(uint32_t from, uint32_t to)>;
  void AllToAllV(const ExpertExchange& exchange, bool is_dispatch);
  void Exchange(uint32_t ranks, Datatype datatype, const Tokens& tokens);
  // Collects the hops of a kernel's exchange.
  class Hops;
  void KernelExchange(const ExpertExchange& exchange, bool is_dispatch);
  void AddRelayed(const ExpertExchange& exchange, Hops& hops) const;
  ExpertCall KernelCall(const ExpertExchange& exchange, bool is_dispatch) const;

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
