// SPDX-License-Identifier: GPL-2.0-only
// Implements flow mode, in which messages cross the fabric as max-min fair flows instead of
// packets.
//
// A pipe carries messages along a route, one after the other. The message at its head is a flow:
// its bytes, headers included, cross the links of the route at the rate that MaxMinRates assigns to
// it; it has left when its last byte has. The message arrives after a further latency, which its
// sender states. The rates change when a flow begins or ends, once for all changes of an instant.
// There are no queues and no losses, and acknowledgements and pause frames, which are not messages,
// take no bandwidth.
//
// Pipes with the same route form a bundle of MaxMinRates. The bytes that a bundle has served each
// of its flows are one number, so a change of its rate touches one record for any number of flows.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/flow/max_min_rates.h"
#include "simulator/state/field_table.h"
#include "simulator/state/state_registry.h"
#include "simulator/units/identifier.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Identifies a pipe by a dense number from 0.
using PipeId = Identifier<struct PipeIdTag>;

// Describes one of the paths over which a route is striped, and its weight among them. All links of
// a path carry the same bytes; those of a multicast are the link up and all links down.
struct FlowPath {
  std::vector<LinkId> links;
  uint32_t weight = 1;
  bool operator==(const FlowPath&) const = default;
};
using FlowRoute = std::vector<FlowPath>;

// Describes a message on links.
struct FlowMessage {
  uint64_t wire_bytes = 0;     // with headers; more than 0
  uint64_t payload_bytes = 0;  // counted as payload on each link
  int64_t latency_ps = 0;      // from the last byte's departure to the arrival
};

// Defines the interface of a user of pipes. Each callback identifies the pipe by the number under
// which its user opened it.
class PipeUser {
 public:
  virtual ~PipeUser() = default;
  // Is called when the oldest message that had not left leaves. The user must not send in it.
  virtual void OnLeft(uint32_t /*number*/) {}
  // Is called after one or more calls of OnLeft(). The user may send again.
  virtual void OnAllLeft() {}
  // Is called when the oldest message that has left has arrived.
  virtual void OnArrived(uint32_t number) = 0;
};

class FlowNetwork final : public StateOwner {
 public:
  // A pipe has at most this number of messages that have not arrived.
  static constexpr uint32_t kMessagesMax = 8;

  // Registers its events with the engine, which allows one instance at a time. The capacities are
  // the rates of the network's links, and follow them. Both references must outlive this object.
  FlowNetwork(const FabricGraph& graph, FabricNetwork& network);

  // Opens a pipe along the route. `user`, which must outlive this object, gets its callbacks with
  // `number`.
  PipeId Open(PipeUser& user, uint32_t number, const FlowRoute& route);
  // Sends a message after those that the pipe has. Precondition: fewer than kMessagesMax of the
  // pipe's messages have not arrived.
  void Send(PipeId pipe, const FlowMessage& message);
  // Returns the rate that one flow alone would have on the pipe's route, in bits per second. It
  // holds as long as rate_changes() returns the same.
  uint64_t RateAloneBps(PipeId pipe) const;
  // Returns how often the rate of a link has changed.
  uint64_t rate_changes() const { return rate_changes_; }

  std::string state_name() const override { return "flows"; }
  void Visit(StateArchive& archive) override;

 private:
  // A bundle counts the bytes that it has served in units of 2^-24 bytes, modulo 2^64.
  static constexpr int kServedBits = 24;

  struct Pipe {
    uint64_t finish = 0;  // `served` of the bundle when the head will have left
    int64_t last_arrival_ps = 0;
    BundleId bundle{0};
    uint32_t number = 0;
    uint16_t user = 0;   // in users_
    uint8_t posted = 0;  // message counters modulo 256
    uint8_t left = 0;
    uint8_t arrived = 0;
    uint64_t counted_bytes = 0;  // of the head's bytes: those in the links' counters
    std::array<FlowMessage, kMessagesMax> messages{};

    static constexpr auto Fields() {
      return FieldTable(
          "pipe",
          field::NoState("finish", &Pipe::finish, "FlowNetwork::Begin sets it from its bundle's"),
          field::NoState("last_arrival_ps", &Pipe::last_arrival_ps,
                         "all messages have arrived, so it is not in the future"),
          field::Fixed("bundle", &Pipe::bundle), field::Fixed("number", &Pipe::number),
          field::Fixed("user", &Pipe::user),
          field::NoState("posted", &Pipe::posted, "it names slots, and nothing else"),
          field::Follows("left", &Pipe::left, &Pipe::posted),
          field::Follows("arrived", &Pipe::arrived, &Pipe::posted),
          field::Idle("counted_bytes", &Pipe::counted_bytes),
          field::NoState("messages", &Pipe::messages, "the next message in a slot replaces it"));
    }
  };
  // Describes a flow of a bundle. `finish` is a copy of its pipe's.
  struct Flow {
    uint64_t finish = 0;
    PipeId pipe{0};
    // Orders a heap with the earliest end on top. Ends must differ by less than 2^63.
    bool operator<(const Flow& other) const {
      const auto ahead = static_cast<int64_t>(finish - other.finish);
      return ahead != 0 ? ahead > 0 : pipe > other.pipe;
    }
  };
  struct Bundle {
    uint64_t served = 0;  // to each flow up to since_ps
    int64_t since_ps = 0;
    FlowRate rate = 0;            // from then on
    int64_t end_ps = kNeverPs;    // when the first flow has left
    int64_t event_ps = kNeverPs;  // the earliest pending event
    std::vector<Flow> flows{};    // a heap
    FlowRoute route{};
    uint64_t weights = 0;  // of the route's paths
    // The number of messages that have left and are not yet in the links' counters; all have the
    // same size.
    uint64_t uncounted = 0;
    bool is_uncounted = false;  // in uncounted_
    bool is_changed = false;    // in changed_
    bool is_active = false;     // in active_
    uint64_t payload_bytes = 0;
    uint64_t wire_bytes = 0;

    static constexpr auto Fields() {
      constexpr std::string_view kBegin = "FlowNetwork::Begin sets it with the first flow";
      constexpr std::string_view kUncounted = "it is read only while `uncounted` is not 0";
      return FieldTable(
          "bundle", field::NoState("served", &Bundle::served, kBegin),
          field::NoState("since_ps", &Bundle::since_ps, kBegin),
          field::NoState("rate", &Bundle::rate,
                         "the flows of all bundles determine it at the instant of the first"),
          field::Idle("end_ps", &Bundle::end_ps, kNeverPs),
          field::NoState("event_ps", &Bundle::event_ps,
                         "an event of a bundle without flows has no effect"),
          field::Idle("flows", &Bundle::flows), field::Fixed("route", &Bundle::route),
          field::Fixed("weights", &Bundle::weights), field::Idle("uncounted", &Bundle::uncounted),
          field::Idle("is_uncounted", &Bundle::is_uncounted),
          field::Idle("is_changed", &Bundle::is_changed),
          field::NoState("is_active", &Bundle::is_active,
                         "active_ has the bundle until the next FlowNetwork::SettleAll"),
          field::NoState("payload_bytes", &Bundle::payload_bytes, kUncounted),
          field::NoState("wire_bytes", &Bundle::wire_bytes, kUncounted));
    }
  };

  static void HandleEnd(void* self, uint32_t bundle);
  static void HandleArrival(void* self, uint32_t pipe);
  static void HandleRates(void* self, uint32_t target);

  BundleId BundleOf(const FlowRoute& route);
  void Begin(PipeId pipe);
  void Push(Bundle& bundle, PipeId pipe);
  void Advance(Bundle& bundle) const;
  void ScheduleEnd(BundleId bundle);
  void SetFlows(BundleId bundle);
  void OnEnd(BundleId bundle);
  void Leave(PipeId pipe);
  void RequestSolve();
  void Solve();
  void Count(BundleId bundle, const FlowMessage& message);
  void CountPart(const Bundle& bundle, const FlowMessage& message, uint64_t from_bytes,
                 uint64_t to_bytes);
  uint64_t ServedNow(const Bundle& bundle) const;
  void Settle(Bundle& bundle);
  void SettleUnderWay(const Bundle& bundle);
  void SettleAll();

  FabricNetwork& network_;
  FabricSimulatorImpl& engine_;
  MaxMinRates rates_;
  std::vector<PipeUser*> users_;
  std::vector<Pipe> pipes_;
  std::vector<Bundle> bundles_;
  std::unordered_multimap<uint64_t, BundleId> bundle_of_route_;  // by a hash of the route
  std::vector<BundleId> uncounted_;
  std::vector<BundleId> active_;   // bundles that may have flows
  std::vector<BundleId> changed_;  // bundles whose flows have changed at this instant
  std::vector<PipeId> left_;       // pipes of which messages left in this event
  std::vector<PipeUser*> notified_users_;
  int64_t settled_ps_ = -1;  // when messages under way were last counted
  uint64_t rate_changes_ = 0;
  uint64_t under_way_ = 0;  // messages that have not arrived
  bool is_solve_pending_ = false;
};

}  // namespace railyard
