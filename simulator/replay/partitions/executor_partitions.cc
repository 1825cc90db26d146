// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/partitions/executor_partitions.h"

#include <utility>

namespace railyard {

uint32_t ExecutorPartitions::LocalNumberOf(CommunicatorIndex communicator, RankIndex rank) const {
  return executor_.connection_table().LocalNumberOf(communicator, rank);
}

bool ExecutorPartitions::StandsStill(GpuIndex gpu) const {
  return executor_.clock().StandsStill(gpu);
}

bool ExecutorPartitions::AreAllOpen(CommunicatorIndex communicator,
                                    const CollectiveSchedule& schedule) const {
  return executor_.connection_table().AreAllOpen(communicator, schedule);
}

bool ExecutorPartitions::MayMoveConnections() {
  NicFailover* const failover = executor_.failover();
  return failover != nullptr && failover->MayMoveSome();
}

void ExecutorPartitions::Renew(Partition& partition) {
  if (!partition.of_nics) return;
  if (partition.nics.version == executor_.connection_table().network_version()) return;
  partition.nics = executor_.NicGroupOf(partition.gpus, partition.communicators);
}

void ExecutorPartitions::Visit(const Partition& partition, StateArchive& archive) {
  if (partition.of_nics) {
    executor_.VisitNics(partition.nics, archive);
    return;
  }
  network_.state().VisitNvlinks(partition.links, archive);
  executor_.VisitGpus(partition.gpus, archive);
}

void ExecutorPartitions::VisitCounters(const Partition& partition, StateArchive& archive) {
  if (partition.of_nics) executor_.VisitCountersOfNics(archive);
}

bool ExecutorPartitions::IsAtRest(const Partition& partition, EpisodePlace place) {
  StateArchive archive = StateArchive::OfState(network_.engine().NowPs());
  executor_.VisitNics(executor_.nic_groups().Around(partition.nics, partition.gpus[place]),
                      archive);
  return archive.is_quiescent();
}

std::vector<EpisodePlace> ExecutorPartitions::PeersOf(const Partition& partition,
                                                      EpisodePlace place) const {
  std::vector<EpisodePlace> peers;
  for (const GpuIndex peer :
       executor_.nic_groups().PeersOf(partition.nics, partition.gpus[place])) {
    peers.push_back(partition.PlaceOf(peer));
  }
  return peers;
}

// It has a clear-to-send for nothing that it has not sent, and as the receiver it has sent all of
// its own: it has claimed the connection, and sends more only for messages that it has used.
bool ExecutorPartitions::WaitsFor(CommunicatorIndex communicator, GpuIndex gpu, GpuIndex other) {
  const ConnectionTable& table = executor_.connection_table();
  const auto all_between = [&](GpuIndex from, GpuIndex to, const auto& holds) {
    return std::ranges::all_of(table.network_connections(from), [&](ConnectionId id) {
      const Connection& connection = table.connection(id);
      return connection.to_gpu != to || connection.communicator != communicator ||
             (executor_.IsQueuePairAtRest(id) && holds(table.slots(id)));
    });
  };
  return all_between(gpu, other,
                     [](const MessageSlots& slots) {
                       return slots.progress.granted == slots.progress.sent;
                     }) &&
         all_between(other, gpu,
                     [](const MessageSlots& slots) { return slots.receiver != LaneIndex::kNone; });
}

uint64_t ExecutorPartitions::IdentityOf(const Partition& partition) const {
  return partition.of_nics ? partition.nics.identity
                           : executor_.nic_groups().IdentityOfGpus(partition.gpus);
}

bool ExecutorPartitions::BeginIndependent(const Partition& partition) {
  return !partition.of_nics ||
         network_.buffers().BeginIndependent(partition.nics.at.value(), partition.nics.links);
}

void ExecutorPartitions::EndIndependent(const Partition& partition) {
  if (partition.of_nics)
    network_.buffers().EndIndependent(partition.nics.at.value(), partition.nics.links);
}

bool ExecutorPartitions::BeginAhead(const Partition& partition) {
  if (partition.nics.at) {
    if (!network_.buffers().BeginAhead(*partition.nics.at, partition.nics.links)) return false;
    timers_ = executor_.TakeTimers(partition.nics);
  }
  if (keep_paths_) paths_ = executor_.PathsAmong(partition.gpus);
  return true;
}

void ExecutorPartitions::EndAhead(const Partition& partition) {
  if (partition.nics.at) {
    network_.buffers().EndAhead(*partition.nics.at);
    executor_.PutTimers(partition.nics, std::exchange(timers_, {}));
  }
  if (keep_paths_) executor_.PutPathsAmong(partition.gpus, std::exchange(paths_, {}));
}

}  // namespace railyard
