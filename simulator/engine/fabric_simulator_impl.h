// SPDX-License-Identifier: GPL-2.0-only
// The ns-3 simulator implementation of Railyard: ordinary ns-3 events and fabric events on one
// timing wheel, in one total order (see fabric_event.h). ns-3's own Simulator API works on it
// unchanged.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_set>
#include <vector>

#include <ns3/simulator-impl.h>

#include "simulator/engine/fabric_event.h"
#include "simulator/engine/timing_wheel.h"

namespace railyard {

// Sets picosecond resolution and binds FabricSimulatorImpl. Call once per process, before anything
// else touches ns-3's Simulator or Time; checks that the binding took. Calling it again is a no-op.
void InitVirtualTime();

class FabricSimulatorImpl : public ns3::SimulatorImpl {
 public:
  static ns3::TypeId GetTypeId();
  FabricSimulatorImpl();
  ~FabricSimulatorImpl() override;

  // The implementation behind ns3::Simulator; InitVirtualTime() must have been called.
  static FabricSimulatorImpl& Get();

  // --- Fabric events -------------------------------------------------------------------------
  // One handler per class; `context` must outlive the run or be replaced.
  void SetHandler(EventClass event_class, EventHandler handler, void* context);
  // When a wheel bucket is opened, `*base + target * stride` of each event of this class is
  // prefetched. `base` may move between events. nullptr switches it off.
  void SetPrefetch(EventClass event_class, const char* const* base, uint32_t stride);
  // Precondition: time_ps >= NowPs().
  void ScheduleFabric(int64_t time_ps, EventClass event_class, uint64_t id, uint32_t target);
  int64_t NowPs() const { return now_ps_; }
  // Fabric and ns-3 events run so far.
  uint64_t EventCount() const { return event_count_; }

  // --- ns3::SimulatorImpl ----------------------------------------------------------------------
  // (all of its virtuals)
};

}  // namespace railyard
