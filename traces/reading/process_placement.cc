// SPDX-License-Identifier: GPL-2.0-only
#include "traces/reading/process_placement.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/natural_order.h"

namespace railyard {
namespace {

// Returns the global ranks of all members; empty if some are not seen and the others do not make a
// line.
std::vector<uint32_t> Members(const SeenCommunicator& communicator,
                              const std::map<std::string, uint32_t>& rank_of_process,
                              uint32_t rank_count) {
  int64_t stride = 1;
  const auto& seen = communicator.process_of_rank;
  std::vector<uint32_t> ranks;
  if (seen.size() == communicator.size) {
    for (const auto& [rank, process] : seen) ranks.push_back(rank_of_process.at(process));
    return ranks;
  }
  const auto first = seen.begin();
  const int64_t first_rank = rank_of_process.at(first->second);
  if (seen.size() > 1) {
    const auto second = std::next(first);
    const int64_t distance = int64_t{second->first} - first->first;
    const int64_t ranks_between = int64_t{rank_of_process.at(second->second)} - first_rank;
    if (ranks_between % distance != 0) return {};
    stride = ranks_between / distance;
  }
  for (uint32_t r = 0; r < communicator.size; ++r) {
    const int64_t rank = first_rank + (int64_t{r} - first->first) * stride;
    const auto process = seen.find(r);
    if (rank < 0 || rank >= rank_count) return {};
    if (process != seen.end() && rank_of_process.at(process->second) != rank) return {};
    ranks.push_back(static_cast<uint32_t>(rank));
  }
  return ranks;
}

std::set<std::string, NaturalLess> ProcessesOf(
    const std::map<std::string, SeenCommunicator>& communicators) {
  std::set<std::string, NaturalLess> processes;
  for (const auto& [id, communicator] : communicators) {
    for (const auto& [rank, process] : communicator.process_of_rank) processes.insert(process);
  }
  return processes;
}

// Places the processes of a job that no communicator spans.
ProcessPlacement PlaceByName(const std::set<std::string, NaturalLess>& processes,
                             const std::map<std::string, SeenCommunicator>& communicators) {
  ProcessPlacement placement;
  for (const std::string& process : processes) {
    placement.rank_of_process.emplace(process, placement.rank_of_process.size());
  }
  for (const auto& [id, communicator] : communicators) {
    placement.ranks_of_communicator[id] =
        Members(communicator, placement.rank_of_process, static_cast<uint32_t>(processes.size()));
  }
  placement.assumed.emplace_back(
      "global ranks follow the order of the processes' names, since no communicator spans all of "
      "them");
  return placement;
}

}  // namespace

std::set<std::string> SeparateRanks(std::map<std::string, SeenCommunicator>& communicators) {
  std::set<std::string> separated;
  for (const auto& [id, communicator] : communicators) {
    std::set<std::string_view> seen;
    for (const auto& [rank, process] : communicator.process_of_rank) {
      if (!seen.insert(process).second) separated.insert(process);
    }
  }
  for (auto& [id, communicator] : communicators) {
    for (auto& [rank, process] : communicator.process_of_rank) {
      if (separated.contains(process)) process = RankOfProcess(process, rank, id);
    }
  }
  return separated;
}

std::string RankOfProcess(std::string_view process, uint32_t rank, std::string_view communicator) {
  return fmt::format("{} of rank {} in {}", process, rank, communicator);
}

ProcessPlacement PlaceProcesses(const std::map<std::string, SeenCommunicator>& communicators,
                                bool are_named) {
  ProcessPlacement placement;
  std::vector<std::pair<std::string, const SeenCommunicator*>> by_size;
  for (const auto& [id, communicator] : communicators) by_size.push_back({id, &communicator});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const auto& a, const auto& b) { return a.second->size > b.second->size; });
  if (by_size.empty()) return placement;
  if (const std::set<std::string, NaturalLess> processes = ProcessesOf(communicators);
      are_named && processes.size() > by_size.front().second->size) {
    return PlaceByName(processes, communicators);
  }
  const uint32_t rank_count = by_size.front().second->size;
  std::set<uint32_t> taken;
  for (const auto& [id, communicator] : by_size) {
    for (const auto& [rank, process] : communicator->process_of_rank) {
      if (placement.rank_of_process.contains(process) || taken.contains(rank)) continue;
      placement.rank_of_process[process] = rank;
      taken.insert(rank);
      if (communicator->size < rank_count) {
        placement.assumed.push_back(fmt::format(
            "process {} is global rank {}, as in communicator {} of {}: in the largest, of {} "
            "ranks, it is not seen",
            process, rank, id, communicator->size, rank_count));
      }
    }
  }
  for (const auto& [id, communicator] : by_size) {
    const bool all_are_placed = std::all_of(
        communicator->process_of_rank.begin(), communicator->process_of_rank.end(),
        [&](const auto& entry) { return placement.rank_of_process.contains(entry.second); });
    if (all_are_placed) {
      placement.ranks_of_communicator[id] =
          Members(*communicator, placement.rank_of_process, rank_count);
    }
    const bool is_complete = communicator->process_of_rank.size() == communicator->size;
    if (communicator->size < rank_count && !is_complete &&
        !placement.ranks_of_communicator[id].empty()) {
      placement.assumed.push_back(fmt::format(
          "the ranks of communicator {} that are not seen are as far apart as those that are", id));
    }
  }
  return placement;
}

}  // namespace railyard
