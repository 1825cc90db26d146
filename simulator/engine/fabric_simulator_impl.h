// SPDX-License-Identifier: GPL-2.0-only
// Implements ns-3's simulator for Railyard. Ordinary ns-3 events and fabric events share one timing
// wheel and one total order (see fabric_event.h). ns-3's own Simulator API works on it unchanged.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include <ns3/simulator-impl.h>
#include <ns3/simulator.h>

#include "simulator/engine/fabric_event.h"
#include "simulator/engine/timing_wheel.h"
#include "simulator/engine/virtual_time.h"

namespace railyard {

// Runs ns-3 events and fabric events.
//
// Order: events run by (time, class, id). ns-3 events are the last class of a picosecond and run
// among themselves in the order of their insertion, as ns-3 promises.
//
// Threads: one thread runs the simulation and makes all calls, except that ScheduleWithContext and
// Stop() may come from any thread, as in ns-3.
//
// Exceptions: an exception that an event throws leaves Run(). That event is over, and the next
// Run() continues with the following event.
//
// Attribute NextEventSequence: see GetTypeId().
class FabricSimulatorImpl final : public ns3::SimulatorImpl {
 public:
  // The number of bits of a fabric event's id.
  static constexpr int kIdBits = TimingWheel::kTieBits - TimingWheel::kTagBits;
  static_assert(kEventClassCount == 1 << TimingWheel::kTagBits);

  static ns3::TypeId GetTypeId();
  FabricSimulatorImpl();
  ~FabricSimulatorImpl() override;

  // Returns the implementation behind ns3::Simulator. It lives until ns3::Simulator::Destroy(),
  // which removes handlers and prefetches too. InitVirtualTime() must have been called.
  static FabricSimulatorImpl& Get();

  // --- Fabric events -------------------------------------------------------------------------
  // Registers the handler of a class of events; `context` must outlive the run. Registering a class
  // twice, or kNs3, is a program error. Within a handler ns-3 code sees Simulator::NO_CONTEXT.
  void Register(EventClass event_class, const EventTraits& traits, EventHandler handler,
                void* context);
  const EventTraits& TraitsOf(EventClass event_class) const {
    return classes_[static_cast<size_t>(event_class)].traits;
  }
  // Calls visit(traits) for the registered classes, in the order of their priorities.
  template <typename Visit>
  void ForEachClass(Visit visit) const {
    for (const RegisteredClass& registered : classes_) {
      if (registered.is_registered) visit(registered.traits);
    }
  }
  // Sets the memory that events of this class will access, to be prefetched; `context` as for
  // handlers.
  void SetPrefetch(EventClass event_class, const TimingWheel::Prefetch& prefetch);
  // Preconditions: time_ps >= NowPs(), id < 2^kIdBits, a class other than kNs3.
  [[gnu::always_inline]] void ScheduleFabric(int64_t time_ps, EventClass event_class, uint64_t id,
                                             uint32_t target) {
    if (time_ps < now_ps_ || (id >> kIdBits) != 0 || event_class == EventClass::kNs3) [[unlikely]] {
      RefuseFabricEvent(time_ps, event_class, id);
    }
    wheel_.Insert(time_ps, static_cast<uint64_t>(event_class) << kIdBits | id, target);
  }
  int64_t NowPs() const { return now_ps_; }
  // Returns true if nothing was scheduled or registered, and no time has passed.
  bool IsUnused() const;
  // Calls visit(time_ps, event_class) for all pending events, in any order.
  template <typename Visit>
  void ForEachPending(Visit visit) const {
    wheel_.ForEach([&](const TimingWheel::Event& event) {
      visit(event.time_ps, static_cast<EventClass>(event.tie >> kIdBits));
    });
  }
  // Calls `begin`, then runs the events that it schedules and all events that follow from them,
  // while all other pending events wait; afterwards the time is the same as before. These events
  // must not touch the state of the others, and may schedule fabric events only. Calls do not nest.
  // An exception ends the call too.
  void RunAhead(const std::function<void()>& begin);
  // Runs the pending fabric events before that place, or up to Stop(), and returns the time of the
  // first remaining event; INT64_MAX if none remains. Precondition: no ns-3 event or sample is
  // pending.
  int64_t RunBefore(const EventPlace& end);
  // Returns the place of the event that ran last.
  const EventPlace& last_place() const { return last_place_; }
  // Sets the time and counts events that other processes have run. Is called at the end of a run.
  void Absorb(int64_t now_ps, uint64_t event_count) {
    now_ps_ = std::max(now_ps_, now_ps);
    event_count_ += event_count;
  }
  // Makes Run() stop before the first event later than `time_ps`. By default it runs all events.
  void SetTimeEnd(int64_t time_ps) {
    time_end_ps_ = time_ps;
    limit_ps_ = std::min(time_end_ps_, sample_at_ps_);
  }
  // Run() calls it between two events, with the time of the later one, while the current time is
  // still that of the earlier one. It returns the time of its next call. The call is not an event:
  // it is not counted, and it must not schedule any.
  using Sample = std::function<int64_t(int64_t next_event_ps)>;
  // Makes Run() call `sample` before its first event later than `time_ps`. It replaces the previous
  // sample; an empty one ends the calls.
  void SetSample(int64_t time_ps, Sample sample);
  bool HasReachedTimeEnd() const { return has_reached_time_end_; }
  // Returns the number of fabric and ns-3 events run so far.
  uint64_t EventCount() const { return event_count_; }

  // --- ns3::SimulatorImpl ----------------------------------------------------------------------
  void Destroy() override;
  // Returns true if no event is pending, or Stop() was called and Run() was not since.
  bool IsFinished() const override;
  // Makes Run() return after the event that is running. Outside of Run() it has no effect on the
  // next one.
  void Stop() override;
  // Versions of ns-3 after 3.37 return the event; 3.37 returns nothing.
  using StopResult =
      decltype(std::declval<ns3::SimulatorImpl&>().Stop(std::declval<const ns3::Time&>()));
  StopResult Stop(const ns3::Time& delay) override;
  // Schedules an event after `delay`, which must not be negative. A time beyond
  // GetMaximumSimulationTime() becomes that time.
  ns3::EventId Schedule(const ns3::Time& delay, ns3::EventImpl* event) override;
  // Schedules an event. From another thread `delay` counts from the time at which the simulation's
  // thread takes the event over, which is after the event that is running, or when Run() starts.
  void ScheduleWithContext(uint32_t context, const ns3::Time& delay,
                           ns3::EventImpl* event) override;
  ns3::EventId ScheduleNow(ns3::EventImpl* event) override;
  ns3::EventId ScheduleDestroy(ns3::EventImpl* event) override;
  // Deletes the event, so that it affects neither the clock nor the event count.
  void Remove(const ns3::EventId& id) override;
  // Disables the event; it still advances the clock and counts as an event.
  void Cancel(const ns3::EventId& id) override;
  bool IsExpired(const ns3::EventId& id) const override;
  void Run() override;
  ns3::Time Now() const override;
  ns3::Time GetDelayLeft(const ns3::EventId& id) const override;
  ns3::Time GetMaximumSimulationTime() const override;
  // Has no effect, because the timing wheel replaces ns-3's schedulers. The call must be accepted
  // because ns-3 makes it for every simulator that it creates.
  void SetScheduler(ns3::ObjectFactory scheduler_factory) override;
  uint32_t GetSystemId() const override;
  uint32_t GetContext() const override;
  uint64_t GetEventCount() const override { return event_count_; }

 private:
  struct Handler {
    EventHandler function = nullptr;
    void* context = nullptr;
  };
  struct RegisteredClass {
    EventTraits traits;
    bool is_registered = false;
  };
  // Holds the ns-3 event that an event of class kNs3 names by its target.
  struct Ns3Event {
    ns3::EventImpl* impl;  // one reference is ours
    uint64_t sequence;
    uint32_t context;
    uint32_t next_free;
  };
  struct ForeignEvent {
    ns3::EventImpl* impl;
    int64_t delay_ps;
    uint32_t context;
  };
  // These are the bits of attention_.
  static constexpr uint32_t kStopRequested = 1;
  static constexpr uint32_t kForeignEventsWaiting = 2;

  class Speculation;

  void DoDispose() override;
  [[noreturn]] void RefuseFabricEvent(int64_t time_ps, EventClass event_class, uint64_t id) const;
  void EndTime(const TimingWheel::Event& next);
  // Handles a next event that is later than limit_ps_. Returns false if simulated time has ended
  // before it.
  bool PassLimit(const TimingWheel::Event& next);
  void RunNs3Event(const TimingWheel::Event& event);
  int64_t TimeAfter(int64_t delay_ps) const;
  // Returns the event's uid.
  uint32_t InsertNs3Event(int64_t time_ps, uint32_t context, ns3::EventImpl* impl);
  Ns3Event TakeNs3Event(uint32_t slot);
  void TakeForeignEvents();
  static uint32_t UidOf(uint64_t sequence);
  // Precondition: the event is one of the last 2^32 - VALID scheduled, because uids repeat after
  // that.
  uint64_t SequenceOf(uint32_t uid) const;

  int64_t now_ps_ = 0;
  int64_t time_end_ps_ = INT64_MAX;
  int64_t sample_at_ps_ = INT64_MAX;
  int64_t limit_ps_ = INT64_MAX;  // the earlier of time_end_ps_ and sample_at_ps_
  Sample sample_;
  bool has_reached_time_end_ = false;
  uint64_t event_count_ = 0;
  EventPlace last_place_;  // of RunBefore()
  // These are requests that Run() checks before the next event, by one relaxed load per event.
  std::atomic<uint32_t> attention_{0};
  uint32_t context_ = ns3::Simulator::NO_CONTEXT;
  std::array<Handler, kEventClassCount> handlers_;  // every event reads one
  std::array<RegisteredClass, kEventClassCount> classes_;
  TimingWheel wheel_;
  std::unique_ptr<TimingWheel> ahead_;  // events that wait during RunAhead()

  std::vector<Ns3Event> ns3_events_;
  uint32_t free_ns3_event_;
  uint64_t next_sequence_ = 0;  // orders ns-3 events of one picosecond; never wraps
  // These fields are the place of the last ns-3 event run. An ns-3 event has expired if and only if
  // it does not come after this one.
  int64_t last_ns3_time_ps_ = -1;
  uint64_t last_ns3_sequence_ = 0;
  std::unordered_set<uint64_t> removed_;  // sequence numbers on the wheel that Remove() has deleted
  std::deque<ns3::EventId> destroy_events_;

  // Other threads read it while Run() sets it.
  std::atomic<std::thread::id> main_thread_{std::this_thread::get_id()};
  std::mutex foreign_mutex_;
  std::vector<ForeignEvent> foreign_events_;
};

}  // namespace railyard
