// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/faults/fault_injector.h"

#include <algorithm>
#include <map>
#include <utility>

#include "simulator/event_order/event_order.h"
#include "simulator/units/mix64.h"

namespace railyard {
namespace {

// Transition 2f is a beginning of fault f, 2f+1 an end. At one instant ends come before beginnings,
// for one fault of a link may follow upon another.
constexpr uint32_t TransitionOf(FaultIndex fault, bool begins) {
  return 2 * fault + (begins ? 0 : 1);
}
constexpr bool Begins(uint32_t transition) { return transition % 2 == 0; }
constexpr uint64_t kBeginnings = uint64_t{1} << 32;

}  // namespace

std::string_view FaultKindName(FaultKind kind) {
  switch (kind) {
    case FaultKind::kLinkDown:
      return "LINK_DOWN";
    case FaultKind::kSwitchReboot:
      return "SWITCH_REBOOT";
    case FaultKind::kDegrade:
      return "DEGRADE";
    case FaultKind::kLoss:
      return "LOSS";
    case FaultKind::kDelay:
      return "DELAY";
    case FaultKind::kPauseStorm:
      return "PAUSE_STORM";
    case FaultKind::kBackgroundLoad:
      return "BACKGROUND_LOAD";
    case FaultKind::kStraggler:
      return "STRAGGLER";
  }
  return "";
}

FaultInjector::FaultInjector(const FabricGraph& graph, const std::vector<FaultSpec>& faults,
                             const RoutingDelays& delays, FabricNetwork& network,
                             EcmpRouting& routing, Hooks hooks)
    : graph_(graph),
      faults_(faults),
      delays_(delays),
      network_(network),
      routing_(routing),
      hooks_(std::move(hooks)),
      effects_(graph, faults, network),
      states_(faults.size()) {
  FabricSimulatorImpl& engine = network.engine();
  const EventState conditions = {.owner = &network.state()};
  engine.Register(event_order::kFault,
                  {.name = "faults", .pending = PendingMeans::kChange, .state = conditions},
                  &FaultInjector::HandleFault, this);
  engine.Register(event_order::kRouting,
                  {.name = "route changes", .pending = PendingMeans::kChange, .state = conditions},
                  &FaultInjector::HandleRouting, this);
  for (FaultIndex f{}; f < faults.size(); ++f) {
    if (TakesLinksDown(faults[f]) && faults[f].is_noticed) states_[f].groups = GroupsOf(faults[f]);
    if (!faults[f].timeline.anchor.is_set()) CountFrom(f, 0);
  }
}

std::vector<FaultInjector::LinkGroup> FaultInjector::GroupsOf(const FaultSpec& fault) const {
  std::map<int64_t, std::vector<LinkId>> by_detection;
  for (const LinkId link : fault.links) {
    by_detection[FirstDetectionPs(graph_, delays_, link)].push_back(link);
  }
  std::vector<LinkGroup> groups;
  for (auto& [detection_ps, links] : by_detection) {
    groups.push_back({.detection_ps = detection_ps, .links = std::move(links)});
  }
  return groups;
}

// --- Timelines -----------------------------------------------------------------------------------

void FaultInjector::CountFrom(FaultIndex fault, int64_t anchor_ps) {
  State& state = states_[fault];
  if (state.anchor_ps != kNeverPs) return;
  state.anchor_ps = anchor_ps;
  const std::optional<FaultInterval> none;
  state.interval = faults_[fault].timeline.Interval(0, none, faults_[fault].seed);
  ScheduleNext(fault);
}

void FaultInjector::ScheduleNext(FaultIndex fault) {
  const State& state = states_[fault];
  if (!state.interval) {
    BeginAnchored(fault, true);
    return;
  }
  // Later than any event: it does not happen.
  if (state.interval->from_ps >= kNeverPs - state.anchor_ps) return;
  ScheduleTransition(fault, true, state.anchor_ps + state.interval->from_ps);
}

void FaultInjector::ScheduleTransition(FaultIndex fault, bool begins, int64_t time_ps) {
  network_.engine().ScheduleFabric(time_ps, event_order::kFault, (begins ? kBeginnings : 0) + fault,
                                   TransitionOf(fault, begins));
}

void FaultInjector::HandleFault(void* self, uint32_t transition) {
  auto& injector = *static_cast<FaultInjector*>(self);
  if (!injector.has_begun_ && !injector.disarmed_) {
    injector.has_begun_ = true;
    if (injector.hooks_.before_first_fault) injector.hooks_.before_first_fault();
  }
  if (injector.disarmed_) return;
  if (Begins(transition)) {
    injector.Begin(FaultIndex{transition / 2});
  } else {
    injector.End(FaultIndex{transition / 2});
  }
}

void FaultInjector::Begin(FaultIndex fault) {
  const FaultTimeline& timeline = faults_[fault].timeline;
  State& state = states_[fault];
  const int64_t now_ps = network_.engine().NowPs();
  state.holds = true;
  state.history.last_end_ps = kNeverPs;
  if (state.history.begins++ == 0) state.history.first_begin_ps = now_ps;
  if (state.interval->until_ps < kNeverPs - state.anchor_ps - timeline.training_ps) {
    ScheduleTransition(fault, false,
                       state.anchor_ps + state.interval->until_ps + timeline.training_ps);
  }
  Apply(fault);
  if (state.history.begins == 1) BeginAnchored(fault, false);
}

void FaultInjector::End(FaultIndex fault) {
  State& state = states_[fault];
  state.holds = false;
  state.history.last_end_ps = network_.engine().NowPs();
  Apply(fault);
  state.interval =
      faults_[fault].timeline.Interval(++state.number, state.interval, faults_[fault].seed);
  ScheduleNext(fault);
}

// Starts or ends the fault's effect.
void FaultInjector::Apply(FaultIndex fault) {
  const FaultSpec& spec = faults_[fault];
  const bool holds = states_[fault].holds;
  conditions_ ^= Mix64(fault + 1);
  network_.state().SetConditions(conditions_);
  if (holds) {
    effects_.Begin(fault);
  } else {
    effects_.End(fault);
  }
  Announce(fault, !holds);
  if (spec.kind == FaultKind::kStraggler) SetGpuSpeeds(fault);
  if (spec.kind == FaultKind::kBackgroundLoad && hooks_.set_load) hooks_.set_load(fault, holds);
}

void FaultInjector::BeginAnchored(FaultIndex fault, bool at_end) {
  for (FaultIndex f{}; f < faults_.size(); ++f) {
    const FaultAnchor& anchor = faults_[f].timeline.anchor;
    if (anchor.fault == fault && anchor.at_end == at_end) CountFrom(f, network_.engine().NowPs());
  }
}

void FaultInjector::OnCollectiveProgress(CollectiveIndex collective, double progress) {
  if (disarmed_) return;
  for (FaultIndex f{}; f < faults_.size(); ++f) {
    const FaultAnchor& anchor = faults_[f].timeline.anchor;
    const bool is_of =
        std::ranges::find(anchor.collectives, collective) != anchor.collectives.end();
    if (is_of && anchor.progress <= progress) {
      CountFrom(f, network_.engine().NowPs());
    }
  }
}

void FaultInjector::SetGpuSpeeds(FaultIndex fault) {
  if (!hooks_.set_gpu_speed) return;
  for (const GpuIndex gpu : faults_[fault].gpus) {
    double speed = 1;
    for (FaultIndex f{}; f < faults_.size(); ++f) {
      if (faults_[f].kind != FaultKind::kStraggler || !states_[f].holds) continue;
      const auto& gpus = faults_[f].gpus;
      if (std::find(gpus.begin(), gpus.end(), gpu) != gpus.end()) speed *= faults_[f].speed;
    }
    hooks_.set_gpu_speed(gpu, speed);
  }
}

// --- Routes --------------------------------------------------------------------------------------

bool FaultInjector::TakesLinksDown(const FaultSpec& fault) {
  return fault.kind == FaultKind::kLinkDown || fault.kind == FaultKind::kSwitchReboot;
}

void FaultInjector::ScheduleNews(uint32_t news, int64_t time_ps) {
  network_.engine().ScheduleFabric(time_ps, event_order::kRouting,
                                   (news_[news].up ? 0 : kBeginnings) + news_[news].order, news);
}

void FaultInjector::Announce(FaultIndex fault, bool up) {
  const int64_t now_ps = network_.engine().NowPs();
  const std::vector<LinkGroup>& groups = states_[fault].groups;
  for (uint32_t group = 0; group < groups.size(); ++group) {
    if (free_news_.empty()) {
      free_news_.push_back(static_cast<uint32_t>(news_.size()));
      news_.emplace_back();
    }
    const uint32_t index = free_news_.back();
    free_news_.pop_back();
    news_[index] = {.order = announced_++,
                    .fault = fault,
                    .group = group,
                    .up = up,
                    .number = states_[fault].number,
                    .changed_ps = now_ps};
    ScheduleNews(index, now_ps + groups[group].detection_ps);
  }
}

// A change that is over before it is detected changes no route. Both ends know of a direction that
// fails: one sees no light and informs the other.
bool FaultInjector::Detect(News& news) {
  State& state = states_[news.fault];
  const bool lasts = news.up ? !state.holds && state.number == news.number + 1
                             : state.holds && state.number == news.number;
  LinkGroup& group = state.groups[news.group];
  if (!lasts || group.is_known == !news.up) return false;
  group.is_known = !news.up;
  if (!news.up && state.history.first_detection_ps == kNeverPs) {
    state.history.first_detection_ps = network_.engine().NowPs();
  }
  for (const LinkId link : group.links) {
    uint32_t& count = known_down_[link];
    if (news.up ? --count != 0 : count++ != 0) continue;
    news.links.push_back(PlanLinkNews(graph_, routing_, delays_, link));
  }
  news.is_detected = true;
  if (news.up && news.links.empty()) NoteLinksBack(news.fault, group);
  return !news.links.empty();
}

void FaultInjector::NoteLinksGone(FaultIndex fault, LinkGroup& group) {
  if (std::exchange(group.is_missing_in_routes, true)) return;
  State& state = states_[fault];
  RoutedFault routed;
  if (state.groups_missing++ > 0) {
    routed = std::move(routed_faults_.extract(state.routed_number).mapped());
  } else {
    routed.fault = fault;
    for (const LinkId link : faults_[fault].links) {
      for (const DeviceId device : {graph_.link_source(link), graph_.link_target(link)}) {
        if (graph_.IsInServer(device)) {
          routed.servers.push_back(graph_.device(device).server);
        }
      }
    }
    std::ranges::sort(routed.servers);
  }
  state.routed_number = ++routed_number_;
  routed_faults_.emplace_hint(routed_faults_.end(), routed_number_, std::move(routed));
}

void FaultInjector::NoteLinksBack(FaultIndex fault, LinkGroup& group) {
  if (!std::exchange(group.is_missing_in_routes, false)) return;
  State& state = states_[fault];
  if (--state.groups_missing == 0) routed_faults_.erase(state.routed_number);
}

int64_t FaultInjector::NextWavePs(const News& news) const {
  int64_t next_ps = kNeverPs;
  for (const LinkNews& of_link : news.links) {
    if (of_link.next == of_link.times_ps.size()) continue;
    next_ps = std::min(next_ps, news.changed_ps + of_link.times_ps[of_link.next]);
  }
  return next_ps;
}

void FaultInjector::Spread(uint32_t index) {
  News& news = news_[index];
  const int64_t now_ps = network_.engine().NowPs();
  LinkGroup& group = states_[news.fault].groups[news.group];
  if (!news.up) NoteLinksGone(news.fault, group);
  for (LinkNews& of_link : news.links) {
    if (of_link.next == of_link.times_ps.size()) continue;
    if (news.changed_ps + of_link.times_ps[of_link.next] > now_ps) continue;
    routing_.SpreadLinkState(of_link.link, news.up, of_link.next++, of_link.wave_of_device);
  }
  const int64_t next_ps = NextWavePs(news);
  if (next_ps != kNeverPs) {
    ScheduleNews(index, next_ps);
  } else {
    if (news.up) NoteLinksBack(news.fault, group);
    free_news_.push_back(index);
  }
  last_routed_fault_ = news.fault;
  if (hooks_.on_routes_changed) hooks_.on_routes_changed();
}

void FaultInjector::HandleRouting(void* self, uint32_t index) {
  auto& injector = *static_cast<FaultInjector*>(self);
  if (injector.disarmed_) return;
  News& news = injector.news_[index];
  if (news.is_detected) {
    injector.Spread(index);
  } else if (injector.Detect(news)) {
    injector.ScheduleNews(index, injector.NextWavePs(news));
  } else {
    injector.free_news_.push_back(index);
  }
}

std::set<ServerIndex> FaultInjector::BrokenServers() const {
  std::set<ServerIndex> broken;
  const auto add = [&](DeviceId device) {
    if (graph_.IsInServer(device)) broken.insert(graph_.device(device).server);
  };
  for (FaultIndex f{}; f < faults_.size(); ++f) {
    const FaultSpec& fault = faults_[f];
    if (!states_[f].holds) continue;
    if (TakesLinksDown(fault) && fault.is_noticed) {
      for (const LinkId link : fault.links) {
        add(graph_.link_source(link));
        add(graph_.link_target(link));
      }
    }
    if (fault.kind != FaultKind::kStraggler || fault.speed > 0) continue;
    for (const GpuIndex gpu : fault.gpus) add(graph_.gpus()[gpu]);
  }
  return broken;
}

// A packet may have been lost on its way when all routes are back.
std::optional<FaultIndex> FaultInjector::FaultOfMissingRoute(ServerIndex from_server,
                                                             ServerIndex to_server) const {
  if (routed_faults_.empty()) return last_routed_fault_;
  const auto is_at_an_end = [&](const auto& numbered) {
    const std::vector<ServerIndex>& servers = numbered.second.servers;
    return std::ranges::binary_search(servers, from_server) ||
           std::ranges::binary_search(servers, to_server);
  };
  const auto found = std::find_if(routed_faults_.rbegin(), routed_faults_.rend(), is_at_an_end);
  const auto cause = found == routed_faults_.rend() ? routed_faults_.rbegin() : found;
  return cause->second.fault;
}

std::optional<FaultIndex> FaultInjector::FaultOfLoss(DropReason reason, LinkId link, GpuIndex from,
                                                     GpuIndex to) const {
  switch (reason) {
    case DropReason::kBitError:
      return effects_.FaultOfBitError(link);
    case DropReason::kLinkDown:
      return effects_.LastFaultOfDownLink(link);
    case DropReason::kNoRoute:
      return FaultOfMissingRoute(graph_.device(graph_.gpus()[from]).server,
                                 graph_.device(graph_.gpus()[to]).server);
    default:
      return std::nullopt;
  }
}

}  // namespace railyard
