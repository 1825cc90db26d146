// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/lanes/expert_costs.h"

#include <cmath>

#include "simulator/diagnostics/check.h"
#include "workloads/experts/expert_kernels.h"

namespace railyard {
namespace {

// A GPU rings the NIC's doorbell itself (IBGDA), and polls for the counter behind the data: each as
// a step over PCIe of NCCL's protocol LL, which also is one GPU's store that another polls for
// (hwLat, src/graph/tuning.cc).
constexpr int64_t kGpuPostPs = 1'000'000;

// Kernels that are launched: DeepEP's normal ones come after one that exchanges the numbers of
// tokens (notify_dispatch, cached_notify in csrc/kernels/).
int64_t LaunchesOf(ExpertKernel kernel) { return kernel == ExpertKernel::kDeepEp ? 2 : 1; }

}  // namespace

StepCosts ExpertCosts(const GpuCosts& gpu, const CommunicatorLayout& layout,
                      const ExpertCall& call) {
  SIM_CHECK(call.kernel != ExpertKernel::kNone, "the costs of a kernel that is not named");
  // Launches, flags and polls over NVLink are those of NCCL's Simple.
  StepCosts costs = gpu.Of(layout, {Algorithm::kRing, Protocol::kSimple});
  if (!gpu.launch_latency_ps) costs.launch_latency_ps *= LaunchesOf(call.kernel);
  // Other warps go on while one waits for its fence.
  costs.slice_overhead_ps = 0;
  costs.network_step_latency_ps =
      gpu.network_step_latency_ps.value_or(std::llround(2.0 * kGpuPostPs * gpu.step_latency_scale));
  costs.gpu_posts = true;
  if (gpu.channel_rate_bps) return costs;
  costs.channel_rate_bps = 0;
  // All SMs take part, each with a token or two.
  if (call.kernel == ExpertKernel::kDeepEpLowLatency) return costs;
  costs.channel_rate_bps = static_cast<uint64_t>(
      std::llround(8e9 * call.token_bytes / TokenTimeOf(call).usual_ns * gpu.channel_rate_scale));
  return costs;
}

}  // namespace railyard
