// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/engine/replay_engine.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/replay/streams/wait_explainer.h"
#include "workloads/nccl/p2p_schedule.h"

namespace railyard {

ReplayEngine::ReplayEngine(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                           const Job& job, const ReplayRules& rules, ReplayObserver& observer)
    : graph_(graph),
      engine_(network.engine()),
      network_(network),
      job_(job),
      rules_(rules),
      observer_(observer),
      calls_(job),
      plans_(graph, job, rules.nccl, rules.gpu, rules.stack.nic, *this, rules.planners),
      progress_(job, plans_,
                {.count_payload = [this](CollectiveIndex id) { executor_->WatchPayload(id); },
                 .on_progress =
                     [this](CollectiveIndex id, double progress) {
                       observer_.OnCollectiveProgress(id, progress);
                     }}),
      ledger_(calls_, plans_, progress_, rules.keep_paths),
      executor_(BuildExecutor(routing)),
      numbers_(calls_),
      streams_(engine_, calls_, ledger_, executor_->clock(), *this, *this, rules.seed),
      cache_(EpisodeCache::BytesMaxOf(ledger_.calls_left(), rules.keep_paths)),
      episodes_({.engine = engine_,
                 .state = registry_,
                 .network = network,
                 .calls = calls_,
                 .streams = streams_,
                 .ledger = ledger_,
                 .plans = numbers_,
                 .progress = progress_},
                cache_, rules.cache, rules.keep_paths),
      host_(network, *executor_, rules.keep_paths),
      map_(graph, calls_, plans_, host_, PartitionSettings()),
      neighbours_(graph, calls_, plans_, map_, streams_, ledger_, host_),
      partitions_({.engine = engine_,
                   .calls = calls_,
                   .streams = streams_,
                   .ledger = ledger_,
                   .plans = plans_,
                   .numbers = numbers_,
                   .progress = progress_,
                   .map = map_,
                   .neighbours = neighbours_,
                   .host = host_},
                  partition_cache_, rules.cache, rules.keep_paths) {
  for (const CollectiveIndex collective : rules.watched) progress_.Watch(collective);
  if (rules.kept_rank != GlobalRank::kNone) ledger_.KeepCallsOf(rules.kept_rank);
  NumberPlans();
}

ReplayEngine::~ReplayEngine() = default;

std::unique_ptr<LaneExecutor> ReplayEngine::BuildExecutor(EcmpRouting& routing) {
  LaneObserver& observer = *this;
  auto executor =
      std::make_unique<LaneExecutor>(graph_, network_, routing, rules_.gpu, rules_.stack, observer);
  registry_.Add(network_.state());
  executor->RegisterState(registry_);
  for (CommunicatorIndex i{}; i < plans_.communicator_count(); ++i) {
    executor->connection_table().AddCommunicator(
        {plans_.gpus(i), &plans_.planner(i), job_.PartOf(i)});
  }
  if (rules_.keep_paths) executor->KeepPaths();
  if (rules_.nccl.nic_policy) executor->FailOver(*rules_.nccl.nic_policy);
  return executor;
}

void ReplayEngine::Start() {
  engine_.ForEachClass([this](const EventTraits& events) {
    const bool is_visited = events.state.owner == nullptr || registry_.Has(events.state.owner);
    if (events.state.is_known() && is_visited) return;
    registry_.AddUnknown(events.name);
    partitions_.Stop();
  });
  streams_.Start();
}

PartitionMap::Settings ReplayEngine::PartitionSettings() const {
  return {
      .of_nvlinks = rules_.cache != ReplayCacheMode::kOff && rules_.partition_episodes,
      .of_nics = !rules_.has_load && executor_->network_stack().HasQueuePairConnections(),
      .faulty_links = rules_.faulty_links,
      .faulty_gpus = rules_.faulty_gpus,
  };
}

void ReplayEngine::NumberPlans() {
  if (rules_.cache == ReplayCacheMode::kOff) return;
  if (map_.has_nics()) ledger_.KeepBegun();
  numbers_.Number(plans_, map_.ClassesOfCommunicators());
}

// --- Parts of the job ----------------------------------------------------------------------------

void ReplayEngine::SetGpuSpeed(GpuIndex gpu, double speed) {
  streams_.ChangeSpeed(gpu, executor_->clock().SpeedOf(gpu), speed);
  executor_->SetGpuSpeed(gpu, speed);
}

void ReplayEngine::Halt(PartIndex part) {
  for (const ConnectionId connection : executor_->Close(part)) {
    observer_.OnConnectionClosed(connection);
  }
  ledger_.Halt(part, streams_.Halt(part));
  partitions_.Halt(part);
  episodes_.StopRecording();
}

// Updates everything that depends on the GPUs of the part's ranks. Operations keep their numbers.
void ReplayEngine::Relocate(PartIndex part, const SwappedRanks& swapped) {
  calls_.Relocate(swapped);
  plans_.Relocate(part);
  for (CommunicatorIndex i{}; i < plans_.communicator_count(); ++i) {
    if (job_.PartOf(i) != part) continue;
    executor_->connection_table().Relocate(i, {plans_.gpus(i), &plans_.planner(i), part});
  }
  streams_.DrawSkews(rules_.seed);
  episodes_.Forget();
  map_.Rebuild();
  partitions_.Rebuild();
  NumberPlans();
}

void ReplayEngine::RestartAt(PartIndex part, const std::vector<uint32_t>& first_of_rank,
                             const SwappedRanks& swapped) {
  if (!swapped.empty()) Relocate(part, swapped);
  ledger_.Restart(part, first_of_rank);
  episodes_.LookAgain();
  observer_.OnPartRestarted(part);
  streams_.RestartAt(part, first_of_rank);
}

void ReplayEngine::Abort(PartIndex part, const std::string& why) {
  ledger_.Abort(part, why, engine_.NowPs(), streams_.Abort(part));
  episodes_.StopRecording();
  partitions_.Abort(part);
  streams_.NotifyIfAllEnded();
}

int64_t ReplayEngine::EndOfPartPs(PartIndex id) const {
  const CallLedger::PartProgress& part = ledger_.parts()[id];
  if (part.calls_left > 0 || !part.abort_reason.empty()) return part.end_ps;
  return std::max(part.end_ps, streams_.ComputedUntilPs(id));
}

int64_t ReplayEngine::end_ps() const {
  int64_t end_ps = 0;
  for (PartIndex part{}; part < ledger_.parts().size(); ++part) {
    end_ps = std::max(end_ps, EndOfPartPs(part));
  }
  return end_ps;
}

// --- The run -------------------------------------------------------------------------------------

double ReplayEngine::ShareDone() const {
  if (ledger_.calls_left() == 0) return 1;
  const auto ended = static_cast<double>(ledger_.calls_ended());
  const double done = ended + static_cast<double>(ledger_.calls_started() - ledger_.calls_ended()) *
                                  executor_->ShareOfSteps();
  return std::min(1.0, done / static_cast<double>(ledger_.calls_ended() + ledger_.calls_left()));
}

TimesHashSums ReplayEngine::TimesHash() const {
  TimesHashSums sums = ledger_.ended_hash();
  for (const StreamRunner::Running& running : streams_.running()) {
    if (!running.is_free()) ledger_.AddToHash(running.call, running.start_ps, kNeverPs, sums);
  }
  return sums;
}

std::string ReplayEngine::ExplainWaiting() const {
  WaitExplainer::Stall stall{.lanes = executor_->WaitingLanes()};
  for (const StreamRunner::Running& running : streams_.running()) {
    stall.running.push_back(running.call);
  }
  std::vector<StreamRunner::Pending> pending = streams_.pending();
  std::ranges::sort(pending, {}, &StreamRunner::Pending::number);
  for (const StreamRunner::Pending& call : pending) stall.pending.push_back(streams_.CallOf(call));
  for (GpuIndex gpu{0}; gpu < graph_.gpus().size(); ++gpu) {
    stall.is_gpu_stopped.push_back(executor_->clock().StandsStill(gpu));
  }
  return WaitExplainer(graph_, calls_, std::move(stall)).Explain();
}

// --- LaneObserver --------------------------------------------------------------------------------

void ReplayEngine::OnChannelFinished(RunningIndex operation, int64_t end_ps,
                                     const CriticalPath* path) {
  streams_.OnChannelFinished(operation, end_ps, path);
}

void ReplayEngine::OnPacketLost(ConnectionId connection, const FlowLoss& loss) {
  CheckNothingFailsAhead();
  observer_.OnPacketLost(connection, loss);
}

void ReplayEngine::OnPacketRepeated(ConnectionId connection, uint32_t payload_bytes) {
  observer_.OnPacketRepeated(connection, payload_bytes);
}

void ReplayEngine::OnRetransmission(ConnectionId connection) {
  CheckNothingFailsAhead();
  observer_.OnRetransmission(connection);
}

void ReplayEngine::OnLossRecovered(ConnectionId connection) {
  observer_.OnLossRecovered(connection);
}

void ReplayEngine::OnConnectionError(ConnectionId id, bool at_sender, const std::string& why) {
  CheckNothingFailsAhead();
  const Connection& connection = executor_->connection_table().connections()[id];
  if (ledger_.IsAborted(calls_.PartOf(RankOn(connection.from_gpu)))) return;
  observer_.OnRankError(
      RankOn(at_sender ? connection.injecting_gpu : connection.to_gpu),
      fmt::format("rank {} to rank {}: {}", connection.from_gpu, connection.to_gpu, why));
}

void ReplayEngine::OnPayloadTaken(CollectiveIndex collective, uint64_t bytes) {
  progress_.OnPayloadTaken(collective, bytes);
}

// Traffic of other rails crosses what these GPUs' partitions consist of from now on.
void ReplayEngine::OnDetour(std::span<const GpuIndex> gpus) {
  CheckNothingFailsAhead();
  partitions_.OnDetour(gpus);
}

// --- MovedConnections ----------------------------------------------------------------------------

uint64_t ReplayEngine::move_count() const { return executor_->nic_failovers(); }

bool ReplayEngine::HasMoved(CommunicatorIndex communicator, uint32_t channel, RankIndex from,
                            RankIndex to, ConnectionUse use) const {
  const ConnectionTable& table = executor_->connection_table();
  const ConnectionId connection = table.Find(communicator, channel, from, to, use);
  return connection != ConnectionId::kNone && table.connection(connection).is_detoured;
}

// --- CallHost ------------------------------------------------------------------------------------

int64_t ReplayEngine::LaunchLatencyPs(const Call& call) {
  return plans_.CostsOf(calls_.CollectiveNumberOf(call)).launch_latency_ps;
}

RankProgram ReplayEngine::ProgramOf(const Call& call,
                                    std::shared_ptr<const CollectiveSchedule>& schedule) {
  const CollectiveIndex id = calls_.CollectiveNumberOf(call);
  const JobCollective& collective = job_.collectives[id];
  schedule = plans_.ScheduleOf(call);
  const uint8_t costs = executor_->clock().AddCosts(plans_.CostsOf(id), schedule->message_rule());
  const uint8_t line_costs =
      collective.is_p2p() ? executor_->clock().AddCosts(plans_.LineCostsOf(id), kP2pLlRule) : costs;
  return {.operation = {},
          .communicator = collective.communicator,
          .rank = job_.CommunicatorRank(collective.communicator, call.rank),
          .collective = id,
          .loss_tolerance_ppm = calls_.OperationOf(call).loss_tolerance_ppm,
          .costs = costs,
          .line_costs = line_costs,
          .schedule = schedule.get()};
}

CallHost::Launched ReplayEngine::Launch(RunningIndex operation, const Call& call) {
  std::shared_ptr<const CollectiveSchedule> schedule;
  RankProgram program = ProgramOf(call, schedule);
  program.operation = operation;
  const uint32_t channels = executor_->Start(program);
  return {.channels = channels, .schedule = std::move(schedule)};
}

// --- CallReplay ----------------------------------------------------------------------------------

bool ReplayEngine::ReplayFromRest() {
  // Collectives replayed in partitions have no packets, and their first calls may have ended.
  if (partitions_.is_any_replayed() || !episodes_.ReplayFromRest()) return false;
  partitions_.ForgetStates();
  return true;
}

bool ReplayEngine::OnBegin(RunningIndex operation) {
  episodes_.OnBegin(operation);
  return partitions_.OnBegin(operation);
}

bool ReplayEngine::OnLaunch(RunningIndex operation) { return partitions_.OnLaunch(operation); }

void ReplayEngine::OnEnd(RunningIndex operation) {
  episodes_.OnEnd(operation);
  partitions_.OnEnd(operation);
}

void ReplayEngine::OnNothingRuns() { episodes_.OnNothingRuns(); }

}  // namespace railyard
