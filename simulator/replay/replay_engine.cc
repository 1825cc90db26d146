// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/replay_engine.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <ns3/simulator.h>

#include "simulator/diagnostics/check.h"
#include "topologies/mix64.h"

namespace railyard {
namespace {

constexpr size_t kExplainedMax = 12;

// Send and Recv, for which NCCL chooses no algorithm, cost what a ring's steps do.
constexpr ReplayChoice kP2pCosts = {Algorithm::kRing, Protocol::kSimple};

}  // namespace

ReplayEngine::ReplayEngine(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                           const Job& job, const ReplayRules& rules, const NicSettings& nic,
                           ReplayObserver& observer)
    : graph_(graph),
      engine_(network.engine()),
      job_(job),
      rules_(rules),
      observer_(observer),
      bound_model_(graph, nic),
      executor_(graph, network, routing, rules.gpu.proxy_post_latency_ps, nic, *this),
      times_(job.collectives.size()) {
  BuildCommunicators();
  BuildOperations();
  engine_.SetHandler(EventClass::kOperation, &ReplayEngine::HandleOperation, this);
}

ReplayEngine::~ReplayEngine() = default;

void ReplayEngine::BuildCommunicators() {
  for (const TraceCommunicator& traced : job_.communicators) {
    Communicator communicator;
    communicator.gpus = traced.ranks;
    communicator.planner =
        std::make_unique<NcclPlanner>(LayoutOf(graph_, traced.ranks), rules_.nccl);
    executor_.AddCommunicator({communicator.gpus, communicator.planner.get()});
    communicators_.push_back(std::move(communicator));
  }
}

void ReplayEngine::BuildOperations() {
  call_count_.resize(job_.collectives.size());
  p2p_operations_.resize(job_.collectives.size());
  for (uint32_t rank = 0; rank < job_.operations.size(); ++rank) {
    std::map<uint32_t, uint32_t> last_in_stream;
    std::map<uint32_t, uint32_t> last_in_communicator;
    const auto& calls = job_.operations[rank];
    for (uint32_t index = 0; index < calls.size(); ++index) {
      const JobOperation& call = calls[index];
      const JobCollective& collective = job_.collectives[call.collective];
      const auto id = static_cast<uint32_t>(operations_.size());
      ++call_count_[call.collective];
      if (collective.is_p2p()) p2p_operations_[call.collective].push_back(id);
      Operation operation;
      operation.rank = rank;
      operation.index = index;
      operation.earliest_ps = call.compute_before_ps;
      const auto [in_stream, first_of_stream] = last_in_stream.try_emplace(call.stream, id);
      const auto [in_communicator, first_of_communicator] =
          last_in_communicator.try_emplace(collective.communicator, id);
      if (!first_of_stream) {
        operations_[in_stream->second].next_in_stream = id;
        ++operation.waits_for;
      }
      if (!first_of_communicator &&
          (first_of_stream || in_communicator->second != in_stream->second)) {
        operations_[in_communicator->second].next_in_communicator = id;
        ++operation.waits_for;
      }
      in_stream->second = id;
      in_communicator->second = id;
      operations_.push_back(std::move(operation));
    }
  }
  operations_left_ = operations_.size();
}

void ReplayEngine::Start() {
  for (uint32_t id = 0; id < operations_.size(); ++id) {
    if (operations_[id].waits_for == 0) Schedule(id, operations_[id].earliest_ps);
  }
  if (operations_left_ == 0) ns3::Simulator::Stop();
}

void ReplayEngine::Schedule(uint32_t id, int64_t time_ps) {
  engine_.ScheduleFabric(time_ps, EventClass::kOperation, id, id);
}

void ReplayEngine::HandleOperation(void* self, uint32_t operation) {
  static_cast<ReplayEngine*>(self)->OnEvent(operation);
}

void ReplayEngine::OnEvent(uint32_t id) {
  const Operation& operation = operations_[id];
  if (operation.start_ps == kNeverPs) {
    Begin(id);
  } else if (!operation.launched) {
    Launch(id);
  } else {
    End(id);
  }
}

void ReplayEngine::Begin(uint32_t id) {
  Operation& operation = operations_[id];
  operation.start_ps = engine_.NowPs();
  ++calls_started_;
  const uint32_t collective = CallOf(operation).collective;
  CollectiveTimes& times = times_[collective];
  if (times.calls_started == 0) times.first_start_ps = operation.start_ps;
  if (++times.calls_started == call_count_[collective]) times.last_start_ps = operation.start_ps;
  Schedule(id, operation.start_ps + CostsOf(job_.collectives[collective]).launch_latency_ps);
}

ReplayChoice ReplayEngine::ChoiceOf(const JobCollective& collective) const {
  const NcclPlanner& planner = *communicators_[collective.communicator].planner;
  const std::optional<ReplayChoice> choice =
      planner.Choose(collective, StatedChoice(collective, rules_.forced));
  SIM_CHECK(choice.has_value(), "a collective that cannot be replayed");
  return *choice;
}

std::string ReplayEngine::ReplayNameOf(uint32_t id) const {
  const JobCollective& collective = job_.collectives[id];
  return collective.is_p2p() ? std::string(kP2pReplayName) : ReplayName(ChoiceOf(collective));
}

ReplayEngine::Plan& ReplayEngine::PlanOf(const JobCollective& collective) {
  Communicator& communicator = communicators_[collective.communicator];
  const ReplayChoice stated = StatedChoice(collective, rules_.forced);
  Plan& plan = communicator.plans[{
      static_cast<uint64_t>(collective.kind), collective.count,
      static_cast<uint64_t>(collective.datatype), collective.root,
      static_cast<uint64_t>(stated.algorithm) << 8 | static_cast<uint64_t>(stated.protocol)}];
  if (plan.schedule) return plan;
  const ReplayChoice choice = ChoiceOf(collective);
  plan.schedule = communicator.planner->Plan(collective, choice);
  plan.costs = rules_.gpu.Of(communicator.planner->layout(), choice);
  return plan;
}

StepCosts ReplayEngine::CostsOf(const JobCollective& collective) {
  if (!collective.is_p2p()) return PlanOf(collective).costs;
  const NcclPlanner& planner = *communicators_[collective.communicator].planner;
  return rules_.gpu.Of(planner.layout(), kP2pCosts);
}

std::shared_ptr<const CollectiveSchedule> ReplayEngine::ScheduleOf(const Operation& operation) {
  const JobOperation& call = CallOf(operation);
  const JobCollective& collective = job_.collectives[call.collective];
  if (!collective.is_p2p()) return PlanOf(collective).schedule;
  return communicators_[collective.communicator].planner->PlanP2p(
      call.communicator_rank, job_.p2p_calls.data() + call.p2p_first, call.p2p_count);
}

void ReplayEngine::Launch(uint32_t id) {
  Operation& operation = operations_[id];
  const JobOperation& call = CallOf(operation);
  const JobCollective& collective = job_.collectives[call.collective];
  operation.schedule = ScheduleOf(operation);
  operation.end_ps = engine_.NowPs();
  const uint32_t channels = executor_.Start(
      {.operation = id,
       .communicator = collective.communicator,
       .rank = call.communicator_rank,
       .collective = call.collective,
       .costs = executor_.AddCosts(CostsOf(collective), operation.schedule->message_rule()),
       .schedule = operation.schedule.get()});
  operation.launched = true;
  // Channels without anything to wait for have finished already.
  operation.channels_left = static_cast<uint16_t>(operation.channels_left + channels);
  if (operation.channels_left == 0) Schedule(id, operation.end_ps);
}

void ReplayEngine::OnChannelFinished(uint32_t id, int64_t end_ps) {
  Operation& operation = operations_[id];
  operation.end_ps = std::max(operation.end_ps, end_ps);
  --operation.channels_left;
  if (operation.launched && operation.channels_left == 0) Schedule(id, operation.end_ps);
}

void ReplayEngine::End(uint32_t id) {
  Operation& operation = operations_[id];
  operation.schedule.reset();
  const uint32_t collective = CallOf(operation).collective;
  if (++times_[collective].calls_ended == call_count_[collective]) FinishCollective(collective);
  end_ps_ = engine_.NowPs();
  if (operation.next_in_stream != kNone) {
    operations_[operation.next_in_stream].earliest_ps += engine_.NowPs();
    Release(operation.next_in_stream);
  }
  if (operation.next_in_communicator != kNone) Release(operation.next_in_communicator);
  if (--operations_left_ == 0) ns3::Simulator::Stop();
}

void ReplayEngine::Release(uint32_t id) {
  Operation& operation = operations_[id];
  if (--operation.waits_for > 0) return;
  Schedule(id, std::max(operation.earliest_ps, engine_.NowPs()));
}

void ReplayEngine::FinishCollective(uint32_t collective) {
  CollectiveTimes& times = times_[collective];
  times.last_end_ps = engine_.NowPs();
  times.bound_ps = BoundOf(collective);
  SIM_CHECK(times.last_end_ps - times.first_start_ps >= times.bound_ps,
            fmt::format("collective {} took {} ps, less than its bound of {} ps", collective,
                        times.last_end_ps - times.first_start_ps, times.bound_ps));
}

int64_t ReplayEngine::BoundOf(uint32_t id) {
  const JobCollective& collective = job_.collectives[id];
  const Communicator& communicator = communicators_[collective.communicator];
  if (!collective.is_p2p()) {
    Plan& plan = PlanOf(collective);
    if (plan.bound_ps < 0) plan.bound_ps = BoundOfSchedule(communicator, *plan.schedule);
    return plan.bound_ps;
  }
  for (const uint32_t operation_id : p2p_operations_[id]) {
    const JobOperation& call = CallOf(operations_[operation_id]);
    for (uint32_t i = 0; i < call.p2p_count; ++i) {
      const P2pCall& p2p = job_.p2p_calls[call.p2p_first + i];
      if (!p2p.is_send || p2p.peer == call.communicator_rank) continue;
      AddToBound(communicator, 0, call.communicator_rank, p2p.peer, ConnectionUse::kPointToPoint,
                 p2p.bytes);
    }
  }
  return bound_model_.Take();
}

void ReplayEngine::AddToBound(const Communicator& communicator, uint32_t channel, uint32_t from,
                              uint32_t to, ConnectionUse use, uint64_t bytes) {
  const ConnectionRoute route = communicator.planner->RouteOf(channel, from, to, use);
  const uint32_t from_gpu = communicator.gpus[from];
  const uint32_t injecting_gpu =
      route.network ? executor_.GpuOfServer(from_gpu, route.sending_local_index) : from_gpu;
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
      AddToBound(communicator, lane.channel, lane.rank, peer.first, peer.second, bytes);
    }
  };
  for (uint32_t channel = 0; channel < schedule.channel_count(); ++channel) {
    for (uint32_t rank = 0; rank < schedule.rank_count(); ++rank) {
      for (uint32_t batch = 0; batch < schedule.BatchCount(rank, channel); ++batch) {
        for (uint32_t lane = 0; lane < schedule.LaneCount(rank, channel, batch); ++lane) {
          add_lane({rank, channel, batch, lane});
        }
      }
    }
  }
  return bound_model_.Take();
}

void ReplayEngine::OnPacketLost(uint32_t connection, LinkId link) {
  const uint32_t collective = executor_.connections()[connection].collective;
  if (collective != Connection::kNone) times_[collective].lost_packets = true;
  observer_.OnPacketLost(connection, link);
}

void ReplayEngine::OnRetransmission(uint32_t connection) { observer_.OnRetransmission(connection); }

void ReplayEngine::OnLossRecovered(uint32_t connection) { observer_.OnLossRecovered(connection); }

void ReplayEngine::OnConnectionError(uint32_t id, const std::string& why) {
  if (is_aborted()) return;
  const Connection& connection = executor_.connections()[id];
  abort_reason_ =
      fmt::format("rank {} to rank {}: {}", connection.from_gpu, connection.to_gpu, why);
  end_ps_ = engine_.NowPs();
  ns3::Simulator::Stop();
}

uint64_t ReplayEngine::TimesHash(uint64_t seed) const {
  uint64_t sum = 0;
  for (size_t id = 0; id < operations_.size(); ++id) {
    const Operation& operation = operations_[id];
    const bool has_ended = times_[CallOf(operation).collective].last_end_ps != kNeverPs;
    uint64_t hash = Mix64(seed ^ id);
    hash = Mix64(hash ^ static_cast<uint64_t>(operation.start_ps));
    hash = Mix64(hash ^ static_cast<uint64_t>(has_ended ? operation.end_ps : kNeverPs));
    sum += hash;
  }
  return sum;
}

std::string ReplayEngine::ExplainWaiting() const {
  std::string text;
  size_t lines = 0;
  std::set<uint32_t> explained;
  const auto name_of = [this](const Operation& operation) {
    const JobCollective& collective = job_.collectives[CallOf(operation).collective];
    return fmt::format("{} #{} of communicator {}", CollectiveKindName(collective.kind),
                       CallOf(operation).collective,
                       job_.communicators[collective.communicator].name);
  };
  for (const LaneExecutor::Waiting& waiting : executor_.WaitingLanes()) {
    if (!explained.insert(waiting.operation).second || lines == kExplainedMax) continue;
    ++lines;
    const Operation& operation = operations_[waiting.operation];
    const uint32_t peer = communicators_[waiting.communicator].gpus[waiting.peer];
    text += fmt::format("rank {} in {} waits for {} rank {} on channel {}{}{}\n", operation.rank,
                        name_of(operation), waiting.for_data ? "data from" : "a free slot of", peer,
                        waiting.channel, waiting.transport.empty() ? "" : "; ", waiting.transport);
  }
  // Ranks that others wait for may be held up in another collective.
  for (const Operation& operation : operations_) {
    if (lines >= 2 * kExplainedMax) break;
    if (operation.start_ps != kNeverPs || operation.waits_for > 0) continue;
    ++lines;
    text += fmt::format("rank {} has not begun {}\n", operation.rank, name_of(operation));
  }
  return text;
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
