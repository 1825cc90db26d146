// SPDX-License-Identifier: GPL-2.0-only
// When a component of NVLinks is at rest and a collective of its GPUs alone begins: replays the
// episode that is known, or records the one that begins. The rest of the network goes on beside it.
// Components of one shape share what is known, in which GPUs are numbered by their places.
#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/replay/replay_engine.h"

namespace railyard {
namespace {

// A component that has not repeated itself in so many episodes is simulated without looking for
// more.
constexpr uint32_t kMissesMax = 1024;

}  // namespace

void ReplayEngine::BuildComponents() {
  // What had been replayed could not be halted halfway; nor could what goes around a NIC come in.
  if (rules_.may_halt || rules_.nccl.nic_policy) return;
  nvlinks_ = std::make_unique<NvlinkComponents>(graph_, job_.communicators);
  components_.resize(nvlinks_->components().size());
  const auto uses_nvlinks = [this](const JobOperation& call) { return UsesNvlinks(call); };
  std::vector<bool> is_in_turn;
  for (uint32_t program = 0; program < job_.operations.program_count(); ++program) {
    is_in_turn.push_back(AreInTurn(job_, job_.operations.program(program), uses_nvlinks));
  }
  const std::unordered_set<LinkId> faulty_links(rules_.faulty_links.begin(),
                                                rules_.faulty_links.end());
  const std::unordered_set<uint32_t> faulty_gpus(rules_.faulty_gpus.begin(),
                                                 rules_.faulty_gpus.end());
  const auto is_any_of = [](const std::vector<uint32_t>& values,
                            const std::unordered_set<uint32_t>& named) {
    return std::ranges::any_of(values, [&](uint32_t value) { return named.contains(value); });
  };
  for (uint32_t id = 0; id < components_.size(); ++id) {
    const NvlinkComponent& nvlinks = nvlinks_->components()[id];
    components_[id].is_in_turn = std::ranges::all_of(nvlinks.gpus, [&](uint32_t gpu) {
      return gpu >= job_.rank_count || is_in_turn[job_.operations.program_of_rank(gpu)];
    });
    components_[id].is_faulty =
        is_any_of(nvlinks.links, faulty_links) || is_any_of(nvlinks.gpus, faulty_gpus);
  }
}

bool ReplayEngine::UsesNvlinks(const JobOperation& operation) const {
  return !operation.is_compute() &&
         nvlinks_->UseOf(job_.collectives[operation.collective].communicator) != NvlinkUse::kNone;
}

// Equal numbers: what their collectives of one kind and size do is the same but for the server that
// they are on.
std::vector<uint32_t> ReplayEngine::ClassesOfCommunicators() const {
  std::map<std::vector<uint32_t>, uint32_t> numbers;
  std::vector<uint32_t> classes;
  for (uint32_t id = 0; id < communicators_.size(); ++id) {
    const Communicator& communicator = communicators_[id];
    const CommunicatorLayout& layout = communicator.planner->layout();
    const bool is_its_own = !nvlinks_ || nvlinks_->UseOf(id) != NvlinkUse::kOnly ||
                            !layout.rings.empty() || !layout.tree_parents.empty();
    std::vector<uint32_t> members;
    if (is_its_own) {
      members.push_back(id);
    } else {
      const uint32_t component = nvlinks_->OfGpu(communicator.gpus.front());
      members.push_back(nvlinks_->components()[component].shape);
      for (uint32_t rank = 0; rank < communicator.gpus.size(); ++rank) {
        members.push_back(nvlinks_->PlaceOf(communicator.gpus[rank]));
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
  return nvlinks_ && UsesNvlinks(CallOf(running)) ? nvlinks_->OfGpu(running.rank)
                                                  : NvlinkComponents::kNone;
}

void ReplayEngine::VisitComponent(uint32_t component, StateArchive& archive) {
  const NvlinkComponent& nvlinks = nvlinks_->components()[component];
  network_.VisitNvlinks(nvlinks.links, archive);
  executor_->VisitGpus(nvlinks.gpus, archive);
}

// --- Begins --------------------------------------------------------------------------------------

bool ReplayEngine::BeginInComponent(uint32_t id) {
  Running& running = running_[id];
  const uint32_t number = ComponentOf(running);
  if (number == NvlinkComponents::kNone) return false;
  const uint32_t collective = CallOf(running).collective;
  Component& component = components_[number];
  if (component.running++ == 0) {
    BeginComponentEpisode(number, running);
  } else if (component.episode && component.episode->collective != collective) {
    SIM_CHECK(!component.episode->is_replayed, "a call among those that are replayed");
    component.episode.reset();
  }
  if (!component.episode) return false;
  ComponentEpisode& episode = *component.episode;
  running.in_component = episode.calls_begun++;
  const int64_t begin_ps = running.start_ps - episode.begin_ps;
  if (!episode.is_replayed) {
    episode.recorded.operations.push_back({.rank = nvlinks_->PlaceOf(running.rank),
                                           .plan = PlanNumberOf(running.rank, NumberOf(running)),
                                           .begin_ps = begin_ps});
    if (rules_.keep_paths) episode.recorded.paths.emplace_back();
    return false;
  }
  const Episode& known = component_cache_.episode(episode.known);
  const EpisodeOperation& told = known.operations[running.in_component];
  SIM_CHECK(told.rank == nvlinks_->PlaceOf(running.rank) && told.begin_ps == begin_ps,
            "a call that is replayed began otherwise");
  times_[collective].replayed = true;
  running.launched = true;
  if (rules_.keep_paths) {
    running.path = known.paths[running.in_component];
    running.path.origin_ps += episode.begin_ps;
    running.path.Rename([&](uint32_t place) { return nvlinks_->GpuAt(number, place); });
  }
  Schedule(id, episode.begin_ps + told.end_ps);
  return true;
}

void ReplayEngine::BeginComponentEpisode(uint32_t number, const Running& first) {
  Component& component = components_[number];
  const uint32_t collective = CallOf(first).collective;
  if (nvlinks_->UseOf(job_.collectives[collective].communicator) != NvlinkUse::kOnly ||
      !component.is_in_turn || component.misses > kMissesMax) {
    return;
  }
  StateArchive archive(first.start_ps);
  VisitComponent(number, archive);
  const NvlinkComponent& nvlinks = nvlinks_->components()[number];
  archive.Constant(nvlinks.shape);
  archive.Constant(executor_->IdentityOfGpus(nvlinks.gpus));
  if (!archive.is_at_rest()) return;
  const uint32_t state = component_cache_.NumberOf(archive.TakeState());
  ++component.misses;
  // What is watched may bring a fault at any moment.
  if (state == EpisodeCache::kStateUnknown || (component.is_faulty && IsProgressWatched())) return;
  ComponentEpisode episode{.collective = collective, .begin_ps = first.start_ps};
  episode.known = FindKnown(number, first, state);
  episode.is_replayed = episode.known != kNone && rules_.cache == ReplayCacheMode::kOn;
  if (episode.known != kNone) component.misses = 0;
  if (!episode.is_replayed) {
    episode.recorded.begin_state = state;
    episode.begin_counts = archive.TakeCounts();
    episode.begin_unrepeatable = archive.unrepeatable();
    if (component.is_faulty) episode.disturbance_ps = NextDisturbancePs(true);
  }
  component.episode = std::move(episode);
}

uint32_t ReplayEngine::FindKnown(uint32_t number, const Running& first, uint32_t state) {
  std::vector<uint32_t>& known = component_cache_.Find(state, nvlinks_->PlaceOf(first.rank),
                                                       PlanNumberOf(first.rank, NumberOf(first)));
  if (known.empty()) return kNone;
  const std::vector<Pending> calls = CallsWith(first);
  const auto found = std::ranges::find_if(known, [&](uint32_t id) {
    const Episode& episode = component_cache_.episode(id);
    return episode.begin_state == state && AreCalls(episode, calls) &&
           CanReplay(components_[number], calls, episode);
  });
  if (found == known.end()) return kNone;
  std::rotate(known.begin(), found, found + 1);
  return known.front();
}

// The one that begins and those of its collective that are known to begin, in the order in which
// they will.
std::vector<ReplayEngine::Pending> ReplayEngine::CallsWith(const Running& first) const {
  const uint32_t collective = CallOf(first).collective;
  std::vector<Pending> calls;
  std::ranges::copy_if(pending_, std::back_inserter(calls), [&](const Pending& call) {
    const uint32_t index = call.number - first_number_[call.rank];
    return job_.operations[call.rank][index].collective == collective;
  });
  calls.push_back({.begin_ps = first.start_ps, .number = NumberOf(first), .rank = first.rank});
  std::ranges::sort(calls, [](const Pending& a, const Pending& b) { return b < a; });
  return calls;
}

bool ReplayEngine::AreCalls(const Episode& episode, const std::vector<Pending>& calls) const {
  return std::ranges::equal(episode.operations, calls,
                            [&](const EpisodeOperation& told, const Pending& call) {
                              return told.rank == nvlinks_->PlaceOf(call.rank) &&
                                     told.begin_ps == call.begin_ps - calls.front().begin_ps &&
                                     told.plan == PlanNumberOf(call.rank, call.number);
                            });
}

// Something waits for how far a collective has come.
bool ReplayEngine::IsProgressWatched() const {
  return std::ranges::any_of(watched_, [this](const auto& watched) {
    return times_[watched.first].calls_ended < call_count_[watched.first];
  });
}

// Whether nothing can happen to the component before all it remembers of the episode has passed.
bool ReplayEngine::CanReplay(const Component& component, const std::vector<Pending>& calls,
                             const Episode& episode) const {
  const int64_t settled_ps =
      episode.duration_ps + component_cache_.state(episode.end_state).instants_ahead_ps;
  // Aborts are known so long ahead.
  if (settled_ps >= kAbortNoticePs || IsProgressWatched()) return false;
  const auto uses_nvlinks = [this](const JobOperation& call) { return UsesNvlinks(call); };
  for (size_t i = 0; i < calls.size(); ++i) {
    const uint32_t rank = calls[i].rank;
    const int64_t gap_ps =
        LeastGapPs(job_.operations[rank], calls[i].number - first_number_[rank], uses_nvlinks);
    if (gap_ps < settled_ps - episode.operations[i].end_ps) return false;
  }
  return calls.front().begin_ps + settled_ps < NextDisturbancePs(component.is_faulty);
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

// --- Ends ----------------------------------------------------------------------------------------

void ReplayEngine::EndInComponent(const Running& running) {
  const uint32_t number = ComponentOf(running);
  if (number == NvlinkComponents::kNone) return;
  Component& component = components_[number];
  --component.running;
  if (!component.episode) return;
  ComponentEpisode& episode = *component.episode;
  ++episode.calls_ended;
  if (episode.is_replayed) {
    if (episode.calls_ended == call_count_[episode.collective]) FinishReplay(number);
    return;
  }
  episode.recorded.operations[running.in_component].end_ps = engine_.NowPs() - episode.begin_ps;
  if (rules_.keep_paths) {
    CriticalPath& path = episode.recorded.paths[running.in_component];
    path = running.path;
    path.origin_ps -= episode.begin_ps;
    path.Rename([this](uint32_t gpu) { return nvlinks_->PlaceOf(gpu); });
  }
  if (component.running == 0) FinishComponentRecording(number);
}

void ReplayEngine::FinishReplay(uint32_t number) {
  const Episode& known = component_cache_.episode(components_[number].episode->known);
  StateArchive put(component_cache_.state(known.end_state), engine_.NowPs());
  VisitComponent(number, put);
  StateArchive add(known.changes);
  VisitComponent(number, add);
  components_[number].episode.reset();
}

void ReplayEngine::FinishComponentRecording(uint32_t number) {
  ComponentEpisode finished = *std::move(components_[number].episode);
  components_[number].episode.reset();
  StateArchive archive(engine_.NowPs());
  VisitComponent(number, archive);
  const bool is_whole = archive.is_at_rest() &&
                        archive.unrepeatable() == finished.begin_unrepeatable &&
                        finished.disturbance_ps > engine_.NowPs() &&
                        AreOfAllGpus(number, finished.recorded.operations);
  const uint32_t end_state =
      is_whole ? component_cache_.NumberOf(archive.TakeState()) : EpisodeCache::kStateUnknown;
  Episode& episode = finished.recorded;
  episode.end_state = end_state;
  episode.duration_ps = engine_.NowPs() - finished.begin_ps;
  const RestCounts counts = archive.TakeCounts();
  // What was made meanwhile has counters of its own.
  const bool is_repeatable =
      end_state != EpisodeCache::kStateUnknown && counts.size() == finished.begin_counts.size();
  if (is_repeatable) episode.changes = ChangesBetween(finished.begin_counts, counts);
  if (finished.known != kNone) {
    const Episode& expected = component_cache_.episode(finished.known);
    SIM_CHECK(is_repeatable && episode.operations == expected.operations &&
                  episode.changes == expected.changes && episode.end_state == expected.end_state,
              fmt::format("a collective of {} GPUs of a server at {} ps is not what would have "
                          "been replayed",
                          expected.operations.size(), finished.begin_ps));
    return;
  }
  if (is_repeatable) component_cache_.Add(std::move(episode));
}

// One of each: no other GPU of the component can begin anything meanwhile.
bool ReplayEngine::AreOfAllGpus(uint32_t number, const std::vector<EpisodeOperation>& calls) const {
  std::unordered_set<uint32_t> places;
  for (const EpisodeOperation& call : calls) places.insert(call.rank);
  const size_t gpus = nvlinks_->components()[number].gpus.size();
  return calls.size() == gpus && places.size() == gpus;
}

void ReplayEngine::ForgetEpisodesOf(uint32_t part) {
  for (uint32_t number = 0; number < components_.size(); ++number) {
    std::optional<ComponentEpisode>& episode = components_[number].episode;
    const uint32_t gpu = nvlinks_->components()[number].gpus.front();
    if (!episode || part_of_rank_[gpu] != part) continue;
    SIM_CHECK(!episode->is_replayed, "a job ends in the middle of what is replayed");
    episode.reset();
  }
}

}  // namespace railyard
