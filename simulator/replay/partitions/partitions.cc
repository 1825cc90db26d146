// SPDX-License-Identifier: GPL-2.0-only
// Which partitions a job has, and which of them are alike.
#include <algorithm>
#include <map>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/replay/streams/replay_engine.h"

namespace railyard {

void ReplayEngine::BuildPartitions() {
  if (!rules_.partition_episodes) return;
  least_launch_ps_ = kNeverPs;
  for (const JobCollective& collective : job_.collectives) {
    least_launch_ps_ = std::min(least_launch_ps_, CostsOf(collective).launch_latency_ps);
  }
  nvlinks_ = std::make_unique<NvlinkPartitions>(graph_, job_.communicators);
  AddPartitionsOfNvlinks();
  if (!rules_.has_load && executor_->network_stack().HasQueuePairConnections())
    AddPartitionsOfNics();
}

void ReplayEngine::AddPartitionsOfNvlinks() {
  // By operations and the collectives they are of: many ranks may share both.
  std::map<std::pair<uint32_t, uint32_t>, bool> is_in_turn;
  const auto are_in_turn = [&](uint32_t rank) {
    const auto [it, is_new] = is_in_turn.try_emplace(
        {job_.operations.program_of_rank(rank), job_.called.program_of_rank(rank)});
    if (is_new) {
      it->second = AreInTurn(job_.operations[rank], [this, rank](const JobOperation& call) {
        return UsesNvlinks(rank, call);
      });
    }
    return it->second;
  };
  for (const NvlinkPartition& nvlinks : nvlinks_->partitions()) {
    Partition partition{.gpus = nvlinks.gpus, .links = nvlinks.links, .shape = nvlinks.shape};
    partition.is_in_turn = std::ranges::all_of(
        nvlinks.gpus, [&](uint32_t gpu) { return gpu >= job_.rank_count || are_in_turn(gpu); });
    partition.is_faulty = MayFail(nvlinks.links, nvlinks.gpus);
    partition.is_on_detour = IsOnDetour(partition);
    partitions_.push_back(std::move(partition));
  }
}

// Whether some fault may do something to any of them.
bool ReplayEngine::MayFail(const std::vector<LinkId>& links,
                           const std::vector<uint32_t>& gpus) const {
  return std::ranges::find_first_of(links, rules_.faulty_links) != links.end() ||
         std::ranges::find_first_of(gpus, rules_.faulty_gpus) != gpus.end();
}

// One for each set of GPUs on servers of their own that a communicator joins.
void ReplayEngine::AddPartitionsOfNics() {
  std::map<std::vector<uint32_t>, uint32_t> numbers;
  nic_partition_of_communicator_.assign(communicators_.size(), kNone);
  for (uint32_t id = 0; id < communicators_.size(); ++id) {
    const std::vector<uint32_t>& gpus = communicators_[id].gpus;
    const bool have_nics = std::ranges::all_of(
        gpus, [&](uint32_t gpu) { return graph_.NicOfGpu(graph_.gpus()[gpu]).has_value(); });
    if (gpus.size() < 2 || !have_nics ||
        !executor_->connection_table().AreOnServersOfTheirOwn(gpus))
      continue;
    const auto [it, is_new] = numbers.try_emplace(gpus, static_cast<uint32_t>(partitions_.size()));
    nic_partition_of_communicator_[id] = it->second;
    if (!is_new) continue;
    Partition partition{.gpus = gpus, .of_nics = true};
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
    partition.is_faulty = MayFail(links, gpus);
    partition.is_on_detour = IsOnDetour(partition);
    partitions_.push_back(std::move(partition));
  }
  if (numbers.empty()) return;
  has_begun_.resize(first_number_.back() + job_.operations[job_.rank_count - 1].size());
  std::map<DeviceId, std::vector<uint32_t>> communicators_of_nic;
  for (uint32_t id = 0; id < communicators_.size(); ++id) {
    if (nvlinks_->UseOf(id) == NvlinkUse::kOnly) continue;
    for (const uint32_t gpu : communicators_[id].gpus) {
      const std::optional<DeviceId> nic = graph_.NicOfGpu(graph_.gpus()[gpu]);
      if (nic) communicators_of_nic[*nic].push_back(id);
    }
  }
  for (Partition& partition : partitions_) {
    if (!partition.of_nics) continue;
    partition.may_touch.assign(communicators_.size(), false);
    partition.is_near.assign(graph_.gpus().size(), false);
    for (const uint32_t gpu : partition.gpus) {
      for (const uint32_t id : communicators_of_nic[*graph_.NicOfGpu(graph_.gpus()[gpu])]) {
        if (partition.may_touch[id]) continue;
        partition.may_touch[id] = true;
        for (const uint32_t near : communicators_[id].gpus) partition.is_near[near] = true;
      }
    }
  }
}

// After ranks have moved: which GPUs communicators join is another matter, and what was known of
// the partitions before is forgotten.
void ReplayEngine::RebuildPartitions() {
  if (!nvlinks_) return;
  SIM_CHECK(replayed_partitions_ == 0, "ranks move while a partition is replayed");
  partitions_.clear();
  partition_cache_ = {};
  BuildPartitions();
  for (uint32_t id = 0; id < running_.size(); ++id) {
    Running& running = running_[id];
    if (running.rank == kNone) continue;
    running.partition = PartitionOf(running);
    if (running.partition == kNone) continue;
    partitions_[running.partition].calls.push_back(id);
    if (running.launched) ++partitions_[running.partition].launched;
  }
}

// Traffic of other rails crosses what these GPUs' partitions consist of from now on.
void ReplayEngine::OnDetour(std::span<const uint32_t> gpus) {
  CheckNothingFailsAhead();
  gpus_on_detours_.insert(gpus.begin(), gpus.end());
  for (Partition& partition : partitions_) {
    if (partition.is_on_detour || !IsOnDetour(partition)) continue;
    partition.is_on_detour = true;
    if (!partition.episode) continue;
    if (partition.episode->is_replayed) throw FabricNetwork::NotApart();
    partition.episode.reset();
  }
}

bool ReplayEngine::IsOnDetour(const Partition& partition) const {
  return std::ranges::any_of(gpus_on_detours_, [&](uint32_t gpu) {
    const auto is_met = [&](uint32_t other) {
      if (!partition.of_nics) return other == gpu;
      return graph_.NicOfGpu(graph_.gpus()[other]) == graph_.NicOfGpu(graph_.gpus()[gpu]);
    };
    return std::ranges::any_of(partition.gpus, is_met);
  });
}

bool ReplayEngine::UsesNvlinks(uint32_t rank, const JobOperation& operation) const {
  if (operation.is_compute()) return false;
  const JobCollective& collective = job_.collectives[job_.CollectiveOf(rank, operation)];
  return nvlinks_->UseOf(collective.communicator) != NvlinkUse::kNone;
}

bool ReplayEngine::UsesNics(uint32_t rank, const JobOperation& operation) const {
  if (operation.is_compute()) return false;
  const JobCollective& collective = job_.collectives[job_.CollectiveOf(rank, operation)];
  return nvlinks_->UseOf(collective.communicator) != NvlinkUse::kOnly;
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
        !nic_partition_of_communicator_.empty() && nic_partition_of_communicator_[id] != kNone;
    std::vector<uint32_t> members;
    if (is_logged || (!is_of_nvlinks && !is_of_nics)) {
      members = {0, id};
    } else if (is_of_nvlinks) {
      const uint32_t partition = nvlinks_->OfGpu(communicator.gpus.front());
      members = {1, nvlinks_->partitions()[partition].shape};
      for (uint32_t rank = 0; rank < communicator.gpus.size(); ++rank) {
        members.push_back(nvlinks_->PlaceOf(communicator.gpus[rank]));
        members.push_back(executor_->connection_table().LocalNumberOf(id, rank));
      }
    } else {
      members = {2, static_cast<uint32_t>(layout.generation), static_cast<uint32_t>(layout.cpu)};
      for (uint32_t rank = 0; rank < communicator.gpus.size(); ++rank) {
        members.push_back(executor_->connection_table().LocalNumberOf(id, rank));
      }
    }
    classes.push_back(numbers.try_emplace(std::move(members), static_cast<uint32_t>(numbers.size()))
                          .first->second);
  }
  return classes;
}

// A rank of the communicator may be alone in its server.
uint32_t ReplayEngine::PartitionOf(const Running& running) const {
  if (!nvlinks_) return kNone;
  if (UsesNvlinks(running.rank, CallOf(running))) return nvlinks_->OfGpu(running.rank);
  if (nic_partition_of_communicator_.empty()) return kNone;
  return nic_partition_of_communicator_[job_.collectives[CollectiveOf(running)].communicator];
}

bool ReplayEngine::IsOfPartitionAlone(uint32_t number, uint32_t collective) const {
  const JobCollective& called = job_.collectives[collective];
  if (!partitions_[number].of_nics) {
    return nvlinks_->UseOf(called.communicator) == NvlinkUse::kOnly;
  }
  if (called.is_p2p()) return true;
  // The network's switches have a part in the others.
  const Algorithm algorithm = ChoiceOf(called).algorithm;
  return algorithm == Algorithm::kRing || algorithm == Algorithm::kTree ||
         algorithm == Algorithm::kPat;
}

uint32_t ReplayEngine::PlaceOf(const Partition& partition, uint32_t gpu) {
  return static_cast<uint32_t>(std::ranges::find(partition.gpus, gpu) - partition.gpus.begin());
}

}  // namespace railyard
