// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/lanes/expert_costs.h"

#include <cmath>

#include "simulator/diagnostics/check.h"

namespace railyard {
namespace {

// One channel takes a time per token and a time per byte. Both follow from what 8 B200 of one board
// receive with 16 SMs, in FP8 and BF16 (Hybrid-EP_Implementation.md of DeepEP's branch hybrid-ep,
// commit 07eea0c, "B200 Platform"; GB/s of 7,392 and 14,336 bytes a token, the rank's own
// included): DeepEP 246 and 348 in dispatch and 302 in combine, of 8 channels of two SMs each;
// hybrid-ep 599.27, 734.95 and 673.84 (kernel time), of 16 channels. SMs of Hopper are assumed to
// be as fast.
struct ChannelTime {
  double token_ns = 0;
  double dispatch_ns_per_byte = 0;
  double combine_ns_per_byte = 0;
};
constexpr double kFp8TokenBytes = 7168 + 7168 / 128.0 * 4;
constexpr double kBf16TokenBytes = 2 * 7168;
struct MeasuredRates {
  double channels = 0;
  double fp8_dispatch_gb_per_s = 0;
  double bf16_dispatch_gb_per_s = 0;
  double bf16_combine_gb_per_s = 0;
};
constexpr ChannelTime ChannelTimeOf(const MeasuredRates& rates) {
  const double fp8_ns = rates.channels * kFp8TokenBytes / rates.fp8_dispatch_gb_per_s;
  const double bf16_ns = rates.channels * kBf16TokenBytes / rates.bf16_dispatch_gb_per_s;
  const double combine_ns = rates.channels * kBf16TokenBytes / rates.bf16_combine_gb_per_s;
  const double ns_per_byte = (bf16_ns - fp8_ns) / (kBf16TokenBytes - kFp8TokenBytes);
  const double token_ns = fp8_ns - ns_per_byte * kFp8TokenBytes;
  return {token_ns, ns_per_byte, (combine_ns - token_ns) / kBf16TokenBytes};
}
constexpr ChannelTime kDeepEp = ChannelTimeOf({.channels = 8,
                                               .fp8_dispatch_gb_per_s = 246,
                                               .bf16_dispatch_gb_per_s = 348,
                                               .bf16_combine_gb_per_s = 302});
constexpr ChannelTime kHybridEp = ChannelTimeOf({.channels = 16,
                                                 .fp8_dispatch_gb_per_s = 599.27,
                                                 .bf16_dispatch_gb_per_s = 734.95,
                                                 .bf16_combine_gb_per_s = 673.84});

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
  const ChannelTime& time = call.kernel == ExpertKernel::kDeepEp ? kDeepEp : kHybridEp;
  const double ns_per_byte = time.token_ns / call.token_bytes +
                             (call.combines ? time.combine_ns_per_byte : time.dispatch_ns_per_byte);
  costs.channel_rate_bps =
      static_cast<uint64_t>(std::llround(8e9 / ns_per_byte * gpu.channel_rate_scale));
  return costs;
}

}  // namespace railyard
