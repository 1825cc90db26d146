// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/streams/replay_engine.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <ns3/simulator.h>

#include "simulator/diagnostics/check.h"
#include "simulator/event_order/event_order.h"
#include "simulator/units/mix64.h"
#include "simulator/units/time_end.h"
#include "workloads/nccl/p2p_schedule.h"

namespace railyard {
namespace {

// Send and Recv, for which NCCL chooses no algorithm, cost what a ring's steps do.
constexpr ReplayChoice kP2pCosts = {Algorithm::kRing, Protocol::kSimple};
constexpr ReplayChoice kP2pLlCosts = {Algorithm::kRing, Protocol::kLl};

template <typename Visit>
void ForEachLane(const CollectiveSchedule& schedule, Visit visit) {
  for (uint32_t channel = 0; channel < schedule.channel_count(); ++channel) {
    for (uint32_t rank = 0; rank < schedule.rank_count(); ++rank) {
      for (uint32_t batch = 0; batch < schedule.BatchCount(rank, channel); ++batch) {
        for (uint32_t lane = 0; lane < schedule.LaneCount(rank, channel, batch); ++lane) {
          visit(LaneId{rank, channel, batch, lane});
        }
      }
    }
  }
}

}  // namespace

ReplayEngine::ReplayEngine(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                           const Job& job, const ReplayRules& rules, const NicSettings& nic,
                           ReplayObserver& observer)
    : graph_(graph),
      engine_(network.engine()),
      network_(network),
      job_(job),
      rules_(rules),
      observer_(observer),
      bound_model_(graph, nic),
      nic_(nic),
      routing_(routing),
      order_(job),
      times_(job.collectives.size()),
      cache_mode_(rules.cache),
      parts_(job.parts.size()),
      part_of_rank_(job.PartsOfRanks()) {
  BuildCommunicators();
  BuildExecutor();
  CountCalls();
  FindP2pCalls();
  DrawSkews();
  if (cache_mode_ != ReplayCacheMode::kOff) {
    BuildPartitions();
    NumberPlans();
  }
  if (rules.keep_paths) paths_.resize(job.collectives.size());
  engine_.Register(event_order::kOperation, {.name = "calls", .pending = PendingMeans::kNothing},
                   &ReplayEngine::HandleOperation, this);
}

ReplayEngine::~ReplayEngine() = default;

void ReplayEngine::Start() {
  order_.Start(
      [this](uint32_t rank, uint32_t index, int64_t begin_ps) { MayBegin(rank, index, begin_ps); });
  if (operations_left_ == 0) ns3::Simulator::Stop();
  ScheduleFirst();
}

void ReplayEngine::MayBegin(uint32_t rank, uint32_t index, int64_t begin_ps) {
  if (!skew_ps_.empty()) begin_ps = SumPs(begin_ps, skew_ps_[rank]);
  pending_.push_back({.begin_ps = begin_ps, .number = first_number_[rank] + index, .rank = rank});
  std::push_heap(pending_.begin(), pending_.end());
}

void ReplayEngine::ScheduleFirst() {
  if (pending_.empty()) return;
  const Pending& first = pending_.front();
  if (first.begin_ps == scheduled_.begin_ps && first.number == scheduled_.number) return;
  engine_.ScheduleFabric(first.begin_ps, event_order::kOperation, first.number,
                         first.number | kBegins);
  scheduled_ = first;
}

void ReplayEngine::Schedule(uint32_t id, int64_t time_ps) {
  engine_.ScheduleFabric(time_ps, event_order::kOperation, NumberOf(running_[id]), id);
}

void ReplayEngine::HandleOperation(void* self, uint32_t target) {
  static_cast<ReplayEngine*>(self)->OnEvent(target);
}

void ReplayEngine::OnEvent(uint32_t target) {
  if ((target & kBegins) == 0) {
    const uint32_t rank = running_[target].rank;
    if (rank == kNone || IsAborted(rank)) [[unlikely]]
      return;
    if (ahead_ != nullptr) [[unlikely]] {
      running_[target].launched ? EndAhead(target) : Launch(target);
    } else if (running_[target].told_end_ps > engine_.NowPs()) {
      // It is replayed: nothing is launched.
    } else if (running_[target].launched) {
      End(target);
    } else if (!LaunchInPartition(target)) {
      Launch(target);
    }
    return;
  }
  if (operations_left_ == 0) {
    ns3::Simulator::Stop();
    return;
  }
  // Else another came before it since, and its turn is yet to come or has been.
  if (pending_.empty()) return;
  const Pending first = pending_.front();
  if (first.begin_ps != engine_.NowPs() || first.number != (target & ~kBegins)) return;
  // What is replayed in partitions has no packets, and its first calls may have ended.
  if (running_count_ == 0 && replayed_partitions_ == 0 && cache_mode_ != ReplayCacheMode::kOff &&
      ReplayEpisodes()) {
    ScheduleFirst();
    return;
  }
  std::pop_heap(pending_.begin(), pending_.end());
  pending_.pop_back();
  Begin(first);
  ScheduleFirst();
}

uint32_t ReplayEngine::NewRunning(uint32_t rank, uint32_t number, int64_t start_ps) {
  if (free_running_ == kNone) {
    free_running_ = static_cast<uint32_t>(running_.size());
    running_.emplace_back();
  }
  const uint32_t id = free_running_;
  Running& running = running_[id];
  free_running_ = running.next_free;
  running = {};
  running.rank = rank;
  running.index = number - first_number_[rank];
  running.start_ps = start_ps;
  return id;
}

void ReplayEngine::FreeRunning(uint32_t id) {
  Running& running = running_[id];
  running.schedule.reset();
  running.rank = kNone;
  running.next_free = free_running_;
  free_running_ = id;
}

void ReplayEngine::Begin(const Pending& pending) {
  const uint32_t id = NewRunning(pending.rank, pending.number, pending.begin_ps);
  Running& running = running_[id];
  ++running_count_;
  NoteBegin({running.rank, running.index}, running.start_ps);
  if (recording_) {
    std::vector<EpisodeOperation>& recorded = recording_->episode.operations;
    running.recorded = static_cast<uint32_t>(recorded.size());
    recorded.push_back({.rank = running.rank,
                        .plan = PlanNumberOf(running.rank, pending.number),
                        .begin_ps = running.start_ps - recording_->begin.time_ps});
    if (rules_.keep_paths) recording_->episode.paths.emplace_back();
  }
  if (BeginInPartition(id)) return;
  const JobCollective& collective = job_.collectives[CollectiveOf(running)];
  Schedule(id, running.start_ps + CostsOf(collective).launch_latency_ps);
}

void ReplayEngine::NoteBegin(const Call& call, int64_t begin_ps) {
  ++calls_started_;
  if (!has_begun_.empty()) has_begun_[NumberOf(call)] = true;
  const uint32_t collective = CollectiveOf(call);
  CollectiveTimes& times = times_[collective];
  if (times.calls_started == 0) times.first_start_ps = begin_ps;
  if (times.calls_started == 0 && watched_.contains(collective)) BeginWatched(collective);
  if (++times.calls_started == call_count_[collective]) times.last_start_ps = begin_ps;
}

void ReplayEngine::NoteEnd(const Call& call, int64_t begin_ps, int64_t end_ps,
                           const CriticalPath& path) {
  AddToHash(call, begin_ps, end_ps, ended_hash_);
  if (rules_.keep_paths) NotePath(call, begin_ps, end_ps, path);
  if (call.rank == kept_rank_) calls_kept_[call.index] = {begin_ps, end_ps};
  const uint32_t collective = CollectiveOf(call);
  if (++times_[collective].calls_ended == call_count_[collective]) {
    FinishCollective(collective, end_ps);
  }
  PartProgress& part = parts_[part_of_rank_[call.rank]];
  part.end_ps = end_ps;
  --part.calls_left;
  ++calls_ended_;
  --operations_left_;
}

void ReplayEngine::NotePath(const Call& call, int64_t begin_ps, int64_t end_ps, CriticalPath path) {
  const uint32_t id = CollectiveOf(call);
  // Paths begin as kernels run; a rank that has nothing to do has none.
  const int64_t launch_ps = CostsOf(job_.collectives[id]).launch_latency_ps;
  if (path.origin_gpu == CriticalPath::kNobody) path.origin_ps = begin_ps + launch_ps;
  path.ExtendTo(end_ps, PathCause::kWork);
  path.Spend(PathCause::kWork, launch_ps);
  path.origin_ps -= launch_ps;
  const auto begin_at = [&path](int64_t time_ps) {
    const int64_t late_ps = path.origin_ps - time_ps;
    if (late_ps <= 0) return;
    path.origin_ps = time_ps;
    path.Spend(PathCause::kSlowPeer, late_ps);
    path.Blame(path.origin_gpu, path.origin_gpu, late_ps);
  };
  begin_at(begin_ps);
  const int64_t waited_ps = path.SpentPs(PathCause::kTimeout) +
                            path.SpentPs(PathCause::kRetransmission) +
                            path.SpentPs(PathCause::kSlowPeer);
  constexpr int64_t kShareMin = 100;  // of a call that one in so many parts of is worth telling
  if (waited_ps * kShareMin >= end_ps - begin_ps && path.worst_from != CriticalPath::kNobody &&
      path.worst_from != call.rank) {
    RankWaitTotals& totals = waits_[{call.rank, path.worst_from, path.worst_to}];
    ++totals.calls;
    totals.waited_ps += waited_ps;
  }
  begin_at(times_[id].first_start_ps);
  if (path.EndsAfter(paths_[id])) paths_[id] = path;
}

ReplayChoice ReplayEngine::ChoiceOf(const JobCollective& collective) const {
  const NcclPlanner& planner = *communicators_[collective.communicator].planner;
  const std::optional<ReplayChoice> choice = planner.Choose(collective, StatedChoice(collective));
  SIM_CHECK(choice.has_value(), "a collective that cannot be replayed");
  return *choice;
}

std::string ReplayEngine::ReplayNameOf(uint32_t id) const {
  const JobCollective& collective = job_.collectives[id];
  if (collective.is_p2p()) return std::string(kP2pReplayName);
  const std::map<PlanKey, Plan>& plans = communicators_[collective.communicator].plans;
  const auto plan = plans.find(KeyOf(collective));
  const bool is_planned = plan != plans.end() && plan->second.schedule != nullptr;
  return ReplayName(is_planned ? plan->second.choice : ChoiceOf(collective));
}

ReplayEngine::PlanKey ReplayEngine::KeyOf(const JobCollective& collective) const {
  const ReplayChoice stated = StatedChoice(collective);
  return {static_cast<uint64_t>(collective.kind), collective.count,
          static_cast<uint64_t>(collective.datatype), collective.root,
          static_cast<uint64_t>(stated.algorithm) << 8 | static_cast<uint64_t>(stated.protocol)};
}

ReplayEngine::Plan& ReplayEngine::PlanOf(const JobCollective& collective) {
  Communicator& communicator = communicators_[collective.communicator];
  Plan& plan = communicator.plans[KeyOf(collective)];
  if (plan.schedule) return plan;
  plan.choice = ChoiceOf(collective);
  plan.schedule = communicator.planner->Plan(collective, plan.choice);
  plan.costs = rules_.gpu.Of(communicator.planner->layout(), plan.choice);
  return plan;
}

StepCosts ReplayEngine::CostsOf(const JobCollective& collective) {
  if (!collective.is_p2p()) return PlanOf(collective).costs;
  const NcclPlanner& planner = *communicators_[collective.communicator].planner;
  return rules_.gpu.Of(planner.layout(), kP2pCosts);
}

std::shared_ptr<const CollectiveSchedule> ReplayEngine::ScheduleOf(const Running& running) {
  const JobOperation& call = CallOf(running);
  const JobCollective& collective = job_.collectives[CollectiveOf(running)];
  if (!collective.is_p2p()) return PlanOf(collective).schedule;
  return communicators_[collective.communicator].planner->PlanP2p(
      job_.CommunicatorRank(collective.communicator, running.rank),
      job_.p2p_calls.data() + call.p2p_first, call.p2p_count, call.in_place);
}

void ReplayEngine::Launch(uint32_t id) {
  Running& running = running_[id];
  const JobOperation& call = CallOf(running);
  const uint32_t number = CollectiveOf(running);
  const JobCollective& collective = job_.collectives[number];
  running.schedule = ScheduleOf(running);
  running.end_ps = engine_.NowPs();
  const uint8_t costs = executor_->AddCosts(CostsOf(collective), running.schedule->message_rule());
  const CommunicatorLayout& layout = communicators_[collective.communicator].planner->layout();
  const uint8_t line_costs =
      collective.is_p2p() ? executor_->AddCosts(rules_.gpu.Of(layout, kP2pLlCosts), kP2pLlRule)
                          : costs;
  const uint32_t channels =
      executor_->Start({.operation = id,
                        .communicator = collective.communicator,
                        .rank = job_.CommunicatorRank(collective.communicator, running.rank),
                        .collective = number,
                        .loss_tolerance_ppm = call.loss_tolerance_ppm,
                        .costs = costs,
                        .line_costs = line_costs,
                        .schedule = running.schedule.get()});
  running.launched = true;
  // Channels without anything to wait for have finished already.
  running.channels_left = static_cast<uint16_t>(running.channels_left + channels);
  if (running.channels_left == 0) Schedule(id, running.end_ps);
}

void ReplayEngine::OnChannelFinished(uint32_t id, int64_t end_ps, const CriticalPath* path) {
  Running& running = running_[id];
  if (path != nullptr && path->EndsAfter(running.path)) running.path = *path;
  running.end_ps = std::max(running.end_ps, end_ps);
  --running.channels_left;
  if (running.launched && running.channels_left == 0) Schedule(id, running.end_ps);
}

void ReplayEngine::End(uint32_t id) {
  const Running& running = running_[id];
  const int64_t now_ps = engine_.NowPs();
  const Call call{running.rank, running.index};
  NoteEnd(call, running.start_ps, now_ps, running.path);
  if (recording_) {
    recording_->episode.operations[running.recorded].end_ps = now_ps - recording_->begin.time_ps;
    if (rules_.keep_paths) {
      CriticalPath& path = recording_->episode.paths[running.recorded];
      path = running.path;
      path.origin_ps -= recording_->begin.time_ps;
    }
  }
  EndInPartition(id);
  FreeRunning(id);
  --running_count_;
  if (recording_ && running_count_ == 0) NoteNothingRuns();
  LetFollow(call, now_ps);
  if (operations_left_ == 0) ns3::Simulator::Stop();
  ScheduleFirst();
}

// Rank r is GPU r; what is computed before a call takes a slow one longer.
void ReplayEngine::LetFollow(const Call& call, int64_t end_ps) {
  order_.End(call.rank, call.index, end_ps,
             [this, end_ps](uint32_t rank, uint32_t index, int64_t begin_ps) {
               MayBeginAfter(end_ps, rank, index, begin_ps);
             });
}

void ReplayEngine::MayBeginAfter(int64_t end_ps, uint32_t rank, uint32_t index, int64_t begin_ps) {
  const int64_t compute_ps = begin_ps - end_ps;
  if (compute_ps > 0 && executor_->StandsStillNow(rank)) {
    Stop(rank, first_number_[rank] + index, compute_ps);
    return;
  }
  const int64_t slowed_ps = executor_->AtSpeedOfGpuPs(rank, compute_ps);
  if (slowed_ps > kTimeEndPs - end_ps || !late_.empty()) [[unlikely]] {
    NoteLate(first_number_[rank] + index, end_ps, compute_ps, slowed_ps);
  }
  MayBegin(rank, index, SumPs(end_ps, slowed_ps));
}

void ReplayEngine::BeginWatched(uint32_t id) {
  const JobCollective& collective = job_.collectives[id];
  observer_.OnCollectiveProgress(id, 0);
  if (collective.is_p2p()) return;
  const CollectiveSchedule& schedule = *PlanOf(collective).schedule;
  uint64_t& total_bytes = watched_[id].total_bytes;
  ForEachLane(schedule, [&](const LaneId& lane) {
    const size_t peers = schedule.PeersOf(lane).recv_from.size();
    const uint64_t steps = schedule.StepCount(lane);
    for (uint64_t i = 0; i < steps;) {
      const uint64_t alike = std::min(schedule.AlikeFrom(lane, i), steps - i);
      const Step step = schedule.StepAt(lane, i);
      if (step.recv_from != kNoPeer) {
        total_bytes += alike * step.bytes * (step.recv_from == kAllPeers ? peers : 1);
      }
      i += alike;
    }
  });
  executor_->WatchPayload(id);
}

void ReplayEngine::OnPayloadTaken(uint32_t collective, uint64_t bytes) {
  Watched& watched = watched_[collective];
  watched.taken_bytes += bytes;
  observer_.OnCollectiveProgress(collective, static_cast<double>(watched.taken_bytes) /
                                                 static_cast<double>(watched.total_bytes));
}

void ReplayEngine::FinishCollective(uint32_t collective, int64_t end_ps) {
  CollectiveTimes& times = times_[collective];
  times.last_end_ps = end_ps;
  ++collectives_ended_;
  times.bound_ps = BoundOf(collective);
  SIM_CHECK(times.last_end_ps - times.first_start_ps >= times.bound_ps,
            fmt::format("collective {} took {} ps, less than its bound of {} ps", collective,
                        times.last_end_ps - times.first_start_ps, times.bound_ps));
}

double ReplayEngine::ShareDone() const {
  if (operations_left_ == 0) return 1;
  const double done =
      static_cast<double>(calls_ended_) +
      static_cast<double>(calls_started_ - calls_ended_) * executor_->ShareOfSteps();
  return std::min(1.0, done / static_cast<double>(calls_ended_ + operations_left_));
}

int64_t ReplayEngine::BoundOf(uint32_t id) {
  const JobCollective& collective = job_.collectives[id];
  const Communicator& communicator = communicators_[collective.communicator];
  if (!collective.is_p2p()) {
    Plan& plan = PlanOf(collective);
    if (plan.bound_ps < 0 || plan.bound_failovers != executor_->nic_failovers()) {
      plan.bound_ps = BoundOfSchedule(communicator, *plan.schedule);
      plan.bound_failovers = executor_->nic_failovers();
    }
    return plan.bound_ps;
  }
  for (const auto& [global_rank, index] : p2p_calls_[id]) {
    const JobOperation& call = job_.operations[global_rank][index];
    const uint32_t rank = job_.CommunicatorRank(collective.communicator, global_rank);
    for (uint32_t i = 0; i < call.p2p_count; ++i) {
      const P2pCall& p2p = job_.p2p_calls[call.p2p_first + i];
      if (!p2p.is_send || p2p.peer == rank) continue;
      AddToBound(communicator, 0, rank, p2p.peer, ConnectionUse::kPointToPoint, p2p.bytes);
    }
  }
  return bound_model_.Take();
}

void ReplayEngine::AddToBound(const Communicator& communicator, uint32_t channel, uint32_t from,
                              uint32_t to, ConnectionUse use, uint64_t bytes) {
  // What may take several ways, and took others before, has no least load of a link.
  const auto number = static_cast<uint32_t>(&communicator - communicators_.data());
  if (executor_->nic_failovers() > 0) {
    const ConnectionTable& table = executor_->connection_table();
    const uint32_t connection = table.Find(number, channel, from, to, use);
    if (connection != Connection::kNone && table.connection(connection).is_detoured) return;
  }
  const ConnectionRoute route = communicator.planner->RouteOf(channel, from, to, use);
  const uint32_t from_gpu = communicator.gpus[from];
  const uint32_t injecting_gpu =
      route.network ? executor_->connection_table().GpuOfServer(from_gpu, route.sending_local_index)
                    : from_gpu;
  bound_model_.Add(route.network, from_gpu, communicator.gpus[to], injecting_gpu, bytes);
}

int64_t ReplayEngine::BoundOfSchedule(const Communicator& communicator,
                                      const CollectiveSchedule& schedule) {
  std::map<std::pair<uint32_t, ConnectionUse>, uint64_t> sent;  // of one lane, by peer
  const auto add_lane = [&](const LaneId& lane) {
    const LanePeers peers = schedule.PeersOf(lane);
    const uint64_t steps = schedule.StepCount(lane);
    sent.clear();
    for (uint64_t i = 0; i < steps;) {
      const uint64_t alike = std::min(schedule.AlikeFrom(lane, i), steps - i);
      const Step step = schedule.StepAt(lane, i);
      const uint64_t bytes = alike * WireBytes(schedule.message_rule(), step.bytes);
      for (const LanePeer& peer : peers.send_to) {
        if (step.send_to == kAllPeers || step.send_to == static_cast<int32_t>(peer.rank)) {
          sent[{peer.rank, peer.use}] += bytes;
        }
      }
      i += alike;
    }
    for (const auto& [peer, bytes] : sent) {
      // A switch makes many of one message and one of many: no least load follows from these.
      if (peer.second == ConnectionUse::kSwitchOperand) continue;
      if (peer.second == ConnectionUse::kSwitchResult) continue;
      // A sum crosses its NIC once each way, however many take part.
      if (peer.second == ConnectionUse::kNetworkSum && peer.first != lane.rank) continue;
      AddToBound(communicator, lane.channel, lane.rank, peer.first, peer.second, bytes);
    }
  };
  ForEachLane(schedule, add_lane);
  return bound_model_.Take();
}

void ReplayEngine::OnPacketLost(uint32_t connection, LinkId link) {
  CheckNothingFailsAhead();
  const uint32_t collective = executor_->connection_table().connections()[connection].collective;
  if (collective != Connection::kNone && !executor_->connection_table().IsClosed(connection)) {
    times_[collective].lost_packets = true;
  }
  observer_.OnPacketLost(connection, link);
}

void ReplayEngine::OnPacketRepeated(uint32_t connection, uint32_t payload_bytes) {
  observer_.OnPacketRepeated(connection, payload_bytes);
}

void ReplayEngine::OnRetransmission(uint32_t connection) {
  CheckNothingFailsAhead();
  observer_.OnRetransmission(connection);
}

void ReplayEngine::OnLossRecovered(uint32_t connection) { observer_.OnLossRecovered(connection); }

void ReplayEngine::OnConnectionError(uint32_t id, bool at_sender, const std::string& why) {
  CheckNothingFailsAhead();
  const Connection& connection = executor_->connection_table().connections()[id];
  if (IsAborted(connection.from_gpu)) return;
  observer_.OnRankError(
      at_sender ? connection.injecting_gpu : connection.to_gpu,
      fmt::format("rank {} to rank {}: {}", connection.from_gpu, connection.to_gpu, why));
}

void ReplayEngine::Abort(uint32_t id, const std::string& why) {
  PartProgress& part = parts_[id];
  part.abort_reason = why;
  part.end_ps = engine_.NowPs();
  operations_left_ -= part.calls_left;
  part.calls_left = 0;
  const auto is_of_part = [&](const auto& call) { return IsOfPart(call, id); };
  calls_ended_ += static_cast<uint64_t>(std::ranges::count_if(running_, is_of_part));
  std::erase_if(pending_, is_of_part);
  std::make_heap(pending_.begin(), pending_.end());
  std::erase_if(stopped_, is_of_part);
  recording_.reset();
  ForgetEpisodesOf(id);
  if (operations_left_ == 0) ns3::Simulator::Stop();
  ScheduleFirst();
}

std::vector<uint32_t> ReplayEngine::RanksInCollectives(uint32_t part) const {
  std::vector<uint32_t> ranks;
  for (const Running& running : running_) {
    if (IsOfPart(running, part)) ranks.push_back(running.rank);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

int64_t ReplayEngine::EndOfPartPs(uint32_t id) const {
  const PartProgress& part = parts_[id];
  if (part.calls_left > 0 || !part.abort_reason.empty()) return part.end_ps;
  return std::max(part.end_ps, order_.computed_until_ps(id));
}

int64_t ReplayEngine::end_ps() const {
  int64_t end_ps = 0;
  for (uint32_t part = 0; part < parts_.size(); ++part) {
    end_ps = std::max(end_ps, EndOfPartPs(part));
  }
  return end_ps;
}

void ReplayEngine::AddToHash(const Call& call, int64_t begin_ps, int64_t end_ps,
                             TimesHashSums& sums) const {
  constexpr TimesHashSums kSeeds = {0x5261696c79617264ULL, 0x66696e6765727072ULL};
  for (size_t i = 0; i < sums.size(); ++i) {
    uint64_t hash = Mix64(kSeeds[i] ^ NumberOf(call));
    hash = Mix64(hash ^ static_cast<uint64_t>(begin_ps));
    sums[i] += Mix64(hash ^ static_cast<uint64_t>(end_ps));
  }
}

TimesHashSums ReplayEngine::TimesHash() const {
  TimesHashSums sums = ended_hash_;
  for (const Running& running : running_) {
    if (running.rank == kNone) continue;
    AddToHash({running.rank, running.index}, running.start_ps, kNeverPs, sums);
  }
  return sums;
}

std::vector<std::string> ReplayEngine::Assumptions() const {
  std::set<std::string> assumptions;
  for (const Communicator& communicator : communicators_) {
    const auto& of_channels = communicator.planner->channels().assumptions;
    assumptions.insert(of_channels.begin(), of_channels.end());
  }
  return {assumptions.begin(), assumptions.end()};
}

}  // namespace railyard
