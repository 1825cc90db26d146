// SPDX-License-Identifier: GPL-2.0-only
// Defines the types of quantities and other values of a scenario's fields.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace railyard {

struct Duration {
  int64_t ps = 0;  // picoseconds

  static constexpr Duration Ns(int64_t count) { return {count * 1'000}; }
  static constexpr Duration Us(int64_t count) { return {count * 1'000'000}; }
  static constexpr Duration Ms(int64_t count) { return {count * 1'000'000'000}; }
  static constexpr Duration Seconds(int64_t count) { return {count * 1'000'000'000'000}; }
};

struct DataRate {
  uint64_t bps = 0;  // bits per second

  static constexpr DataRate Gbps(uint64_t count) { return {count * 1'000'000'000}; }
};

struct DataSize {
  uint64_t bytes = 0;

  static constexpr DataSize KiB(uint64_t count) { return {count << 10}; }
  static constexpr DataSize MiB(uint64_t count) { return {count << 20}; }
  static constexpr DataSize GiB(uint64_t count) { return {count << 30}; }
};

// Holds the value of any field of a scenario. A string may also be the name of an enumerator
// ("LINK_DOWN"), as docs/scenario.md writes it. A default-constructed value stands for a block
// without fields, `dcqcn {}`.
class FieldValue {
 public:
  using Held = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string>;

  FieldValue() = default;
  FieldValue(bool value) : held_(value) {}
  template <std::signed_integral Number>
  FieldValue(Number value) : held_(int64_t{value}) {}
  template <std::unsigned_integral Number>
  FieldValue(Number value) : held_(uint64_t{value}) {}
  FieldValue(double value) : held_(value) {}
  FieldValue(const char* value) : held_(std::string(value)) {}
  FieldValue(std::string value) : held_(std::move(value)) {}
  FieldValue(Duration value) : held_(std::to_string(value.ps) + "ps") {}
  FieldValue(DataRate value) : held_(std::to_string(value.bps) + "bps") {}
  FieldValue(DataSize value) : held_(std::to_string(value.bytes) + "B") {}

  const Held& held() const { return held_; }

 private:
  Held held_;
};

}  // namespace railyard
