// SPDX-License-Identifier: GPL-2.0-only
// A scenario's fabric and its collectives within a program of ns-3's: they run in ns-3's simulator
// beside the program's own events, nodes and applications.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ns3/nstime.h>
#include <ns3/object.h>
#include <ns3/traced-callback.h>

#include "analysis/result/run_result.h"
#include "railyard/ns3/fabric_channel.h"
#include "railyard/ns3/fabric_link.h"
#include "railyard/ns3/trace_events.h"
#include "railyard/scenario_builder.h"
#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

class FabricBridge;
class FabricNetDevice;
struct NicCnpSent;
struct NicRateChanged;
struct NicTimeout;
struct EcnMarked;
struct LinkStateChanged;
struct PacketDropped;
struct PauseSent;

// There is one at a time, from Build() to ns3::Simulator::Destroy(). RailyardHelper makes it. In
// Config's paths it is "/Railyard": "/Railyard/SwitchList/*/Alpha",
// "/Railyard/LinkList/*/PacketReceived".
//
// The replay cache is off, and nothing is forked: there is no paired run without faults.
class FabricSimulation : public ns3::Object {
 public:
  static ns3::TypeId GetTypeId();
  FabricSimulation();
  ~FabricSimulation() override;

  // Builds the fabric. Returns false if the scenario has errors; `diagnostics` then has every
  // finding. Must be called once, before Simulator::Run(); RailyardHelper::UseEngine() must have
  // been called. Attributes of the network and of switches can be set until the simulator runs, at
  // whose time 0 they are read. ns-3's seed and run decide the scenario's seed, unless both have
  // their default, 1.
  bool Build(const ScenarioBuilder& scenario, Diagnostics& diagnostics);

  // Returns true if all calls have ended, or nothing goes on any more.
  bool HasEnded() const;
  // Returns what has been measured, after the simulation or so far (RUNNING). After
  // Simulator::Destroy() it is what there was then. Precondition: the simulator has run.
  RunResult GetResult() const;

  // The parts of the fabric. Null stands for what does not exist.
  ns3::Ptr<ns3::Object> GetNetwork() const;
  uint32_t GetNSwitches() const;
  ns3::Ptr<ns3::Object> GetSwitch(uint32_t index) const;
  uint32_t GetNLinks() const;
  ns3::Ptr<FabricLink> GetLink(uint32_t index) const;
  // `name` is e.g. "server1/nic3>leaf3".
  ns3::Ptr<FabricLink> FindLink(const std::string& name) const;
  ns3::Ptr<FabricChannel> GetChannel() const;
  std::vector<std::string> NicNames() const;

  // Connects a device with a NIC of the fabric. Returns false if there is no NIC of that name, or
  // another device is there.
  bool Attach(const ns3::Ptr<FabricNetDevice>& device, const std::string& nic);
  // The device's way into the fabric. Begins the simulation, if it has not begun.
  FabricBridge* bridge();

 private:
  struct Parts;
  class ConfigRoot;

  void Begin();
  void TraceLinks();
  void OnEnded();
  void OnCollective(uint32_t collective, bool has_ended) const;
  void End();  // with ns-3's simulator
  bool GoesOn() const;
  RunResult Record() const;

  // The network's own trace sources, connected as soon as somebody listens.
  void TraceDrops();
  void TraceLinkStates();
  void TracePauses();
  void TraceMarks();
  void TraceNics();
  void OnPacketDropped(const PacketDropped& drop);
  void OnLinkStateChanged(const LinkStateChanged& change);
  void OnPauseSent(const PauseSent& pause);
  void OnEcnMarked(const EcnMarked& mark);
  void OnTimeout(std::string nic, const NicTimeout& timeout);
  void OnCnpSent(std::string nic, const NicCnpSent& cnp);
  void OnRateChanged(std::string nic, const NicRateChanged& change);

  ns3::Time start_time_;
  bool stops_simulator_ = false;
  std::unique_ptr<Parts> parts_;
  ns3::TracedCallback<const CollectiveEvent&> collective_start_;
  ns3::TracedCallback<const CollectiveEvent&> collective_end_;
  ns3::TracedCallback<const CallEvent&> call_end_;
  ns3::TracedCallback<> ended_;
  ns3::TracedCallback<const PacketEvent&> packet_dropped_;
  ns3::TracedCallback<const PacketEvent&> ecn_marked_;
  ns3::TracedCallback<const LinkStateEvent&> link_state_;
  ns3::TracedCallback<const PauseEvent&> pause_sent_;
  ns3::TracedCallback<const QueuePairEvent&> timeout_;
  ns3::TracedCallback<const QueuePairEvent&> cnp_sent_;
  ns3::TracedCallback<const RateEvent&> rate_changed_;
};

}  // namespace railyard
