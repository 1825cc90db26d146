// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/flow/flow_network.h"

#include <algorithm>
#include <map>

#include "simulator/diagnostics/check.h"
#include "simulator/event_order/event_order.h"
#include "simulator/units/divide_up.h"
#include "simulator/units/mix64.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

using Wide = unsigned __int128;

uint64_t HashOf(const FlowRoute& route) {
  uint64_t hash = route.size();
  for (const FlowPath& path : route) {
    hash = Mix64(hash ^ path.weight);
    for (const LinkId link : path.links) hash = Mix64(hash ^ link);
  }
  return hash;
}

// The place of a path among the weights of its route. Each path carries what lies between two of a
// message's bytes, so that the paths together carry all of it.
struct PathShare {
  uint64_t before = 0;  // the weights of the paths before it
  uint64_t behind = 0;  // and its own
  uint64_t all = 1;

  uint64_t Of(uint64_t bytes) const {
    return static_cast<uint64_t>(Wide{bytes} * behind / all) -
           static_cast<uint64_t>(Wide{bytes} * before / all);
  }
};

}  // namespace

FlowNetwork::FlowNetwork(const FabricGraph& graph, FabricNetwork& network)
    : network_(network), engine_(network.engine()), rates_(graph.link_count()) {
  for (LinkId link{0}; link < graph.link_count(); ++link) {
    rates_.SetCapacity(link, network.RateBps(link));
  }
  network.flows().SetLedger({.settle = [this] { SettleAll(); },
                             .set_rate =
                                 [this](LinkId link, uint64_t rate_bps) {
                                   rates_.SetCapacity(link, rate_bps);
                                   ++rate_changes_;
                                   RequestSolve();
                                 }});
  // An end of a bundle that has no flows any more, or a later end, is without effect; messages
  // under way are seen by Visit().
  engine_.Register(
      event_order::kFlowEnd,
      {.name = "ends of flows", .pending = PendingMeans::kNothing, .state = {.owner = this}},
      &FlowNetwork::HandleEnd, this);
  engine_.Register(event_order::kFlowArrival,
                   {.name = "arrivals of flows", .state = {.owner = this}},
                   &FlowNetwork::HandleArrival, this);
  engine_.Register(event_order::kFlowRates,
                   {.name = "changes of flows' rates", .state = {.owner = this}},
                   &FlowNetwork::HandleRates, this);
}

// --- Pipes ---------------------------------------------------------------------------------------

BundleId FlowNetwork::BundleOf(const FlowRoute& route) {
  const uint64_t hash = HashOf(route);
  const auto [first, last] = bundle_of_route_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (bundles_[it->second].route == route) return it->second;
  }
  Bundle bundle;
  bundle.route = route;
  std::map<LinkId, uint32_t> weights;
  for (const FlowPath& path : route) {
    bundle.weights += path.weight;
    for (const LinkId link : path.links) weights[link] += path.weight;
  }
  std::vector<RouteLink> links;
  for (const auto& [link, weight] : weights) links.push_back({.link = link, .weight = weight});
  const BundleId id = rates_.AddBundle(links, static_cast<uint32_t>(bundle.weights));
  bundles_.push_back(std::move(bundle));
  bundle_of_route_.emplace(hash, id);
  return id;
}

PipeId FlowNetwork::Open(PipeUser& user, uint32_t number, const FlowRoute& route) {
  Pipe pipe;
  pipe.bundle = BundleOf(route);
  pipe.number = number;
  const auto found = std::ranges::find(users_, &user);
  pipe.user = static_cast<uint16_t>(found - users_.begin());
  if (found == users_.end()) users_.push_back(&user);
  pipes_.push_back(pipe);
  return PipeId{pipes_.size() - 1};
}

uint64_t FlowNetwork::RateAloneBps(PipeId id) const {
  const FlowRoute& route = bundles_[pipes_[id].bundle].route;
  // Weights are shares of the whole flow, so that the busiest link is full.
  std::map<LinkId, uint64_t> weights;
  uint64_t whole = 0;
  for (const FlowPath& path : route) {
    whole += path.weight;
    for (const LinkId link : path.links) weights[link] += path.weight;
  }
  uint64_t rate_bps = UINT64_MAX;
  for (const auto& [link, weight] : weights) {
    const Wide rate = Wide{network_.RateBps(link)} * whole / weight;
    rate_bps = std::min(rate_bps, static_cast<uint64_t>(rate));
  }
  return rate_bps;
}

void FlowNetwork::Send(PipeId id, const FlowMessage& message) {
  Pipe& pipe = pipes_[id];
  SIM_CHECK(static_cast<uint8_t>(pipe.posted - pipe.arrived) < kMessagesMax,
            "more messages than slots in a pipe");
  SIM_CHECK(message.wire_bytes > 0 && message.latency_ps >= 0, "a message without bytes");
  pipe.messages[pipe.posted % kMessagesMax] = message;
  ++under_way_;
  if (pipe.posted++ == pipe.left) Begin(id);
}

void FlowNetwork::Begin(PipeId id) {
  const BundleId bundle_id = pipes_[id].bundle;
  Bundle& bundle = bundles_[bundle_id];
  if (bundle.flows.empty()) {
    bundle.served = 0;
    bundle.since_ps = engine_.NowPs();
    if (!bundle.is_active) active_.push_back(bundle_id);
    bundle.is_active = true;
  } else {
    Advance(bundle);
  }
  pipes_[id].finish = bundle.served;
  Push(bundle, id);
  SetFlows(bundle_id);
}

// Adds the pipe's next message, directly behind what its finish says.
void FlowNetwork::Push(Bundle& bundle, PipeId id) {
  Pipe& pipe = pipes_[id];
  pipe.finish += pipe.messages[pipe.left % kMessagesMax].wire_bytes << kServedBits;
  bundle.flows.push_back({.finish = pipe.finish, .pipe = id});
  std::push_heap(bundle.flows.begin(), bundle.flows.end());
}

void FlowNetwork::SetFlows(BundleId id) {
  rates_.SetFlows(id, static_cast<uint32_t>(bundles_[id].flows.size()));
  // A flow that began may replace one that ended, and end at another time.
  bundles_[id].is_changed = true;
  changed_.push_back(id);
  RequestSolve();
}

void FlowNetwork::RequestSolve() {
  if (is_solve_pending_) return;
  is_solve_pending_ = true;
  engine_.ScheduleFabric(engine_.NowPs(), event_order::kFlowRates, 0, 0);
}

// --- Time ----------------------------------------------------------------------------------------

uint64_t FlowNetwork::ServedNow(const Bundle& bundle) const {
  const auto passed_ps = static_cast<uint64_t>(engine_.NowPs() - bundle.since_ps);
  const Wide served = Wide{bundle.rate} * passed_ps;
  return bundle.served + static_cast<uint64_t>(served >> (kFlowRateBits - kServedBits));
}

void FlowNetwork::Advance(Bundle& bundle) const {
  bundle.served = ServedNow(bundle);
  bundle.since_ps = engine_.NowPs();
}

// Computes the end of the first flow from the time of the last change of the rate or of the flows,
// whenever that is done.
void FlowNetwork::ScheduleEnd(BundleId id) {
  Bundle& bundle = bundles_[id];
  bundle.end_ps = kNeverPs;
  if (bundle.flows.empty() || bundle.rate == 0) return;
  const auto left = static_cast<int64_t>(bundle.flows.front().finish - bundle.served);
  const Wide work = Wide{static_cast<uint64_t>(std::max<int64_t>(left, 0))}
                    << (kFlowRateBits - kServedBits);
  const auto narrow = static_cast<uint64_t>(work);
  const Wide time_ps =
      work == narrow ? Wide{DivideUp(narrow, bundle.rate)} : (work + bundle.rate - 1) / bundle.rate;
  SIM_CHECK(time_ps < static_cast<uint64_t>(kNeverPs - bundle.since_ps),
            "a flow that takes more than all time");
  bundle.end_ps = bundle.since_ps + static_cast<int64_t>(time_ps);
  if (bundle.event_ps <= bundle.end_ps) return;  // which will schedule this one
  bundle.event_ps = bundle.end_ps;
  engine_.ScheduleFabric(bundle.end_ps, event_order::kFlowEnd, id, id);
}

void FlowNetwork::HandleRates(void* self, uint32_t /*target*/) {
  static_cast<FlowNetwork*>(self)->Solve();
}

void FlowNetwork::Solve() {
  is_solve_pending_ = false;
  for (const BundleId id : rates_.Solve()) {
    Bundle& bundle = bundles_[id];
    const FlowRate rate = rates_.rate(id);
    if (rate == bundle.rate) continue;
    Advance(bundle);
    bundle.rate = rate;
    if (!bundle.is_changed) ScheduleEnd(id);
  }
  for (const BundleId id : changed_) {
    if (!bundles_[id].is_changed) continue;
    bundles_[id].is_changed = false;
    ScheduleEnd(id);
  }
  changed_.clear();
}

void FlowNetwork::HandleEnd(void* self, uint32_t bundle) {
  static_cast<FlowNetwork*>(self)->OnEnd(BundleId{bundle});
}

void FlowNetwork::OnEnd(BundleId id) {
  Bundle& bundle = bundles_[id];
  const int64_t now_ps = engine_.NowPs();
  if (bundle.event_ps != now_ps) return;  // an earlier event has replaced this one
  bundle.event_ps = kNeverPs;
  if (bundle.end_ps != now_ps) {
    if (bundle.end_ps == kNeverPs) return;
    bundle.event_ps = bundle.end_ps;
    engine_.ScheduleFabric(bundle.end_ps, event_order::kFlowEnd, id, id);
    return;
  }
  Advance(bundle);
  left_.clear();
  const size_t flows = bundle.flows.size();
  while (!bundle.flows.empty() &&
         static_cast<int64_t>(bundle.flows.front().finish - bundle.served) <= 0) {
    const PipeId pipe = bundle.flows.front().pipe;
    std::pop_heap(bundle.flows.begin(), bundle.flows.end());
    bundle.flows.pop_back();
    left_.push_back(pipe);
    Leave(pipe);
    if (pipes_[pipe].posted != pipes_[pipe].left) Push(bundle, pipe);
  }
  if (bundle.flows.size() != flows) {
    SetFlows(id);
  } else {
    ScheduleEnd(id);
  }
  // From here on users may open pipes, which moves the records.
  notified_users_.clear();
  for (const PipeId pipe : left_) {
    PipeUser* const user = users_[pipes_[pipe].user];
    user->OnLeft(pipes_[pipe].number);
    if (std::ranges::find(notified_users_, user) == notified_users_.end())
      notified_users_.push_back(user);
  }
  for (PipeUser* const user : notified_users_) user->OnAllLeft();
}

void FlowNetwork::Leave(PipeId id) {
  Pipe& pipe = pipes_[id];
  const FlowMessage& message = pipe.messages[pipe.left++ % kMessagesMax];
  if (pipe.counted_bytes == 0) {
    Count(pipe.bundle, message);
  } else {
    CountPart(bundles_[pipe.bundle], message, pipe.counted_bytes, message.wire_bytes);
    pipe.counted_bytes = 0;
  }
  pipe.last_arrival_ps = std::max(engine_.NowPs() + message.latency_ps, pipe.last_arrival_ps + 1);
  engine_.ScheduleFabric(pipe.last_arrival_ps, event_order::kFlowArrival, id, id);
}

void FlowNetwork::HandleArrival(void* self, uint32_t target) {
  auto& network = *static_cast<FlowNetwork*>(self);
  Pipe& pipe = network.pipes_[target];
  ++pipe.arrived;
  --network.under_way_;
  network.users_[pipe.user]->OnArrived(pipe.number);
}

// --- Counters ------------------------------------------------------------------------------------

// Most messages of a bundle have one size, so that their links are counted seldom.
void FlowNetwork::Count(BundleId id, const FlowMessage& message) {
  Bundle& bundle = bundles_[id];
  if (bundle.uncounted > 0 &&
      (bundle.payload_bytes != message.payload_bytes || bundle.wire_bytes != message.wire_bytes)) {
    Settle(bundle);
  }
  if (!bundle.is_uncounted) uncounted_.push_back(id);
  bundle.is_uncounted = true;
  bundle.payload_bytes = message.payload_bytes;
  bundle.wire_bytes = message.wire_bytes;
  ++bundle.uncounted;
}

// A message puts on a path what does not depend on those before it.
void FlowNetwork::Settle(Bundle& bundle) {
  PathShare share{.all = bundle.weights};
  for (const FlowPath& path : bundle.route) {
    share.behind += path.weight;
    const uint64_t payload = bundle.uncounted * share.Of(bundle.payload_bytes);
    const uint64_t wire = bundle.uncounted * share.Of(bundle.wire_bytes);
    for (const LinkId link : path.links) network_.flows().CountOnLink(link, payload, wire);
    share.before = share.behind;
  }
  bundle.uncounted = 0;
}

// Counts what crosses the links between two of a message's bytes. All of its parts together are
// what Settle() counts for it.
void FlowNetwork::CountPart(const Bundle& bundle, const FlowMessage& message, uint64_t from_bytes,
                            uint64_t to_bytes) {
  PathShare share{.all = bundle.weights};
  // Returns the part of what the path carries of the message.
  const auto part_of = [&](uint64_t on_path) {
    return static_cast<uint64_t>(Wide{on_path} * to_bytes / message.wire_bytes) -
           static_cast<uint64_t>(Wide{on_path} * from_bytes / message.wire_bytes);
  };
  for (const FlowPath& path : bundle.route) {
    share.behind += path.weight;
    const uint64_t payload = part_of(share.Of(message.payload_bytes));
    const uint64_t wire = part_of(share.Of(message.wire_bytes));
    for (const LinkId link : path.links) network_.flows().CountOnLink(link, payload, wire);
    share.before = share.behind;
  }
}

// Counts what has left of messages under way, so that a time series has it when it crosses.
void FlowNetwork::SettleUnderWay(const Bundle& bundle) {
  const uint64_t served = ServedNow(bundle);
  for (const Flow& flow : bundle.flows) {
    Pipe& pipe = pipes_[flow.pipe];
    const FlowMessage& message = pipe.messages[pipe.left % kMessagesMax];
    const auto left = std::max<int64_t>(0, static_cast<int64_t>(flow.finish - served));
    const uint64_t left_bytes = DivideUp(static_cast<uint64_t>(left), uint64_t{1} << kServedBits);
    const uint64_t bytes = message.wire_bytes - std::min(message.wire_bytes, left_bytes);
    if (bytes <= pipe.counted_bytes) continue;
    CountPart(bundle, message, pipe.counted_bytes, bytes);
    pipe.counted_bytes = bytes;
  }
}

void FlowNetwork::SettleAll() {
  if (settled_ps_ != engine_.NowPs()) {  // the counters of all links are read at one time
    settled_ps_ = engine_.NowPs();
    std::erase_if(active_, [this](BundleId id) {
      Bundle& bundle = bundles_[id];
      bundle.is_active = !bundle.flows.empty();
      if (bundle.is_active) SettleUnderWay(bundle);
      return !bundle.is_active;
    });
  }
  for (const BundleId id : uncounted_) {
    Settle(bundles_[id]);
    bundles_[id].is_uncounted = false;
  }
  uncounted_.clear();
}

// Bundles without flows begin anew, and the network has the counters.
void FlowNetwork::Visit(StateArchive& archive) {
  archive.Require(under_way_ == 0 && !is_solve_pending_);
  archive.Named("pipes").Constant(pipes_.size());
  archive.Named("bundles").Constant(bundles_.size());
  CheckFields(pipes_, archive);
  CheckFields(bundles_, archive);
}

}  // namespace railyard
