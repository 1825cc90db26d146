// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/model/accelerator.h"

namespace railyard {

const std::vector<Accelerator>& Accelerators() {
  // FP32 is the plain FP32 rate, not TF32's.
  static const std::vector<Accelerator> kAccelerators = {
      //                            FP32   FP16    BF16    FP8
      {"v100-sxm2", "NVIDIA V100 data sheet", {15.7, 125, 0, 0}, 900},
      {"rtx-3090",
       "NVIDIA GA102 whitepaper, table 2: FP16 with FP32 accumulation",
       {35.6, 71, 71, 0},
       936},
      {"a100-sxm4-40gb", "NVIDIA A100 data sheet", {19.5, 312, 312, 0}, 1555},
      {"a100-sxm4-80gb", "NVIDIA A100 data sheet", {19.5, 312, 312, 0}, 2039},
      {"h100-sxm",
       "NVIDIA H100 data sheet (halved where it counts sparsity)",
       {67, 989.5, 989.5, 1979},
       3350},
      {"h200-sxm",
       "NVIDIA H200 data sheet (halved where it counts sparsity)",
       {67, 989.5, 989.5, 1979},
       4800},
      {"b200-sxm",
       "NVIDIA DGX B200 data sheet, an eighth (halved where it counts sparsity)",
       {75, 2250, 2250, 4500},
       8000},
  };
  return kAccelerators;
}

std::optional<Accelerator> FindAccelerator(std::string_view name) {
  for (const Accelerator& accelerator : Accelerators()) {
    if (accelerator.name == name) return accelerator;
  }
  return std::nullopt;
}

}  // namespace railyard
