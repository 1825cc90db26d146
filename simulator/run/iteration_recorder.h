// SPDX-License-Identifier: GPL-2.0-only
// Computes the traffic matrix of each iteration, and its distance from that of the previous
// iteration, from the schedules of the collectives that ended, so that replayed iterations count
// like simulated ones.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/result/run_result.h"
#include "simulator/replay/engine/replay_engine.h"
#include "simulator/scenario/schema/scenario.h"
#include "workloads/collectives/replayable.h"
#include "workloads/collectives/schedule_pairs.h"
#include "workloads/job/job.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {

class IterationRecorder {
 public:
  // The largest number of rows of `iteration_pairs` in a result.
  static constexpr size_t kRowsMax = 200'000;

  // All must outlive this. `result` must have its collectives, jobs and pairs already.
  IterationRecorder(const Scenario& scenario, const Job& job, const ReplayEngine& replay,
                    RunResult& result);
  // Fills the result's `traffic` and, if not all matrices are kept, adds to its `notes`.
  void Record();

 private:
  // Holds the bytes of a kind of collective, and of a layer, from one rank to another.
  struct Cell {
    std::string_view kind;
    uint32_t layer = IterationPairResult::kNoLayer;
    GlobalRank source{};
    GlobalRank destination{};
    uint64_t bytes = 0;
    auto Place() const { return std::tie(kind, layer, source, destination); }
  };
  using Matrix = std::vector<Cell>;  // ascending by place, without duplicates
  struct Call {
    GlobalRank rank{};
    uint32_t operation = 0;
  };
  struct Iteration {
    std::vector<CollectiveIndex> collectives;
    std::vector<Call> p2p_calls;
  };
  // Holds the bytes that a rank of an AllToAll sends to and receives from others.
  struct Load {
    uint64_t sent = 0;
    uint64_t received = 0;
  };
  // Identifies a schedule: collectives of one communicator with equal keys have the same schedule.
  using Key =
      std::tuple<CommunicatorIndex, CollectiveKind, uint64_t, Datatype, RankIndex, ReplayChoice>;

  // Counts the collectives of an iteration.
  struct Counts {
    struct Entry {
      uint32_t example = 0;  // one of these collectives
      uint64_t count = 0;
    };
    bool has_p2p = false;  // it has sends and receives, which are not in `of_key`
    std::map<Key, Entry> of_key;
  };

  void RecordPart(PartIndex part);
  void FindLayers(PartIndex part);
  std::vector<Iteration> IterationsOf(PartIndex part) const;
  bool HasEnded(const Iteration& iteration) const;
  Counts CountsOf(const Iteration& iteration) const;
  // Returns false if either has sends and receives.
  static bool HaveEqualCounts(const Counts& counts, const Counts& others);
  Matrix MatrixOf(const Iteration& iteration, const Counts& counts);
  void AddCollectives(const Counts& counts, Matrix& matrix);
  void AddP2pCalls(const Iteration& iteration, Matrix& matrix) const;
  const RankPairBytes& ScheduleOf(const Key& key, const JobCollective& collective);
  std::optional<double> ImbalanceOf(const Iteration& iteration) const;
  static void Merge(Matrix& matrix);
  // These reduce a matrix to the cells that are compared for drift: pairs only, or the AllToAlls by
  // layer.
  static Matrix PairsOf(const Matrix& matrix);
  static Matrix AllToAllsOf(const Matrix& matrix);
  static std::optional<double> Distance(const Matrix& before, const Matrix& after);

  const Scenario& scenario_;
  const Job& job_;
  const ReplayEngine& replay_;
  RunResult& result_;
  std::vector<uint32_t> layer_of_;  // by collective
  std::map<Key, RankPairBytes> schedules_;
};

}  // namespace railyard
