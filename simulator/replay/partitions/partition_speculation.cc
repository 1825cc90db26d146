// SPDX-License-Identifier: GPL-2.0-only
// What a component is and what calls do there: simulated aside, before everything else that is to
// come; and compared, where it is simulated in its place as well.
#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/replay/streams/replay_engine.h"

namespace railyard {

void ReplayEngine::VisitComponent(const Component& component, StateArchive& archive) {
  if (component.of_nics) {
    executor_->VisitNics(component.nics, archive);
    return;
  }
  network_.VisitNvlinks(component.links, archive);
  executor_->VisitGpus(component.gpus, archive);
}

// What others may count at the same time: a section of its own.
void ReplayEngine::VisitCountersOf(const Component& component, StateArchive& archive) {
  archive.Section();
  if (component.of_nics) executor_->VisitCountersOfNics(archive);
}

// What it is joins the state that an episode begins in; what is known of the end is put there only
// where it is the same.
ComponentRest ReplayEngine::RestOf(const Component& component, bool is_begin) {
  StateArchive archive(engine_.NowPs());
  VisitComponent(component, archive);
  if (!archive.is_at_rest()) return {};
  if (is_begin) {
    archive.Constant(component.of_nics ? 1 : 0);
    archive.Constant(component.shape);
    archive.Constant(component.of_nics ? component.nics.identity
                                       : executor_->IdentityOfGpus(component.gpus));
  }
  VisitCountersOf(component, archive);
  return {.is_at_rest = true,
          .state = archive.TakeState(),
          .counts = archive.TakeCounts(),
          .unrepeatable = archive.unrepeatable()};
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
  AsideEpisode aside{
      .component = &component, .begin_ps = calls.front().begin_ps, .calls_left = calls.size()};
  Episode& episode = aside.episode;
  episode.begin_state = rest.number;
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
      const JobCollective& collective = job_.collectives[CollectiveOf(running_[id])];
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
  const bool is_repeatable = aside.end.is_at_rest && aside.end.unrepeatable == rest.unrepeatable &&
                             HasPlacesOf(rest.counts, aside.end.counts);
  if (!is_repeatable) return kNone;
  episode.end_state = component_cache_.NumberOf(std::move(aside.end.state));
  if (episode.end_state == EpisodeCache::kStateUnknown) return kNone;
  episode.changes = ChangesBetween(rest.counts, aside.end.counts);
  return component_cache_.Add(std::move(episode));
}

void ReplayEngine::EndAside(uint32_t id) {
  const Running& running = running_[id];
  AsideEpisode& aside = *aside_;
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
  if (!after.is_at_rest || !HasPlacesOf(after.counts, rest.counts)) {
    throw FabricNetwork::NotApart();
  }
  StateArchive put(rest.state, engine_.NowPs());
  VisitComponent(component, put);
  add(ChangesBetween(after.counts, rest.counts));
  const ComponentRest again = RestOf(component, true);
  // What was lost, or timed out, cannot be taken back.
  if (again.unrepeatable != rest.unrepeatable) throw FabricNetwork::NotApart();
  SIM_CHECK(again.is_at_rest && again.state == rest.state && again.counts == rest.counts,
            "a component is not as it was before something was simulated aside");
}

// What was simulated is what would have been replayed.
void ReplayEngine::CheckEpisode(Component& component) {
  const ComponentEpisode& episode = *component.episode;
  const Episode& expected = component_cache_.episode(episode.known);
  const ComponentRest rest = RestOf(component, false);
  const bool ends_as_told = std::ranges::all_of(
      expected.operations,
      [&](const EpisodeOperation& told) { return episode.ends_ps[told.rank] == told.end_ps; });
  // Others may have counted meanwhile, and of this component is the first part alone.
  const auto is_own = [](const auto& change) { return change.first >> kSectionShift == 0; };
  const auto own = [&](RestCountChanges changes) {
    std::erase_if(changes, std::not_fn(is_own));
    return changes;
  };
  SIM_CHECK(rest.is_at_rest && ends_as_told &&
                rest.state == component_cache_.state(expected.end_state) &&
                own(ChangesBetween(episode.begin_counts, rest.counts)) == own(expected.changes),
            fmt::format("a collective of {} GPUs at {} ps is not what would have been replayed",
                        expected.operations.size(), episode.begin_ps));
}

}  // namespace railyard
