// SPDX-License-Identifier: GPL-2.0-only
// Components: parts of the network in which a collective has nothing to do with what goes on
// elsewhere. When one is at rest and a collective of its GPUs alone runs there: replays the episode
// that is known; else simulates it aside, before everything else that is to come, puts the
// component back as it was, and replays that. Components that are alike share what is known, in
// which GPUs are numbered by their places.
#include <algorithm>
#include <functional>
#include <map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/replay/replay_engine.h"

namespace railyard {
namespace {

// A component that has not repeated itself in so many episodes is simulated without looking for
// more; so is one of which so many were simulated aside and could not be replayed then.
constexpr uint32_t kMissesMax = 1024;
constexpr uint32_t kUnusedMax = 3;

template <typename Visit>
void ForEachLaneOf(const CollectiveSchedule& schedule, uint32_t rank, Visit visit) {
  for (uint32_t channel = 0; channel < schedule.channel_count(); ++channel) {
    for (uint32_t batch = 0; batch < schedule.BatchCount(rank, channel); ++batch) {
      for (uint32_t lane = 0; lane < schedule.LaneCount(rank, channel, batch); ++lane) {
        visit(LaneId{rank, channel, batch, lane});
      }
    }
  }
}

}  // namespace

void ReplayEngine::BuildComponents() {
  // What had been replayed could not be halted halfway; nor could what goes around a NIC come in.
  if (!rules_.component_episodes || rules_.may_halt || rules_.nccl.nic_policy) return;
  least_launch_ps_ = kNeverPs;
  for (const JobCollective& collective : job_.collectives) {
    least_launch_ps_ = std::min(least_launch_ps_, CostsOf(collective).launch_latency_ps);
  }
  nvlinks_ = std::make_unique<NvlinkComponents>(graph_, job_.communicators);
  AddComponentsOfNvlinks();
  if (!rules_.has_load && !rules_.net_socket.enabled) AddComponentsOfNics();
}

void ReplayEngine::AddComponentsOfNvlinks() {
  const auto uses_nvlinks = [this](const JobOperation& call) { return UsesNvlinks(call); };
  std::vector<bool> is_in_turn;
  for (uint32_t program = 0; program < job_.operations.program_count(); ++program) {
    is_in_turn.push_back(AreInTurn(job_, job_.operations.program(program), uses_nvlinks));
  }
  for (const NvlinkComponent& nvlinks : nvlinks_->components()) {
    Component component{.gpus = nvlinks.gpus, .links = nvlinks.links, .shape = nvlinks.shape};
    component.is_in_turn = std::ranges::all_of(nvlinks.gpus, [&](uint32_t gpu) {
      return gpu >= job_.rank_count || is_in_turn[job_.operations.program_of_rank(gpu)];
    });
    component.is_faulty = MayFail(nvlinks.links, nvlinks.gpus);
    components_.push_back(std::move(component));
  }
}

// Whether some fault may do something to any of them.
bool ReplayEngine::MayFail(const std::vector<LinkId>& links,
                           const std::vector<uint32_t>& gpus) const {
  return std::ranges::find_first_of(links, rules_.faulty_links) != links.end() ||
         std::ranges::find_first_of(gpus, rules_.faulty_gpus) != gpus.end();
}

// One for each set of GPUs on servers of their own that a communicator joins.
void ReplayEngine::AddComponentsOfNics() {
  std::map<std::vector<uint32_t>, uint32_t> numbers;
  nic_component_of_communicator_.assign(communicators_.size(), kNone);
  for (uint32_t id = 0; id < communicators_.size(); ++id) {
    const std::vector<uint32_t>& gpus = communicators_[id].gpus;
    const bool have_nics = std::ranges::all_of(
        gpus, [&](uint32_t gpu) { return graph_.NicOfGpu(graph_.gpus()[gpu]).has_value(); });
    if (gpus.size() < 2 || !have_nics || !executor_->AreOnServersOfTheirOwn(gpus)) continue;
    const auto [it, is_new] =
        numbers.try_emplace(gpus, static_cast<uint32_t>(components_.size()));
    nic_component_of_communicator_[id] = it->second;
    if (!is_new) continue;
    Component component{.gpus = gpus, .of_nics = true};
    std::vector<LinkId> links;
    for (const uint32_t gpu : gpus) {
      const DeviceId nic = *graph_.NicOfGpu(graph_.gpus()[gpu]);
      for (const LinkId wire : graph_.WiresOfNic(nic)) {
        links.push_back(wire);
        links.push_back(graph_.ReverseLink(wire));
      }
      for (const LinkId link : graph_.HostPath(graph_.gpus()[gpu], nic)) {
        links.push_back(link);
        links.push_back(graph_.ReverseLink(link));
      }
    }
    component.is_faulty = MayFail(links, gpus);
    components_.push_back(std::move(component));
  }
  std::map<DeviceId, std::vector<uint32_t>> communicators_of_nic;
  for (uint32_t id = 0; id < communicators_.size(); ++id) {
    if (nvlinks_->UseOf(id) == NvlinkUse::kOnly) continue;
    for (const uint32_t gpu : communicators_[id].gpus) {
      const std::optional<DeviceId> nic = graph_.NicOfGpu(graph_.gpus()[gpu]);
      if (nic) communicators_of_nic[*nic].push_back(id);
    }
  }
  for (Component& component : components_) {
    if (!component.of_nics) continue;
    component.may_touch.assign(communicators_.size(), false);
    component.is_near.assign(graph_.gpus().size(), false);
    for (const uint32_t gpu : component.gpus) {
      for (const uint32_t id : communicators_of_nic[*graph_.NicOfGpu(graph_.gpus()[gpu])]) {
        if (component.may_touch[id]) continue;
        component.may_touch[id] = true;
        for (const uint32_t near : communicators_[id].gpus) component.is_near[near] = true;
      }
    }
  }
}

bool ReplayEngine::UsesNvlinks(const JobOperation& operation) const {
  return !operation.is_compute() &&
         nvlinks_->UseOf(job_.collectives[operation.collective].communicator) != NvlinkUse::kNone;
}

bool ReplayEngine::UsesNics(const JobOperation& operation) const {
  return !operation.is_compute() &&
         nvlinks_->UseOf(job_.collectives[operation.collective].communicator) != NvlinkUse::kOnly;
}

// Equal numbers: what their collectives of one kind and size do is the same but for the servers, or
// the rail, that they are on.
std::vector<uint32_t> ReplayEngine::ClassesOfCommunicators() const {
  std::map<std::vector<uint32_t>, uint32_t> numbers;
  std::vector<uint32_t> classes;
  for (uint32_t id = 0; id < communicators_.size(); ++id) {
    const Communicator& communicator = communicators_[id];
    const CommunicatorLayout& layout = communicator.planner->layout();
    const bool is_logged = !layout.rings.empty() || !layout.tree_parents.empty();
    const bool is_of_nvlinks = nvlinks_ && nvlinks_->UseOf(id) == NvlinkUse::kOnly;
    const bool is_of_nics =
        !nic_component_of_communicator_.empty() && nic_component_of_communicator_[id] != kNone;
    std::vector<uint32_t> members;
    if (is_logged || (!is_of_nvlinks && !is_of_nics)) {
      members = {0, id};
    } else if (is_of_nvlinks) {
      const uint32_t component = nvlinks_->OfGpu(communicator.gpus.front());
      members = {1, nvlinks_->components()[component].shape};
      for (uint32_t rank = 0; rank < communicator.gpus.size(); ++rank) {
        members.push_back(nvlinks_->PlaceOf(communicator.gpus[rank]));
        members.push_back(executor_->LocalNumberOf(id, rank));
      }
    } else {
      members = {2, static_cast<uint32_t>(layout.generation), static_cast<uint32_t>(layout.cpu)};
      for (uint32_t rank = 0; rank < communicator.gpus.size(); ++rank) {
        members.push_back(executor_->LocalNumberOf(id, rank));
      }
    }
    classes.push_back(numbers.try_emplace(std::move(members), static_cast<uint32_t>(numbers.size()))
                          .first->second);
  }
  return classes;
}

// A rank of the communicator may be alone in its server.
uint32_t ReplayEngine::ComponentOf(const Running& running) const {
  if (!nvlinks_) return kNone;
  const JobOperation& call = CallOf(running);
  if (UsesNvlinks(call)) return nvlinks_->OfGpu(running.rank);
  if (nic_component_of_communicator_.empty()) return kNone;
  return nic_component_of_communicator_[job_.collectives[call.collective].communicator];
}

bool ReplayEngine::IsOfComponentAlone(uint32_t number, uint32_t collective) const {
  const JobCollective& called = job_.collectives[collective];
  if (!components_[number].of_nics) {
    return nvlinks_->UseOf(called.communicator) == NvlinkUse::kOnly;
  }
  if (called.is_p2p()) return true;
  // The network's switches have a part in the others.
  const Algorithm algorithm = ChoiceOf(called).algorithm;
  return algorithm == Algorithm::kRing || algorithm == Algorithm::kTree ||
         algorithm == Algorithm::kPat;
}

uint32_t ReplayEngine::PlaceOf(const Component& component, uint32_t gpu) {
  return static_cast<uint32_t>(std::ranges::find(component.gpus, gpu) - component.gpus.begin());
}

void ReplayEngine::VisitComponent(const Component& component, StateArchive& archive) {
  if (component.of_nics) {
    executor_->VisitNics(component.nics, archive);
    return;
  }
  network_.VisitNvlinks(component.links, archive);
  executor_->VisitGpus(component.gpus, archive);
}

// What others may count at the same time.
void ReplayEngine::VisitCountersOf(const Component& component, StateArchive& archive) {
  if (component.of_nics) executor_->VisitCountersOfNics(archive);
}

// What it is joins the state that an episode begins in; what is known of the end is put there only
// where it is the same.
ReplayEngine::ComponentRest ReplayEngine::RestOf(const Component& component, bool is_begin) {
  StateArchive archive(engine_.NowPs());
  VisitComponent(component, archive);
  if (!archive.is_at_rest()) return {};
  if (is_begin) {
    archive.Constant(component.of_nics ? 1 : 0);
    archive.Constant(component.shape);
    archive.Constant(component.of_nics ? component.nics.identity
                                       : executor_->IdentityOfGpus(component.gpus));
  }
  ComponentRest rest{.state = component_cache_.NumberOf(archive.TakeState())};
  StateArchive counters(engine_.NowPs());
  VisitCountersOf(component, counters);
  rest.counts = archive.TakeCounts();
  rest.own_counts = rest.counts.size();
  const RestCounts of_all = counters.TakeCounts();
  rest.counts.insert(rest.counts.end(), of_all.begin(), of_all.end());
  rest.unrepeatable = archive.unrepeatable() + counters.unrepeatable();
  rest.is_at_rest = true;
  return rest;
}

// --- Begins --------------------------------------------------------------------------------------

bool ReplayEngine::BeginInComponent(uint32_t id) {
  Running& running = running_[id];
  running.component = ComponentOf(running);
  if (running.component == kNone) return false;
  Component& component = components_[running.component];
  component.calls.push_back(id);
  const std::optional<ComponentEpisode>& episode = component.episode;
  if (!episode || !episode->is_replayed || episode->collective != CallOf(running).collective) {
    return false;
  }
  Follow(id);
  return true;
}

// The call, which begins or has begun, is one of those that are replayed: it ends as told.
void ReplayEngine::Follow(uint32_t id) {
  Running& running = running_[id];
  const Component& component = components_[running.component];
  const ComponentEpisode& episode = *component.episode;
  const Episode& known = component_cache_.episode(episode.known);
  const uint32_t place = PlaceOf(component, running.rank);
  const auto told = std::ranges::find(known.operations, place, &EpisodeOperation::rank);
  SIM_CHECK(told != known.operations.end() && told->begin_ps == running.start_ps - episode.begin_ps,
            "a call that is replayed began otherwise");
  times_[episode.collective].replayed = !episode.is_new;
  running.launched = true;
  running.told_end_ps = episode.begin_ps + told->end_ps;
  if (rules_.keep_paths) {
    running.path = known.paths[static_cast<size_t>(told - known.operations.begin())];
    running.path.origin_ps += episode.begin_ps;
    running.path.Rename([&](uint32_t at) { return component.gpus[at]; });
  }
  Schedule(id, running.told_end_ps);
}

bool ReplayEngine::LaunchInComponent(uint32_t id) {
  const uint32_t number = running_[id].component;
  if (number == kNone) {
    CheckIsApart(running_[id]);
    return false;
  }
  Component& component = components_[number];
  std::optional<ComponentEpisode>& episode = component.episode;
  const uint32_t collective = CallOf(running_[id]).collective;
  if (episode && episode->collective != collective) {
    if (episode->is_replayed) throw FabricNetwork::NotApart();
    episode.reset();
  }
  if (!episode && component.launched == 0) BeginComponentEpisode(number, collective);
  if (running_[id].told_end_ps != 0) return true;
  ++component.launched;
  CheckIsApart(running_[id]);
  return false;
}

void ReplayEngine::BeginComponentEpisode(uint32_t number, uint32_t collective) {
  Component& component = components_[number];
  if (!IsOfComponentAlone(number, collective) || !component.is_in_turn ||
      component.misses > kMissesMax || IsProgressWatched()) {
    return;
  }
  const std::vector<ComponentCall> calls = CallsOf(component, collective);
  const int64_t least_end_ps = calls.empty() ? 0 : calls.front().begin_ps + BoundOf(collective);
  if (calls.empty() || least_end_ps >= NextDisturbancePs(component.is_faulty) ||
      least_end_ps >= calls.front().begin_ps + kAbortNoticePs ||
      MayBeTouched(component, calls, least_end_ps)) {
    return;
  }
  if (component.of_nics && component.nics.version != executor_->network_version()) {
    component.nics = executor_->NicGroupOf(component.gpus);
  }
  ComponentRest rest = RestOf(component, true);
  if (!rest.is_at_rest) return;
  ++component.misses;
  if (rest.state == EpisodeCache::kStateUnknown) return;
  ComponentEpisode episode{.collective = collective, .begin_ps = calls.front().begin_ps};
  episode.known = FindKnown(component, calls, rest.state);
  if (episode.known == kNone) {
    if (component.unused > kUnusedMax) return;
    episode.known = RecordAside(component, calls, rest);
    if (episode.known == kNone) return;
    episode.is_new = true;
  } else {
    component.misses = 0;
  }
  const bool can_replay = CanReplay(component, calls, component_cache_.episode(episode.known));
  if (episode.is_new) component.unused = can_replay ? 0 : component.unused + 1;
  if (!can_replay) return;
  if (rules_.cache == ReplayCacheMode::kVerify) {
    episode.begin_counts = std::move(rest.counts);
    episode.ends_ps.resize(component.gpus.size());
    component.episode = std::move(episode);
    return;
  }
  if (component.of_nics) {
    component.apart_at = component.nics.at.value();
    if (!network_.BeginApart(component.apart_at)) return;
  }
  ++replayed_components_;
  episode.is_replayed = true;
  component.episode = std::move(episode);
  for (const ComponentCall& call : calls) {
    if (call.running != kNone) Follow(call.running);
  }
}

// Those of the collective, in the order in which they begin; none if it is not known yet when all
// do, something else goes on, or some of their connections have not been opened.
std::vector<ReplayEngine::ComponentCall> ReplayEngine::CallsOf(const Component& component,
                                                               uint32_t collective) const {
  std::vector<ComponentCall> calls;
  for (const uint32_t id : component.calls) {
    const Running& running = running_[id];
    if (CallOf(running).collective != collective) return {};
    calls.push_back({running.start_ps, NumberOf(running), running.rank, id});
  }
  for (const Pending& pending : pending_) {
    const uint32_t index = pending.number - first_number_[pending.rank];
    if (job_.operations[pending.rank][index].collective != collective) continue;
    calls.push_back({pending.begin_ps, pending.number, pending.rank, kNone});
  }
  std::unordered_set<uint32_t> places;
  for (const ComponentCall& call : calls) {
    const uint32_t place = PlaceOf(component, call.rank);
    places.insert(place);
    if (!component.made.contains(MadeKey(PlanNumberOf(call.rank, call.number), place))) return {};
  }
  if (calls.size() != component.gpus.size() || places.size() != calls.size()) return {};
  std::ranges::sort(calls, [](const ComponentCall& a, const ComponentCall& b) {
    return std::pair(a.begin_ps, a.number) < std::pair(b.begin_ps, b.number);
  });
  return calls;
}

uint32_t ReplayEngine::FindKnown(const Component& component,
                                 const std::vector<ComponentCall>& calls, uint32_t state) {
  const ComponentCall& first = calls.front();
  std::vector<uint32_t>& known = component_cache_.Find(
      state, PlaceOf(component, first.rank), PlanNumberOf(first.rank, first.number));
  const auto found = std::ranges::find_if(known, [&](uint32_t id) {
    const Episode& episode = component_cache_.episode(id);
    return episode.begin_state == state &&
           std::ranges::equal(episode.operations, calls,
                              [&](const EpisodeOperation& told, const ComponentCall& call) {
                                return told.rank == PlaceOf(component, call.rank) &&
                                       told.begin_ps == call.begin_ps - first.begin_ps &&
                                       told.plan == PlanNumberOf(call.rank, call.number);
                              });
  });
  if (found == known.end()) return kNone;
  std::rotate(known.begin(), found, found + 1);
  return known.front();
}

// Something waits for how far a collective has come.
bool ReplayEngine::IsProgressWatched() const {
  return std::ranges::any_of(watched_, [this](const auto& watched) {
    return times_[watched.first].calls_ended < call_count_[watched.first];
  });
}

// Whether nothing can happen to the component before all it remembers of the episode has passed.
bool ReplayEngine::CanReplay(const Component& component, const std::vector<ComponentCall>& calls,
                             const Episode& episode) {
  const int64_t settled_ps =
      episode.duration_ps + component_cache_.state(episode.end_state).instants_ahead_ps;
  // Aborts are known so long ahead.
  if (settled_ps >= kAbortNoticePs) return false;
  const auto is_of_component = [&](const JobOperation& call) {
    return component.of_nics ? UsesNics(call) : UsesNvlinks(call);
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    const uint32_t rank = calls[i].rank;
    const int64_t gap_ps = LeastGapPs(job_.operations[rank], calls[i].number - first_number_[rank],
                                      is_of_component);
    if (gap_ps == kNeverPs) continue;
    if (gap_ps + least_launch_ps_ < settled_ps - episode.operations[i].end_ps) return false;
  }
  const int64_t settled_at_ps = calls.front().begin_ps + settled_ps;
  return settled_at_ps < NextDisturbancePs(component.is_faulty) &&
         !MayBeTouched(component, calls, settled_at_ps);
}

// When the next event is that may end the job or, where faults are to be considered, bring one.
int64_t ReplayEngine::NextDisturbancePs(bool by_faults) const {
  int64_t next_ps = kNeverPs;
  engine_.ForEachPending([&](int64_t time_ps, EventClass event_class) {
    const bool is_fault = event_class == EventClass::kFault || event_class == EventClass::kRouting;
    if (event_class == EventClass::kNs3 || event_class == EventClass::kLook ||
        (is_fault && by_faults)) {
      next_ps = std::min(next_ps, time_ps);
    }
  });
  return next_ps;
}

// --- Aside ---------------------------------------------------------------------------------------

// Precondition: the component is at rest, and the first of the calls runs now. What the calls would
// do there; kNone: that is no episode.
uint32_t ReplayEngine::RecordAside(const Component& component,
                                   const std::vector<ComponentCall>& calls,
                                   const ComponentRest& rest) {
  const std::optional<DeviceId> at = component.nics.at;
  std::vector<uint8_t> timers;
  if (at) {
    if (!network_.BeginAside(*at, component.nics.links)) return kNone;
    timers = executor_->TakeTimers(component.nics);
  }
  Aside aside{.component = &component,
              .begin_ps = calls.front().begin_ps,
              .calls_left = calls.size()};
  Episode& episode = aside.episode;
  episode.begin_state = rest.state;
  std::vector<LanePaths::Kept> paths;
  if (rules_.keep_paths) {
    episode.paths.resize(calls.size());
    paths = executor_->PathsAmong(component.gpus);
  }
  aside_ = &aside;
  engine_.RunAside([&] {
    for (const ComponentCall& call : calls) {
      const uint32_t id = NewRunning(call.rank, call.number, call.begin_ps);
      running_[id].in_component = static_cast<uint32_t>(episode.operations.size());
      episode.operations.push_back({.rank = PlaceOf(component, call.rank),
                                    .plan = PlanNumberOf(call.rank, call.number),
                                    .begin_ps = call.begin_ps - aside.begin_ps});
      const JobCollective& collective = job_.collectives[CallOf(running_[id]).collective];
      Schedule(id, call.begin_ps + CostsOf(collective).launch_latency_ps);
    }
  });
  aside_ = nullptr;
  SIM_CHECK(aside.calls_left == 0, "what was simulated aside has not come to its end");
  if (at) {
    network_.EndAside(*at);
    executor_->PutTimers(component.nics, timers);
  }
  if (rules_.keep_paths) executor_->PutPathsAmong(component.gpus, paths);
  PutBack(component, rest);
  const bool is_repeatable = aside.end.is_at_rest &&
                             aside.end.state != EpisodeCache::kStateUnknown &&
                             aside.end.unrepeatable == rest.unrepeatable &&
                             aside.end.counts.size() == rest.counts.size();
  if (!is_repeatable) return kNone;
  episode.end_state = aside.end.state;
  episode.changes = ChangesBetween(rest.counts, aside.end.counts);
  return component_cache_.Add(std::move(episode));
}

void ReplayEngine::EndAside(uint32_t id) {
  const Running& running = running_[id];
  Aside& aside = *aside_;
  const Component& component = *aside.component;
  const int64_t now_ps = engine_.NowPs();
  aside.episode.operations[running.in_component].end_ps = now_ps - aside.begin_ps;
  if (rules_.keep_paths) {
    CriticalPath& path = aside.episode.paths[running.in_component];
    path = running.path;
    path.origin_ps -= aside.begin_ps;
    path.Rename([&](uint32_t gpu) { return PlaceOf(component, gpu); });
  }
  FreeRunning(id);
  if (--aside.calls_left > 0) return;
  aside.episode.duration_ps = now_ps - aside.begin_ps;
  aside.end = RestOf(component, false);
}

// What was simulated aside has come to rest: as if it had not been.
void ReplayEngine::PutBack(const Component& component, const ComponentRest& rest) {
  const auto add = [&](const RestCountChanges& changes) {
    StateArchive archive(changes);
    VisitComponent(component, archive);
    VisitCountersOf(component, archive);
  };
  const ComponentRest after = RestOf(component, false);
  if (!after.is_at_rest || after.counts.size() != rest.counts.size()) {
    throw FabricNetwork::NotApart();
  }
  StateArchive put(component_cache_.state(rest.state), engine_.NowPs());
  VisitComponent(component, put);
  add(ChangesBetween(after.counts, rest.counts));
  const ComponentRest again = RestOf(component, true);
  // What was lost, or timed out, cannot be taken back.
  if (again.unrepeatable != rest.unrepeatable) throw FabricNetwork::NotApart();
  SIM_CHECK(again.is_at_rest && again.state == rest.state && again.counts == rest.counts,
            "a component is not as it was before something was simulated aside");
}

// --- Who else is there ---------------------------------------------------------------------------

// GPUs whose NICs what a rank's call sends crosses, or what is sent to the rank.
const std::vector<uint32_t>& ReplayEngine::GpusOnNetworkOf(uint32_t rank, uint32_t index) {
  const JobOperation& call = job_.operations[rank][index];
  const JobCollective& collective = job_.collectives[call.collective];
  const Communicator& communicator = communicators_[collective.communicator];
  const uint32_t own = job_.CommunicatorRank(collective.communicator, rank);
  std::vector<uint32_t>* found = &scratch_gpus_;
  if (!collective.is_p2p()) {
    Plan& plan = PlanOf(collective);
    plan.gpus_on_network.resize(communicator.gpus.size());
    std::optional<std::vector<uint32_t>>& of_rank = plan.gpus_on_network[own];
    if (of_rank) return *of_rank;
    found = &of_rank.emplace();
  }
  found->clear();
  const auto add = [&](uint32_t channel, uint32_t from, uint32_t to, ConnectionUse use) {
    if (use == ConnectionUse::kSwitchOperand || use == ConnectionUse::kSwitchResult) return;
    if (use == ConnectionUse::kNetworkSum) {
      found->push_back(communicator.gpus[own]);
      return;
    }
    const ConnectionRoute route = communicator.planner->RouteOf(channel, from, to, use);
    if (!route.network) return;
    found->push_back(
        executor_->GpuOfServer(communicator.gpus[from], route.sending_local_index));
    found->push_back(communicator.gpus[to]);
  };
  if (collective.is_p2p()) {
    for (uint32_t i = 0; i < call.p2p_count; ++i) {
      const P2pCall& p2p = job_.p2p_calls[call.p2p_first + i];
      if (p2p.peer == own) continue;
      add(0, p2p.is_send ? own : p2p.peer, p2p.is_send ? p2p.peer : own,
          ConnectionUse::kPointToPoint);
    }
  } else {
    const CollectiveSchedule& schedule = *PlanOf(collective).schedule;
    ForEachLaneOf(schedule, own, [&](const LaneId& lane) {
      const LanePeers peers = schedule.PeersOf(lane);
      for (const LanePeer& peer : peers.send_to) add(lane.channel, own, peer.rank, peer.use);
      for (const LanePeer& peer : peers.recv_from) add(lane.channel, peer.rank, own, peer.use);
    });
  }
  std::ranges::sort(*found);
  const auto repeated = std::ranges::unique(*found);
  found->erase(repeated.begin(), repeated.end());
  return *found;
}

bool ReplayEngine::Touches(uint32_t rank, uint32_t index, const Component& component) {
  const JobOperation& call = job_.operations[rank][index];
  if (call.is_compute() ||
      !component.may_touch[job_.collectives[call.collective].communicator]) {
    return false;
  }
  const std::vector<uint32_t>& gpus = GpusOnNetworkOf(rank, index);
  return std::ranges::any_of(component.gpus, [&](uint32_t gpu) {
    const DeviceId nic = graph_.NicOfGpu(graph_.gpus()[gpu]).value();
    return std::ranges::any_of(gpus, [&](uint32_t other) {
      return graph_.NicOfGpu(graph_.gpus()[other]) == nic;
    });
  });
}

// Whether something but the calls uses the component's NICs, or begins to before `until_ps`. What
// waits for nothing but ends is taken to begin at once. If it is wrong, CheckIsApart() finds out.
bool ReplayEngine::MayBeTouched(const Component& component,
                                const std::vector<ComponentCall>& calls, int64_t until_ps) {
  if (!component.of_nics) return false;
  const auto is_one = [&](uint32_t number) {
    return std::ranges::find(calls, number, &ComponentCall::number) != calls.end();
  };
  const auto begins_after = [&](uint32_t rank, uint32_t index, int64_t from_ps) {
    const std::vector<JobOperation>& program = job_.operations[rank];
    const uint32_t stream = program[index].stream;
    for (uint32_t next = index + 1; next < program.size() && from_ps < until_ps; ++next) {
      if (program[next].stream == stream) from_ps += program[next].compute_before_ps;
      if (from_ps + least_launch_ps_ < until_ps && !is_one(first_number_[rank] + next) &&
          Touches(rank, next, component)) {
        return true;
      }
    }
    return false;
  };
  const int64_t now_ps = engine_.NowPs();
  for (const Running& running : running_) {
    if (running.rank == kNone || !component.is_near[running.rank]) continue;
    const bool is_call = is_one(NumberOf(running));
    if (!is_call && running.told_end_ps == 0 && Touches(running.rank, running.index, component)) {
      return true;
    }
    if (begins_after(running.rank, running.index, std::max(now_ps, running.told_end_ps)) &&
        !is_call) {
      return true;
    }
  }
  return std::ranges::any_of(pending_, [&](const Pending& pending) {
    const uint32_t index = pending.number - first_number_[pending.rank];
    if (!component.is_near[pending.rank] || is_one(pending.number)) return false;
    return (pending.begin_ps < until_ps && Touches(pending.rank, index, component)) ||
           begins_after(pending.rank, index, pending.begin_ps);
  });
}

// A call that is simulated begins to use the network.
void ReplayEngine::CheckIsApart(const Running& running) {
  if (replayed_components_ == 0 || !UsesNics(CallOf(running))) return;
  for (const Component& component : components_) {
    if (component.of_nics && component.episode && component.episode->is_replayed &&
        Touches(running.rank, running.index, component)) {
      throw FabricNetwork::NotApart();
    }
  }
}

// --- Ends ----------------------------------------------------------------------------------------

void ReplayEngine::EndInComponent(uint32_t id) {
  const Running& running = running_[id];
  if (running.component == kNone) return;
  Component& component = components_[running.component];
  std::erase(component.calls, id);
  const bool was_told = running.told_end_ps != 0;
  if (!was_told) {
    --component.launched;
    component.made.insert(MadeKey(PlanNumberOf(running.rank, NumberOf(running)),
                                  PlaceOf(component, running.rank)));
  }
  if (!component.episode || component.episode->collective != CallOf(running).collective) return;
  ComponentEpisode& episode = *component.episode;
  ++episode.calls_ended;
  if (!episode.is_replayed) {
    episode.ends_ps[PlaceOf(component, running.rank)] = engine_.NowPs() - episode.begin_ps;
  }
  if (episode.calls_ended < component.gpus.size()) return;
  if (episode.is_replayed) {
    FinishReplay(component);
  } else {
    CheckEpisode(component);
  }
  component.episode.reset();
}

void ReplayEngine::FinishReplay(Component& component) {
  const Episode& known = component_cache_.episode(component.episode->known);
  StateArchive put(component_cache_.state(known.end_state), engine_.NowPs());
  VisitComponent(component, put);
  StateArchive add(known.changes);
  VisitComponent(component, add);
  VisitCountersOf(component, add);
  --replayed_components_;
  if (component.of_nics) network_.EndApart(component.apart_at);
}

// What was simulated is what would have been replayed.
void ReplayEngine::CheckEpisode(Component& component) {
  const ComponentEpisode& episode = *component.episode;
  const Episode& expected = component_cache_.episode(episode.known);
  const ComponentRest rest = RestOf(component, false);
  const bool ends_as_told =
      std::ranges::all_of(expected.operations, [&](const EpisodeOperation& told) {
        return episode.ends_ps[told.rank] == told.end_ps;
      });
  // Others may have counted meanwhile, and of this component is the first part alone.
  const auto is_own = [&](const auto& change) { return change.first < rest.own_counts; };
  const auto own = [&](RestCountChanges changes) {
    std::erase_if(changes, std::not_fn(is_own));
    return changes;
  };
  SIM_CHECK(rest.is_at_rest && ends_as_told && rest.state == expected.end_state &&
                own(ChangesBetween(episode.begin_counts, rest.counts)) == own(expected.changes),
            fmt::format("a collective of {} GPUs at {} ps is not what would have been replayed",
                        expected.operations.size(), episode.begin_ps));
}

void ReplayEngine::ForgetEpisodesOf(uint32_t part) {
  for (Component& component : components_) {
    if (!component.episode || part_of_rank_[component.gpus.front()] != part) continue;
    SIM_CHECK(!component.episode->is_replayed, "a job ends in the middle of what is replayed");
    component.episode.reset();
  }
}

}  // namespace railyard
