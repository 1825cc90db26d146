// SPDX-License-Identifier: GPL-2.0-only
// Implements connections around failed NICs, over NICs of other GPUs of both servers. A message
// crosses NVLink to the GPU whose NIC sends it, the network to the GPU whose NIC receives it, and
// NVLink again. If there are several ways, messages use them in turn. The user of a connection
// receives its callbacks in the messages' order, as for a queue pair.
//
// R2CCL works in this manner (arXiv 2512.25059), with two differences. Its NICs read the other
// GPU's buffers over PCIe, while messages here cross NVLink as with PXN. It opens queue pairs in
// advance; here they exist as soon as they are needed.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/state/field_table.h"
#include "simulator/transport/connections/in_order_reports.h"
#include "simulator/transport/contract/composite_transport.h"
#include "simulator/transport/contract/message_size.h"
#include "simulator/transport/load_store/load_store_transport.h"
#include "simulator/transport/rdma/rdma_transport.h"

namespace railyard {

// Names the GPUs, one on the sender's and one on the receiver's server, whose NICs a detour uses.
struct NicWay {
  GpuIndex sending_gpu{0};
  GpuIndex receiving_gpu{0};
};

class NicDetours final : public CompositeTransport, public StateOwner {
 public:
  // All references must outlive this.
  NicDetours(const FabricGraph& graph, LoadStoreTransport& load_store, RdmaTransport& rdma);

  // Returns whether NVLinks join both ends to the GPUs of the way's NICs.
  bool CanTake(GpuIndex source_gpu, GpuIndex destination_gpu, const NicWay& way) const;
  // Opens a flow over these ways and returns its number, dense from 0. Precondition: CanTake() is
  // true for each.
  FlowId OpenOver(std::span<const NicWay> ways, const SinkRef& sink, GpuIndex source_gpu,
                  GpuIndex destination_gpu, uint64_t entropy);
  // Marks all messages posted so far as retransmissions of a loss. OnLossRecovered() is called when
  // they have arrived.
  void MarkRepeated(FlowId detour);
  std::vector<NicWay> WaysOf(FlowId detour) const;

  // These functions implement Transport. Detours can only be opened with OpenOver(); calling Open()
  // is a programming error. Grants without `tells_sender` must precede those with it.
  FlowId Open(const SinkRef& sink, GpuIndex source_gpu, GpuIndex destination_gpu,
              uint64_t entropy) override;
  void Post(FlowId detour, const PostedMessage& message) override;
  void Grant(FlowId detour, bool tells_sender) override;
  // Lets the flow's stores start on the same plane as those of a new flow.
  void StartOver(FlowId detour) override;
  // Puts the queue pairs into the error state. There are no more callbacks of the flow.
  void Close(FlowId detour) override;
  std::vector<LinkId> LinksOf(FlowId detour) const override;
  std::vector<LinkShare> LinkSharesOf(FlowId detour) const override;
  RecoveryTimes RecoveryOf(FlowId detour, bool of_data) const override;
  // Returns true, too, while messages that MarkRepeated() marked have not arrived.
  bool HasUnrepairedLoss(FlowId detour) const override;
  // Returns the status of the first queue pair with unacknowledged messages.
  FlowStatus StatusOf(FlowId detour) const override;
  StateOwner* state() override { return this; }
  std::string state_name() const override { return "detours around NICs"; }
  void Visit(StateArchive& archive) override;

  // These functions implement MessageSink for the stores and queue pairs of detours.
  void OnDelivered(uint32_t part) override;
  void OnCompleted(uint32_t part) override;
  void OnGranted(uint32_t part) override;
  void OnFailed(uint32_t part, bool at_sender, const FlowError& error) override;

 private:
  // Holds the NVLink flows and the queue pair of a way; kNone means that the flow is not needed.
  struct Legs {
    FlowId to_sender = FlowId::kNone;
    FlowId queue_pair;
    FlowId from_receiver = FlowId::kNone;
  };
  enum class Leg : uint8_t { kToSender, kNetwork, kFromReceiver };

  using LaneId = Identifier<struct DetourLaneTag>;
  // Describes one way of a detour, with the numbers of its messages that are in flight on each leg.
  struct Lane {
    FlowId detour;
    NicWay way;
    Legs legs{};
    std::deque<uint64_t> to_sender{};
    std::deque<uint64_t> arriving{};
    std::deque<uint64_t> completing{};
    std::deque<uint64_t> from_receiver{};
    std::deque<uint64_t> granting{};

    static constexpr auto Fields() {
      return FieldTable("lane of a detour", field::Fixed("detour", &Lane::detour),
                        field::Fixed("way", &Lane::way), field::Fixed("legs", &Lane::legs),
                        field::Quiescent("to_sender", &Lane::to_sender),
                        field::Quiescent("arriving", &Lane::arriving),
                        field::Quiescent("completing", &Lane::completing),
                        field::Quiescent("from_receiver", &Lane::from_receiver),
                        field::Quiescent("granting", &Lane::granting));
    }
  };
  struct Message {
    MessageSize size;
    uint32_t tolerance_ppm = 0;
    bool is_delivered = false;
    bool is_completed = false;
  };
  struct Detour {
    SinkRef user;
    uint32_t first_lane = 0;
    uint32_t lane_count = 0;
    uint32_t next_lane = 0;        // of the next message
    uint32_t next_grant_lane = 0;  // of the next receive
    InOrderReports<Message> messages{};
    std::deque<bool> cleared{};  // by clear-to-send that is not reported: it has arrived
    uint64_t first_cleared = 0;  // the number of the first of these
    uint64_t repeated_end = 0;   // MarkRepeated() was called for messages before it
    bool is_closed = false;

    static constexpr auto Fields() {
      constexpr std::string_view kNumbers = "what follows counts on from there";
      return FieldTable("detour", field::Fixed("user", &Detour::user),
                        field::Fixed("first_lane", &Detour::first_lane),
                        field::Fixed("lane_count", &Detour::lane_count),
                        field::Value("next_lane", &Detour::next_lane),
                        field::Value("next_grant_lane", &Detour::next_grant_lane),
                        field::Nested("messages", &Detour::messages),
                        field::Quiescent("cleared", &Detour::cleared),
                        field::NoState("first_cleared", &Detour::first_cleared, kNumbers),
                        field::Fixed("repeated_end", &Detour::repeated_end),
                        field::NoState("is_closed", &Detour::is_closed,
                                       "NicDetours::Visit omits a detour that is closed"));
    }
  };

  // Says to which leg of which lane a flow of another transport belongs.
  struct Part {
    LaneId lane;
    Leg leg{};
  };

  // Adds a part. Returns the sink under which its flow is to be opened.
  SinkRef AddPart(LaneId lane, Leg leg);
  Lane& LaneOf(uint32_t part) { return lanes_[parts_[part].lane]; }
  FlowId FlowOf(uint32_t part) const override { return lanes_[parts_[part].lane].detour; }
  SinkRef UserOf(uint32_t part) const override { return detours_[FlowOf(part)].user; }
  std::vector<Legs> LegsOf(FlowId detour) const;
  // Returns the next way in turn. Messages and their receives use the ways in the same order.
  Lane& TakeLane(const Detour& detour, uint32_t& next) {
    Lane& lane = lanes_[detour.first_lane + next];
    next = (next + 1) % detour.lane_count;
    return lane;
  }
  void StoreOver(FlowId flow, const MessageSize& size);
  void SendOn(Lane& lane, uint64_t message);
  void Land(Lane& lane, uint64_t message);
  void Report(FlowId detour);

  const FabricGraph& graph_;
  LoadStoreTransport& load_store_;
  RdmaTransport& rdma_;
  std::vector<Part> parts_;  // by the number under which their flows are opened
  // Both are deques, because their elements must not move when others are added.
  std::deque<Lane> lanes_;
  std::deque<Detour> detours_;
};

}  // namespace railyard
