// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/call_times.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "simulator/measure/timed_run.h"

namespace railyard {
namespace {

// Powers of two around a size.
std::pair<uint64_t, uint64_t> Around(uint64_t bytes) {
  if (bytes > kMeasuredBytesMax) return {kMeasuredBytesMax / 2, kMeasuredBytesMax};
  return {std::bit_floor(bytes), std::bit_ceil(bytes)};
}

std::vector<uint32_t> RanksPerServer(const TraceCommunicator& communicator,
                                     const FabricGraph& fabric) {
  std::map<ServerIndex, uint32_t> ranks_of;
  for (const GlobalRank rank : communicator.ranks) {
    ++ranks_of[fabric.device(fabric.gpus()[rank]).server];
  }
  std::vector<uint32_t> counts;
  for (const auto& [server, count] : ranks_of) counts.push_back(count);
  std::ranges::sort(counts);
  return counts;
}

// Returns equal communicators on the servers of the first that share no rank.
std::vector<uint32_t> GroupsBeside(const Trace& trace, uint32_t first, const FabricGraph& fabric) {
  const auto server_of = [&](GlobalRank rank) { return fabric.device(fabric.gpus()[rank]).server; };
  std::set<ServerIndex> servers;
  for (const GlobalRank rank : trace.communicators[first].ranks) servers.insert(server_of(rank));
  std::vector<bool> is_used(trace.rank_count);
  std::vector<uint32_t> groups;
  for (uint32_t i = first; i < trace.communicators.size(); ++i) {
    const TraceCommunicator& communicator = trace.communicators[i];
    if (GroupNameOf(communicator) != GroupNameOf(trace.communicators[first]) ||
        communicator.ranks.size() != trace.communicators[first].ranks.size() ||
        !std::all_of(communicator.ranks.begin(), communicator.ranks.end(), [&](GlobalRank rank) {
          return !is_used[rank] && servers.contains(server_of(rank));
        })) {
      continue;
    }
    for (const GlobalRank rank : communicator.ranks) is_used[rank] = true;
    groups.push_back(i);
  }
  return groups;
}

}  // namespace

CallTimes::CallTimes(const Trace& trace, const FabricGraph& fabric, const ScenarioBuilder& scenario)
    : trace_(trace) {
  for (uint32_t i = 0; i < trace.communicators.size(); ++i) {
    const std::string name = GroupNameOf(trace.communicators[i]);
    const size_t size = trace.communicators[i].ranks.size();
    std::vector<uint32_t> ranks_per_server = RanksPerServer(trace.communicators[i], fabric);
    const auto alike = std::find_if(shapes_.begin(), shapes_.end(), [&](const GroupShape& shape) {
      return shape.name == name && shape.size == size && shape.ranks_per_server == ranks_per_server;
    });
    shape_of_.push_back(static_cast<uint32_t>(alike - shapes_.begin()));
    if (alike == shapes_.end()) shapes_.push_back({name, size, std::move(ranks_per_server), i});
  }
  FindRanks();
  for (const GlobalRank rank : ranks_) {
    ForEachCall(trace, rank, [&](const PlannedCall& call) {
      const auto [below, above] = Around(call.bytes);
      auto& times = times_ps_[KeyOf(call)];
      times.try_emplace(below, 0);
      times.try_emplace(above, 0);
    });
  }
  std::vector<ScenarioMaker> makers;
  std::vector<int64_t*> results;
  for (auto& [key, times] : times_ps_) {
    for (auto& [bytes, time_ps] : times) {
      makers.emplace_back(
          [this, key = key, bytes = bytes, &fabric, &scenario](Diagnostics& findings) {
            ScenarioBuilder one = scenario;
            one.Calls(std::make_shared<const Trace>(TraceOf(key, bytes, fabric)));
            return one.Build(findings);
          });
      results.push_back(&time_ps);
    }
  }
  const auto runs = RunTimed(makers, [&](size_t index, const TimedRun& run) {
    *results[index] = run.time_ps;
    if (!run.error.empty() && error_.empty()) error_ = run.error;
  });
  for (const TimedRun& run : runs) {
    if (run.end == TimedEnd::kEnvironmentFailed) throw EnvironmentError(run.error);
  }
}

void CallTimes::FindRanks() {
  for (const std::vector<GlobalRank>& ranks : trace_.operations.RanksOfPrograms()) {
    if (ranks.empty()) continue;
    std::set<uint32_t> numbers;  // by which the program names its groups
    for (const TraceOperation& operation : trace_.operations[ranks.front()]) {
      if (operation.kind != CollectiveKind::kCompute) numbers.insert(operation.communicator);
    }
    std::set<std::vector<uint32_t>> seen;
    for (const GlobalRank rank : ranks) {
      std::vector<uint32_t> shapes;
      for (const uint32_t number : numbers) {
        shapes.push_back(shape_of_[trace_.CommunicatorOf(rank, number)]);
      }
      if (seen.insert(std::move(shapes)).second) ranks_.push_back(rank);
    }
  }
}

ScenarioBuilder CallTimes::WithoutJob(const std::string& path, std::vector<std::string> sets) {
  for (const char* const field :
       {"workload.plan=", "workload.inline_plan=", "workload.rank_skew_max=",
        "workload.operations_max=", "faults=[]", "fault_domains=[]", "restart="}) {
    sets.emplace_back(field);
  }
  return ScenarioBuilder::Read(path, sets);
}

int64_t CallTimes::TimePs(const PlannedCall& call) const {
  const std::map<uint64_t, int64_t>& times = times_ps_.at(KeyOf(call));
  const auto [below, above] = Around(call.bytes);
  const int64_t below_ps = times.at(below);
  if (below == above) return below_ps;
  const double share = (static_cast<double>(call.bytes) - static_cast<double>(below)) /
                       static_cast<double>(above - below);
  return below_ps + std::llround(share * static_cast<double>(times.at(above) - below_ps));
}

std::vector<MeasuredCall> CallTimes::Measured() const {
  std::vector<MeasuredCall> measured;
  for (const auto& [key, times] : times_ps_) {
    const GroupShape& shape = shapes_[key.first];
    for (const auto& [bytes, time_ps] : times) {
      measured.push_back({.group = shape.name,
                          .kind = key.second,
                          .ranks = static_cast<uint32_t>(shape.size),
                          .bytes = bytes,
                          .time_ps = time_ps});
    }
  }
  return measured;
}

Trace CallTimes::TraceOf(const Key& key, uint64_t bytes, const FabricGraph& fabric) const {
  const CollectiveKind kind = key.second;
  Trace trace;
  trace.origin = "plan";
  trace.rank_count = trace_.rank_count;
  trace.operations.resize(trace.rank_count);
  for (const uint32_t i : GroupsBeside(trace_, shapes_[key.first].first, fabric)) {
    const auto communicator = static_cast<uint32_t>(trace.communicators.size());
    trace.communicators.push_back(trace_.communicators[i]);
    const std::vector<GlobalRank>& ranks = trace_.communicators[i].ranks;
    for (uint32_t place = 0; place < ranks.size(); ++place) {
      const auto add = [&](CollectiveKind of_kind, uint32_t peer, uint32_t in_group) {
        trace.operations[ranks[place]].push_back({.kind = of_kind,
                                                  .communicator = communicator,
                                                  .count = bytes,
                                                  .datatype = Datatype::kInt8,
                                                  .peer = peer,
                                                  .group = in_group});
      };
      if (kind == CollectiveKind::kSend) {
        if (place < 2) add(place == 0 ? kind : CollectiveKind::kRecv, 1 - place, 0);
      } else if (kind == CollectiveKind::kAllToAll) {
        for (uint32_t peer = 0; peer < ranks.size(); ++peer) {
          add(CollectiveKind::kSend, peer, 1);
          add(CollectiveKind::kRecv, peer, 1);
        }
      } else {
        add(kind, 0, 0);
      }
    }
  }
  return trace;
}

}  // namespace railyard
