// SPDX-License-Identifier: GPL-2.0-only
// Turns optical circuits by their timetable: in each slot the cables that end lose their light at
// its end, those that begin carry from the dark time on. Everybody knows the timetable, so routes
// change without detection: away from a circuit a drain time before it ends, to a new one when it
// carries. Not modelled: senders that hold back for a circuit, and clock error; a packet that is
// still queued for, or on, a circuit that ends is lost as on a cable that fails.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "topologies/routing.h"

namespace railyard {

class CircuitScheduler {
 public:
  // All references must outlive this; `routing` knows which circuits there are at time 0. Without
  // circuits in `graph` it does nothing. Ends where nothing else is left to happen, so that a run
  // that waits for ever is seen to.
  CircuitScheduler(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                   std::function<void()> on_routes_changed);

 private:
  // Of a slot, in this order: routes leave what ends with it, its successor's beginning, light.
  enum class Step : uint8_t { kDrain, kTurn, kLight };

  void ScheduleNext(Step step, uint64_t slot);
  void Take(Step step, uint64_t slot);
  // The cables that configuration `from` has and `to` has not.
  std::vector<uint32_t> Lost(uint64_t from, uint64_t to) const;
  void SetRoutes(const std::vector<uint32_t>& cables, bool is_up);
  void SetLight(const std::vector<uint32_t>& cables, bool is_up);

  const FabricGraph& graph_;
  FabricNetwork& network_;
  EcmpRouting& routing_;
  std::function<void()> on_routes_changed_;
};

}  // namespace railyard
