// SPDX-License-Identifier: GPL-2.0-only
// How long a plan's calls take on a fabric, measured: a collective alone on its group, beside its
// like on other groups of the same servers, at sizes that are powers of two; between them in
// proportion. Larger than kMeasuredBytesMax is taken to be as fast, byte for byte, as the largest
// two.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "traces/trace/trace.h"
#include "workloads/plans/rank_timeline.h"

namespace railyard {

inline constexpr uint64_t kMeasuredBytesMax = uint64_t{32} << 20;

// A scenario whose workload is replaced by what is measured; everything else of it holds, but
// faults.
struct MeasuredScenario {
  std::string file;
  std::vector<std::string> sets;
};

struct MeasuredCall {
  std::string group;  // "tensor"
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint32_t ranks = 0;
  uint64_t bytes = 0;  // as PlannedCall
  int64_t time_ps = 0;
};

class CallTimes {
 public:
  // Measures whatever `trace` calls. EnvironmentError if a run cannot be made; `error` says what
  // became of one that failed.
  CallTimes(const Trace& trace, const FabricGraph& fabric, const MeasuredScenario& scenario);

  const std::string& error() const { return error_; }
  // Preconditions: no error; a call of the trace.
  int64_t TimePs(const PlannedCall& call) const;
  // By group and kind, then size.
  std::vector<MeasuredCall> Measured() const;

 private:
  // Groups of one name and size are alike.
  struct GroupShape {
    std::string name;
    size_t size = 0;
    uint32_t first = 0;  // communicator
  };
  using Key = std::pair<uint32_t, CollectiveKind>;  // which shape
  Key KeyOf(const PlannedCall& call) const { return {shape_of_[call.communicator], call.kind}; }
  Trace TraceOf(const Key& key, uint64_t bytes, const FabricGraph& fabric) const;

  const Trace& trace_;
  std::string error_;
  std::vector<GroupShape> shapes_;
  std::vector<uint32_t> shape_of_;                       // by communicator
  std::map<Key, std::map<uint64_t, int64_t>> times_ps_;  // by bytes
};

}  // namespace railyard
