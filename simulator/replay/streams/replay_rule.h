// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// Names the rule by which a collective was taken from the replay cache.
enum class ReplayRule : uint8_t {
  kNone,           // it was simulated
  kNetwork,        // the whole network was in a state in which the same calls had begun
  kPartition,      // the part of the network that the collective has for itself was
  kLikePartition,  // an equal part of the network was
};

}  // namespace railyard
