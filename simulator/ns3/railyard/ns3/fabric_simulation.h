// SPDX-License-Identifier: GPL-2.0-only
// Simulates a scenario's fabric and collectives within an ns-3 program: they run in ns-3's
// simulator together with the program's own events, nodes and applications.
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

// Only one can exist at a time, from Build() to ns3::Simulator::Destroy(). RailyardHelper makes it.
// Its path in Config is "/Railyard": "/Railyard/SwitchList/*/Alpha",
// "/Railyard/NicList/*/CongestionControl", "/Railyard/LinkList/*/PacketReceived".
//
// The replay cache is off, and no process is forked: there is no paired run without faults.
class FabricSimulation : public ns3::Object {
 public:
  static ns3::TypeId GetTypeId();
  FabricSimulation();
  ~FabricSimulation() override;

  // Builds the fabric. Returns false if the scenario has errors; `diagnostics` then has every
  // finding. Must be called once, before Simulator::Run(); RailyardHelper::UseEngine() must have
  // been called. Attributes of the network, of switches, NICs and the routing can be set until the
  // simulator runs: they are read at its time 0. ns-3's seed and run number determine the
  // scenario's seed, unless both have their default, 1.
  bool Build(const ScenarioBuilder& scenario, Diagnostics& diagnostics);

  // Returns true if all calls have ended, or if none can continue.
  bool HasEnded() const;
  // Returns the measurements of the whole simulation or, if it has not ended, so far (status
  // RUNNING). In a sink of a trace source they are those within the event. After
  // Simulator::Destroy() they are those of that time. Precondition: the simulator has run.
  RunResult GetResult() const;

  // These return the parts of the fabric, or null for a part that does not exist.
  ns3::Ptr<ns3::Object> GetNetwork() const;
  uint32_t GetNSwitches() const;
  ns3::Ptr<ns3::Object> GetSwitch(uint32_t index) const;
  uint32_t GetNNics() const;
  ns3::Ptr<ns3::Object> GetNic(uint32_t index) const;
  ns3::Ptr<ns3::Object> GetRouting() const;
  uint32_t GetNLinks() const;
  ns3::Ptr<FabricLink> GetLink(uint32_t index) const;
  // Returns the link of that name, e.g. "server1/nic3>leaf3".
  ns3::Ptr<FabricLink> FindLink(const std::string& name) const;
  ns3::Ptr<FabricChannel> GetChannel() const;
  std::vector<std::string> NicNames() const;

  // Attaches a device to a NIC of the fabric. Returns false if there is no NIC of that name, or if
  // it has a device already.
  bool Attach(const ns3::Ptr<FabricNetDevice>& device, const std::string& nic);
  // Returns the bridge by which devices send into the fabric. Begins the simulation if it has not
  // begun.
  FabricBridge* bridge();

 private:
  struct Parts;
  class SinkCall;
  class ConfigRoot;

  void Begin();
  void TraceLinks();
  void OnEnded();
  void OnCollective(uint32_t collective, bool has_ended) const;
  void End();  // when ns-3's simulator is destroyed
  bool GoesOn() const;
  RunResult Record() const;

  // These connect to the network's own trace sources when a sink connects here.
  void TraceDrops();
  void TraceLinkStates();
  void TracePauses();
  void TraceMarks();
  void TraceNics();
  void TraceWhatIsLogged();
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
