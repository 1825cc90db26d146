// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/graph/spec_check.h"

#include <utility>

#include <fmt/format.h>

namespace railyard {

void SpecChecker::Count(const std::string& field, uint64_t value, uint64_t min, uint64_t max) {
  if (value < min || value > max) {
    Add(field, fmt::format("{} is out of range (expected {} to {})", value, min, max));
  }
}

void SpecChecker::Rate(const std::string& field, uint64_t rate_bps) {
  if (rate_bps < kMinLinkRateBps || rate_bps > kMaxLinkRateBps) {
    Add(field, fmt::format("{} bps is out of range (expected 1Mbps to 100Tbps)", rate_bps));
  }
}

void SpecChecker::Delay(const std::string& field, int64_t delay_ps) {
  if (delay_ps < 0 || delay_ps > kMaxLinkDelayPs) {
    Add(field, fmt::format("{} is out of range (expected 0s to 1s)", FormatDuration(delay_ps)));
  }
}

void SpecChecker::Links(const std::string& field, const LinkSpec& links) {
  Rate(field + ".rate", links.rate_bps);
  Delay(field + ".delay", links.delay_ps);
  Count(field + ".count", links.count, 1, kMaxParallelCables);
}

void SpecChecker::Capacity(const std::string& field, uint64_t nics, uint64_t ports) {
  if (nics > ports) {
    Add(field, fmt::format("the servers have {} NICs, and the fabric has ports for {} (expected "
                           "fewer servers or a larger fabric)",
                           nics, ports));
  }
}

void SpecChecker::Totals(const std::string& field, uint64_t switches, uint64_t cables) {
  if (switches > kMaxFabricSwitches) {
    Add(field, fmt::format("the fabric would have {} switches (expected at most {})", switches,
                           kMaxFabricSwitches));
  } else if (cables > kMaxFabricCables) {
    Add(field, fmt::format("the fabric would have {} cables (expected at most {})", cables,
                           kMaxFabricCables));
  }
}

void SpecChecker::Add(std::string field, std::string what) {
  problems_.push_back({std::move(field), std::move(what)});
}

}  // namespace railyard
