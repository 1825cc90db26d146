// SPDX-License-Identifier: GPL-2.0-only
// Lists the number formats of weights, activations and gradients.
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/trace/trace.h"

namespace railyard {

enum class Precision : uint8_t { kFp32, kFp16, kBf16, kFp8 };
inline constexpr int kPrecisionCount = 4;

uint32_t PrecisionBytes(Precision precision);
Datatype DatatypeOf(Precision precision);
std::string_view PrecisionName(Precision precision);  // "BF16"

}  // namespace railyard
