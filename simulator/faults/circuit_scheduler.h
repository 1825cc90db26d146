// SPDX-License-Identifier: GPL-2.0-only
// Turns optical circuits by their timetable: in each slot the cables that end lose their light at
// its end, those that begin carry from the dark time on. Everybody knows the timetable, so routes
// change without detection: away from a circuit a drain time before it ends, to a new one when it
// carries. Not modelled: senders that hold back for a circuit, and clock error; a packet that is
// still queued for, or on, a circuit that ends is lost as on a cable that fails.
//
// While no packet is under way, steps before the next event of anything else are passed over:
// nobody would see them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "simulator/fabric/fabric_network.h"
#include "topologies/routing/routing.h"

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
  enum class Phase : uint8_t { kDrain, kTurn, kLight };
  struct Step {
    uint64_t slot = 0;
    Phase phase = Phase::kDrain;
    Step Next() const;
    Step Before() const;  // precondition: not the first
    auto operator<=>(const Step&) const = default;
  };

  int64_t TimePs(const Step& step) const;
  // The last step that nobody sees the steps from `next` to it of, if there is any, or `next`.
  Step PassOver(const Step& next) const;
  void Schedule(const Step& step);
  void Take(Step step);
  // Whether the cable has light, or is routed over, when the step has been taken.
  bool HasLight(uint32_t cable, const Step& after) const;
  bool IsRouted(uint32_t cable, const Step& after) const;
  bool IsThere(uint32_t cable, uint64_t slot) const;
  void SetLight(const Step& step);
  void SetRoutes(const Step& step);

  const FabricGraph& graph_;
  FabricNetwork& network_;
  EcmpRouting& routing_;
  std::function<void()> on_routes_changed_;
  // The last step that was taken. At the beginning it is as after the light of slot 0.
  std::optional<Step> taken_;
};

}  // namespace railyard
