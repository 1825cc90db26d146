// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simulator/replay/partitions/partition_host.h"

namespace railyard::testing {

// A machine whose partitions have one state in common: a value, an instant and two counters, the
// second of which others count as well.
class FakePartitions final : public PartitionHost {
 public:
  uint32_t LocalNumberOf(CommunicatorIndex communicator, RankIndex /*rank*/) const override {
    return communicator < local_numbers.size() ? local_numbers[communicator] : 0;
  }
  bool StandsStill(GpuIndex gpu) const override { return gpu == stopped_gpu; }
  bool AreAllOpen(CommunicatorIndex /*communicator*/,
                  const CollectiveSchedule& /*schedule*/) const override {
    return are_open;
  }
  bool MayMoveConnections() override { return may_move; }
  void Renew(Partition& /*partition*/) override {}
  void Visit(const Partition& /*partition*/, StateArchive& archive) override {
    ++visits;
    archive.Require(is_quiescent);
    archive.Value(value);
    archive.Instant(instant_ps);
    archive.Count(count);
    archive.Unrepeatable(losses);
  }
  void VisitCounters(const Partition& /*partition*/, StateArchive& archive) override {
    archive.Count(shared_count);
  }
  bool IsAtRest(const Partition& /*partition*/, EpisodePlace place) override {
    return place >= busy.size() || !busy[place];
  }
  // Every GPU has two: those beside it, in a ring.
  std::vector<EpisodePlace> PeersOf(const Partition& partition, EpisodePlace place) const override {
    const auto gpus = static_cast<uint32_t>(partition.gpus.size());
    return {EpisodePlace{(place + 1) % gpus}, EpisodePlace{(place + gpus - 1) % gpus}};
  }
  bool WaitsFor(CommunicatorIndex /*communicator*/, GpuIndex /*gpu*/, GpuIndex other) override {
    return std::ranges::find(waited_for, other) != waited_for.end();
  }
  uint64_t IdentityOf(const Partition& /*partition*/) const override { return identity; }
  bool BeginIndependent(const Partition& /*partition*/) override { return may_be_independent; }
  void EndIndependent(const Partition& /*partition*/) override {}
  bool BeginAhead(const Partition& /*partition*/) override { return may_be_ahead; }
  void EndAhead(const Partition& /*partition*/) override {}

  std::vector<uint32_t> local_numbers;  // by communicator; those beyond its end have 0
  bool is_quiescent = true;
  std::vector<GpuIndex> waited_for;
  std::vector<bool> busy;  // by place; those beyond its end are at rest
  uint64_t value = 5;
  int64_t instant_ps = 0;
  uint64_t count = 0;
  uint64_t losses = 0;
  uint64_t shared_count = 0;
  uint32_t visits = 0;
  uint64_t identity = 3;
  GpuIndex stopped_gpu{UINT32_MAX};
  bool are_open = false;
  bool may_move = false;
  bool may_be_independent = true;
  bool may_be_ahead = true;
};

}  // namespace railyard::testing
