// SPDX-License-Identifier: GPL-2.0-only
// Components (component.h). When one is at rest and a collective of its GPUs alone runs there:
// replays the episode that is known; else simulates it aside (component_aside.cc), puts the
// component back as it was, and replays that. Components that are alike share what is known, in
// which GPUs are numbered by their places.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/replay/streams/replay_engine.h"
#include "simulator/units/time_end.h"

namespace railyard {
namespace {

// A component that has not repeated itself in so many episodes is simulated without looking for
// more; so is one of which so many were simulated aside and could not be replayed then.
constexpr uint32_t kMissesMax = 1024;
constexpr uint32_t kUnusedMax = 3;

}  // namespace

// --- Begins --------------------------------------------------------------------------------------

bool ReplayEngine::BeginInComponent(uint32_t id) {
  Running& running = running_[id];
  running.component = ComponentOf(running);
  if (running.component == kNone) return false;
  Component& component = components_[running.component];
  component.calls.push_back(id);
  const std::optional<ComponentEpisode>& episode = component.episode;
  if (!episode || !episode->is_replayed || episode->collective != CollectiveOf(running)) {
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
  const uint32_t collective = CollectiveOf(running_[id]);
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
  if (!IsOfComponentAlone(number, collective) || !component.is_in_turn || component.is_on_detour ||
      component.misses > kMissesMax || IsProgressWatched() || executor_->MayFailOver()) {
    return;
  }
  // A GPU that stands still does not end what it has begun.
  const auto stands_still = [this](uint32_t gpu) { return executor_->SpeedOfGpu(gpu) == 0; };
  if (std::ranges::any_of(component.gpus, stands_still)) return;
  const std::vector<ComponentCall> calls = CallsOf(component, collective);
  const int64_t least_end_ps = calls.empty() ? 0 : calls.front().begin_ps + BoundOf(collective);
  if (calls.empty() || calls.back().begin_ps > kTimeEndPs ||
      least_end_ps >= NextDisturbancePs(component.is_faulty) ||
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
  rest.number = component_cache_.NumberOf(rest.state);
  if (rest.number == EpisodeCache::kStateUnknown) return;
  ComponentEpisode episode{.collective = collective, .begin_ps = calls.front().begin_ps};
  episode.known = FindKnown(component, calls, rest.number);
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
std::vector<ComponentCall> ReplayEngine::CallsOf(const Component& component,
                                                 uint32_t collective) const {
  std::vector<ComponentCall> calls;
  for (const uint32_t id : component.calls) {
    const Running& running = running_[id];
    if (CollectiveOf(running) != collective) return {};
    calls.push_back({running.start_ps, NumberOf(running), running.rank, id});
  }
  for (const Pending& pending : pending_) {
    const uint32_t index = pending.number - first_number_[pending.rank];
    if (CollectiveOf(Call{pending.rank, index}) != collective) continue;
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
  std::vector<uint32_t>& known = component_cache_.Find(state, PlaceOf(component, first.rank),
                                                       PlanNumberOf(first.rank, first.number));
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

// --- Ends ----------------------------------------------------------------------------------------

void ReplayEngine::EndInComponent(uint32_t id) {
  const Running& running = running_[id];
  if (running.component == kNone) return;
  Component& component = components_[running.component];
  std::erase(component.calls, id);
  const bool was_told = running.told_end_ps != 0;
  if (!was_told) {
    --component.launched;
    component.made.insert(
        MadeKey(PlanNumberOf(running.rank, NumberOf(running)), PlaceOf(component, running.rank)));
  }
  if (!component.episode || component.episode->collective != CollectiveOf(running)) return;
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

// The part is halted: none of its calls runs any more, and its connections are closed.
void ReplayEngine::ForgetCallsOf(uint32_t part) {
  for (Component& component : components_) {
    if (part_of_rank_[component.gpus.front()] != part) continue;
    // Only what is not known ahead halts a part so: a limit in real time.
    if (component.episode && component.episode->is_replayed) throw FabricNetwork::NotApart();
    component.episode.reset();
    component.calls.clear();
    component.launched = 0;
    component.made.clear();
  }
}

void ReplayEngine::ForgetEpisodesOf(uint32_t part) {
  for (Component& component : components_) {
    if (!component.episode || part_of_rank_[component.gpus.front()] != part) continue;
    SIM_CHECK(!component.episode->is_replayed, "a job ends in the middle of what is replayed");
    component.episode.reset();
  }
}

}  // namespace railyard
