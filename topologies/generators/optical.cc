// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/optical.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"
#include "topologies/generators/circuit_schedule.h"
#include "topologies/graph/fabric_builder.h"

namespace railyard {

namespace {

constexpr uint32_t kMostRacks = 1'024;

// Returns round `round` of a tournament of an even number of players: the last one keeps its place,
// the others rotate (Lucas 1883; a 1-factorization of the complete graph).
std::vector<std::pair<uint32_t, uint32_t>> Round(uint32_t players, uint32_t round) {
  const uint32_t turning = players - 1;
  std::vector<std::pair<uint32_t, uint32_t>> pairs = {{round, players - 1}};
  for (uint32_t k = 1; k < players / 2; ++k) {
    const uint32_t a = (round + k) % turning;
    const uint32_t b = (round + turning - k) % turning;
    pairs.emplace_back(std::min(a, b), std::max(a, b));
  }
  return pairs;
}

}  // namespace

std::vector<SpecProblem> CheckOptical(const OpticalSpec& spec) {
  SpecChecker check;
  CheckNetwork(spec.network, check);
  check.Count("nics_per_switch", spec.nics_per_switch, 1, kMaxFabricGpus);
  check.Links("circuit", spec.circuit);
  check.Delay("slot_duration", spec.slot_ps);
  check.Delay("dark_time", spec.dark_ps);
  check.Delay("drain_time", spec.drain_ps);
  if (!check.Clean()) return check.Take();
  const uint64_t racks = DivideUp(spec.network.nic_count(), spec.nics_per_switch);
  if (racks < 6 || racks > kMostRacks || racks % 2 != 0) {
    check.Add("nics_per_switch",
              fmt::format("{} NICs fill {} switches (expected an even number of them from 6 to {})",
                          spec.network.nic_count(), racks, kMostRacks));
    return check.Take();
  }
  // With three, two remain while one is dark.
  check.Count("circuit_switches", spec.circuit_switches, 3, racks - 2);
  if (spec.slot_ps < kSlotPsMin) {
    check.Add("slot_duration",
              fmt::format("{} is out of range (expected {} to 1s)", FormatDuration(spec.slot_ps),
                          FormatDuration(kSlotPsMin)));
  } else if (spec.dark_ps + spec.drain_ps >= spec.slot_ps) {
    check.Add("slot_duration",
              fmt::format("{} leave no time between dark_time and drain_time (expected more than "
                          "the two together)",
                          FormatDuration(spec.slot_ps)));
  }
  check.Totals("circuit", racks,
               spec.network.cables_in_servers() + spec.network.nic_count() +
                   racks * (racks - 1) / 2 * spec.circuit.count);
  return check.Take();
}

FabricGraph MakeOptical(const OpticalSpec& spec) {
  SIM_CHECK(CheckOptical(spec).empty(), "an optical fabric that fails its check");
  FabricBuilder builder(spec.network);
  const std::vector<BuiltNic> nics = builder.AddServers();
  const auto racks = static_cast<uint32_t>(DivideUp(nics.size(), spec.nics_per_switch));
  std::vector<DeviceId> tors(racks);
  for (uint32_t i = 0; i < racks; ++i) tors[i] = builder.AddSwitch(fmt::format("tor{}", i));
  builder.AttachInOrder(nics, tors, spec.nics_per_switch);
  const uint32_t rounds = racks - 1;
  CircuitSchedule circuits = {.slots = rounds,
                              .slot_ps = spec.slot_ps,
                              .dark_ps = spec.dark_ps,
                              .drain_ps = spec.drain_ps,
                              .slots_of_cable = {}};
  for (uint32_t round = 0; round < rounds; ++round) {
    std::vector<uint32_t> slots;
    for (uint32_t i = 0; i < spec.circuit_switches; ++i) slots.push_back((round + i) % rounds);
    std::sort(slots.begin(), slots.end());
    for (const auto& [a, b] : Round(racks, round)) {
      const auto first = static_cast<uint32_t>(builder.fabric().cables().size());
      builder.Join(tors[a], tors[b], Tier::kDirect, spec.circuit);
      const auto end = static_cast<uint32_t>(builder.fabric().cables().size());
      for (uint32_t cable = first; cable < end; ++cable) {
        circuits.slots_of_cable.emplace(cable, slots);
      }
    }
  }
  builder.fabric().circuits = std::move(circuits);
  builder.fabric().deadlock_avoidance = DeadlockAvoidance::kHopClasses;
  return std::move(builder).Take();
}

}  // namespace railyard
