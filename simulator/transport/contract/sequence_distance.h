// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// Returns the signed distance from b to a of packet sequence numbers, which wrap around at 2^32.
inline int32_t SequenceDistance(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b); }

}  // namespace railyard
