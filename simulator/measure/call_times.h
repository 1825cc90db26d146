// SPDX-License-Identifier: GPL-2.0-only
// Measures by simulation how long a plan's calls take on a fabric. Each collective runs alone in
// its group, together with the equal calls of other groups of the same servers, at sizes that are
// powers of two. Other sizes are interpolated; sizes above kMeasuredBytesMax are extrapolated at
// the rate between the largest two.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "railyard/scenario_builder.h"
#include "topologies/graph/fabric_graph.h"
#include "traces/trace/trace.h"
#include "workloads/plans/rank_timeline.h"

namespace railyard {

inline constexpr uint64_t kMeasuredBytesMax = uint64_t{32} << 20;

struct MeasuredCall {
  std::string group;  // "tensor"
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint32_t ranks = 0;
  uint64_t bytes = 0;  // as PlannedCall
  int64_t time_ps = 0;
};

class CallTimes {
 public:
  // Measures the calls of `trace`, which must outlive this, in `scenario`, which has everything but
  // a job. Throws EnvironmentError if no process can be started; error() describes a run that
  // failed.
  CallTimes(const Trace& trace, const FabricGraph& fabric, const ScenarioBuilder& scenario);

  // Returns the scenario of `path`, edited by `sets`, without its job and its faults.
  static ScenarioBuilder WithoutJob(const std::string& path, std::vector<std::string> sets);

  // Returns the error of the first run that failed; empty if none did.
  const std::string& error() const { return error_; }
  // Returns the time of a call in ps. Preconditions: there is no error, and the call is one of the
  // trace.
  int64_t TimePs(const PlannedCall& call) const;
  // Returns a rank of each program for each combination of groups that are not alike in which it
  // runs: these take different times.
  const std::vector<GlobalRank>& ranks() const { return ranks_; }
  // Returns the measured calls by group and kind, then size.
  std::vector<MeasuredCall> Measured() const;

 private:
  // Groups with equal names and sizes whose ranks are spread alike over servers are treated as
  // equal.
  struct GroupShape {
    std::string name;
    size_t size = 0;
    std::vector<uint32_t> ranks_per_server;  // ascending
    uint32_t first = 0;                      // communicator
  };
  using Key = std::pair<uint32_t, CollectiveKind>;  // which shape
  Key KeyOf(const PlannedCall& call) const { return {shape_of_[call.communicator], call.kind}; }
  Trace TraceOf(const Key& key, uint64_t bytes, const FabricGraph& fabric) const;

  // Fills ranks_.
  void FindRanks();

  const Trace& trace_;
  std::string error_;
  std::vector<GlobalRank> ranks_;
  std::vector<GroupShape> shapes_;
  std::vector<uint32_t> shape_of_;                       // by communicator
  std::map<Key, std::map<uint64_t, int64_t>> times_ps_;  // by bytes
};

}  // namespace railyard
