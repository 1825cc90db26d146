// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// The first version that has PAT and NCCL_PAT_ENABLE, as ncclGetVersion has it: 2.23.
inline constexpr uint32_t kFirstPatVersion = 22300;

}  // namespace railyard
