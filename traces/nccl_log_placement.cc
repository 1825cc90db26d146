// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log_placement.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "traces/trace_check.h"

namespace railyard {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Names with their numbers compared as numbers: node2 before node10.
bool NaturalLess(std::string_view a, std::string_view b) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (!IsDigit(a[i]) || !IsDigit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
      continue;
    }
    const auto number = [](std::string_view text, size_t& at) {
      while (at < text.size() && text[at] == '0') ++at;
      const size_t begin = at;
      while (at < text.size() && IsDigit(text[at])) ++at;
      return text.substr(begin, at - begin);
    };
    const std::string_view x = number(a, i);
    const std::string_view y = number(b, j);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  if ((a.size() - i) != (b.size() - j)) return a.size() - i < b.size() - j;
  return a < b;  // equal but for leading zeros
}

class Placer {
 public:
  Placer(const LoggedCalls& logged, const NcclLogOptions& options, ImportReport& report,
         Diagnostics& diagnostics)
      : logged_(logged), options_(options), report_(report), diagnostics_(diagnostics) {
    const size_t handles = logged.handles.size();
    placement_.endpoint_of.resize(handles);
    placement_.communicator_of.resize(handles);
    placement_.communicator_rank_of.resize(handles);
    placement_.unplaced.resize(handles);
    rank_of_.resize(handles);
  }

  Placement Run() {
    FindEndpoints();
    FindHandleRanks();
    Join();
    ApplyRankMap();
    ApplyGlobalRanks();
    FindGlobalRanks();
    SplitCrowdedGroups();
    FindCommunicatorRanks();
    FindFamilies();
    FindMembers();
    return std::move(placement_);
  }

 private:
  using Group = JoinedCommunicator;

  const CommunicatorHandle& Handle(uint32_t handle) const { return logged_.handles[handle]; }
  Endpoint& EndpointOf(uint32_t handle) {
    return placement_.endpoints[placement_.endpoint_of[handle]];
  }
  std::string Describe(const Endpoint& endpoint) const {
    const LogProcess& process = logged_.processes[endpoint.process];
    return endpoint.device ? fmt::format("{}:{} [{}]", process.host, process.pid, *endpoint.device)
                           : fmt::format("{}:{}", process.host, process.pid);
  }
  SourceLocation PlaceOf(const Endpoint& endpoint) const {
    const LogProcess& process = logged_.processes[endpoint.process];
    return {.file = report_.files[process.first_file].path,
            .line = static_cast<int>(std::min<uint64_t>(process.first_line, INT32_MAX))};
  }
  void Assume(std::string sentence) { report_.assumed.push_back(std::move(sentence)); }

  // ---- Endpoints. ----

  // A process drives several devices if its communicators name several. What an Init line says
  // counts before the [DEV] of a call, which is the calling thread's device of the moment.
  void FindEndpoints() {
    for (uint32_t p = 0; p < logged_.processes.size(); ++p) {
      const LogProcess& process = logged_.processes[p];
      const bool all_have_init =
          std::all_of(process.handles.begin(), process.handles.end(),
                      [&](uint32_t h) { return Handle(h).init_device.has_value(); });
      const auto device_of = [&](uint32_t handle) {
        return all_have_init                ? Handle(handle).init_device
               : Handle(handle).call_device ? Handle(handle).call_device
                                            : Handle(handle).init_device;
      };
      std::map<std::optional<uint32_t>, uint32_t> endpoint_of_device;
      for (const uint32_t handle : process.handles) {
        const auto device = device_of(handle);
        const auto [entry, is_new] = endpoint_of_device.try_emplace(
            device, static_cast<uint32_t>(placement_.endpoints.size()));
        if (is_new) placement_.endpoints.push_back({.process = p, .device = device, .rank = {}});
        placement_.endpoint_of[handle] = entry->second;
      }
    }
  }

  void FindHandleRanks() {
    for (uint32_t h = 0; h < logged_.handles.size(); ++h) {
      rank_of_[h] = Handle(h).rank;
      if (!rank_of_[h]) rank_of_[h] = RankFromTimings(h);
    }
  }

  // The rank that all `Init timings` of the process and device for this size agree on.
  std::optional<uint32_t> RankFromTimings(uint32_t handle) {
    const auto& timings = logged_.processes[Handle(handle).process].timings;
    const auto& device = EndpointOf(handle).device;
    std::optional<uint32_t> rank;
    for (auto stated = timings.lower_bound({Handle(handle).rank_count, std::nullopt});
         stated != timings.end() && stated->first.first == Handle(handle).rank_count; ++stated) {
      const auto& stated_device = stated->first.second;
      if (device && stated_device && *device != *stated_device) continue;
      if (!stated->second || (rank && *rank != *stated->second)) return std::nullopt;
      rank = stated->second;
    }
    return rank;
  }

  // ---- Joining handles. ----

  uint32_t NewGroup(uint32_t size, const std::string& name) {
    const auto index = static_cast<uint32_t>(placement_.communicators.size());
    Group group;
    group.size = size;
    group.name = name.empty() ? fmt::format("comm{}", index) : name;
    placement_.communicators.push_back(std::move(group));
    crowded_.push_back(false);
    return index;
  }

  void Put(uint32_t handle, uint32_t group) {
    placement_.communicators[group].handles.push_back(handle);
    placement_.communicator_of[handle] = group;
  }

  void Join() {
    std::map<std::pair<std::string, uint32_t>, uint32_t> by_comm_id;
    std::map<std::tuple<uint32_t, uint64_t, int64_t, uint32_t>, uint32_t> by_split;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> by_size;  // size, how manieth of the endpoint
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> unnamed_of_endpoint;  // endpoint, size
    // Parents stand before their children, handle by handle.
    for (uint32_t h = 0; h < logged_.handles.size(); ++h) {
      const CommunicatorHandle& handle = Handle(h);
      const uint32_t size = handle.rank_count;
      const auto parent = handle.parent ? placement_.communicator_of[*handle.parent] : std::nullopt;
      uint32_t* group = nullptr;
      bool is_new = false;
      const auto find = [&](auto& map, auto key) {
        const auto [entry, inserted] = map.try_emplace(key, 0);
        group = &entry->second;
        is_new = inserted;
      };
      if (!handle.comm_id.empty()) {
        find(by_comm_id, std::pair(handle.comm_id, size));
      } else if (parent) {
        find(by_split, std::tuple(*parent, handle.split_number, handle.color, size));
      } else {
        const uint32_t number = unnamed_of_endpoint[{placement_.endpoint_of[h], size}]++;
        find(by_size, std::pair(size, number));
      }
      if (is_new) *group = NewGroup(size, handle.comm_id);
      Put(h, *group);
    }
    for (uint32_t g = 0; g < placement_.communicators.size(); ++g) {
      groups_of_size_[placement_.communicators[g].size].push_back(g);
    }
    for (const auto& [key, group] : by_size) JoinedBySize(group);
  }

  // Handles that only their size brought together: one communicator if they are not more than it
  // has ranks and no rank is there twice. It may be one that other processes' lines name.
  void JoinedBySize(uint32_t index) {
    Group& group = placement_.communicators[index];
    std::set<uint32_t> ranks;
    bool distinct = true;
    for (const uint32_t handle : group.handles) {
      if (rank_of_[handle]) distinct = ranks.insert(*rank_of_[handle]).second && distinct;
    }
    if (group.handles.size() > group.size || !distinct) {
      crowded_[index] = true;
      return;
    }
    MergeIntoNamed(index);
    if (group.handles.size() > 1) {
      Assume(
          fmt::format("the communicators of {} ranks of {} processes are one ({}): no line says "
                      "so, nothing contradicts it",
                      group.size, group.handles.size(), group.name));
    }
  }

  void MergeIntoNamed(uint32_t index) {
    Group& group = placement_.communicators[index];
    const std::vector<uint32_t>& same_size = groups_of_size_[group.size];
    if (same_size.size() != 2) return;
    const uint32_t target = same_size[0] == index ? same_size[1] : same_size[0];
    Group& named = placement_.communicators[target];
    std::set<uint32_t> endpoints;
    for (const uint32_t h : named.handles) endpoints.insert(placement_.endpoint_of[h]);
    for (const uint32_t h : group.handles) {
      if (!endpoints.insert(placement_.endpoint_of[h]).second) return;
    }
    if (endpoints.size() > group.size) return;
    Assume(
        fmt::format("the communicators of {} ranks of {} processes without Init lines are {}: "
                    "it is the only one of that size",
                    group.size, group.handles.size(), named.name));
    for (const uint32_t h : std::exchange(group.handles, {})) Put(h, target);
  }

  // ---- Global ranks. ----

  void ApplyRankMap() {
    std::map<uint32_t, size_t> entry_of_rank;
    for (size_t i = 0; i < options_.rank_map.size(); ++i) {
      const NcclLogOptions::RankOf& entry = options_.rank_map[i];
      SourceLocation where = entry.where;
      if (where.file.empty() && !options_.files.empty()) where.file = options_.files.front();
      const std::string field = fmt::format("rank_map[{}]", i);
      if (entry.rank >= kTraceRanksMax) {
        diagnostics_.Error(
            where, field,
            fmt::format("rank {} is too large (0 to {})", entry.rank, kTraceRanksMax - 1));
        continue;
      }
      const auto [first, is_new] = entry_of_rank.try_emplace(entry.rank, i);
      if (!is_new) {
        diagnostics_.Error(where, field,
                           fmt::format("rank {} is given twice (also by rank_map[{}])", entry.rank,
                                       first->second));
        continue;
      }
      ApplyRankMapEntry(entry, where, field);
    }
  }

  void ApplyRankMapEntry(const NcclLogOptions::RankOf& entry, const SourceLocation& where,
                         const std::string& field) {
    std::vector<Endpoint*> matches;
    for (Endpoint& endpoint : placement_.endpoints) {
      const LogProcess& process = logged_.processes[endpoint.process];
      if (process.host == entry.host && process.pid == entry.pid &&
          (!entry.device || !endpoint.device || *entry.device == *endpoint.device)) {
        matches.push_back(&endpoint);
      }
    }
    if (matches.empty()) {
      diagnostics_.Error(
          where, field,
          fmt::format("no communicator in the logs is of host {}, pid {}{} (host and pid as in a "
                      "line's prefix HOST:PID:TID)",
                      entry.host, entry.pid,
                      entry.device ? fmt::format(", device {}", *entry.device) : ""));
    } else if (matches.size() > 1) {
      diagnostics_.Error(
          where, field,
          fmt::format("{}:{} drives {} devices (say which: device: {})", entry.host, entry.pid,
                      matches.size(), matches.front()->device.value_or(0)));
    } else if (matches.front()->rank) {
      diagnostics_.Error(where, field,
                         fmt::format("{} has rank {} already (one entry per process)",
                                     Describe(*matches.front()), *matches.front()->rank));
    } else {
      matches.front()->rank = entry.rank;
      known_ranks_max_ = std::max(known_ranks_max_, entry.rank + 1);
    }
  }

  void ApplyGlobalRanks() {
    for (const LogProcess& process : logged_.processes) {
      for (const LogProcess::GlobalRank& stated : process.global_ranks) {
        Endpoint& endpoint = EndpointOf(stated.handle);
        if (stated.rank >= kTraceRanksMax || (endpoint.rank && *endpoint.rank != stated.rank)) {
          diagnostics_.Error(
              {.file = report_.files[stated.file].path, .line = static_cast<int>(stated.line)},
              "globalrank",
              fmt::format("{} of {} contradicts {} (one global rank per process and device)",
                          stated.rank, Describe(endpoint),
                          endpoint.rank ? fmt::format("{}", *endpoint.rank)
                                        : fmt::format("the limit of {} ranks", kTraceRanksMax)));
          continue;
        }
        endpoint.rank = stated.rank;
        known_ranks_max_ = std::max(known_ranks_max_, stated.rank + 1);
      }
    }
  }

  void FindGlobalRanks() {
    uint32_t size_max = 0;
    for (const Group& group : placement_.communicators) size_max = std::max(size_max, group.size);
    const auto endpoints = static_cast<uint32_t>(placement_.endpoints.size());
    if (endpoints == 0) return;
    const bool has_job_communicator = endpoints <= size_max;
    placement_.rank_count = std::max({size_max, known_ranks_max_, endpoints});
    if (has_job_communicator && placement_.rank_count == size_max) {
      for (uint32_t g = 0; g < placement_.communicators.size(); ++g) {
        if (placement_.communicators[g].size == size_max && !crowded_[g]) TakeRanksOfJob(g);
      }
    }
    const auto unplaced = static_cast<uint32_t>(
        std::count_if(placement_.endpoints.begin(), placement_.endpoints.end(),
                      [](const Endpoint& endpoint) { return !endpoint.rank; }));
    if (unplaced == endpoints && AllLargestAreComplete(size_max)) {
      AssumeRankOrder(has_job_communicator);
    } else if (unplaced == 1 && endpoints == placement_.rank_count) {
      TakeLastRank();
    }
  }

  // The ranks of the largest communicator. A second one of its size may only fill gaps, since its
  // ranks may be in another order.
  void TakeRanksOfJob(uint32_t index) {
    std::set<uint32_t> taken;
    for (const Endpoint& endpoint : placement_.endpoints) {
      if (endpoint.rank) taken.insert(*endpoint.rank);
    }
    for (const uint32_t handle : placement_.communicators[index].handles) {
      if (!rank_of_[handle]) continue;
      Endpoint& endpoint = EndpointOf(handle);
      if (!endpoint.rank && taken.insert(*rank_of_[handle]).second) {
        endpoint.rank = rank_of_[handle];
      } else if (endpoint.rank && *endpoint.rank != *rank_of_[handle] && !job_found_) {
        diagnostics_.Error(PlaceOf(endpoint), "rank_map",
                           fmt::format("{} is given as rank {}, the log's Init lines say rank {} "
                                       "(leave it out of rank_map)",
                                       Describe(endpoint), *endpoint.rank, *rank_of_[handle]));
      }
    }
    job_found_ = true;
  }

  bool AllLargestAreComplete(uint32_t size_max) const {
    size_t members = 0;
    for (uint32_t g = 0; g < placement_.communicators.size(); ++g) {
      const Group& group = placement_.communicators[g];
      if (group.size != size_max || group.handles.empty()) continue;
      if (crowded_[g] || group.handles.size() != group.size) return false;
      members += group.handles.size();
    }
    return members >= placement_.endpoints.size();
  }

  void AssumeRankOrder(bool has_job_communicator) {
    std::vector<Endpoint*> order;
    for (Endpoint& endpoint : placement_.endpoints) order.push_back(&endpoint);
    std::stable_sort(order.begin(), order.end(), [&](const Endpoint* a, const Endpoint* b) {
      const LogProcess& x = logged_.processes[a->process];
      const LogProcess& y = logged_.processes[b->process];
      if (x.host != y.host) return NaturalLess(x.host, y.host);
      return std::tuple(a->device, x.pid) < std::tuple(b->device, y.pid);
    });
    for (uint32_t rank = 0; rank < order.size(); ++rank) order[rank]->rank = rank;
    Assume(fmt::format(
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
    Assume(fmt::format("{} is rank {}, the only one left", Describe(*last), *last->rank));
  }

  // ---- Ranks within communicators. ----

  // Equal-sized communicators without names (NCCL up to 2.14 prints no commId): told apart where
  // exactly one regular layout of the ranks agrees with the ranks they print.
  void SplitCrowdedGroups() {
    const auto groups = static_cast<uint32_t>(placement_.communicators.size());
    for (uint32_t g = 0; g < groups; ++g) {
      if (!crowded_[g]) continue;
      const std::vector<uint32_t> strides = StridesOf(placement_.communicators[g]);
      if (strides.size() != 1) continue;
      const uint32_t size = placement_.communicators[g].size;
      const uint32_t stride = strides.front();
      std::map<std::pair<uint32_t, uint32_t>, uint32_t> group_of_tile;
      for (const uint32_t h : std::exchange(placement_.communicators[g].handles, {})) {
        const uint32_t rank = *EndpointOf(h).rank;
        const auto [entry, is_new] =
            group_of_tile.try_emplace({rank / (size * stride), rank % stride}, 0);
        if (is_new) entry->second = NewGroup(size, "");
        Put(h, entry->second);
      }
      crowded_[g] = false;
      Assume(
          fmt::format("the unnamed communicators of {} ranks are {}, {} ranks apart: the only "
                      "regular layout that agrees with the ranks they print",
                      size, group_of_tile.size(), stride));
    }
  }

  // Distances between the members' global ranks that agree with all ranks the group prints, if it
  // is one of several that tile the job. All must be known.
  std::vector<uint32_t> StridesOf(const Group& group) {
    std::vector<uint32_t> strides;
    if (group.size == 0 || placement_.rank_count % group.size != 0) return strides;
    const auto agrees = [&](uint32_t stride) {
      return std::all_of(group.handles.begin(), group.handles.end(), [&](uint32_t h) {
        return EndpointOf(h).rank && rank_of_[h] &&
               (*EndpointOf(h).rank / stride) % group.size == *rank_of_[h];
      });
    };
    const uint32_t tiles = placement_.rank_count / group.size;
    // With one rank each, any stride says the same.
    const uint32_t stride_max = group.size == 1 ? 1 : tiles;
    for (uint32_t divisor = 1; divisor <= tiles / divisor && divisor <= stride_max; ++divisor) {
      if (tiles % divisor != 0) continue;
      if (agrees(divisor)) strides.push_back(divisor);
      const uint32_t other = tiles / divisor;
      if (other != divisor && other <= stride_max && agrees(other)) strides.push_back(other);
    }
    return strides;
  }

  void FindCommunicatorRanks() {
    for (uint32_t g = 0; g < placement_.communicators.size(); ++g) {
      Group& group = placement_.communicators[g];
      if (crowded_[g]) {
        for (const uint32_t h : group.handles) {
          Unplace(h, CallDropReason::kAmbiguousCommunicator,
                  fmt::format("several communicators of {} ranks, no line tells them apart",
                              group.size));
        }
        continue;
      }
      CompleteRanks(group);
      for (const uint32_t h : group.handles) PlaceHandle(h, group);
    }
  }

  void Unplace(uint32_t handle, CallDropReason reason, std::string detail) {
    placement_.unplaced[handle] = {.reason = reason, .detail = std::move(detail)};
  }

  // Where no line states communicator ranks: in the job's communicator they are the global ranks,
  // in a complete one they follow the order of the global ranks.
  void CompleteRanks(const Group& group) {
    std::vector<uint32_t> without;
    bool all_global = true;
    for (const uint32_t h : group.handles) {
      if (!rank_of_[h]) without.push_back(h);
      all_global = all_global && EndpointOf(h).rank;
    }
    if (without.empty()) return;
    if (group.size == placement_.rank_count) {
      for (const uint32_t h : without) rank_of_[h] = EndpointOf(h).rank;
      Assume(fmt::format("ranks in {} are the global ranks", group.name));
    } else if (all_global && without.size() == group.size) {
      std::sort(without.begin(), without.end(),
                [&](uint32_t a, uint32_t b) { return *EndpointOf(a).rank < *EndpointOf(b).rank; });
      for (uint32_t r = 0; r < without.size(); ++r) rank_of_[without[r]] = r;
      Assume(fmt::format("ranks in {} follow the order of the global ranks", group.name));
    }
  }

  void PlaceHandle(uint32_t handle, Group& group) {
    const Endpoint& endpoint = EndpointOf(handle);
    if (!endpoint.rank) {
      Unplace(handle, CallDropReason::kUnknownRank,
              fmt::format("{}: no Init line, rank_map or globalrank gives its rank",
                          Describe(endpoint)));
    } else if (!rank_of_[handle]) {
      Unplace(handle, CallDropReason::kUnknownRank,
              fmt::format("{}: no line gives its rank in the communicator of {} ranks",
                          Describe(endpoint), group.size));
    } else if (!group.handle_of_rank.try_emplace(*rank_of_[handle], handle).second) {
      const Endpoint& other = EndpointOf(group.handle_of_rank[*rank_of_[handle]]);
      diagnostics_.Error(
          PlaceOf(endpoint), "",
          fmt::format("{} and {} are both rank {} of communicator {} (one process "
                      "per rank; logs of one job only)",
                      Describe(other), Describe(endpoint), *rank_of_[handle], group.name));
      Unplace(handle, CallDropReason::kAmbiguousCommunicator, "two processes with the same rank");
    } else {
      placement_.communicator_rank_of[handle] = rank_of_[handle];
    }
  }

  // ---- Families and missing members. ----

  void FindFamilies() {
    std::map<std::tuple<int64_t, uint64_t, uint32_t>, uint32_t> family_of;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> number_of;  // endpoint, size
    for (uint32_t g = 0; g < placement_.communicators.size(); ++g) {
      Group& group = placement_.communicators[g];
      if (group.handle_of_rank.empty()) continue;
      uint32_t number = 0;
      for (const auto& [rank, h] : group.handle_of_rank) {
        number = std::max(number, number_of[{placement_.endpoint_of[h], group.size}]++);
      }
      std::tuple<int64_t, uint64_t, uint32_t> key(-1, number, group.size);
      const CommunicatorHandle& first = Handle(group.handle_of_rank.begin()->second);
      if (first.parent && placement_.communicator_of[*first.parent]) {
        key = {*placement_.communicator_of[*first.parent], first.split_number, group.size};
      }
      const auto [entry, is_new] =
          family_of.try_emplace(key, static_cast<uint32_t>(placement_.families.size()));
      if (is_new) {
        placement_.families.push_back({.size = group.size, .stride = {}, .communicators = {}});
      }
      group.family = entry->second;
      placement_.families[entry->second].communicators.push_back(g);
    }
    for (CommunicatorFamily& family : placement_.families) FindStride(family);
  }

  void FindStride(CommunicatorFamily& family) {
    std::optional<std::vector<uint32_t>> common;
    for (const uint32_t g : family.communicators) {
      Group placed = placement_.communicators[g];
      std::erase_if(placed.handles,
                    [&](uint32_t h) { return !placement_.communicator_rank_of[h]; });
      std::vector<uint32_t> strides = StridesOf(placed);
      std::erase_if(strides, [&](uint32_t stride) { return !IsOneTile(placed, stride); });
      if (!common) {
        common = strides;
      } else {
        std::erase_if(*common, [&](uint32_t stride) {
          return std::find(strides.begin(), strides.end(), stride) == strides.end();
        });
      }
    }
    if (common && common->size() == 1) family.stride = common->front();
  }

  bool IsOneTile(const Group& group, uint32_t stride) {
    std::set<std::pair<uint32_t, uint32_t>> tiles;
    for (const uint32_t h : group.handles) {
      const uint32_t rank = *EndpointOf(h).rank;
      tiles.insert({rank / (group.size * stride), rank % stride});
    }
    return tiles.size() <= 1;
  }

  void FindMembers() {
    uint64_t members = 0;
    for (Group& group : placement_.communicators) {
      if (group.handle_of_rank.empty()) continue;
      const bool complete = group.handle_of_rank.size() == group.size;
      members += group.size;
      if (members > kTraceMembersMax) {
        diagnostics_.Error({.file = report_.files.front().path}, "",
                           fmt::format("the communicators have more than {} ranks in all (import a "
                                       "part of the log)",
                                       kTraceMembersMax));
        return;
      }
      if (complete) {
        for (const auto& [rank, h] : group.handle_of_rank) {
          group.ranks.push_back(*EndpointOf(h).rank);
        }
      } else if (group.size == placement_.rank_count) {
        FillJob(group);
      } else if (const auto stride = placement_.families[group.family].stride) {
        FillByStride(group, *stride);
      }
    }
  }

  // The job's communicator: the ranks the log lacks, in order, in the places it lacks.
  void FillJob(Group& group) {
    std::vector<bool> taken(group.size, false);
    for (const auto& [rank, h] : group.handle_of_rank) taken[*EndpointOf(h).rank] = true;
    // In place first: with ranks equal to global ranks, as is usual, nothing is left to order.
    group.ranks.assign(group.size, UINT32_MAX);
    for (const auto& [rank, h] : group.handle_of_rank) group.ranks[rank] = *EndpointOf(h).rank;
    for (uint32_t r = 0; r < group.size; ++r) {
      if (group.ranks[r] == UINT32_MAX && !taken[r]) {
        group.ranks[r] = r;
        taken[r] = true;
      }
    }
    uint32_t next = 0;
    for (uint32_t& rank : group.ranks) {
      if (rank != UINT32_MAX) continue;
      while (taken[next]) ++next;
      rank = next++;
    }
  }

  void FillByStride(Group& group, uint32_t stride) {
    const uint32_t known = *EndpointOf(group.handle_of_rank.begin()->second).rank;
    const uint32_t first = known / (group.size * stride) * (group.size * stride) + known % stride;
    for (const auto& [rank, h] : group.handle_of_rank) {
      if (*EndpointOf(h).rank != first + rank * stride) return;  // not a tile: members unknown
    }
    for (uint32_t r = 0; r < group.size; ++r) group.ranks.push_back(first + r * stride);
    Assume(
        fmt::format("{} is ranks {} to {}, every {}: the only regular layout that agrees with "
                    "the ranks the log holds",
                    group.name, first, group.ranks.back(), stride));
  }

  const LoggedCalls& logged_;
  const NcclLogOptions& options_;
  ImportReport& report_;
  Diagnostics& diagnostics_;
  Placement placement_;
  std::vector<std::optional<uint32_t>> rank_of_;  // in the communicator, by handle
  std::map<uint32_t, std::vector<uint32_t>> groups_of_size_;
  std::vector<bool> crowded_;  // by group: holds handles of more than one communicator
  uint32_t known_ranks_max_ = 0;
  bool job_found_ = false;
};

}  // namespace

Placement PlaceRanks(const LoggedCalls& logged, const NcclLogOptions& options, ImportReport& report,
                     Diagnostics& diagnostics) {
  return Placer(logged, options, report, diagnostics).Run();
}

}  // namespace railyard
