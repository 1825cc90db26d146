// SPDX-License-Identifier: GPL-2.0-only
// Carries messages between servers as flows instead of packets (flow mode). A flow takes the routes
// of NCCL's queue pairs: the same hashes choose them, and a connection that is striped over several
// queue pairs is striped over their paths. Messages of a flow leave one after the other, in the
// order of their posts.
//
// Acknowledgements and clear-to-send elements take the latency of their path and no bandwidth.
// Windows, rates of congestion control, queues, marks, pauses and losses do not exist.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/flow/flow_network.h"
#include "simulator/state/field_table.h"
#include "simulator/transport/connections/stripe_layout.h"
#include "simulator/transport/contract/payload_count.h"
#include "simulator/transport/contract/transport.h"
#include "simulator/transport/nic/packet_framing.h"
#include "simulator/transport/nic/queue_paths.h"

namespace railyard {

class FlowTransport final : public Transport, public PipeUser, public StateOwner {
 public:
  // Names the parts of a run that flows use. They must outlive the transport.
  struct Parts {
    const FabricGraph& graph;
    FabricNetwork& network;
    FlowNetwork& flows;
    const EcmpRouting& routing;
  };
  // Registers its events with the engine, which allows one instance at a time.
  FlowTransport(const Parts& parts, const NicSettings& nic, const NetIbSettings& ib);

  FlowId Open(const SinkRef& sink, GpuIndex source_gpu, GpuIndex destination_gpu,
              uint64_t entropy) override;
  void Post(FlowId flow, const PostedMessage& message) override;
  void Grant(FlowId flow, bool tells_sender) override;
  void Close(FlowId flow) override { flows_[flow].is_closed = true; }
  void CountPayload(FlowId flow) override { payload_count_.Follow(flow); }
  uint64_t counted_payload_bytes() const override { return payload_count_.bytes(); }
  void OnRoutesChanged() override;

  std::vector<LinkId> LinksOf(FlowId flow) const override;
  std::vector<LinkShare> LinkSharesOf(FlowId flow) const override;
  FlowStatus StatusOf(FlowId flow) const override;

  void OnArrived(uint32_t flow) override;

  StateOwner* state() override { return this; }
  std::string state_name() const override { return "flows between servers"; }
  void Visit(StateArchive& archive) override;

 private:
  struct Flow {
    SinkRef user;
    PairEnds ends;
    std::vector<PathRef> paths;  // of the data of its queue pairs
    PathRef ack_path;            // of the first of them
    PipeId pipe = PipeId::kNone;
    uint64_t rate_alone_bps = 0;
    uint64_t rate_changes = UINT64_MAX;  // of links, when rate and latencies were computed
    int64_t grant_latency_ps = 0;
    int64_t ack_latency_ps = 0;  // from the arrival in memory on
    int64_t last_grant_ps = 0;
    uint32_t unacknowledged = 0;
    std::vector<uint64_t> payload_bytes;  // of messages that have not arrived, oldest first
    bool is_closed = false;

    static constexpr auto Fields() {
      constexpr std::string_view kOfRates = "FollowRates() computes it from the rates of the links";
      return FieldTable("flow", field::Fixed("user", &Flow::user),
                        field::Fixed("ends", &Flow::ends), field::Fixed("paths", &Flow::paths),
                        field::Fixed("ack_path", &Flow::ack_path),
                        field::Fixed("pipe", &Flow::pipe),
                        field::NoState("rate_alone_bps", &Flow::rate_alone_bps, kOfRates),
                        field::NoState("rate_changes", &Flow::rate_changes, kOfRates),
                        field::NoState("grant_latency_ps", &Flow::grant_latency_ps, kOfRates),
                        field::NoState("ack_latency_ps", &Flow::ack_latency_ps, kOfRates),
                        field::NoState("last_grant_ps", &Flow::last_grant_ps,
                                       "an event is pending while it lies ahead"),
                        field::Quiescent("unacknowledged", &Flow::unacknowledged),
                        field::Quiescent("payload_bytes", &Flow::payload_bytes),
                        field::Constant("is_closed", &Flow::is_closed));
    }
  };
  // The kinds of an event of kFlowAnswer, whose target is twice the flow plus one of these.
  enum class Answer : uint32_t { kGrant, kAcknowledgement };

  static void HandleAnswer(void* self, uint32_t target);
  void ScheduleAnswer(int64_t time_ps, FlowId flow, Answer answer);
  // Returns the time from the departure of a message's last byte to the arrival of its last packet.
  int64_t LatencyPs(const Flow& flow, uint64_t packet_bytes) const;
  // Computes what follows from the rates of the links, if they have changed since that was done.
  void FollowRates(Flow& flow) const;
  uint32_t FullPacketBytes() const { return mtu_bytes_ + framing_.header_bytes; }

  const FabricGraph& graph_;
  FabricNetwork& network_;
  FlowNetwork& carriers_;
  QueuePaths paths_;
  StripeLayout layout_;
  uint32_t mtu_bytes_;
  PacketFraming framing_;
  std::vector<Flow> flows_;
  PayloadCount payload_count_;
};

}  // namespace railyard
