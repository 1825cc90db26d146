// SPDX-License-Identifier: GPL-2.0-only
#include "railyard/ns3/fabric_simulation.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <ns3/abort.h>
#include <ns3/boolean.h>
#include <ns3/config.h>
#include <ns3/log.h>
#include <ns3/object-vector.h>
#include <ns3/pointer.h>
#include <ns3/rng-seed-manager.h>
#include <ns3/simulator.h>

#include "railyard/ns3/fabric_net_device.h"
#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/event_order/event_order.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/fabric/routing_delays.h"
#include "simulator/ns3/fabric_bridge.h"
#include "simulator/ns3/nic_list.h"
#include "simulator/ns3/on_demand_accessor.h"
#include "simulator/ns3/packet_events.h"
#include "simulator/run/result_recorder.h"
#include "simulator/run/run_options.h"
#include "simulator/run/simulation.h"
#include "simulator/scenario/check/run_size.h"
#include "simulator/scenario/schema/scenario.h"
#include "simulator/transport/nic/nic_events.h"

NS_LOG_COMPONENT_DEFINE("RailyardFabricSimulation");

namespace railyard {

NS_OBJECT_ENSURE_REGISTERED(FabricSimulation);

namespace {

// The one that ns-3's simulator has. It is never destroyed with the process's statics, which may
// have gone before.
ns3::Ptr<FabricSimulation>& Current() {
  static auto* const kCurrent = new ns3::Ptr<FabricSimulation>();
  return *kCurrent;
}

ns3::Time TimeOf(int64_t time_ps) { return ns3::TimeStep(static_cast<uint64_t>(time_ps)); }

}  // namespace

// Is the object that Config finds as "/Railyard".
class FabricSimulation::ConfigRoot : public ns3::Object {
 public:
  static ns3::TypeId GetTypeId() {
    static ns3::TypeId type_id =
        ns3::TypeId("railyard::ConfigRoot")
            .SetParent<ns3::Object>()
            .SetGroupName("Railyard")
            .AddAttribute("Railyard", "The fabric and its collectives.", ns3::TypeId::ATTR_GET,
                          ns3::PointerValue(), ns3::MakePointerAccessor(&ConfigRoot::GetSimulation),
                          ns3::MakePointerChecker<FabricSimulation>());
    return type_id;
  }

 private:
  ns3::Ptr<FabricSimulation> GetSimulation() const { return Current(); }
};

struct FabricSimulation::Parts {
  std::shared_ptr<const Scenario> scenario;
  ns3::Ptr<FabricNetwork> network;
  ns3::Ptr<ConfigRoot> root;
  std::vector<ns3::Ptr<Switch>> switches;
  std::vector<ns3::Ptr<FabricLink>> links;  // by link; null: nobody has asked for it
  std::optional<NicList> nics;              // once the scenario is built
  ns3::Ptr<Routing> routing;
  ns3::Ptr<FabricChannel> channel;
  std::unique_ptr<Simulation> simulation;  // once it has begun
  std::unique_ptr<FabricBridge> bridge;
  std::optional<RunResult> result;  // once ns-3's simulator is destroyed
  bool has_reported_end = false;
  bool traces_drops = false;
  bool traces_link_states = false;
  bool traces_pauses = false;
  bool traces_marks = false;
  bool traces_nics = false;
  bool calls_sink = false;  // of a trace source, within an event

  const FabricGraph& graph() const { return scenario->fabric; }
  const std::string& NameOf(LinkId link) const { return graph().link(link).name; }
  bool IsNicUp(DeviceId nic) const {
    return std::ranges::any_of(graph().WiresOfNic(nic),
                               [this](LinkId wire) { return network->IsLinkUp(wire); });
  }
};

// Marks that sinks of trace sources are called.
class FabricSimulation::SinkCall {
 public:
  explicit SinkCall(Parts& parts)
      : parts_(parts), was_set_(std::exchange(parts.calls_sink, true)) {}
  SinkCall(const SinkCall&) = delete;
  SinkCall& operator=(const SinkCall&) = delete;
  ~SinkCall() { parts_.calls_sink = was_set_; }

 private:
  Parts& parts_;
  bool was_set_;
};

// A list of attributes and trace sources. NOLINTNEXTLINE(readability-function-size)
ns3::TypeId FabricSimulation::GetTypeId() {
  using F = FabricSimulation;
  static ns3::TypeId type_id =
      ns3::TypeId("railyard::FabricSimulation")
          .SetParent<ns3::Object>()
          .SetGroupName("Railyard")
          .AddConstructor<F>()
          .AddAttribute(
              "StartTime",
              "Time at which the workload begins; times of faults count from the simulator's time "
              "0 all the same.",
              ns3::TimeValue(ns3::Time(0)), ns3::MakeTimeAccessor(&F::start_time_),
              ns3::MakeTimeChecker(ns3::Time(0)))
          .AddAttribute("StopSimulator", "The end of the workload stops ns-3's simulator.",
                        ns3::BooleanValue(false), ns3::MakeBooleanAccessor(&F::stops_simulator_),
                        ns3::MakeBooleanChecker())
          .AddAttribute("Network", "The fabric as a whole (railyard::FabricNetwork).",
                        ns3::TypeId::ATTR_GET, ns3::PointerValue(),
                        ns3::MakePointerAccessor(&F::GetNetwork),
                        ns3::MakePointerChecker<ns3::Object>())
          .AddAttribute("SwitchList", "The switches (railyard::Switch), in the fabric's order.",
                        ns3::TypeId::ATTR_GET, ns3::ObjectVectorValue(),
                        ns3::MakeObjectVectorAccessor(&F::GetSwitch, &F::GetNSwitches),
                        ns3::MakeObjectVectorChecker<ns3::Object>())
          .AddAttribute("LinkList", "The links (railyard::FabricLink), one per direction.",
                        ns3::TypeId::ATTR_GET, ns3::ObjectVectorValue(),
                        ns3::MakeObjectVectorAccessor(&F::GetLink, &F::GetNLinks),
                        ns3::MakeObjectVectorChecker<FabricLink>())
          .AddAttribute("NicList", "The NICs (railyard::Nic), in the fabric's order.",
                        ns3::TypeId::ATTR_GET, ns3::ObjectVectorValue(),
                        ns3::MakeObjectVectorAccessor(&F::GetNic, &F::GetNNics),
                        ns3::MakeObjectVectorChecker<ns3::Object>())
          .AddAttribute("Routing", "The delays of new routes (railyard::Routing).",
                        ns3::TypeId::ATTR_GET, ns3::PointerValue(),
                        ns3::MakePointerAccessor(&F::GetRouting),
                        ns3::MakePointerChecker<ns3::Object>())
          .AddTraceSource("CollectiveStart", "The first rank of a collective begins.",
                          ns3::MakeTraceSourceAccessor(&F::collective_start_),
                          "railyard::CollectiveEvent")
          .AddTraceSource("CollectiveEnd", "The last rank of a collective has ended.",
                          ns3::MakeTraceSourceAccessor(&F::collective_end_),
                          "railyard::CollectiveEvent")
          .AddTraceSource("CallEnd", "A rank's call of a collective has ended.",
                          ns3::MakeTraceSourceAccessor(&F::call_end_), "railyard::CallEvent")
          .AddTraceSource("Ended", "The workload has ended, or nothing of it goes on any more.",
                          ns3::MakeTraceSourceAccessor(&F::ended_), "ns3::TracedCallback<>")
          .AddTraceSource("PacketDropped",
                          "A packet was lost: on a link, in a buffer, for want of a route, or at a "
                          "receiver that does not accept it.",
                          MakeOnDemandAccessor(&F::packet_dropped_, &F::TraceDrops),
                          "railyard::PacketEvent")
          .AddTraceSource("EcnMarked", "A switch has marked a packet that joins a queue.",
                          MakeOnDemandAccessor(&F::ecn_marked_, &F::TraceMarks),
                          "railyard::PacketEvent")
          .AddTraceSource("LinkState", "A direction of a link went down or came back.",
                          MakeOnDemandAccessor(&F::link_state_, &F::TraceLinkStates),
                          "railyard::LinkStateEvent")
          .AddTraceSource("PauseSent", "A pause frame was sent to the sender of a link.",
                          MakeOnDemandAccessor(&F::pause_sent_, &F::TracePauses),
                          "railyard::PauseEvent")
          .AddTraceSource("Timeout", "A queue pair's retransmission timer has run out.",
                          MakeOnDemandAccessor(&F::timeout_, &F::TraceNics),
                          "railyard::QueuePairEvent")
          .AddTraceSource("CnpSent", "A NIC answers a marked packet with a CNP.",
                          MakeOnDemandAccessor(&F::cnp_sent_, &F::TraceNics),
                          "railyard::QueuePairEvent")
          .AddTraceSource("RateChanged", "Congestion control has chosen another rate.",
                          MakeOnDemandAccessor(&F::rate_changed_, &F::TraceNics),
                          "railyard::RateEvent");
  return type_id;
}

FabricSimulation::FabricSimulation() : parts_(std::make_unique<Parts>()) {}
FabricSimulation::~FabricSimulation() = default;

// --- Building ------------------------------------------------------------------------------------

bool FabricSimulation::Build(const ScenarioBuilder& scenario, Diagnostics& diagnostics) {
  const auto implementation = ns3::Simulator::GetImplementation();
  NS_ABORT_MSG_IF(ns3::DynamicCast<FabricSimulatorImpl>(implementation) == nullptr ||
                      ns3::Time::GetResolution() != ns3::Time::PS,
                  "RailyardHelper::UseEngine() must be the first call of a program");
  NS_ABORT_MSG_IF(Current() != nullptr || parts_->scenario != nullptr,
                  "a second fabric in one simulation of ns-3");
  NS_ABORT_MSG_IF(!ns3::Simulator::Now().IsZero(), "a fabric that is built after time 0");
  ScenarioBuilder seeded = scenario;
  const uint32_t seed = ns3::RngSeedManager::GetSeed();
  const uint64_t run = ns3::RngSeedManager::GetRun();
  if (seed != 1 || run != 1) seeded.Set("seed", uint64_t{seed} << 32 ^ run);
  auto built = seeded.Build(diagnostics);
  if (!built) return false;
  if (const std::string why = WhyTooLarge(built->exchange_connections); !why.empty()) {
    diagnostics.Error({.file = built->path}, "", why);
    return false;
  }
  if (built->stack.uses_flows) {
    diagnostics.Error({.file = built->path}, "mode",
                      "FLOW has no packets, beside which a program's own could wait (expected "
                      "PACKET)");
    return false;
  }
  parts_->scenario = std::move(built);
  const FabricGraph& graph = parts_->graph();
  parts_->network = BuildNetwork(*parts_->scenario, FabricSimulatorImpl::Get());
  for (DeviceId id{0}; id < graph.device_count(); ++id) {
    if (const auto model = parts_->network->GetSwitch(id)) parts_->switches.push_back(model);
  }
  parts_->links.resize(graph.link_count());
  parts_->nics.emplace(graph, parts_->scenario->stack);
  parts_->routing = ns3::CreateObject<Routing>();
  parts_->routing->SetDelays(parts_->scenario->routing);
  parts_->channel = ns3::CreateObject<FabricChannel>();
  parts_->root = ns3::CreateObject<ConfigRoot>();
  ns3::Config::RegisterRootNamespaceObject(parts_->root);
  Current() = this;
  ns3::Simulator::ScheduleDestroy(&FabricSimulation::End, this);
  ns3::Simulator::ScheduleNow(&FabricSimulation::Begin, this);
  TraceLinkStates();  // devices follow their NIC's links
  // Sinks may have connected before there was a fabric.
  if (!packet_dropped_.IsEmpty()) TraceDrops();
  if (!ecn_marked_.IsEmpty()) TraceMarks();
  if (!pause_sent_.IsEmpty()) TracePauses();
  if (!timeout_.IsEmpty() || !cnp_sent_.IsEmpty() || !rate_changed_.IsEmpty()) TraceNics();
  TraceWhatIsLogged();
  NS_LOG_INFO("built " << parts_->scenario->name << " with seed " << parts_->scenario->seed);
  return true;
}

// The first frame of a device may come before the event that Build() has scheduled.
void FabricSimulation::Begin() {
  if (parts_->simulation || parts_->result) return;
  NS_LOG_FUNCTION(this);
  const Scenario& scenario = *parts_->scenario;
  parts_->network->Configure();
  parts_->simulation = std::make_unique<Simulation>(
      scenario, scenario.job, RunOptions{.baseline = false, .replay_cache = ReplayCacheMode::kOff},
      parts_->network,
      Simulation::Surroundings{.on_ended = [this] { OnEnded(); },
                               .on_routes_changed =
                                   [this] {
                                     if (parts_->bridge) parts_->bridge->OnRoutesChanged();
                                   },
                               .job_delay_ps = start_time_.GetTimeStep(),
                               .stack = parts_->nics->Settings(),
                               .routing = parts_->routing->delays()});
  ReplayEngine& replay = parts_->simulation->replay();
  NS_ABORT_MSG_IF(
      replay.executor().network_stack().queue_pairs() == nullptr && parts_->nics->HasChanged(),
      "attributes of NICs are set, but transport " << scenario.stack.name << " does not read them");
  parts_->bridge = std::make_unique<FabricBridge>(
      scenario.fabric, *parts_->network, parts_->simulation->routing(),
      scenario.stack.nic.mtu_bytes + scenario.stack.nic.HeaderBytes());
  for (const auto& device : parts_->channel->devices()) {
    parts_->bridge->Attach(DeviceId{device->nic()}, *device);
  }
  replay.hooks().on_collective = [this](CollectiveIndex collective, bool has_ended) {
    OnCollective(collective, has_ended);
  };
  replay.hooks().on_call_end = [this](const Call& call, int64_t begin_ps, int64_t end_ps) {
    if (call_end_.IsEmpty()) return;
    const CallTable& calls = parts_->simulation->replay().calls();
    const SinkCall sink_call(*parts_);
    call_end_({.rank = call.rank,
               .collective = calls.CollectiveNumberOf(call),
               .start = TimeOf(begin_ps),
               .end = TimeOf(end_ps)});
  };
  TraceLinks();
  parts_->simulation->Start();
}

FabricBridge* FabricSimulation::bridge() {
  Begin();
  return parts_->bridge.get();
}

bool FabricSimulation::Attach(const ns3::Ptr<FabricNetDevice>& device, const std::string& nic) {
  NS_ABORT_MSG_IF(parts_->scenario == nullptr, "a device is attached before the fabric is built");
  NS_ABORT_MSG_IF(device->GetNode() == nullptr || device->GetQueue() == nullptr,
                  "a device is attached without a node or without a queue");
  const FabricGraph& graph = parts_->graph();
  const auto id = graph.FindDevice(nic);
  if (!id || graph.device(*id).kind != DeviceKind::kNic) return false;
  for (const auto& other : parts_->channel->devices()) {
    if (other->nic() == *id) return false;
  }
  parts_->channel->Add(device);
  device->SetFabric(this, *id);
  if (parts_->bridge) {
    parts_->bridge->Attach(*id, *device);
    device->SetLinkUp(parts_->IsNicUp(*id));
  }
  return true;
}

// --- The parts of the fabric ---------------------------------------------------------------------

ns3::Ptr<ns3::Object> FabricSimulation::GetNetwork() const { return parts_->network; }

uint32_t FabricSimulation::GetNSwitches() const {
  return static_cast<uint32_t>(parts_->switches.size());
}

ns3::Ptr<ns3::Object> FabricSimulation::GetSwitch(uint32_t index) const {
  return index < parts_->switches.size() ? parts_->switches[index] : nullptr;
}

uint32_t FabricSimulation::GetNNics() const { return parts_->nics ? parts_->nics->size() : 0; }

ns3::Ptr<ns3::Object> FabricSimulation::GetNic(uint32_t index) const {
  if (index >= GetNNics()) return nullptr;
  return parts_->nics->nic(index);
}

ns3::Ptr<ns3::Object> FabricSimulation::GetRouting() const { return parts_->routing; }

uint32_t FabricSimulation::GetNLinks() const { return static_cast<uint32_t>(parts_->links.size()); }

ns3::Ptr<FabricLink> FabricSimulation::GetLink(uint32_t index) const {
  if (index >= parts_->links.size()) return nullptr;
  ns3::Ptr<FabricLink>& link = parts_->links[index];
  if (link == nullptr) {
    const LinkProperties& properties = parts_->graph().link(LinkId{index});
    link = ns3::CreateObject<FabricLink>();
    // Before the begin, it is too early for taps: the network is yet to be configured.
    link->Describe(properties.name, properties.rate_bps, [this, index] {
      if (!parts_->simulation) return;
      parts_->network->taps().Add(
          LinkId{index}, [this, index](const Packet& packet, std::optional<DropReason> loss) {
            const SinkCall call(*parts_);
            parts_->links[index]->NotifyPacket(
                EventOf(packet, *parts_->network, parts_->graph(), loss));
          });
    });
  }
  return link;
}

ns3::Ptr<FabricLink> FabricSimulation::FindLink(const std::string& name) const {
  for (LinkId id{0}; id < parts_->links.size(); ++id) {
    if (parts_->NameOf(id) == name) return GetLink(id);
  }
  return nullptr;
}

ns3::Ptr<FabricChannel> FabricSimulation::GetChannel() const { return parts_->channel; }

std::vector<std::string> FabricSimulation::NicNames() const {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < GetNNics(); ++i) {
    names.push_back(parts_->graph().device(parts_->nics->device(i)).name);
  }
  return names;
}

// --- Traces --------------------------------------------------------------------------------------

void FabricSimulation::TraceLinks() {
  for (const auto& link : parts_->links) {
    if (link != nullptr && link->is_traced()) link->AddTap();
  }
}

void FabricSimulation::OnCollective(uint32_t number, bool has_ended) const {
  const auto& source = has_ended ? collective_end_ : collective_start_;
  NS_LOG_LOGIC("collective " << number << (has_ended ? " has ended" : " begins"));
  if (source.IsEmpty()) return;
  const Job& job = parts_->simulation->job();
  const JobCollective& collective = job.collectives[number];
  const CollectiveTimes& times = parts_->simulation->replay().ledger().times()[number];
  const SinkCall call(*parts_);
  source({.collective = number,
          .kind = KindName(collective),
          .job = job.parts[job.PartOf(collective.communicator)].name,
          .bytes = collective.bytes,
          .rank_count = collective.rank_count,
          .start = TimeOf(times.first_start_ps),
          .end = TimeOf(has_ended ? times.last_end_ps : 0)});
}

void FabricSimulation::TraceDrops() {
  if (parts_->network == nullptr || std::exchange(parts_->traces_drops, true)) return;
  parts_->network->TraceConnectWithoutContext(
      "PacketDropped", ns3::MakeCallback(&FabricSimulation::OnPacketDropped, this));
}

void FabricSimulation::TraceLinkStates() {
  if (parts_->network == nullptr || std::exchange(parts_->traces_link_states, true)) return;
  parts_->network->TraceConnectWithoutContext(
      "LinkStateChanged", ns3::MakeCallback(&FabricSimulation::OnLinkStateChanged, this));
}

void FabricSimulation::TracePauses() {
  if (parts_->network == nullptr || std::exchange(parts_->traces_pauses, true)) return;
  parts_->network->TraceConnectWithoutContext(
      "PauseSent", ns3::MakeCallback(&FabricSimulation::OnPauseSent, this));
}

void FabricSimulation::TraceMarks() {
  if (parts_->network == nullptr || std::exchange(parts_->traces_marks, true)) return;
  parts_->network->TraceConnectWithoutContext(
      "EcnMarked", ns3::MakeCallback(&FabricSimulation::OnEcnMarked, this));
}

void FabricSimulation::TraceNics() {
  if (!parts_->nics || std::exchange(parts_->traces_nics, true)) return;
  for (uint32_t i = 0; i < parts_->nics->size(); ++i) {
    const ns3::Ptr<Nic>& nic = parts_->nics->nic(i);
    const std::string& name = parts_->graph().device(parts_->nics->device(i)).name;
    nic->TraceConnect("Timeout", name, ns3::MakeCallback(&FabricSimulation::OnTimeout, this));
    nic->TraceConnect("CnpSent", name, ns3::MakeCallback(&FabricSimulation::OnCnpSent, this));
    nic->TraceConnect("RateChanged", name,
                      ns3::MakeCallback(&FabricSimulation::OnRateChanged, this));
  }
}

// Without a log nothing is traced for it.
void FabricSimulation::TraceWhatIsLogged() {
  if (g_log.IsEnabled(ns3::LOG_INFO)) TraceNics();
  if (g_log.IsEnabled(ns3::LOG_LOGIC)) TraceDrops();
}

void FabricSimulation::OnPacketDropped(const railyard::PacketDropped& drop) {
  const SinkCall call(*parts_);
  PacketEvent event = EventOf(*drop.packet, *parts_->network, parts_->graph(), drop.reason);
  // It was dropped in front of a link, and has the times of the link before.
  if (drop.reason == DropReason::kBufferFull || drop.reason == DropReason::kHeadroomFull ||
      drop.reason == DropReason::kNoRoute) {
    event.sent = event.received = {};
  }
  event.link = drop.link == LinkId::kNone ? std::string_view() : parts_->NameOf(drop.link);
  NS_LOG_LOGIC("packet " << event.sequence << " of flow " << event.flow << " is lost at "
                         << event.link << ": " << event.reason);
  packet_dropped_(event);
}

void FabricSimulation::OnEcnMarked(const railyard::EcnMarked& mark) {
  const SinkCall call(*parts_);
  PacketEvent event = EventOf(*mark.packet, *parts_->network, parts_->graph(), std::nullopt);
  event.sent = event.received = {};  // it waits for the link
  ecn_marked_(event);
}

void FabricSimulation::OnLinkStateChanged(const LinkStateChanged& change) {
  const SinkCall call(*parts_);
  NS_LOG_INFO(parts_->NameOf(change.link) << " is " << (change.up ? "up" : "down"));
  link_state_({.link = parts_->NameOf(change.link), .is_up = change.up});
  const DeviceId nic = parts_->graph().link_source(change.link);
  for (const auto& device : parts_->channel->devices()) {
    if (device->nic() == nic) device->SetLinkUp(parts_->IsNicUp(nic));
  }
}

void FabricSimulation::OnPauseSent(const railyard::PauseSent& pause) {
  const SinkCall call(*parts_);
  pause_sent_({.link = parts_->NameOf(pause.link), .is_xoff = pause.xoff});
}

// ns-3 passes the context by value. NOLINTNEXTLINE(performance-unnecessary-value-param)
void FabricSimulation::OnTimeout(std::string nic, const NicTimeout& timeout) {
  const SinkCall call(*parts_);
  NS_LOG_INFO("time-out of queue pair " << timeout.queue_pair << " of " << nic);
  timeout_({.nic = nic, .queue_pair = timeout.queue_pair});
}

// ns-3 passes the context by value. NOLINTNEXTLINE(performance-unnecessary-value-param)
void FabricSimulation::OnCnpSent(std::string nic, const NicCnpSent& cnp) {
  const SinkCall call(*parts_);
  NS_LOG_LOGIC(nic << " sends a CNP of queue pair " << cnp.queue_pair);
  cnp_sent_({.nic = nic, .queue_pair = cnp.queue_pair});
}

// ns-3 passes the context by value. NOLINTNEXTLINE(performance-unnecessary-value-param)
void FabricSimulation::OnRateChanged(std::string nic, const NicRateChanged& change) {
  const SinkCall call(*parts_);
  NS_LOG_LOGIC("queue pair " << change.queue_pair << " of " << nic << " sends at "
                             << change.rate_bps << " bit/s");
  rate_changed_({.nic = nic, .queue_pair = change.queue_pair, .rate_bps = change.rate_bps});
}

// --- The end -------------------------------------------------------------------------------------

void FabricSimulation::OnEnded() {
  if (std::exchange(parts_->has_reported_end, true)) return;
  NS_LOG_INFO("the workload has ended");
  ended_();
  if (stops_simulator_) ns3::Simulator::Stop();
}

bool FabricSimulation::HasEnded() const {
  if (parts_->result) return parts_->result->status != RunStatus::kRunning;
  if (!parts_->simulation) return false;
  return parts_->simulation->replay().is_complete() || parts_->simulation->has_stalled();
}

// A job that has not ended goes on if any event is left that can change that.
bool FabricSimulation::GoesOn() const {
  if (HasEnded()) return false;
  if (parts_->calls_sink) return true;
  bool goes_on = false;
  parts_->simulation->engine().ForEachPending([&](int64_t /*time_ps*/, EventClass event_class) {
    goes_on |= event_class != event_order::kLook;
  });
  return goes_on;
}

RunResult FabricSimulation::Record() const {
  if (parts_->calls_sink && !HasEnded()) return parts_->simulation->RecordWithinEvent();
  return parts_->simulation->Record({}, GoesOn());
}

RunResult FabricSimulation::GetResult() const {
  if (parts_->result) return *parts_->result;
  NS_ABORT_MSG_IF(!parts_->simulation, "a result is asked for before the simulator has run");
  return Record();
}

void FabricSimulation::End() {
  if (parts_->simulation) parts_->result = Record();
  parts_->bridge.reset();
  parts_->simulation.reset();
  ns3::Config::UnregisterRootNamespaceObject(parts_->root);
  parts_->root = nullptr;
  parts_->channel->Dispose();
  Current() = nullptr;  // may destroy this
}

}  // namespace railyard
