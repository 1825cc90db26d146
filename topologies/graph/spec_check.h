// SPDX-License-Identifier: GPL-2.0-only
// Defines the limits that all generators share, and collects the problems of a spec.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/units/units.h"

namespace railyard {

inline constexpr uint32_t kMaxGpusPerServer = 1'024;  // local indices are below it
inline constexpr uint32_t kMaxFabricGpus = 65'536;
inline constexpr uint32_t kMaxServerKinds = 1'024;
inline constexpr uint64_t kMaxFabricCables = 2'000'000;
inline constexpr uint32_t kMaxFabricSwitches = 200'000;
inline constexpr uint32_t kMaxFabricSpines = 65'536;
inline constexpr uint32_t kMaxParallelCables = 1'024;
inline constexpr uint64_t kMinLinkRateBps = 1'000'000;
inline constexpr uint64_t kMaxLinkRateBps = 100'000'000'000'000;
inline constexpr int64_t kMaxLinkDelayPs = kPsPerSecond;

// Describes a problem of one field of a spec. `field` is its name in the generator's message, e.g.
// "spines" or "servers[1].gpus".
struct SpecProblem {
  std::string field;
  std::string what;
};

// Describes parallel cables of one tier between two devices.
struct LinkSpec {
  uint64_t rate_bps = 400'000'000'000;
  // The default is 30 m of cable at 5 ns/m and an assumed 120 ns of RS(544,514) FEC (IEEE 802.3
  // clause 119: a codeword is received whole before it is corrected).
  int64_t delay_ps = 270 * kPsPerNs;
  uint32_t count = 1;
};

class SpecChecker {
 public:
  void Count(const std::string& field, uint64_t value, uint64_t min, uint64_t max);
  void Rate(const std::string& field, uint64_t rate_bps);
  void Delay(const std::string& field, int64_t delay_ps);
  void Links(const std::string& field, const LinkSpec& links);
  // Reports if there are more NICs than ports. `field` determines the number of ports.
  void Capacity(const std::string& field, uint64_t nics, uint64_t ports);
  // Checks the fabric's total numbers of switches and cables. `field` is the field to reduce.
  void Totals(const std::string& field, uint64_t switches, uint64_t cables);
  void Add(std::string field, std::string what);

  bool Clean() const { return problems_.empty(); }
  std::vector<SpecProblem> Take() { return std::move(problems_); }

 private:
  std::vector<SpecProblem> problems_;
};

// Returns a * b, or UINT64_MAX / 4 if the product exceeds it, so that the totals of absurd specs do
// not wrap into the allowed range.
constexpr uint64_t SaturatingProduct(uint64_t a, uint64_t b) {
  return b != 0 && a > UINT64_MAX / 4 / b ? UINT64_MAX / 4 : a * b;
}

}  // namespace railyard
