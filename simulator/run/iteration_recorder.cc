// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/iteration_recorder.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/units/units.h"
#include "workloads/job/job_iterations.h"
#include "workloads/plans/synthesis/exchange_layers.h"

namespace railyard {
namespace {

bool IsAllToAll(const JobCollective& collective) {
  return collective.kind == CollectiveKind::kAllToAll || collective.is_all_to_all_v;
}

// The rows of a part's iterations. When they become too many, every other iteration of those kept
// so far goes.
class KeptRows {
 public:
  explicit KeptRows(size_t rows_max) : rows_max_(rows_max) {}

  uint64_t every() const { return every_; }  // 0: none is kept
  bool Takes(uint64_t iteration) const { return every_ > 0 && (iteration - 1) % every_ == 0; }
  void Add(const IterationPairResult& row) {
    rows_.push_back(row);
    while (rows_.size() > rows_max_) Thin();
  }
  std::vector<IterationPairResult>& rows() { return rows_; }

 private:
  void Thin() {
    every_ = rows_.front().iteration == rows_.back().iteration && every_ >= rows_.back().iteration
                 ? 0
                 : every_ * 2;
    std::erase_if(rows_, [&](const auto& row) { return !Takes(row.iteration); });
  }

  const size_t rows_max_;
  uint64_t every_ = 1;
  std::vector<IterationPairResult> rows_;
};

}  // namespace

IterationRecorder::IterationRecorder(const Scenario& scenario, const Job& job,
                                     const ReplayEngine& replay, RunResult& result)
    : scenario_(scenario),
      job_(job),
      replay_(replay),
      result_(result),
      layer_of_(job.collectives.size(), IterationPairResult::kNoLayer) {}

void IterationRecorder::Record() {
  for (PartIndex part{}; part < job_.parts.size(); ++part) RecordPart(part);
}

void IterationRecorder::RecordPart(PartIndex part) {
  FindLayers(part);
  const std::vector<Iteration> iterations = IterationsOf(part);
  // One iteration alone has nothing to be compared with, and its matrix would not be kept.
  const bool is_skipped =
      iterations.size() == 1 && job_.parts.size() == 1 && result_.pairs.size() > kRowsMax;
  KeptRows kept(kRowsMax / job_.parts.size());
  Counts counts;
  Matrix matrix;
  Matrix pairs;
  Matrix all_to_alls;
  uint64_t number = 0;
  for (const Iteration& iteration : iterations) {
    ++number;
    if (!HasEnded(iteration)) break;
    // An iteration with the same collectives as the one before has the same matrices.
    const Counts counts_before = std::exchange(counts, CountsOf(iteration));
    const bool is_repeated = number > 1 && HaveEqualCounts(counts, counts_before);
    Matrix pairs_before;
    Matrix all_to_alls_before;
    if (!is_repeated) {
      matrix = is_skipped ? Matrix() : MatrixOf(iteration, counts);
      pairs_before = std::exchange(pairs, PairsOf(matrix));
      all_to_alls_before = std::exchange(all_to_alls, AllToAllsOf(matrix));
    }
    for (const Cell& cell : matrix) {
      if (!kept.Takes(number)) break;
      kept.Add({.job = part,
                .iteration = number,
                .kind = std::string(cell.kind),
                .layer = cell.layer,
                .source_gpu = cell.source,
                .destination_gpu = cell.destination,
                .payload_bytes = cell.bytes});
    }
    IterationResult row{.job = part, .iteration = number};
    if (number > 1) {
      row.drift = Distance(is_repeated ? pairs : pairs_before, pairs).value_or(0);
      row.all_to_all_drift = Distance(is_repeated ? all_to_alls : all_to_alls_before, all_to_alls);
    }
    row.all_to_all_imbalance = ImbalanceOf(iteration);
    result_.traffic.iterations.push_back(row);
  }
  if (is_skipped || kept.every() != 1) {
    const std::string which =
        is_skipped || kept.every() == 0
            ? "no iteration"
            : fmt::format("one iteration in {}, from the first on,", kept.every());
    result_.notes.push_back(
        fmt::format("iteration_pairs has {} of job {}: all would have more than {} rows", which,
                    job_.parts[part].name, kRowsMax / job_.parts.size()));
  }
  auto& all = result_.traffic.iteration_pairs;
  std::move(kept.rows().begin(), kept.rows().end(), std::back_inserter(all));
}

void IterationRecorder::FindLayers(PartIndex part) {
  if (!scenario_.plan || job_.parts.size() > 1) return;
  const ExchangeLayers layers(*scenario_.plan);
  if (!layers.is_known()) return;
  const std::vector<GlobalRank>& global_ranks = job_.parts[part].global_ranks;
  for (GlobalRank of_plan{0}; of_plan < global_ranks.size(); ++of_plan) {
    const GlobalRank rank = global_ranks[of_plan];  // another one where a spare has taken over
    std::vector<uint32_t> exchanges;
    for (const JobOperation& call : job_.operations[rank]) {
      if (call.p2p_count == 0) continue;
      const CollectiveIndex collective = job_.CollectiveOf(rank, call);
      if (job_.collectives[collective].is_all_to_all_v) exchanges.push_back(collective);
    }
    const ExchangeLayers::OfRank of_rank = layers.Of(of_plan);
    // A rank that has nothing to do with some AllToAllv leaves it to the others to say.
    if (exchanges.size() != of_rank.count) continue;
    for (size_t i = 0; i < exchanges.size(); ++i) {
      layer_of_[exchanges[i]] = of_rank.layers[i % of_rank.layers.size()];
    }
  }
}

std::vector<IterationRecorder::Iteration> IterationRecorder::IterationsOf(PartIndex part) const {
  const IterationBegins begins = FindIterations(job_, part);
  std::vector<Iteration> iterations(begins.count == UINT64_MAX ? 1 : begins.count);
  std::vector<bool> is_listed(job_.collectives.size());
  for (const GlobalRank rank : job_.parts[part].global_ranks) {
    const auto& of_rank = begins.of_program[job_.operations.program_of_rank(rank)];
    size_t next = 1;
    uint32_t index = 0;
    for (const JobOperation& call : job_.operations[rank]) {
      while (next < of_rank.size() && next < iterations.size() && of_rank[next] <= index) ++next;
      const uint32_t own = index++;
      if (call.is_compute()) continue;
      Iteration& iteration = iterations[next - 1];
      if (call.p2p_count > 0) iteration.p2p_calls.push_back({rank, own});
      const CollectiveIndex collective = job_.CollectiveOf(rank, call);
      if (is_listed[collective]) continue;
      is_listed[collective] = true;
      iteration.collectives.push_back(collective);
    }
  }
  return iterations;
}

bool IterationRecorder::HasEnded(const Iteration& iteration) const {
  return std::ranges::all_of(iteration.collectives, [&](CollectiveIndex collective) {
    return replay_.ledger().times()[collective].last_end_ps != kNeverPs;
  });
}

IterationRecorder::Matrix IterationRecorder::MatrixOf(const Iteration& iteration,
                                                      const Counts& counts) {
  Matrix matrix;
  AddCollectives(counts, matrix);
  AddP2pCalls(iteration, matrix);
  Merge(matrix);
  return matrix;
}

IterationRecorder::Counts IterationRecorder::CountsOf(const Iteration& iteration) const {
  Counts counts;
  counts.has_p2p = !iteration.p2p_calls.empty();
  for (const uint32_t number : iteration.collectives) {
    const JobCollective& c = job_.collectives[number];
    if (c.is_p2p()) continue;
    auto& [example, count] =
        counts.of_key[{c.communicator, c.kind, c.count, c.datatype, c.root, StatedChoice(c)}];
    example = number;
    ++count;
  }
  return counts;
}

bool IterationRecorder::HaveEqualCounts(const Counts& counts, const Counts& others) {
  if (counts.has_p2p || others.has_p2p) return false;
  return std::ranges::equal(counts.of_key, others.of_key, [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.count == b.second.count;
  });
}

void IterationRecorder::AddCollectives(const Counts& counts, Matrix& matrix) {
  for (const auto& [key, entry] : counts.of_key) {
    const auto& [example, count] = entry;
    const JobCollective& collective = job_.collectives[example];
    const std::vector<GlobalRank>& ranks = job_.communicators[collective.communicator].ranks;
    for (const auto& [pair, bytes] : ScheduleOf(key, collective)) {
      matrix.push_back({.kind = result_.collectives[example].kind,
                        .source = ranks[pair.first],
                        .destination = ranks[pair.second],
                        .bytes = count * bytes});
    }
  }
}

const RankPairBytes& IterationRecorder::ScheduleOf(const Key& key,
                                                   const JobCollective& collective) {
  const auto [schedule, is_new] = schedules_.try_emplace(key);
  if (!is_new) return schedule->second;
  const NcclPlanner& planner = replay_.plans().planner(collective.communicator);
  const auto choice = planner.Choose(collective, StatedChoice(collective));
  SIM_CHECK(choice.has_value(), "a collective that cannot be replayed");
  return schedule->second = PairBytesOf(*planner.Plan(collective, *choice));
}

void IterationRecorder::AddP2pCalls(const Iteration& iteration, Matrix& matrix) const {
  constexpr size_t kMergedAt = 1 << 20;
  size_t merge_at = kMergedAt;
  for (const Call& call : iteration.p2p_calls) {
    const JobOperation& operation = job_.operations[call.rank][call.operation];
    const CollectiveIndex number = job_.CollectiveOf(call.rank, operation);
    const JobCollective& collective = job_.collectives[number];
    const std::vector<GlobalRank>& ranks = job_.communicators[collective.communicator].ranks;
    for (uint32_t i = 0; i < operation.p2p_count; ++i) {
      const P2pCall& p2p = job_.p2p_calls[operation.p2p_first + i];
      if (!p2p.is_send || ranks[p2p.peer] == call.rank || p2p.bytes == 0) continue;
      matrix.push_back({.kind = result_.collectives[number].kind,
                        .layer = layer_of_[number],
                        .source = call.rank,
                        .destination = ranks[p2p.peer],
                        .bytes = p2p.bytes});
    }
    if (matrix.size() < merge_at) continue;
    Merge(matrix);
    merge_at = 2 * matrix.size() + kMergedAt;
  }
}

// The busiest rank's bytes over the mean rank's, summed over all AllToAlls.
std::optional<double> IterationRecorder::ImbalanceOf(const Iteration& iteration) const {
  std::unordered_map<CollectiveIndex, std::vector<Load>> loads;  // of a collective's ranks
  for (const Call& call : iteration.p2p_calls) {
    const JobOperation& operation = job_.operations[call.rank][call.operation];
    const CollectiveIndex number = job_.CollectiveOf(call.rank, operation);
    const JobCollective& collective = job_.collectives[number];
    if (!IsAllToAll(collective)) continue;
    std::vector<Load>& of_rank = loads[number];
    of_rank.resize(job_.communicators[collective.communicator].ranks.size());
    const RankIndex own = job_.CommunicatorRank(collective.communicator, call.rank);
    for (uint32_t i = 0; i < operation.p2p_count; ++i) {
      const P2pCall& p2p = job_.p2p_calls[operation.p2p_first + i];
      if (!p2p.is_send || p2p.peer == own) continue;
      of_rank[own].sent += p2p.bytes;
      of_rank[p2p.peer].received += p2p.bytes;
    }
  }
  double busiest = 0;
  double mean = 0;
  for (const auto& entry : loads) {
    uint64_t largest = 0;
    uint64_t sum = 0;
    for (const Load& load : entry.second) {
      largest = std::max({largest, load.sent, load.received});
      sum += load.sent;
    }
    busiest += static_cast<double>(largest);
    mean += static_cast<double>(sum) / static_cast<double>(entry.second.size());
  }
  if (mean == 0) return std::nullopt;
  return busiest / mean;
}

void IterationRecorder::Merge(Matrix& matrix) {
  std::ranges::sort(matrix, {}, &Cell::Place);
  size_t kept = 0;
  for (size_t i = 0; i < matrix.size(); ++i) {
    if (kept > 0 && matrix[kept - 1].Place() == matrix[i].Place()) {
      matrix[kept - 1].bytes += matrix[i].bytes;
    } else {
      matrix[kept++] = matrix[i];
    }
  }
  matrix.resize(kept);
}

IterationRecorder::Matrix IterationRecorder::PairsOf(const Matrix& matrix) {
  Matrix pairs = matrix;
  for (Cell& cell : pairs) {
    cell.kind = {};
    cell.layer = IterationPairResult::kNoLayer;
  }
  Merge(pairs);
  return pairs;
}

IterationRecorder::Matrix IterationRecorder::AllToAllsOf(const Matrix& matrix) {
  Matrix part;
  for (Cell cell : matrix) {
    if (!cell.kind.starts_with("AllToAll")) continue;
    cell.kind = {};
    part.push_back(cell);
  }
  Merge(part);
  return part;
}

std::optional<double> IterationRecorder::Distance(const Matrix& before, const Matrix& after) {
  const auto sum = [](const Matrix& matrix) {
    double bytes = 0;
    for (const Cell& cell : matrix) bytes += static_cast<double>(cell.bytes);
    return bytes;
  };
  const double sum_before = sum(before);
  const double sum_after = sum(after);
  if (sum_before == 0 && sum_after == 0) return std::nullopt;
  if (sum_before == 0 || sum_after == 0) return 1;
  double difference = 0;
  auto a = before.begin();
  auto b = after.begin();
  while (a != before.end() || b != after.end()) {
    const bool has_a = a != before.end() && (b == after.end() || a->Place() <= b->Place());
    const bool has_b = b != after.end() && (a == before.end() || b->Place() <= a->Place());
    const double share_a = has_a ? static_cast<double>(a++->bytes) / sum_before : 0;
    const double share_b = has_b ? static_cast<double>(b++->bytes) / sum_after : 0;
    difference += std::abs(share_a - share_b);
  }
  return difference / 2;
}

}  // namespace railyard
