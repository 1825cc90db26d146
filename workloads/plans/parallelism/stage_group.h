// SPDX-License-Identifier: GPL-2.0-only
// Names the communicators of a rank in training by their purpose.
#pragma once

#include <cstdint>

namespace railyard {

enum class StageGroup : uint8_t {
  kTensor,
  kContext,
  kData,       // data and context together
  kEmbedding,  // first and last stage
  kActivationIn,
  kActivationOut,
  kGradientIn,
  kGradientOut,
  kExpert,
  kExpertData,  // ranks with the same experts
  kNorm,        // for the norm of all gradients
  kAll,
};
inline constexpr uint32_t kStageGroupCount = 12;

}  // namespace railyard
