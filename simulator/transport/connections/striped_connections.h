// SPDX-License-Identifier: GPL-2.0-only
// Implements connections of several queue pairs, as in NCCL's network plug-in (stripe_layout.h). A
// message is divided over the queue pairs (ncclIbMultiSend, src/transport/net_ib/p2p.cc); with
// Amazon's plug-in it uses the queue pairs that a RailScheduler chooses. The user of a connection
// receives callbacks for whole messages, in their order.
//
// Port failover (p2p_resiliency.cc, 2.29): a queue pair that has used up its retries takes its
// device out of use at that end of the connection. A sender waits
// IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY, then reads over another device which parts the receiver
// has of each message that was in flight on the failed one, and sends the other parts again over
// the next queue pairs of a working device. A receiver sends its unacknowledged clear-to-send again
// at once. If a second device fails, the connection fails.
//
// Port recovery (port_recovery.h, 2.30) puts a device back into use.
//
// In two respects the model differs from two separate ends. A clear-to-send of which only the ACK
// was lost is not sent twice, although its sender could not know that. And neither end informs the
// other of a failure, as in NCCL: the other end detects it by its own timers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ns3/event-id.h>

#include "simulator/state/field_table.h"
#include "simulator/transport/connections/in_order_reports.h"
#include "simulator/transport/connections/net_ib_settings.h"
#include "simulator/transport/connections/port_recovery.h"
#include "simulator/transport/connections/rail_scheduler.h"
#include "simulator/transport/connections/stripe_layout.h"
#include "simulator/transport/contract/composite_transport.h"
#include "simulator/transport/contract/message_size.h"
#include "simulator/transport/contract/network_stack.h"
#include "simulator/transport/rdma/rdma_transport.h"

namespace railyard {

class StripedConnections final : public CompositeTransport, public StateOwner {
 public:
  // All references but `settings` must outlive this object.
  StripedConnections(const FabricGraph& graph, RdmaTransport& rdma, FabricSimulatorImpl& engine,
                     const NicSettings& nic, const NetIbSettings& settings);
  ~StripedConnections() override;

  // Returns whether a connection between these GPUs has more than one queue pair.
  bool AreSeveral(GpuIndex source_gpu, GpuIndex destination_gpu) const {
    return layout_.QueuePairCount(source_gpu, destination_gpu) > 1;
  }

  // These functions implement Transport. A message's loss tolerance applies to each of its parts.
  // Grants always tell the sender.
  FlowId Open(const SinkRef& sink, GpuIndex source_gpu, GpuIndex destination_gpu,
              uint64_t entropy) override;
  void Post(FlowId stripe, const PostedMessage& message) override;
  void Grant(FlowId stripe, bool tells_sender) override;
  void Close(FlowId stripe) override;
  uint32_t CompletedParts(FlowId stripe, uint64_t bytes) const override;
  std::vector<LinkId> LinksOf(FlowId stripe) const override;
  std::vector<LinkShare> LinkSharesOf(FlowId stripe) const override;
  // Returns the sum over all queue pairs, failovers included.
  RecoveryTimes RecoveryOf(FlowId stripe, bool of_data) const override;
  // Returns true, too, while parts that a failover sent again have not arrived.
  bool HasUnrepairedLoss(FlowId stripe) const override { return IsUnrepaired(stripes_[stripe]); }
  // Returns the status of the first queue pair with unacknowledged data.
  FlowStatus StatusOf(FlowId stripe) const override;
  StateOwner* state() override { return this; }
  std::string state_name() const override { return "striped connections"; }
  void Visit(StateArchive& archive) override;

  const PortCounters& counters() const { return counters_; }

  // These functions implement MessageSink for the queue pairs.
  void OnDelivered(uint32_t number) override;
  void OnCompleted(uint32_t number) override;
  void OnGranted(uint32_t number) override;
  void OnUnreliableSend(uint32_t number, bool at_receiver, uint32_t immediate) override;
  void OnFailed(uint32_t number, bool at_sender, const FlowError& error) override;

 private:
  // Names a part of a message on a queue pair, with the number of its attempt.
  struct PartRef {
    uint64_t message = 0;
    uint32_t part = 0;
    uint32_t attempt = 0;
  };
  // Describes a queue pair of the transport, with its unfinished parts.
  struct Use {
    FlowId queue_pair;  // of the transport
    FlowId stripe;
    uint32_t device = 0;
    bool is_probe = false;
    bool is_dead_at_sender = false;
    bool is_dead_at_receiver = false;
    std::deque<PartRef> sending;    // not acknowledged
    std::deque<PartRef> arriving;   // not delivered
    std::deque<uint64_t> granting;  // clear-to-send not arrived; for a probe, answers
  };
  struct Part {
    MessageSize size;
    uint32_t tolerance_ppm = 0;
    uint32_t place = 0;  // among the connection's queue pairs
    uint32_t use = 0;    // on which it was sent last
    uint32_t attempt = 0;
    bool is_delivered = false;
    bool is_acknowledged = false;
    bool is_repair = false;  // sent again since its first port failed
  };
  using Message = std::vector<Part>;
  struct SentGrant {
    uint32_t device = 0;
    bool is_there = false;  // has arrived
    bool is_repair = false;
  };
  // Describes one end of a connection: the queue pairs it sends on, by place, and the devices out
  // of use.
  struct End {
    std::vector<uint32_t> active;
    std::vector<bool> has_failed;

    static constexpr auto Fields() {
      return FieldTable("end", field::Constant("active", &End::active),
                        field::Fixed("has_failed", &End::has_failed));
    }
  };
  struct Stripe {
    SinkRef user;
    GpuIndex source_gpu{0};
    GpuIndex destination_gpu{0};
    uint64_t entropy = 0;
    uint32_t device_count = 1;
    uint32_t per_message = 1;    // queue pairs
    std::vector<uint32_t> uses;  // by place, the newest of each
    End sender;
    End receiver;
    uint32_t next_place = 0;         // of the next message's first part
    uint32_t next_grant_device = 0;  // of the next clear-to-send
    InOrderReports<Message> messages;
    std::deque<SentGrant> grants;
    uint64_t first_grant = 0;
    std::vector<uint32_t> probes;  // uses, by device; opened when needed
    std::map<uint32_t, std::unique_ptr<PortRecovery>> recoveries;  // by device
    uint32_t repairs = 0;            // parts and clear-to-send sent again by a failover
    int64_t failover_since_ps = -1;  // of a failover, until a probe is answered; else -1
    bool is_closed = false;
    bool has_failed = false;     // permanently
    RecoveryTimes past_of_data;  // of queue pairs that are gone, and of failovers
    RecoveryTimes past_of_grants;

    static constexpr auto Fields();
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  FlowId FlowOf(uint32_t use) const override { return uses_[use].stripe; }
  SinkRef UserOf(uint32_t use) const override { return stripes_[uses_[use].stripe].user; }
  // Returns the queue pairs that the sender uses, by their place in the connection.
  std::vector<FlowId> QueuePairsOf(FlowId stripe) const;
  bool IsUnrepaired(const Stripe& stripe) const;
  static uint64_t EntropyOf(const Stripe& stripe, uint32_t place) {
    return StripeLayout::EntropyOf(stripe.entropy, place);
  }
  uint32_t OpenUse(FlowId stripe, uint32_t device, uint64_t entropy);
  void SendPart(Stripe& stripe, uint64_t message, uint32_t part);
  void SendGrant(Stripe& stripe, uint64_t grant);
  void Report(Stripe& stripe);
  // Returns null if the part was, or is being, sent again.
  Part* FindPart(const Use& use, const PartRef& ref);
  // These functions implement failover (port_failover.cc).
  void ReplaceQueuePairs(Stripe& stripe, bool at_sender, uint32_t device);
  // Reports that the losses are repaired once everything that a failover sent again has arrived.
  void ReportIfRepaired(const Stripe& stripe);
  void GrantAgain(Stripe& stripe, uint32_t device);
  bool IsLost(const Part& part) const;
  void AskForWhatIsMissing(FlowId stripe, uint32_t device);
  void Probe(FlowId stripe, const std::vector<uint64_t>& messages);
  void OnProbe(Use& use, uint64_t message);
  void OnProbeAnswer(Use& use, uint64_t message);
  PortRecovery& RecoveryOfPort(FlowId stripe, uint32_t device);
  void PutBack(FlowId stripe, bool at_sender, uint32_t device);
  void RenewQueuePairs(FlowId stripe, uint32_t device);
  // Calls `what` after the delay, unless the connection is closed by then.
  void After(FlowId stripe, int64_t delay_ps, std::function<void()> what);

  RdmaTransport& rdma_;
  FabricSimulatorImpl& engine_;
  StripeLayout layout_;
  NetIbSettings settings_;
  std::optional<RailScheduler> rails_;
  // Both are deques, because their elements must not move when others are added.
  std::deque<Stripe> stripes_;
  std::deque<Use> uses_;
  std::vector<ns3::EventId> events_;
  PortCounters counters_;
};

}  // namespace railyard
