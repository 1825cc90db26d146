// SPDX-License-Identifier: GPL-2.0-only
// Switches optical circuits by their timetable: at the end of each slot its cables lose their
// light, and the next slot's cables carry packets after the dark time. The timetable is known, so
// routes change without detection: they leave a circuit a drain time before it ends, and use a new
// one as soon as it carries packets. The model has no senders that wait for a circuit, and no clock
// error. A packet that is queued for a circuit or on it when it ends is lost, as on a cable that
// fails.
//
// While no packet is in flight, steps before the next other event are skipped, because they have no
// effect.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "simulator/fabric/fabric_network.h"
#include "topologies/routing/routing.h"

namespace railyard {

class CircuitScheduler {
 public:
  // All references must outlive this; `routing` knows the circuits of time 0. Without circuits in
  // `graph` it does nothing. It stops if no other event is pending, so that a run that waits
  // forever is detected.
  CircuitScheduler(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                   std::function<void()> on_routes_changed);

 private:
  // Names the phases of a slot in order: routes leave the circuits that end with it (kDrain), the
  // next slot begins (kTurn), its circuits get light (kLight).
  enum class Phase : uint8_t { kDrain, kTurn, kLight };
  struct Step {
    uint64_t slot = 0;
    Phase phase = Phase::kDrain;
    Step Next() const;
    Step Before() const;  // precondition: this is not the first
    auto operator<=>(const Step&) const = default;
  };

  int64_t TimePs(const Step& step) const;
  // Returns the last step from `next` on that can be reached by skipping steps without effect;
  // `next` itself if none can be skipped.
  Step PassOver(const Step& next) const;
  void Schedule(const Step& step);
  void Take(Step step);
  // These functions return true if the cable has light, or is routed over, after the step.
  bool HasLight(uint32_t cable, const Step& after) const;
  bool IsRouted(uint32_t cable, const Step& after) const;
  bool IsThere(uint32_t cable, uint64_t slot) const;
  void SetLight(const Step& step);
  void SetRoutes(const Step& step);

  const FabricGraph& graph_;
  FabricNetwork& network_;
  EcmpRouting& routing_;
  std::function<void()> on_routes_changed_;
  // This is the last step that was taken. Initially it is the step that switches on the light of
  // slot 0.
  std::optional<Step> taken_;
};

}  // namespace railyard
