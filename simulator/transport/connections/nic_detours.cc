// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/connections/nic_detours.h"

#include <algorithm>

#include "simulator/diagnostics/check.h"
#include "simulator/units/mix64.h"

namespace railyard {
NicDetours::NicDetours(const FabricGraph& graph, LoadStoreTransport& load_store,
                       RdmaTransport& rdma)
    : graph_(graph), load_store_(load_store), rdma_(rdma) {}

// --- Opening -------------------------------------------------------------------------------------

bool NicDetours::CanTake(GpuIndex source_gpu, GpuIndex destination_gpu, const NicWay& way) const {
  const auto are_joined = [this](GpuIndex a, GpuIndex b) {
    return a == b || !graph_.NvlinkPaths(graph_.gpus()[a], graph_.gpus()[b]).empty();
  };
  return are_joined(source_gpu, way.sending_gpu) && are_joined(way.receiving_gpu, destination_gpu);
}

FlowId NicDetours::Open(const SinkRef& /*sink*/, GpuIndex /*source_gpu*/,
                        GpuIndex /*destination_gpu*/, uint64_t /*entropy*/) {
  SIM_CHECK(false, "a detour is opened without its ways");
  return {};
}

FlowId NicDetours::OpenOver(std::span<const NicWay> ways, const SinkRef& sink, GpuIndex source_gpu,
                            GpuIndex destination_gpu, uint64_t entropy) {
  const FlowId id{detours_.size()};
  detours_.push_back({.user = sink,
                      .first_lane = static_cast<uint32_t>(lanes_.size()),
                      .lane_count = static_cast<uint32_t>(ways.size())});
  for (const NicWay& way : ways) {
    const LaneId number{lanes_.size()};
    Lane& lane = lanes_.emplace_back(Lane{.detour = id, .way = way});
    if (way.sending_gpu != source_gpu) {
      lane.legs.to_sender =
          load_store_.Open(AddPart(number, Leg::kToSender), source_gpu, way.sending_gpu);
    }
    lane.legs.queue_pair = rdma_.Open(AddPart(number, Leg::kNetwork), way.sending_gpu,
                                      way.receiving_gpu, Mix64(entropy ^ way.sending_gpu));
    if (way.receiving_gpu != destination_gpu) {
      lane.legs.from_receiver =
          load_store_.Open(AddPart(number, Leg::kFromReceiver), way.receiving_gpu, destination_gpu);
    }
  }
  return id;
}

SinkRef NicDetours::AddPart(LaneId lane, Leg leg) {
  parts_.push_back({.lane = lane, .leg = leg});
  return {this, static_cast<uint32_t>(parts_.size() - 1)};
}

void NicDetours::StartOver(FlowId id) {
  for (const Legs& legs : LegsOf(id)) {
    if (legs.to_sender != FlowId::kNone) load_store_.StartOver(legs.to_sender);
    if (legs.from_receiver != FlowId::kNone) load_store_.StartOver(legs.from_receiver);
  }
}

void NicDetours::Close(FlowId id) {
  Detour& detour = detours_[id];
  detour.is_closed = true;
  for (uint32_t i = 0; i < detour.lane_count; ++i) {
    const FlowId queue_pair = lanes_[detour.first_lane + i].legs.queue_pair;
    rdma_.SetError(queue_pair, true);
    rdma_.SetError(queue_pair, false);
  }
}

// --- Messages ------------------------------------------------------------------------------------

void NicDetours::Post(FlowId id, const PostedMessage& message) {
  Detour& detour = detours_[id];
  const MessageSize& size = message.size;
  const uint64_t number =
      detour.messages.Add({.size = size, .tolerance_ppm = message.tolerance_ppm});
  Lane& lane = TakeLane(detour, detour.next_lane);
  if (lane.legs.to_sender == FlowId::kNone || (size.bytes == 0 && lane.to_sender.empty())) {
    SendOn(lane, number);
    return;
  }
  lane.to_sender.push_back(number);
  if (size.bytes != 0) StoreOver(lane.legs.to_sender, size);
}

void NicDetours::StoreOver(FlowId flow, const MessageSize& size) {
  load_store_.Post(flow, size);
  load_store_.ServeDue();
}

void NicDetours::SendOn(Lane& lane, uint64_t number) {
  const Message& message = detours_[lane.detour].messages.at(number);
  lane.arriving.push_back(number);
  lane.completing.push_back(number);
  rdma_.Post(lane.legs.queue_pair, {.size = message.size, .tolerance_ppm = message.tolerance_ppm});
}

// Handles a message that is in the memory of the GPU whose NIC received it.
void NicDetours::Land(Lane& lane, uint64_t number) {
  Message& message = detours_[lane.detour].messages.at(number);
  if (lane.legs.from_receiver == FlowId::kNone ||
      (message.size.bytes == 0 && lane.from_receiver.empty())) {
    message.is_delivered = true;
    return;
  }
  lane.from_receiver.push_back(number);
  if (message.size.bytes != 0) StoreOver(lane.legs.from_receiver, message.size);
}

void NicDetours::Grant(FlowId id, bool tells_sender) {
  Detour& detour = detours_[id];
  Lane& lane = TakeLane(detour, detour.next_grant_lane);
  if (tells_sender) {
    lane.granting.push_back(detour.first_cleared + detour.cleared.size());
    detour.cleared.push_back(false);
  }
  rdma_.Grant(lane.legs.queue_pair, tells_sender);
}

void NicDetours::MarkRepeated(FlowId id) {
  Detour& detour = detours_[id];
  detour.repeated_end = detour.messages.end_number();
  if (detour.messages.open.empty()) detour.user.sink->OnLossRecovered(detour.user.number);
}

// The sink may post messages and open connections.
void NicDetours::Report(FlowId id) {
  Detour& detour = detours_[id];
  const auto is_delivered = [&detour](const Message& message) {
    return !detour.is_closed && message.is_delivered;
  };
  const auto is_completed = [&detour](const Message& message) {
    return !detour.is_closed && message.is_completed;
  };
  const auto report_if_repaired = [&detour](uint64_t number) {
    if (number + 1 != detour.repeated_end) return;
    detour.user.sink->OnLossRecovered(detour.user.number);
  };
  detour.messages.Report(detour.user, is_delivered, is_completed, report_if_repaired);
}

// --- Callbacks of transports ---------------------------------------------------------------------

void NicDetours::OnDelivered(uint32_t part) {
  Lane& lane = LaneOf(part);
  Detour& detour = detours_[lane.detour];
  if (detour.is_closed) return;
  const Leg leg = parts_[part].leg;
  if (leg == Leg::kNetwork) {
    const uint64_t message = lane.arriving.front();
    lane.arriving.pop_front();
    Land(lane, message);
  } else {
    // A message without bytes follows the message before it.
    std::deque<uint64_t>& under_way = leg == Leg::kToSender ? lane.to_sender : lane.from_receiver;
    do {
      const uint64_t message = under_way.front();
      under_way.pop_front();
      if (leg == Leg::kToSender) {
        SendOn(lane, message);
      } else {
        detour.messages.at(message).is_delivered = true;
      }
    } while (!under_way.empty() && detour.messages.at(under_way.front()).size.bytes == 0);
  }
  Report(lane.detour);
}

void NicDetours::OnCompleted(uint32_t part) {
  Lane& lane = LaneOf(part);
  if (detours_[lane.detour].is_closed) return;
  detours_[lane.detour].messages.at(lane.completing.front()).is_completed = true;
  lane.completing.pop_front();
  Report(lane.detour);
}

void NicDetours::OnGranted(uint32_t part) {
  Lane& lane = LaneOf(part);
  Detour& detour = detours_[lane.detour];
  if (detour.is_closed) return;
  detour.cleared[lane.granting.front() - detour.first_cleared] = true;
  lane.granting.pop_front();
  while (!detour.cleared.empty() && detour.cleared.front()) {
    detour.cleared.pop_front();
    ++detour.first_cleared;
    detour.user.sink->OnGranted(detour.user.number);
  }
}

void NicDetours::OnFailed(uint32_t part, bool at_sender, const FlowError& error) {
  if (detours_[LaneOf(part).detour].is_closed) return;
  const SinkRef user = UserOf(part);
  user.sink->OnFailed(user.number, at_sender, error);
}

// --- Queries -------------------------------------------------------------------------------------

std::vector<NicDetours::Legs> NicDetours::LegsOf(FlowId id) const {
  const Detour& detour = detours_[id];
  std::vector<Legs> legs;
  for (uint32_t i = 0; i < detour.lane_count; ++i) {
    legs.push_back(lanes_[detour.first_lane + i].legs);
  }
  return legs;
}

std::vector<NicWay> NicDetours::WaysOf(FlowId id) const {
  const Detour& detour = detours_[id];
  std::vector<NicWay> ways;
  for (uint32_t i = 0; i < detour.lane_count; ++i) {
    ways.push_back(lanes_[detour.first_lane + i].way);
  }
  return ways;
}

std::vector<LinkId> NicDetours::LinksOf(FlowId id) const {
  const Legs legs = LegsOf(id).front();
  std::vector<LinkId> links;
  const auto append = [&links](const std::vector<LinkId>& more) {
    links.insert(links.end(), more.begin(), more.end());
  };
  if (legs.to_sender != FlowId::kNone) append(load_store_.LinksOf(legs.to_sender));
  append(rdma_.LinksOf(legs.queue_pair));
  if (legs.from_receiver != FlowId::kNone) append(load_store_.LinksOf(legs.from_receiver));
  return links;
}

std::vector<LinkShare> NicDetours::LinkSharesOf(FlowId id) const {
  const std::vector<Legs> ways = LegsOf(id);
  const double share = 1.0 / static_cast<double>(ways.size());
  std::vector<LinkShare> shares;
  const auto append = [&](const std::vector<LinkShare>& more) {
    for (const LinkShare& part : more) shares.push_back({part.link, share * part.share});
  };
  for (const Legs& legs : ways) append(rdma_.LinkSharesOf(legs.queue_pair));
  for (const Legs& legs : ways) {
    if (legs.to_sender != FlowId::kNone) append(load_store_.LinkSharesOf(legs.to_sender));
    if (legs.from_receiver != FlowId::kNone) append(load_store_.LinkSharesOf(legs.from_receiver));
  }
  return shares;
}

FlowStatus NicDetours::StatusOf(FlowId id) const {
  const std::vector<Legs> ways = LegsOf(id);
  for (const Legs& legs : ways) {
    FlowStatus status = rdma_.StatusOf(legs.queue_pair);
    if (status.is_under_way) return status;
  }
  return rdma_.StatusOf(ways.front().queue_pair);
}

RecoveryTimes NicDetours::RecoveryOf(FlowId id, bool of_data) const {
  RecoveryTimes times;
  for (const Legs& legs : LegsOf(id)) times += rdma_.RecoveryOf(legs.queue_pair, of_data);
  return times;
}

bool NicDetours::HasUnrepairedLoss(FlowId id) const {
  const Detour& detour = detours_[id];
  if (detour.messages.delivered_end() < detour.repeated_end) return true;
  return std::ranges::any_of(
      LegsOf(id), [this](const Legs& legs) { return rdma_.HasUnrepairedLoss(legs.queue_pair); });
}

void NicDetours::Visit(StateArchive& archive) {
  archive.Section();
  for (size_t id = 0; id < detours_.size(); ++id) {
    Detour& detour = detours_[id];
    if (detour.is_closed) continue;
    VisitFields(detour, id, archive);
    for (uint32_t i = 0; i < detour.lane_count; ++i) {
      const uint32_t lane = detour.first_lane + i;
      VisitFields(lanes_[lane], lane, archive);
    }
  }
}

}  // namespace railyard
