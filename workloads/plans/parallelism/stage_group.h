// SPDX-License-Identifier: GPL-2.0-only
// The communicators of a rank that trains, by what they are for.
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
  kExpertData,  // of the same experts
  kNorm,        // of all gradients
  kAll,
};
inline constexpr uint32_t kStageGroupCount = 12;

}  // namespace railyard
