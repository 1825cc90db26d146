// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/precision.h"

namespace railyard {

uint32_t PrecisionBytes(Precision precision) { return DatatypeBytes(DatatypeOf(precision)); }

Datatype DatatypeOf(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return Datatype::kFloat32;
    case Precision::kFp16:
      return Datatype::kFloat16;
    case Precision::kBf16:
      return Datatype::kBfloat16;
    case Precision::kFp8:
      break;
  }
  return Datatype::kFloat8E4M3;
}

std::string_view PrecisionName(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return "FP32";
    case Precision::kFp16:
      return "FP16";
    case Precision::kBf16:
      return "BF16";
    case Precision::kFp8:
      break;
  }
  return "FP8";
}

}  // namespace railyard
