// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_global_ranks.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/natural_order.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

using Group = JoinedCommunicator;

class GlobalRanks {
 public:
  GlobalRanks(PlacementDraft& draft, const NcclLogOptions& options)
      : draft_(draft), options_(options) {}

  void Find() {
    ApplyRankMap();
    ConcludeRanks();
  }

 private:
  void ApplyRankMap() {
    std::map<uint32_t, size_t> entry_of_rank;
    for (size_t i = 0; i < options_.rank_map.size(); ++i) {
      const NcclLogOptions::RankOf& entry = options_.rank_map[i];
      SourceLocation where = entry.where;
      if (where.file.empty() && !options_.files.empty()) where.file = options_.files.front();
      const std::string field = fmt::format("rank_map[{}]", i);
      if (entry.rank >= kTraceRanksMax) {
        draft_.diagnostics.Error(
            where, field,
            fmt::format("rank {} is too large (0 to {})", entry.rank, kTraceRanksMax - 1));
        continue;
      }
      const auto [first, is_new] = entry_of_rank.try_emplace(entry.rank, i);
      if (!is_new) {
        draft_.diagnostics.Error(where, field,
                                 fmt::format("rank {} is given twice (also by rank_map[{}])",
                                             entry.rank, first->second));
        continue;
      }
      ApplyRankMapEntry(entry, where, field);
    }
  }

  void ApplyRankMapEntry(const NcclLogOptions::RankOf& entry, const SourceLocation& where,
                         const std::string& field) {
    std::vector<Endpoint*> matches;
    for (Endpoint& endpoint : placement_.endpoints) {
      const LogProcess& process = draft_.logged.processes[endpoint.process];
      if (process.host == entry.host && process.pid == entry.pid &&
          (!entry.device || !endpoint.device || *entry.device == *endpoint.device)) {
        matches.push_back(&endpoint);
      }
    }
    if (matches.empty()) {
      draft_.diagnostics.Error(
          where, field,
          fmt::format("no communicator in the logs is of host {}, pid {}{} (host and pid as in a "
                      "line's prefix HOST:PID:TID)",
                      entry.host, entry.pid,
                      entry.device ? fmt::format(", device {}", *entry.device) : ""));
    } else if (matches.size() > 1) {
      draft_.diagnostics.Error(
          where, field,
          fmt::format("{}:{} drives {} devices (say which: device: {})", entry.host, entry.pid,
                      matches.size(), matches.front()->device.value_or(0)));
    } else if (matches.front()->rank) {
      draft_.diagnostics.Error(
          where, field,
          fmt::format("{} has rank {} already (one entry per process)",
                      draft_.Describe(*matches.front()), *matches.front()->rank));
    } else {
      matches.front()->rank = entry.rank;
      known_ranks_max_ = std::max(known_ranks_max_, entry.rank + 1);
    }
  }

  void ConcludeRanks() {
    uint32_t size_max = 0;
    for (const Group& group : placement_.communicators) size_max = std::max(size_max, group.size);
    const auto endpoints = static_cast<uint32_t>(placement_.endpoints.size());
    if (endpoints == 0) return;
    const bool has_job_communicator = endpoints <= size_max;
    placement_.rank_count = std::max({size_max, known_ranks_max_, endpoints});
    if (!has_job_communicator && HasSeveralJobs()) return;
    if (has_job_communicator && placement_.rank_count == size_max) {
      for (uint32_t g = 0; g < placement_.communicators.size(); ++g) {
        if (placement_.communicators[g].size == size_max && !draft_.crowded[g]) TakeRanksOfJob(g);
      }
    }
    const auto unplaced = static_cast<uint32_t>(
        std::count_if(placement_.endpoints.begin(), placement_.endpoints.end(),
                      [](const Endpoint& endpoint) { return !endpoint.rank; }));
    if (unplaced == endpoints && AllLargestAreComplete(size_max)) {
      AssumeRankOrder(has_job_communicator);
    } else if (unplaced == 1 && endpoints == placement_.rank_count) {
      TakeLastRank();
    } else if (unplaced > 0) {
      PlaceByName(unplaced);
    }
  }

  // Reports an error if two processes use one GPU, which NCCL does not allow the ranks of a job.
  bool HasSeveralJobs() {
    std::map<std::pair<std::string, std::string>, uint32_t> process_of_gpu;
    for (const CommunicatorHandle& handle : draft_.logged.handles) {
      if (handle.bus_id.empty()) continue;
      const LogProcess& process = draft_.logged.processes[handle.process];
      const auto [at, is_new] =
          process_of_gpu.try_emplace({process.host, handle.bus_id}, handle.process);
      if (is_new || at->second == handle.process) continue;
      const LogProcess& other = draft_.logged.processes[at->second];
      draft_.diagnostics.Error(
          {.file = draft_.report.files[process.first_file].path,
           .line = static_cast<int>(process.first_line)},
          "",
          fmt::format("processes {} and {} of {} use the same GPU (busId {}), and no communicator "
                      "has all processes: these are several jobs (expected the log of one)",
                      other.pid, process.pid, process.host, handle.bus_id));
      return true;
    }
    return false;
  }

  // Where ranks are symmetric, processes of unknown rank take the lowest free ones; else this is
  // what the user may say in a rank map.
  void PlaceByName(uint32_t unplaced) {
    constexpr int kEntriesMax = 256;
    std::set<uint32_t> taken;
    for (const Endpoint& endpoint : placement_.endpoints) {
      if (endpoint.rank) taken.insert(*endpoint.rank);
    }
    uint32_t rank = 0;
    int entries = 0;
    for (Endpoint* endpoint : EndpointsByName()) {
      if (endpoint->rank) continue;
      while (taken.contains(rank)) ++rank;
      if (options_.ranks_are_symmetric) {
        endpoint->rank = rank;
      } else if (++entries <= kEntriesMax) {
        placement_.rank_map_to_type += RankMapOption(*endpoint, rank);
      }
      ++rank;
    }
    if (options_.ranks_are_symmetric) {
      placement_.has_arbitrary_ranks = true;
      draft_.Assume(fmt::format(
          "processes whose rank nothing states take the lowest free ranks ({} of them): all ranks "
          "make the same calls",
          unplaced));
    } else if (entries > kEntriesMax) {
      placement_.rank_map_to_type += fmt::format(" and {} more", entries - kEntriesMax);
    }
  }

  std::string RankMapOption(const Endpoint& endpoint, uint32_t rank) const {
    const LogProcess& process = draft_.logged.processes[endpoint.process];
    const auto endpoints_of_process =
        std::count_if(placement_.endpoints.begin(), placement_.endpoints.end(),
                      [&](const Endpoint& other) { return other.process == endpoint.process; });
    return fmt::format(
        " --rank-map {}:{}{}={}", process.host, process.pid,
        endpoints_of_process > 1 && endpoint.device ? fmt::format(":{}", *endpoint.device) : "",
        rank);
  }

  // The ranks of the largest communicator. A second one of its size may only fill gaps, since its
  // ranks may be in another order.
  void TakeRanksOfJob(uint32_t index) {
    std::set<uint32_t> taken;
    for (const Endpoint& endpoint : placement_.endpoints) {
      if (endpoint.rank) taken.insert(*endpoint.rank);
    }
    for (const uint32_t handle : placement_.communicators[index].handles) {
      if (!draft_.rank_of[handle]) continue;
      Endpoint& endpoint = draft_.EndpointOf(handle);
      if (!endpoint.rank && taken.insert(*draft_.rank_of[handle]).second) {
        endpoint.rank = draft_.rank_of[handle];
      } else if (endpoint.rank && *endpoint.rank != *draft_.rank_of[handle] && !job_found_) {
        draft_.diagnostics.Error(
            draft_.PlaceOf(endpoint), "rank_map",
            fmt::format("{} is given as rank {}, the log's Init lines say rank {} "
                        "(leave it out of rank_map)",
                        draft_.Describe(endpoint), *endpoint.rank, *draft_.rank_of[handle]));
      }
    }
    job_found_ = true;
  }

  bool AllLargestAreComplete(uint32_t size_max) const {
    size_t members = 0;
    for (uint32_t g = 0; g < placement_.communicators.size(); ++g) {
      const Group& group = placement_.communicators[g];
      if (group.size != size_max || group.handles.empty()) continue;
      if (draft_.crowded[g] || group.handles.size() != group.size) return false;
      members += group.handles.size();
    }
    return members >= placement_.endpoints.size();
  }

  std::vector<Endpoint*> EndpointsByName() {
    std::vector<Endpoint*> order;
    for (Endpoint& endpoint : placement_.endpoints) order.push_back(&endpoint);
    std::stable_sort(order.begin(), order.end(), [&](const Endpoint* a, const Endpoint* b) {
      const LogProcess& x = draft_.logged.processes[a->process];
      const LogProcess& y = draft_.logged.processes[b->process];
      if (x.host != y.host) return NaturalLess()(x.host, y.host);
      return std::tuple(a->device, x.pid) < std::tuple(b->device, y.pid);
    });
    return order;
  }

  void AssumeRankOrder(bool has_job_communicator) {
    const std::vector<Endpoint*> order = EndpointsByName();
    for (uint32_t rank = 0; rank < order.size(); ++rank) order[rank]->rank = rank;
    draft_.Assume(fmt::format(
        "global ranks follow the order of host name, device and pid, since {}; a "
        "rank_map would say otherwise",
        has_job_communicator ? "no line states them" : "no communicator spans all processes"));
  }

  void TakeLastRank() {
    std::vector<bool> taken(placement_.rank_count, false);
    Endpoint* last = nullptr;
    for (Endpoint& endpoint : placement_.endpoints) {
      if (!endpoint.rank) {
        last = &endpoint;
      } else if (taken[*endpoint.rank]) {
        return;
      } else {
        taken[*endpoint.rank] = true;
      }
    }
    last->rank = static_cast<uint32_t>(
        std::distance(taken.begin(), std::find(taken.begin(), taken.end(), false)));
    draft_.Assume(
        fmt::format("{} is rank {}, the only one left", draft_.Describe(*last), *last->rank));
  }

  PlacementDraft& draft_;
  const NcclLogOptions& options_;
  Placement& placement_ = draft_.placement;
  uint32_t known_ranks_max_ = 0;
  bool job_found_ = false;
};

}  // namespace

void FindGlobalRanks(PlacementDraft& draft, const NcclLogOptions& options) {
  GlobalRanks(draft, options).Find();
}

}  // namespace railyard
