// SPDX-License-Identifier: GPL-2.0-only
#include "traces/transform/trace_cut.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "traces/trace/trace_check.h"
#include "traces/transform/resized_call.h"

namespace railyard {
namespace {

constexpr uint32_t kGone = UINT32_MAX;

bool IsMessage(const TraceOperation& operation) {
  return operation.kind == CollectiveKind::kSend || operation.kind == CollectiveKind::kRecv;
}

class TraceCutter {
 public:
  TraceCutter(const Trace& trace, const TraceCut& cut, const std::string& file,
              Diagnostics& diagnostics)
      : trace_(trace), cut_(cut), file_(file), diagnostics_(diagnostics) {}

  std::optional<Trace> Run() {
    if (!NumberRanks() || !CutCommunicators()) return std::nullopt;
    result_.origin = trace_.origin;
    result_.nccl_version = trace_.nccl_version;
    result_.source_files = trace_.source_files;
    result_.operations.resize(result_.rank_count);
    FindIterations();
    for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) {
      if (new_rank_[rank] == GlobalRank::kNone) continue;
      if (!CutRank(rank)) return std::nullopt;
    }
    if (!has_calls_) {
      Error("", "no call is left (expected at least one)");
      return std::nullopt;
    }
    if (!CheckTrace(result_, file_, diagnostics_)) return std::nullopt;
    return std::move(result_);
  }

 private:
  void Error(const std::string& field, const std::string& what) {
    diagnostics_.Error({.file = file_}, field, what);
  }

  bool NumberRanks() {
    new_rank_.assign(trace_.rank_count, GlobalRank::kNone);
    if (cut_.ranks.empty()) {
      for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) new_rank_[rank] = rank;
      result_.rank_count = trace_.rank_count;
      return true;
    }
    for (const GlobalRank rank : cut_.ranks) {
      if (rank >= trace_.rank_count) {
        Error("ranks", fmt::format("rank {} does not exist (expected 0 to {})", rank,
                                   trace_.rank_count - 1));
        return false;
      }
      if (new_rank_[rank] == GlobalRank::kNone) new_rank_[rank] = GlobalRank{result_.rank_count++};
    }
    return true;
  }

  // Reduces communicators to the ranks that are kept; one without ranks keeps its number and gets
  // rank 0.
  bool CutCommunicators() {
    is_kept_.assign(trace_.communicators.size(), cut_.communicators.empty());
    for (const std::string& name : cut_.communicators) {
      bool is_found = false;
      for (size_t i = 0; i < trace_.communicators.size(); ++i) {
        if (trace_.communicators[i].name != name) continue;
        is_kept_[i] = is_found = true;
      }
      if (is_found) continue;
      std::vector<std::string> names;
      for (const TraceCommunicator& known : trace_.communicators) names.push_back(known.name);
      Error("communicators", UnknownName("communicator", name, names));
      return false;
    }
    for (const TraceCommunicator& communicator : trace_.communicators) {
      TraceCommunicator& left = result_.communicators.emplace_back();
      std::vector<uint32_t>& numbers = member_.emplace_back(communicator.ranks.size(), kGone);
      left.name = communicator.name;
      for (size_t i = 0; i < communicator.ranks.size(); ++i) {
        const GlobalRank rank = new_rank_[communicator.ranks[i]];
        if (rank == GlobalRank::kNone) continue;
        numbers[i] = static_cast<uint32_t>(left.ranks.size());
        left.ranks.push_back(rank);
      }
      if (left.ranks.size() == communicator.ranks.size()) {
        left.rings = communicator.rings;
        left.tree_parents = communicator.tree_parents;
      }
      if (left.ranks.empty()) left.ranks.emplace_back(0);
    }
    return true;
  }

  // Says whether the operation stays as it is, as computation, as computation of length 0, or not
  // at all.
  enum class Fate { kCall, kComputation, kWait, kLeftOut };
  Fate FateOf(uint32_t communicator, const TraceOperation& operation, uint64_t number) const {
    if (!cut_.calls.Contains(number)) return Fate::kLeftOut;
    if (!is_kept_[communicator]) return Fate::kComputation;
    const std::vector<uint32_t>& numbers = member_[communicator];
    if (IsMessage(operation)) {
      return numbers[operation.peer] == kGone ? Fate::kComputation : Fate::kCall;
    }
    const bool is_cut = result_.communicators[communicator].ranks.size() < numbers.size();
    const bool is_alone = result_.communicators[communicator].ranks.size() == 1;
    return is_cut && is_alone ? Fate::kComputation : Fate::kCall;
  }

  // Returns the fate of each of the rank's operations. Nothing says whether computation is in a
  // window of calls: of it, only what calls wait for stays, as kWait.
  std::vector<Fate> FatesOf(GlobalRank rank) const {
    const std::vector<TraceOperation>& operations = trace_.operations[rank];
    std::vector<Fate> fates;
    fates.reserve(operations.size());
    std::map<std::tuple<uint32_t, CollectiveKind, uint32_t>, uint64_t> calls;
    uint64_t iteration = 0;
    const bool is_window = HasWindowOfCalls();
    for (const TraceOperation& operation : operations) {
      if (operation.begins_iteration) ++iteration;
      Fate fate = is_window ? Fate::kWait : Fate::kCall;
      if (operation.kind != CollectiveKind::kCompute) {
        const uint32_t communicator = trace_.CommunicatorOf(rank, operation.communicator);
        const bool is_message = IsMessage(operation);
        uint64_t& number =
            calls[{communicator, is_message ? operation.kind : CollectiveKind::kAllReduce,
                   is_message ? operation.peer : 0}];
        fate = FateOf(communicator, operation, number++);
      }
      fates.push_back(cut_.iterations.Contains(iteration) ? fate : Fate::kLeftOut);
    }
    LeaveOutIdleWaits(operations, fates);
    return fates;
  }

  // Leaves out each wait for which no later operation waits, neither by name nor behind it on its
  // stream, and each that waits for nothing.
  static void LeaveOutIdleWaits(const std::vector<TraceOperation>& operations,
                                std::vector<Fate>& fates) {
    std::vector<bool> is_awaited(operations.size());
    std::set<uint32_t> later;  // streams
    for (size_t i = operations.size(); i-- > 0;) {
      const TraceOperation& operation = operations[i];
      const bool holds_up =
          is_awaited[i] || (operation.after != 0 && later.contains(operation.stream));
      if (fates[i] == Fate::kWait && !holds_up) fates[i] = Fate::kLeftOut;
      if (fates[i] == Fate::kLeftOut) continue;
      if (operation.after != 0) is_awaited[operation.after - 1] = true;
      later.insert(operation.stream);
    }
    std::set<uint32_t> earlier;
    for (size_t i = 0; i < operations.size(); ++i) {
      const TraceOperation& operation = operations[i];
      const bool waits = earlier.contains(operation.stream) ||
                         (operation.after != 0 && fates[operation.after - 1] != Fate::kLeftOut);
      if (fates[i] == Fate::kWait && !waits) fates[i] = Fate::kLeftOut;
      if (fates[i] != Fate::kLeftOut) earlier.insert(operation.stream);
    }
  }

  bool HasWindowOfCalls() const { return cut_.calls.first > 0 || cut_.calls.last < UINT64_MAX; }

  // Finds the iterations of which any rank keeps an operation: they are those of the result.
  void FindIterations() {
    for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) {
      if (new_rank_[rank] == GlobalRank::kNone) continue;
      const std::vector<Fate> fates = FatesOf(rank);
      uint64_t iteration = 0;
      for (size_t i = 0; i < fates.size(); ++i) {
        if (trace_.operations[rank][i].begins_iteration) ++iteration;
        if (fates[i] != Fate::kLeftOut) iterations_.insert(iteration);
      }
    }
  }

  // Returns the start of an iteration of which the rank keeps nothing.
  static TraceOperation EmptyIteration(uint32_t stream) {
    TraceOperation operation;
    operation.kind = CollectiveKind::kCompute;
    operation.stream = stream;
    operation.begins_iteration = true;
    return operation;
  }

  bool CutRank(GlobalRank rank) {
    const std::vector<TraceOperation>& operations = trace_.operations[rank];
    const std::vector<Fate> fates = FatesOf(rank);
    std::vector<TraceOperation> left;
    std::vector<uint32_t> new_number(operations.size(), kGone);
    uint64_t iteration = 0;
    std::vector<uint32_t> begun;  // streams on which iterations began since the last operation left
    for (uint32_t i = 0; i < operations.size(); ++i) {
      TraceOperation operation = operations[i];
      if (operation.begins_iteration && iterations_.contains(++iteration) &&
          iteration > *iterations_.begin()) {
        begun.push_back(operation.stream);
      }
      if (fates[i] == Fate::kLeftOut) continue;
      if (operation.kind != CollectiveKind::kCompute) {
        operation.communicator = trace_.CommunicatorOf(rank, operation.communicator);
      }
      if (!Place(rank, i, fates[i], operation)) return false;
      operation.after = operation.after == 0 || new_number[operation.after - 1] == kGone
                            ? 0
                            : new_number[operation.after - 1] + 1;
      for (size_t empty = 0; empty + 1 < begun.size(); ++empty) {
        left.push_back(EmptyIteration(begun[empty]));
      }
      operation.begins_iteration = !begun.empty();
      begun.clear();
      new_number[i] = static_cast<uint32_t>(left.size());
      left.push_back(operation);
    }
    // A rank that is left without operations is in no iteration.
    for (const uint32_t stream : left.empty() ? std::vector<uint32_t>() : begun) {
      left.push_back(EmptyIteration(stream));
    }
    result_.operations[new_rank_[rank]] = std::move(left);
    return true;
  }

  bool Place(GlobalRank rank, uint32_t i, Fate fate, TraceOperation& operation) {
    if (operation.kind == CollectiveKind::kCompute) {
      if (fate == Fate::kWait) operation.compute_before_ps = 0;
      return true;
    }
    if (fate == Fate::kComputation) {
      operation = AsComputation(operation);
      return true;
    }
    const std::vector<uint32_t>& numbers = member_[operation.communicator];
    if (IsMessage(operation)) {
      operation.peer = numbers[operation.peer];
    } else if (!HasRoot(operation.kind)) {
      operation.root = 0;
    } else if (numbers[operation.root] == kGone) {
      Error(fmt::format("ranks[{}].operations[{}].root", rank, i),
            fmt::format("rank {} goes (expected the roots of calls among those that stay)",
                        trace_.communicators[operation.communicator].ranks[operation.root]));
      return false;
    } else {
      operation.root = numbers[operation.root];
    }
    if (!IsMessage(operation) && std::ranges::find(numbers, kGone) != numbers.end()) {
      operation.measured_ps = 0;
      ForgetChoice(operation);
    }
    has_calls_ = true;
    return true;
  }

  const Trace& trace_;
  const TraceCut& cut_;
  const std::string& file_;
  Diagnostics& diagnostics_;
  Trace result_;
  std::vector<GlobalRank> new_rank_;           // by rank
  std::vector<std::vector<uint32_t>> member_;  // by communicator, by communicator rank
  std::vector<bool> is_kept_;                  // by communicator
  std::set<uint64_t> iterations_;              // of which something is left
  bool has_calls_ = false;
};

}  // namespace

std::optional<Trace> CutTrace(const Trace& trace, const TraceCut& cut, const std::string& file,
                              Diagnostics& diagnostics) {
  return TraceCutter(trace, cut, file, diagnostics).Run();
}

}  // namespace railyard
