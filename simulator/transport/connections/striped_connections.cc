// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/connections/striped_connections.h"

#include <algorithm>
#include <string_view>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"

namespace railyard {
namespace {

// Parts of a message are multiples of this size (IB_WRITE_CHUNK_ALIGNMENT), as LL and LL128 need.
constexpr uint64_t kPartAlignment = 128;

}  // namespace

StripedConnections::StripedConnections(const FabricGraph& graph, RdmaTransport& rdma,
                                       FabricSimulatorImpl& engine, const NicSettings& nic,
                                       const NetIbSettings& settings)
    : rdma_(rdma), engine_(engine), layout_(graph, nic, settings), settings_(settings) {
  if (settings.rails) rails_.emplace(*settings.rails);
}

// --- Opening -------------------------------------------------------------------------------------

FlowId StripedConnections::Open(const SinkRef& sink, GpuIndex source_gpu, GpuIndex destination_gpu,
                                uint64_t entropy) {
  const FlowId id{stripes_.size()};
  Stripe& stripe = stripes_.emplace_back();
  stripe.user = sink;
  stripe.source_gpu = source_gpu;
  stripe.destination_gpu = destination_gpu;
  stripe.entropy = entropy;
  stripe.device_count = layout_.DeviceCount(source_gpu, destination_gpu);
  const uint32_t queue_pairs = layout_.QueuePairCount(source_gpu, destination_gpu);
  stripe.per_message = settings_.ib_split_data_on_qps ? queue_pairs : stripe.device_count;
  for (uint32_t place = 0; place < queue_pairs; ++place) {
    stripe.uses.push_back(OpenUse(id, place % stripe.device_count, EntropyOf(stripe, place)));
  }
  stripe.sender = stripe.receiver = {.active = stripe.uses,
                                     .has_failed = std::vector<bool>(stripe.device_count)};
  stripe.probes.assign(stripe.device_count, kNone);
  return id;
}

uint32_t StripedConnections::OpenUse(FlowId id, uint32_t device, uint64_t entropy) {
  const Stripe& stripe = stripes_[id];
  const auto use = static_cast<uint32_t>(uses_.size());
  Use& opened = uses_.emplace_back();
  opened.stripe = id;
  opened.device = device;
  opened.queue_pair =
      rdma_.OpenBound({this, use}, stripe.source_gpu, stripe.destination_gpu, entropy,
                      layout_.PinsOf(stripe.source_gpu, stripe.destination_gpu, device));
  return use;
}

// --- Messages ------------------------------------------------------------------------------------

uint32_t StripedConnections::CompletedParts(FlowId id, uint64_t bytes) const {
  return rails_ ? rails_->Stripes(bytes, stripes_[id].device_count) : 0;
}

void StripedConnections::Post(FlowId id, const PostedMessage& posted) {
  Stripe& stripe = stripes_[id];
  const MessageSize& size = posted.size;
  uint32_t parts = stripe.per_message;
  if (rails_) {
    const auto schedule = rails_->Next(stripe.source_gpu, size.bytes, stripe.device_count);
    parts = schedule.stripes;
    stripe.next_place = schedule.first_rail;
  }
  const uint64_t share = DivideUp(size.bytes, parts);
  const uint64_t part_bytes = DivideUp(share, kPartAlignment) * kPartAlignment;
  Message message;
  uint64_t begin = 0;
  // If the message is too small for all queue pairs, the last parts are immediates without data.
  for (uint32_t part = 0; part < parts; ++part) {
    const uint64_t end = std::min(size.bytes, begin + part_bytes);
    message.push_back({.size = size.Part(begin, end),
                       .tolerance_ppm = posted.tolerance_ppm,
                       .place = stripe.next_place});
    begin = end;
    stripe.next_place = (stripe.next_place + 1) % static_cast<uint32_t>(stripe.uses.size());
  }
  const uint64_t number = stripe.messages.Add(std::move(message));
  for (uint32_t part = 0; part < parts; ++part) SendPart(stripe, number, part);
}

void StripedConnections::SendPart(Stripe& stripe, uint64_t number, uint32_t index) {
  Part& part = stripe.messages.at(number)[index];
  part.use = stripe.sender.active[part.place];
  Use& use = uses_[part.use];
  const PartRef ref = {.message = number, .part = index, .attempt = part.attempt};
  use.sending.push_back(ref);
  use.arriving.push_back(ref);
  // NCCL posts receives before the clear-to-send that allows the message to be sent.
  rdma_.PostReceives(use.queue_pair, 1);
  rdma_.Post(use.queue_pair, {.size = part.size, .tolerance_ppm = part.tolerance_ppm});
}

void StripedConnections::Grant(FlowId id, bool tells_sender) {
  SIM_CHECK(tells_sender, "a striped connection grants a message without telling its sender");
  Stripe& stripe = stripes_[id];
  stripe.grants.push_back({.device = stripe.next_grant_device});
  stripe.next_grant_device = (stripe.next_grant_device + 1) % stripe.device_count;
  SendGrant(stripe, stripe.first_grant + stripe.grants.size() - 1);
}

// Sends the grant over the first queue pair of its device.
void StripedConnections::SendGrant(Stripe& stripe, uint64_t number) {
  const uint32_t device = stripe.grants[number - stripe.first_grant].device;
  Use& use = uses_[stripe.receiver.active[device]];
  use.granting.push_back(number);
  rdma_.PostToSender(use.queue_pair, kClearToSendBytes);
}

// The sink may post messages and open connections.
void StripedConnections::Report(Stripe& stripe) {
  const auto is_delivered = [](const Message& message) {
    return std::ranges::all_of(message, &Part::is_delivered);
  };
  const auto is_acknowledged = [](const Message& message) {
    return std::ranges::all_of(message, &Part::is_acknowledged);
  };
  stripe.messages.Report(stripe.user, is_delivered, is_acknowledged);
}

StripedConnections::Part* StripedConnections::FindPart(const Use& use, const PartRef& ref) {
  Stripe& stripe = stripes_[use.stripe];
  if (ref.message < stripe.messages.first_number) return nullptr;
  Part& part = stripe.messages.at(ref.message)[ref.part];
  return part.attempt == ref.attempt ? &part : nullptr;
}

// --- Callbacks of the transport ------------------------------------------------------------------

void StripedConnections::OnDelivered(uint32_t number) {
  Use& use = uses_[number];
  const PartRef ref = use.arriving.front();
  use.arriving.pop_front();
  if (use.is_probe) {
    OnProbe(use, ref.message);
    return;
  }
  Part* const part = FindPart(use, ref);
  if (part == nullptr) return;  // it is sent again
  part->is_delivered = true;
  Report(stripes_[use.stripe]);
}

void StripedConnections::OnCompleted(uint32_t number) {
  Use& use = uses_[number];
  if (use.is_probe) return;  // its answer counts
  const PartRef ref = use.sending.front();
  use.sending.pop_front();
  Part* const part = FindPart(use, ref);
  SIM_CHECK(part != nullptr, "an acknowledged part that is not under way");
  part->is_acknowledged = true;
  Stripe& stripe = stripes_[use.stripe];
  if (part->is_repair) {
    --stripe.repairs;
    ReportIfRepaired(stripe);
  }
  Report(stripe);
}

void StripedConnections::OnGranted(uint32_t number) {
  Use& use = uses_[number];
  if (use.granting.empty()) return;  // was sent again
  const uint64_t granted = use.granting.front();
  use.granting.pop_front();
  if (use.is_probe) {
    OnProbeAnswer(use, granted);
    return;
  }
  Stripe& stripe = stripes_[use.stripe];
  SentGrant& grant = stripe.grants[granted - stripe.first_grant];
  grant.is_there = true;
  if (grant.is_repair) {
    --stripe.repairs;
    ReportIfRepaired(stripe);
  }
  while (!stripe.grants.empty() && stripe.grants.front().is_there) {
    stripe.grants.pop_front();
    ++stripe.first_grant;
    stripe.user.sink->OnGranted(stripe.user.number);
  }
}

// --- Queries -------------------------------------------------------------------------------------

std::vector<FlowId> StripedConnections::QueuePairsOf(FlowId id) const {
  std::vector<FlowId> queue_pairs;
  for (const uint32_t use : stripes_[id].sender.active) {
    queue_pairs.push_back(uses_[use].queue_pair);
  }
  return queue_pairs;
}

std::vector<LinkId> StripedConnections::LinksOf(FlowId id) const {
  return rdma_.LinksOf(QueuePairsOf(id).front());
}

std::vector<LinkShare> StripedConnections::LinkSharesOf(FlowId id) const {
  return rdma_.EvenSharesOf(QueuePairsOf(id));
}

FlowStatus StripedConnections::StatusOf(FlowId id) const {
  const std::vector<FlowId> queue_pairs = QueuePairsOf(id);
  for (const FlowId queue_pair : queue_pairs) {
    FlowStatus status = rdma_.StatusOf(queue_pair);
    if (status.is_under_way) return status;
  }
  return rdma_.StatusOf(queue_pairs.front());
}

RecoveryTimes StripedConnections::RecoveryOf(FlowId id, bool of_data) const {
  const Stripe& stripe = stripes_[id];
  RecoveryTimes times = of_data ? stripe.past_of_data : stripe.past_of_grants;
  for (const uint32_t use : stripe.uses) times += rdma_.RecoveryOf(uses_[use].queue_pair, of_data);
  return times;
}

constexpr auto StripedConnections::Stripe::Fields() {
  constexpr std::string_view kNumbers = "what follows counts on from there";
  const auto are_idle = [](const auto& of_ports) {
    return std::ranges::all_of(of_ports, [](const auto& of) { return of.second->IsIdle(); });
  };
  return FieldTable(
      "striped connection", field::Fixed("user", &Stripe::user),
      field::Fixed("source_gpu", &Stripe::source_gpu),
      field::Fixed("destination_gpu", &Stripe::destination_gpu),
      field::Fixed("entropy", &Stripe::entropy),
      field::Fixed("device_count", &Stripe::device_count),
      field::Fixed("per_message", &Stripe::per_message), field::Fixed("uses", &Stripe::uses),
      field::Nested("sender", &Stripe::sender), field::Nested("receiver", &Stripe::receiver),
      field::Value("next_place", &Stripe::next_place),
      field::Value("next_grant_device", &Stripe::next_grant_device),
      field::Nested("messages", &Stripe::messages), field::Quiescent("grants", &Stripe::grants),
      field::NoState("first_grant", &Stripe::first_grant, kNumbers),
      field::Fixed("probes", &Stripe::probes),
      field::QuiescentIf("recoveries", &Stripe::recoveries, are_idle),
      field::Fixed("repairs", &Stripe::repairs),
      field::Fixed("failover_since_ps", &Stripe::failover_since_ps),
      field::NoState("is_closed", &Stripe::is_closed,
                     "StripedConnections::Visit omits a connection that is closed"),
      field::Fixed("has_failed", &Stripe::has_failed),
      field::Fixed("past_of_data", &Stripe::past_of_data),
      field::Fixed("past_of_grants", &Stripe::past_of_grants));
}

void StripedConnections::Visit(StateArchive& archive) {
  archive.Section();
  for (size_t id = 0; id < stripes_.size(); ++id) {
    if (!stripes_[id].is_closed) VisitFields(stripes_[id], id, archive);
  }
  VisitFields(counters_, archive);
  if (rails_) rails_->Visit(archive);
}

}  // namespace railyard
