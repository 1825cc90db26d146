// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/plan_reader.h"

#include <cmath>

#include <fmt/format.h>

#include "simulator/units/units.h"

namespace railyard {
namespace {

Precision PrecisionOf(int value) {
  switch (value) {
    case protos::FP32:
      return Precision::kFp32;
    case protos::FP16:
      return Precision::kFp16;
    case protos::FP8:
      return Precision::kFp8;
    default:
      return Precision::kBf16;
  }
}

}  // namespace

void PlanReader::Number(const char* field, uint32_t min, uint32_t max, uint32_t& value) const {
  value = static_cast<uint32_t>(cursor_.Number(diagnostics_, field, value, min, max));
}

void PlanReader::Required(const char* field, uint32_t min, uint32_t max, const char* expected,
                          uint32_t& value) const {
  if (!Has(field) && value == 0) {
    Missing(field, expected);
    return;
  }
  Number(field, min, max, value);
}

void PlanReader::Duration(const char* field, int64_t max_ps, int64_t& value_ps) const {
  const int64_t ps = cursor_.DurationPs(diagnostics_, field, value_ps);
  if (ps <= max_ps) {
    value_ps = ps;
    return;
  }
  Error(field, fmt::format("{} is too long (expected at most {})", cursor_.Text(field, ""),
                           FormatDuration(max_ps)));
}

void PlanReader::Ratio(const char* field, double max, double& value) const {
  if (!Has(field)) return;
  const google::protobuf::Message& message = cursor_.message();
  const double given =
      message.GetReflection()->GetDouble(message, message.GetDescriptor()->FindFieldByName(field));
  if (std::isfinite(given) && given > 0 && given <= max) {
    value = given;
    return;
  }
  Error(field, fmt::format("{} is out of range (expected more than 0, at most {})", given, max));
}

void PlanReader::ReadPrecision(const char* field, Precision& value) const {
  if (!Has(field)) return;
  const google::protobuf::Message& message = cursor_.message();
  value = PrecisionOf(message.GetReflection()->GetEnumValue(
      message, message.GetDescriptor()->FindFieldByName(field)));
}

std::string NearestDivisors(uint64_t number, uint64_t wish) {
  uint64_t below = 0;
  uint64_t above = 0;
  for (uint64_t divisor = 1; divisor * divisor <= number; ++divisor) {
    if (number % divisor != 0) continue;
    for (const uint64_t candidate : {divisor, number / divisor}) {
      if (candidate <= wish && candidate > below) below = candidate;
      if (candidate > wish && (above == 0 || candidate < above)) above = candidate;
    }
  }
  if (below == 0) return std::to_string(above);
  if (above == 0) return std::to_string(below);
  return fmt::format("{} or {}", below, above);
}

}  // namespace railyard
