// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/engine/fabric_simulator_impl.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include <ns3/make-event.h>
#include <ns3/uinteger.h>

#include "simulator/diagnostics/check.h"
#include "simulator/engine/look.h"

namespace railyard {
namespace {

constexpr uint32_t kNoSlot = UINT32_MAX;
// ns-3 gives the uids below VALID special meanings.
constexpr uint64_t kUidCount = (uint64_t{1} << 32) - ns3::EventId::VALID;
constexpr uint64_t kIdMask = (uint64_t{1} << FabricSimulatorImpl::kIdBits) - 1;

std::atomic<bool> is_look_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers set it");

std::function<bool()>& Look() {
  static std::function<bool()> look;
  return look;
}

void NoHandler(void* /*context*/, uint32_t target) {
  SIM_CHECK(false, "fabric event of a class without a handler, target " + std::to_string(target));
}

}  // namespace

void SetLook(std::function<bool()> look) { Look() = std::move(look); }

void RequestLook() { is_look_requested.store(true, std::memory_order_relaxed); }

bool LookIfRequested() {
  if (!is_look_requested.load(std::memory_order_relaxed)) [[likely]]
    return false;
  is_look_requested.store(false, std::memory_order_relaxed);
  return Look() && Look()();
}

ns3::TypeId FabricSimulatorImpl::GetTypeId() {
  static ns3::TypeId type =
      ns3::TypeId("railyard::FabricSimulatorImpl")
          .SetParent<ns3::SimulatorImpl>()
          .SetGroupName("Railyard")
          .AddConstructor<FabricSimulatorImpl>()
          .AddAttribute(
              "NextEventSequence",
              "Sequence number of the next ns-3 event: the count of those scheduled so far. A "
              "larger initial value makes the 32-bit event uids wrap early.",
              ns3::UintegerValue(0),
              ns3::MakeUintegerAccessor(&FabricSimulatorImpl::next_sequence_),
              ns3::MakeUintegerChecker<uint64_t>(0, kIdMask));
  return type;
}

FabricSimulatorImpl::FabricSimulatorImpl() : free_ns3_event_(kNoSlot) {
  handlers_.fill({.function = &NoHandler, .context = nullptr});
  classes_[static_cast<size_t>(EventClass::kNs3)].traits = {.name = "ns-3 events",
                                                            .pending = PendingMeans::kAnything};
}

FabricSimulatorImpl::~FabricSimulatorImpl() = default;

FabricSimulatorImpl& FabricSimulatorImpl::Get() {
  const auto impl = ns3::DynamicCast<FabricSimulatorImpl>(ns3::Simulator::GetImplementation());
  SIM_CHECK(impl != nullptr, "InitVirtualTime() was not called");
  return *impl;
}

void FabricSimulatorImpl::Register(EventClass event_class, const EventTraits& traits,
                                   EventHandler handler, void* context) {
  const auto priority = static_cast<size_t>(event_class);
  SIM_CHECK(event_class != EventClass::kNs3, "ns-3 events have no handler");
  SIM_CHECK(priority < handlers_.size(), "a priority beyond 63");
  RegisteredClass& registered = classes_[priority];
  SIM_CHECK(!registered.is_registered, "priority " + std::to_string(priority) + " of " +
                                           traits.name + " is that of " + registered.traits.name);
  registered = {.traits = traits, .is_registered = true};
  handlers_[priority] = {.function = handler, .context = context};
}

void FabricSimulatorImpl::SetPrefetch(EventClass event_class,
                                      const TimingWheel::Prefetch& prefetch) {
  wheel_.SetPrefetch(static_cast<unsigned>(event_class), prefetch);
}

void FabricSimulatorImpl::RefuseFabricEvent(int64_t time_ps, EventClass event_class,
                                            uint64_t id) const {
  CheckFailed(__FILE__, __LINE__, "time_ps >= NowPs() && id < 2^kIdBits",
              "fabric event at " + std::to_string(time_ps) + " ps, now " + std::to_string(now_ps_) +
                  " ps, class " + std::to_string(static_cast<int>(event_class)) + ", id " +
                  std::to_string(id));
}

// --- Running -----------------------------------------------------------------------------------

void FabricSimulatorImpl::Run() {
  main_thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  attention_.fetch_and(~kStopRequested, std::memory_order_relaxed);
  TimingWheel::Event event;
  while (true) {
    LookIfRequested();
    const uint32_t attention = attention_.load(std::memory_order_relaxed);
    if (attention != 0) [[unlikely]] {
      if ((attention & kForeignEventsWaiting) != 0) {
        TakeForeignEvents();
      }
      if ((attention & kStopRequested) != 0) {
        return;
      }
    }
    if (!wheel_.PopEarliest(event)) [[unlikely]] {
      if (attention_.load(std::memory_order_relaxed) == 0) {
        return;
      }
      continue;
    }
    if (event.time_ps > limit_ps_) [[unlikely]] {
      if (!PassLimit(event)) return;
    }
    const uint64_t event_class = event.tie >> kIdBits;
    if (event_class == static_cast<uint64_t>(EventClass::kNs3)) {
      RunNs3Event(event);
      continue;
    }
    now_ps_ = event.time_ps;
    ++event_count_;
    context_ = ns3::Simulator::NO_CONTEXT;
    const Handler& handler = handlers_[event_class];
    handler.function(handler.context, event.target);
  }
}

int64_t FabricSimulatorImpl::RunBefore(const EventPlace& end) {
  attention_.fetch_and(~kStopRequested, std::memory_order_relaxed);
  TimingWheel::Event event;
  while (wheel_.PopEarliest(event)) {
    if (EventPlace{event.time_ps, event.tie} >= end) {
      wheel_.Insert(event.time_ps, event.tie, event.target);
      return event.time_ps;
    }
    const uint64_t event_class = event.tie >> kIdBits;
    SIM_CHECK(event_class != static_cast<uint64_t>(EventClass::kNs3), "an ns-3 event in a window");
    now_ps_ = event.time_ps;
    ++event_count_;
    const Handler& handler = handlers_[event_class];
    handler.function(handler.context, event.target);
    if (attention_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      last_place_ = {event.time_ps, event.tie};
      return event.time_ps;
    }
  }
  return INT64_MAX;
}

void FabricSimulatorImpl::SetSample(int64_t time_ps, Sample sample) {
  sample_ = std::move(sample);
  sample_at_ps_ = sample_ ? time_ps : INT64_MAX;
  limit_ps_ = std::min(time_end_ps_, sample_at_ps_);
}

bool FabricSimulatorImpl::PassLimit(const TimingWheel::Event& next) {
  if (next.time_ps > time_end_ps_) {
    EndTime(next);
    return false;
  }
  sample_at_ps_ = sample_(next.time_ps);
  limit_ps_ = std::min(time_end_ps_, sample_at_ps_);
  return true;
}

// The next event stays pending.
void FabricSimulatorImpl::EndTime(const TimingWheel::Event& next) {
  wheel_.Insert(next.time_ps, next.tie, next.target);
  has_reached_time_end_ = true;
  Stop();
}

// While it lives, time and events are others.
class FabricSimulatorImpl::Speculation {
 public:
  explicit Speculation(FabricSimulatorImpl& engine) : engine_(engine), now_ps_(engine.now_ps_) {
    if (!engine_.ahead_) engine_.ahead_ = std::make_unique<TimingWheel>();
    engine_.ahead_->Restart();
    engine_.ahead_->SetPrefetchAs(engine_.wheel_);
    engine_.wheel_.Swap(*engine_.ahead_);
  }
  Speculation(const Speculation&) = delete;
  Speculation& operator=(const Speculation&) = delete;
  ~Speculation() {
    TimingWheel::Event event;
    while (engine_.wheel_.PopEarliest(event)) {
    }
    engine_.wheel_.Swap(*engine_.ahead_);
    engine_.now_ps_ = now_ps_;
  }

 private:
  FabricSimulatorImpl& engine_;
  int64_t now_ps_;
};

void FabricSimulatorImpl::RunAhead(const std::function<void()>& begin) {
  const Speculation speculation(*this);
  begin();
  TimingWheel::Event event;
  while (wheel_.PopEarliest(event)) {
    LookIfRequested();
    const uint64_t event_class = event.tie >> kIdBits;
    SIM_CHECK(event_class != static_cast<uint64_t>(EventClass::kNs3), "an ns-3 event ahead");
    now_ps_ = event.time_ps;
    ++event_count_;
    const Handler& handler = handlers_[event_class];
    handler.function(handler.context, event.target);
  }
}

void FabricSimulatorImpl::RunNs3Event(const TimingWheel::Event& event) {
  const Ns3Event ns3_event = TakeNs3Event(event.target);
  const uint64_t sequence = event.tie & kIdMask;
  if (!removed_.empty() && removed_.erase(sequence) != 0) {
    return;
  }
  const ns3::Ptr<ns3::EventImpl> impl(ns3_event.impl, false);
  now_ps_ = event.time_ps;
  ++event_count_;
  context_ = ns3_event.context;
  last_ns3_time_ps_ = event.time_ps;
  last_ns3_sequence_ = sequence;
  impl->Invoke();
}

bool FabricSimulatorImpl::IsUnused() const {
  return now_ps_ == 0 && wheel_.size() == 0 &&
         std::ranges::none_of(classes_, &RegisteredClass::is_registered);
}

bool FabricSimulatorImpl::IsFinished() const {
  // Removed events are still on the wheel.
  return wheel_.size() == removed_.size() ||
         (attention_.load(std::memory_order_relaxed) & kStopRequested) != 0;
}

void FabricSimulatorImpl::Stop() { attention_.fetch_or(kStopRequested, std::memory_order_relaxed); }

FabricSimulatorImpl::StopResult FabricSimulatorImpl::Stop(const ns3::Time& delay) {
  return StopResult(
      Schedule(delay, ns3::MakeEvent(static_cast<void (*)()>(&ns3::Simulator::Stop))));
}

void FabricSimulatorImpl::Destroy() {
  while (!destroy_events_.empty()) {
    const ns3::Ptr<ns3::EventImpl> impl = destroy_events_.front().PeekEventImpl();
    destroy_events_.pop_front();
    if (!impl->IsCancelled()) {
      impl->Invoke();
    }
  }
}

void FabricSimulatorImpl::DoDispose() {
  // Events are released where they are: sorting them as PopEarliest() does takes memory, which may
  // have run out. An event that is released may schedule others.
  for (const ForeignEvent& event : foreign_events_) event.impl->Unref();
  foreign_events_.clear();
  uint64_t scheduled = 0;
  do {
    scheduled = next_sequence_;
    for (uint32_t slot = 0; slot < ns3_events_.size(); ++slot) {
      if (ns3_events_[slot].impl == nullptr) continue;
      const Ns3Event event = TakeNs3Event(slot);
      if (removed_.erase(event.sequence) == 0) event.impl->Unref();
    }
  } while (next_sequence_ != scheduled);
  SimulatorImpl::DoDispose();
}

// --- Scheduling --------------------------------------------------------------------------------

ns3::EventId FabricSimulatorImpl::Schedule(const ns3::Time& delay, ns3::EventImpl* event) {
  const int64_t time_ps = TimeAfter(delay.GetTimeStep());
  const uint32_t uid = InsertNs3Event(time_ps, context_, event);
  return ns3::EventId(event, static_cast<uint64_t>(time_ps), context_, uid);
}

void FabricSimulatorImpl::ScheduleWithContext(uint32_t context, const ns3::Time& delay,
                                              ns3::EventImpl* event) {
  if (std::this_thread::get_id() == main_thread_.load(std::memory_order_relaxed)) {
    InsertNs3Event(TimeAfter(delay.GetTimeStep()), context, event);
    return;
  }
  const std::lock_guard lock(foreign_mutex_);
  foreign_events_.push_back({event, delay.GetTimeStep(), context});
  attention_.fetch_or(kForeignEventsWaiting, std::memory_order_relaxed);
}

ns3::EventId FabricSimulatorImpl::ScheduleNow(ns3::EventImpl* event) {
  return Schedule(ns3::TimeStep(0), event);
}

ns3::EventId FabricSimulatorImpl::ScheduleDestroy(ns3::EventImpl* event) {
  ns3::EventId id(ns3::Ptr<ns3::EventImpl>(event, false), static_cast<uint64_t>(now_ps_),
                  ns3::Simulator::NO_CONTEXT, ns3::EventId::DESTROY);
  destroy_events_.push_back(id);
  ++next_sequence_;  // as ns-3's own implementation counts, so that uids agree
  return id;
}

int64_t FabricSimulatorImpl::TimeAfter(int64_t delay_ps) const {
  SIM_CHECK(delay_ps >= 0, "ns-3 event with a delay of " + std::to_string(delay_ps) + " ps");
  return delay_ps > INT64_MAX - now_ps_ ? INT64_MAX : now_ps_ + delay_ps;
}

uint32_t FabricSimulatorImpl::InsertNs3Event(int64_t time_ps, uint32_t context,
                                             ns3::EventImpl* impl) {
  const uint64_t sequence = next_sequence_++;
  uint32_t slot = free_ns3_event_;
  if (slot == kNoSlot) {
    slot = static_cast<uint32_t>(ns3_events_.size());
    ns3_events_.push_back({impl, sequence, context, kNoSlot});
  } else {
    free_ns3_event_ = ns3_events_[slot].next_free;
    ns3_events_[slot] = {impl, sequence, context, kNoSlot};
  }
  wheel_.Insert(time_ps, static_cast<uint64_t>(EventClass::kNs3) << kIdBits | sequence, slot);
  return UidOf(sequence);
}

FabricSimulatorImpl::Ns3Event FabricSimulatorImpl::TakeNs3Event(uint32_t slot) {
  const Ns3Event event = ns3_events_[slot];
  ns3_events_[slot].impl = nullptr;
  ns3_events_[slot].next_free = free_ns3_event_;
  free_ns3_event_ = slot;
  return event;
}

void FabricSimulatorImpl::TakeForeignEvents() {
  std::vector<ForeignEvent> events;
  {
    const std::lock_guard lock(foreign_mutex_);
    events.swap(foreign_events_);
    attention_.fetch_and(~kForeignEventsWaiting, std::memory_order_relaxed);
  }
  for (const ForeignEvent& event : events) {
    InsertNs3Event(TimeAfter(event.delay_ps), event.context, event.impl);
  }
}

// --- Taking back -------------------------------------------------------------------------------

uint32_t FabricSimulatorImpl::UidOf(uint64_t sequence) {
  return static_cast<uint32_t>(ns3::EventId::VALID + sequence % kUidCount);
}

uint64_t FabricSimulatorImpl::SequenceOf(uint32_t uid) const {
  const uint64_t newest = next_sequence_ - 1;
  const uint64_t age = newest % kUidCount + kUidCount - (uid - ns3::EventId::VALID);
  return newest - age % kUidCount;
}

void FabricSimulatorImpl::Remove(const ns3::EventId& id) {
  if (id.GetUid() == ns3::EventId::DESTROY) {
    const auto found = std::find(destroy_events_.begin(), destroy_events_.end(), id);
    if (found != destroy_events_.end()) {
      destroy_events_.erase(found);
    }
    return;
  }
  if (IsExpired(id)) {
    return;
  }
  removed_.insert(SequenceOf(id.GetUid()));
  id.PeekEventImpl()->Cancel();
  id.PeekEventImpl()->Unref();
}

void FabricSimulatorImpl::Cancel(const ns3::EventId& id) {
  if (!IsExpired(id)) {
    id.PeekEventImpl()->Cancel();
  }
}

bool FabricSimulatorImpl::IsExpired(const ns3::EventId& id) const {
  ns3::EventImpl* const impl = id.PeekEventImpl();
  if (impl == nullptr || impl->IsCancelled()) {
    return true;
  }
  if (id.GetUid() == ns3::EventId::DESTROY) {
    return std::find(destroy_events_.begin(), destroy_events_.end(), id) == destroy_events_.end();
  }
  const auto time_ps = static_cast<int64_t>(id.GetTs());
  return time_ps < now_ps_ ||
         (time_ps == last_ns3_time_ps_ && SequenceOf(id.GetUid()) <= last_ns3_sequence_);
}

// --- Looking -----------------------------------------------------------------------------------

ns3::Time FabricSimulatorImpl::Now() const { return ns3::TimeStep(static_cast<uint64_t>(now_ps_)); }

ns3::Time FabricSimulatorImpl::GetDelayLeft(const ns3::EventId& id) const {
  return ns3::TimeStep(IsExpired(id) ? 0 : id.GetTs() - static_cast<uint64_t>(now_ps_));
}

ns3::Time FabricSimulatorImpl::GetMaximumSimulationTime() const {
  return ns3::TimeStep(static_cast<uint64_t>(INT64_MAX));
}

void FabricSimulatorImpl::SetScheduler(ns3::ObjectFactory /*scheduler_factory*/) {}

uint32_t FabricSimulatorImpl::GetSystemId() const { return 0; }

uint32_t FabricSimulatorImpl::GetContext() const { return context_; }

}  // namespace railyard
