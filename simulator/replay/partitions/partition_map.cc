// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/partitions/partition_map.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "workloads/programs/program_order.h"

namespace railyard {

PartitionMap::PartitionMap(const FabricGraph& graph, const CallTable& calls, PlanCache& plans,
                           const PartitionHost& host, Settings settings)
    : graph_(graph), calls_(calls), plans_(plans), host_(host), settings_(std::move(settings)) {
  Rebuild();
}

void PartitionMap::Rebuild() {
  if (!settings_.of_nvlinks) return;
  partitions_.clear();
  of_nics_.clear();
  least_launch_ps_ = kNeverPs;
  for (CollectiveIndex id{}; id < calls_.job().collectives.size(); ++id) {
    least_launch_ps_ = std::min(least_launch_ps_, plans_.CostsOf(id).launch_latency_ps);
  }
  nvlinks_ = std::make_unique<NvlinkPartitions>(graph_, calls_.job().communicators);
  for (const JobCollective& collective : calls_.job().collectives) {
    if (collective.expert_kernel == ExpertKernel::kDeepEpLowLatency) {
      nvlinks_->UseNics(collective.communicator);
    }
  }
  AddPartitionsOfNvlinks();
  if (settings_.of_nics) AddPartitionsOfNics();
}

void PartitionMap::AddPartitionsOfNvlinks() {
  const Job& job = calls_.job();
  // By operations and their collectives, because many ranks may share both.
  std::map<std::pair<uint32_t, uint32_t>, bool> is_in_turn;
  const auto are_in_turn = [&](GlobalRank rank) {
    const auto [it, is_new] = is_in_turn.try_emplace(
        {job.operations.program_of_rank(rank), job.called.program_of_rank(rank)});
    if (is_new) {
      it->second = AreInTurn(job.operations[rank], [this, rank](const JobOperation& call) {
        return UsesNvlinks(rank, call);
      });
    }
    return it->second;
  };
  for (const NvlinkPartition& nvlinks : nvlinks_->partitions()) {
    Partition partition{.gpus = nvlinks.gpus, .links = nvlinks.links, .shape = nvlinks.shape};
    partition.is_in_turn = std::ranges::all_of(nvlinks.gpus, [&](GpuIndex gpu) {
      return gpu >= job.rank_count || are_in_turn(RankOn(gpu));
    });
    partition.is_faulty = MayFail(nvlinks.links, nvlinks.gpus);
    partitions_.push_back(std::move(partition));
  }
}

// Returns true if some fault may affect any of them.
bool PartitionMap::MayFail(const std::vector<LinkId>& links,
                           const std::vector<GpuIndex>& gpus) const {
  return std::ranges::find_first_of(links, settings_.faulty_links) != links.end() ||
         std::ranges::find_first_of(gpus, settings_.faulty_gpus) != gpus.end();
}

// Adds a partition for each set of GPUs on different servers that a communicator joins.
void PartitionMap::AddPartitionsOfNics() {
  std::map<std::vector<GpuIndex>, PartitionIndex> numbers;
  of_nics_.assign(plans_.communicator_count(), PartitionIndex::kNone);
  for (CommunicatorIndex id{}; id < plans_.communicator_count(); ++id) {
    const std::vector<GpuIndex>& gpus = plans_.gpus(id);
    const bool have_nics =
        std::ranges::all_of(gpus, [&](GpuIndex gpu) { return NicOf(gpu).has_value(); });
    if (gpus.size() < 2 || !have_nics || !graph_.AreOnSeparateServers(gpus)) continue;
    const auto [it, is_new] = numbers.try_emplace(gpus, PartitionIndex{count()});
    of_nics_[id] = it->second;
    if (is_new) partitions_.push_back(PartitionOfNics(gpus));
    partitions_[it->second].communicators.push_back(id);
  }
  if (!numbers.empty()) FindNeighbours();
}

Partition PartitionMap::PartitionOfNics(const std::vector<GpuIndex>& gpus) const {
  std::vector<LinkId> links;
  const auto add_both_ways = [&](LinkId link) {
    links.push_back(link);
    links.push_back(graph_.ReverseLink(link));
  };
  for (const GpuIndex gpu : gpus) {
    const DeviceId nic = NicOf(gpu).value();
    for (const LinkId wire : graph_.WiresOfNic(nic)) add_both_ways(wire);
    for (const LinkId link : graph_.HostPath(graph_.gpus()[gpu], nic)) add_both_ways(link);
  }
  Partition partition{.gpus = gpus, .of_nics = true};
  partition.is_faulty = MayFail(links, gpus);
  return partition;
}

// Finds the communicators that have to do with the NICs of each partition.
void PartitionMap::FindNeighbours() {
  std::map<DeviceId, std::vector<CommunicatorIndex>> communicators_of_nic;
  for (CommunicatorIndex id{}; id < plans_.communicator_count(); ++id) {
    if (nvlinks_->UseOf(id) == NvlinkUse::kOnly) continue;
    for (const GpuIndex gpu : plans_.gpus(id)) {
      const std::optional<DeviceId> nic = NicOf(gpu);
      if (nic) communicators_of_nic[*nic].push_back(id);
    }
  }
  for (Partition& partition : partitions_) {
    if (!partition.of_nics) continue;
    partition.may_touch.assign(plans_.communicator_count(), false);
    partition.is_near.assign(graph_.gpus().size(), false);
    for (const GpuIndex gpu : partition.gpus) {
      for (const CommunicatorIndex id : communicators_of_nic[NicOf(gpu).value()]) {
        if (partition.may_touch[id]) continue;
        partition.may_touch[id] = true;
        for (const GpuIndex near : plans_.gpus(id)) partition.is_near[near] = true;
      }
    }
  }
}

// --- Calls ---------------------------------------------------------------------------------------

bool PartitionMap::UsesNvlinks(GlobalRank rank, const JobOperation& operation) const {
  if (operation.is_compute()) return false;
  const Job& job = calls_.job();
  const JobCollective& collective = job.collectives[job.CollectiveOf(rank, operation)];
  return nvlinks_->UseOf(collective.communicator) != NvlinkUse::kNone;
}

bool PartitionMap::UsesNics(GlobalRank rank, const JobOperation& operation) const {
  if (operation.is_compute()) return false;
  const Job& job = calls_.job();
  const JobCollective& collective = job.collectives[job.CollectiveOf(rank, operation)];
  return nvlinks_->UseOf(collective.communicator) != NvlinkUse::kOnly;
}

// A rank of the communicator may be alone in its server.
PartitionIndex PartitionMap::PartitionOf(const Call& call) const {
  if (!nvlinks_) return PartitionIndex::kNone;
  if (UsesNvlinks(call.rank, calls_.OperationOf(call))) return nvlinks_->OfGpu(call.gpu());
  if (of_nics_.empty()) return PartitionIndex::kNone;
  return of_nics_[calls_.CollectiveOf(call).communicator];
}

bool PartitionMap::IsOfPartitionAlone(PartitionIndex number, CollectiveIndex collective) const {
  const JobCollective& called = calls_.job().collectives[collective];
  if (!partitions_[number].of_nics) {
    return nvlinks_->UseOf(called.communicator) == NvlinkUse::kOnly;
  }
  if (called.is_p2p()) return true;
  // The network's switches have a part in the others.
  const Algorithm algorithm = plans_.ChoiceOf(collective).algorithm;
  return algorithm == Algorithm::kRing || algorithm == Algorithm::kTree ||
         algorithm == Algorithm::kPat;
}

bool PartitionMap::IsMetAt(const Partition& partition, GpuIndex gpu) const {
  return std::ranges::any_of(partition.gpus, [&](GpuIndex other) {
    return partition.of_nics ? NicOf(other) == NicOf(gpu) : other == gpu;
  });
}

// --- Classes -------------------------------------------------------------------------------------

// Equal for communicators of one class.
std::vector<uint32_t> PartitionMap::MembersOfClass(CommunicatorIndex id) const {
  const CommunicatorLayout& layout = plans_.planner(id).layout();
  const std::vector<GpuIndex>& gpus = plans_.gpus(id);
  const bool is_logged = !layout.rings.empty() || !layout.tree_parents.empty();
  const bool is_of_nvlinks = nvlinks_ && nvlinks_->UseOf(id) == NvlinkUse::kOnly;
  const bool is_of_nics = !of_nics_.empty() && of_nics_[id] != PartitionIndex::kNone;
  if (is_logged || (!is_of_nvlinks && !is_of_nics)) return {0, id};
  std::vector<uint32_t> members;
  if (is_of_nvlinks) {
    members = {1, nvlinks_->partitions()[nvlinks_->OfGpu(gpus.front())].shape};
    for (RankIndex rank{0}; rank < gpus.size(); ++rank) {
      members.push_back(nvlinks_->PlaceOf(gpus[rank]));
      members.push_back(host_.LocalNumberOf(id, rank));
    }
    return members;
  }
  members = {2, static_cast<uint32_t>(layout.generation), static_cast<uint32_t>(layout.cpu)};
  for (RankIndex rank{0}; rank < gpus.size(); ++rank) {
    members.push_back(host_.LocalNumberOf(id, rank));
  }
  return members;
}

std::vector<uint32_t> PartitionMap::ClassesOfCommunicators() const {
  std::map<std::vector<uint32_t>, uint32_t> numbers;
  std::vector<uint32_t> classes;
  for (CommunicatorIndex id{}; id < plans_.communicator_count(); ++id) {
    const auto number = static_cast<uint32_t>(numbers.size());
    classes.push_back(numbers.try_emplace(MembersOfClass(id), number).first->second);
  }
  return classes;
}

}  // namespace railyard
