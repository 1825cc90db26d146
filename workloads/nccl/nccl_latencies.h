// SPDX-License-Identifier: GPL-2.0-only
// States the latencies of NVLS that both NCCL's choice (nccl_tuner.h) and the simulated costs
// (gpu_costs.h) are made of, in microseconds: src/graph/tuning.cc, NCCL 2.30.
#pragma once

namespace railyard {

inline constexpr double kNvlsUs = 25.0;
inline constexpr double kNvlsTreeNetworkUs = 20.9;
inline constexpr double kNvlsNetworkUs = 18.0;  // with CollNet

}  // namespace railyard
