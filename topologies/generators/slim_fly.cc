// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/slim_fly.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "topologies/graph/fabric_builder.h"

namespace railyard {
namespace {

bool IsOddPrime(uint32_t n) {
  if (n < 3 || n % 2 == 0) return false;
  for (uint32_t d = 3; d * d <= n; d += 2) {
    if (n % d == 0) return false;
  }
  return true;
}

// Returns the powers 1, g, g², … of the smallest primitive root g modulo q.
std::vector<uint32_t> PowersOfPrimitiveRoot(uint32_t q) {
  for (uint32_t root = 2;; ++root) {
    std::vector<uint32_t> powers = {1};
    for (uint32_t power = root % q; power != 1; power = power * root % q) powers.push_back(power);
    if (powers.size() == q - 1) return powers;
  }
}

// Says of each difference modulo q whether routers of one half that differ by it are neighbours.
struct Generators {
  std::vector<bool> first;   // X
  std::vector<bool> second;  // X'
};

Generators GeneratorsOf(uint32_t q) {
  const std::vector<uint32_t> powers = PowersOfPrimitiveRoot(q);
  Generators sets = {std::vector<bool>(q), std::vector<bool>(q)};
  if (q % 4 == 1) {
    for (uint32_t i = 0; i < q - 1; ++i) (i % 2 == 0 ? sets.first : sets.second)[powers[i]] = true;
    return sets;
  }
  // q = 4w - 1: even powers below 2w and odd ones from 2w - 1 on; X' the same, one power later.
  const uint32_t w = (q + 1) / 4;
  for (uint32_t i = 0; i <= 2 * w - 2; i += 2) sets.first[powers[i]] = true;
  for (uint32_t i = 2 * w - 1; i <= 4 * w - 3; i += 2) sets.first[powers[i]] = true;
  for (uint32_t i = 1; i <= 2 * w - 1; i += 2) sets.second[powers[i]] = true;
  for (uint32_t i = 2 * w; i <= 4 * w - 2; i += 2) sets.second[powers[i % (q - 1)]] = true;
  return sets;
}

}  // namespace

std::vector<SpecProblem> CheckSlimFly(const SlimFlySpec& spec) {
  SpecChecker check;
  CheckNetwork(spec.network, check);
  if (!IsOddPrime(spec.q) || spec.q > 199) {
    check.Add("q", fmt::format("{} is not an odd prime up to 199 (expected e.g. 5, 7, 11, 13, 17)",
                               spec.q));
  }
  check.Count("nics_per_router", spec.nics_per_router, 1, kMaxFabricGpus);
  check.Links("local", spec.local);
  check.Links("global", spec.global);
  if (!check.Clean()) return check.Take();
  const uint64_t q = spec.q;
  check.Capacity("q", spec.network.nic_count(), 2 * q * q * spec.nics_per_router);
  check.Totals("q", 2 * q * q,
               spec.network.cables_in_servers() + spec.network.nic_count() +
                   q * q * q * spec.global.count + q * q * (q + 1) / 2 * spec.local.count);
  return check.Take();
}

FabricGraph MakeSlimFly(const SlimFlySpec& spec) {
  SIM_CHECK(CheckSlimFly(spec).empty(), "a Slim Fly that fails its check");
  FabricBuilder builder(spec.network);
  const std::vector<BuiltNic> nics = builder.AddServers();
  const uint32_t q = spec.q;
  std::vector<DeviceId> routers;
  for (uint32_t half = 0; half < 2; ++half) {
    for (uint32_t i = 0; i < q * q; ++i) {
      routers.push_back(builder.AddSwitch(fmt::format("half{}/router{}.{}", half, i / q, i % q)));
    }
  }
  builder.AttachInOrder(nics, routers, spec.nics_per_router);
  const auto router = [&](uint32_t half, uint32_t column, uint32_t row) {
    return routers[(half * q + column) * q + row];
  };
  const Generators differences = GeneratorsOf(q);
  for (uint32_t half = 0; half < 2; ++half) {
    const std::vector<bool>& is_neighbour = half == 0 ? differences.first : differences.second;
    for (uint32_t column = 0; column < q; ++column) {
      for (uint32_t row = 0; row < q; ++row) {
        for (uint32_t other = row + 1; other < q; ++other) {
          if (!is_neighbour[other - row]) continue;
          builder.Join(router(half, column, row), router(half, column, other), Tier::kLocal,
                       spec.local);
        }
      }
    }
  }
  for (uint32_t x = 0; x < q; ++x) {
    for (uint32_t m = 0; m < q; ++m) {
      for (uint32_t c = 0; c < q; ++c) {
        builder.Join(router(0, x, (m * x + c) % q), router(1, m, c), Tier::kGlobal, spec.global);
      }
    }
  }
  // Minimal routes take two cables: two classes break every cycle.
  builder.fabric().deadlock_avoidance = DeadlockAvoidance::kHopClasses;
  return std::move(builder).Take();
}

}  // namespace railyard
