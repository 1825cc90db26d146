// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/circuit_schedule.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <boost/pending/disjoint_sets.hpp>

#include "simulator/diagnostics/check.h"
#include "topologies/graph/fabric_copy.h"

namespace railyard {
namespace {

class DisjointSets {
 public:
  explicit DisjointSets(uint32_t count) : ranks_(count), parents_(count) {
    for (uint32_t i = 0; i < count; ++i) sets_.make_set(i);
  }
  void Join(uint32_t a, uint32_t b) { sets_.union_set(a, b); }
  uint32_t RootOf(uint32_t element) { return sets_.find_set(element); }

 private:
  std::vector<uint32_t> ranks_;
  std::vector<uint32_t> parents_;
  boost::disjoint_sets<uint32_t*, uint32_t*> sets_{ranks_.data(), parents_.data()};
};

}  // namespace

FabricGraph AtSlot(const FabricGraph& fabric, uint32_t slot) {
  SIM_CHECK(fabric.circuits && slot < fabric.circuits->slots, "a slot the fabric does not have");
  return WithCables(fabric, [&](uint32_t cable) { return fabric.circuits->IsThere(cable, slot); });
}

std::optional<uint32_t> FindPartedSlot(const FabricGraph& fabric) {
  SIM_CHECK(fabric.circuits, "a fabric without circuits");
  const CircuitSchedule& circuits = *fabric.circuits;
  // Devices that cables join in every configuration are one component.
  DisjointSets devices(fabric.device_count());
  std::vector<std::vector<uint32_t>> cables_of_slot(circuits.slots);
  const std::vector<Cable>& cables = fabric.cables();
  const auto ends_of = [&](uint32_t cable) {
    const LinkId link = cables[cable].forward;
    return std::pair(fabric.link_source(link), fabric.link_target(link));
  };
  for (uint32_t cable = 0; cable < cables.size(); ++cable) {
    const auto found = circuits.slots_of_cable.find(cable);
    if (found == circuits.slots_of_cable.end()) {
      const auto [a, b] = ends_of(cable);
      devices.Join(a, b);
    } else {
      for (const uint32_t slot : found->second) cables_of_slot[slot].push_back(cable);
    }
  }
  // The components are numbered: those with GPUs, then others.
  std::vector<uint32_t> number_of(fabric.device_count(), UINT32_MAX);
  uint32_t components = 0;
  const auto number = [&](DeviceId device) {
    uint32_t& of_root = number_of[devices.RootOf(device)];
    if (of_root == UINT32_MAX) of_root = components++;
    return of_root;
  };
  for (const DeviceId gpu : fabric.gpus()) number(gpu);
  const uint32_t with_gpus = components;
  for (DeviceId device{0}; device < fabric.device_count(); ++device) number(device);
  for (uint32_t slot = 0; slot < circuits.slots; ++slot) {
    DisjointSets joined(components);
    for (const uint32_t cable : cables_of_slot[slot]) {
      const auto [a, b] = ends_of(cable);
      joined.Join(number(a), number(b));
    }
    for (uint32_t component = 1; component < with_gpus; ++component) {
      if (joined.RootOf(component) != joined.RootOf(0)) return slot;
    }
  }
  return std::nullopt;
}

}  // namespace railyard
