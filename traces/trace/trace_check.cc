// SPDX-License-Identifier: GPL-2.0-only
#include "traces/trace/trace_check.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "traces/trace/logged_graph.h"

namespace railyard {
namespace {

constexpr uint64_t kErrorsShownMax = 20;

class TraceChecker {
 public:
  TraceChecker(const Trace& trace, const std::string& file, Diagnostics& diagnostics)
      : trace_(trace), file_(file), diagnostics_(diagnostics) {}

  bool Run() {
    CheckSizes();
    // Indices below are only meaningful once the tables have their right sizes.
    if (error_count_ == 0) CheckCommunicators();
    if (error_count_ == 0) CheckNumbers();
    if (error_count_ == 0) CheckOperations();
    if (error_count_ > kErrorsShownMax) {
      diagnostics_.Error(
          {.file = file_, .line = 1, .column = 1}, "",
          fmt::format("{} more errors of this kind in the trace", error_count_ - kErrorsShownMax));
    }
    return error_count_ == 0;
  }

 private:
  void Error(std::string field, std::string what) {
    if (++error_count_ <= kErrorsShownMax) {
      diagnostics_.Error({.file = file_, .line = 1, .column = 1}, std::move(field),
                         std::move(what));
    }
  }

  void CheckSizes() {
    if (trace_.rank_count < 1 || trace_.rank_count > kTraceRanksMax) {
      Error("rank_count",
            fmt::format("{} is out of range (1 to {})", trace_.rank_count, kTraceRanksMax));
    }
    if (trace_.operations.size() != trace_.rank_count) {
      Error("operations", fmt::format("{} lists of operations for {} ranks (one per rank)",
                                      trace_.operations.size(), trace_.rank_count));
    }
    const size_t lists = trace_.communicators_of_rank.size();
    if (lists != 0 && lists != trace_.rank_count) {
      Error("communicators_of_rank",
            fmt::format("{} lists for {} ranks (none, or one per rank)", lists, trace_.rank_count));
    }
    if (trace_.communicators.size() > kTraceCommunicatorsMax) {
      Error("communicators", fmt::format("{} communicators are too many (at most {})",
                                         trace_.communicators.size(), kTraceCommunicatorsMax));
    }
    uint64_t members = 0;
    for (const TraceCommunicator& communicator : trace_.communicators) {
      members += communicator.ranks.size();
    }
    if (members > kTraceMembersMax) {
      Error("communicators", fmt::format("{} ranks in all communicators are too many (at most {})",
                                         members, kTraceMembersMax));
    }
  }

  void CheckCommunicators() {
    // The communicator a rank was last seen in, plus one: finds doubles without a set.
    std::vector<size_t> seen_in(trace_.rank_count, 0);
    for (size_t c = 0; c < trace_.communicators.size(); ++c) {
      const std::vector<GlobalRank>& ranks = trace_.communicators[c].ranks;
      if (ranks.empty()) {
        Error(fmt::format("communicators[{}].ranks", c), "is empty (a communicator has ranks)");
      }
      for (size_t r = 0; r < ranks.size(); ++r) {
        if (ranks[r] >= trace_.rank_count) {
          Error(fmt::format("communicators[{}].ranks[{}]", c, r),
                fmt::format("rank {} does not exist (0 to {})", ranks[r], trace_.rank_count - 1));
        } else if (std::exchange(seen_in[ranks[r]], c + 1) == c + 1) {
          Error(fmt::format("communicators[{}].ranks[{}]", c, r),
                fmt::format("rank {} is in the communicator twice", ranks[r]));
        }
      }
      CheckGraph(c, trace_.communicators[c]);
    }
  }

  void CheckGraph(size_t c, const TraceCommunicator& communicator) {
    const size_t size = communicator.ranks.size();
    for (size_t i = 0; i < communicator.rings.size(); ++i) {
      if (IsRing(communicator.rings[i], size)) continue;
      Error(fmt::format("communicators[{}].rings[{}]", c, i),
            fmt::format("is no ring of {} ranks (each of them once, 0 first)", size));
    }
    for (size_t i = 0; i < communicator.tree_parents.size(); ++i) {
      if (IsTree(communicator.tree_parents[i], size)) continue;
      Error(fmt::format("communicators[{}].trees[{}]", c, i),
            fmt::format("is no tree of {} ranks (one root, at most {} children each)", size,
                        kTreeChildrenMax));
    }
  }

  void CheckNumbers() {
    for (size_t rank = 0; rank < trace_.communicators_of_rank.size(); ++rank) {
      const std::vector<uint32_t>& of_rank = trace_.communicators_of_rank[rank];
      for (size_t i = 0; i < of_rank.size(); ++i) {
        if (of_rank[i] < trace_.communicators.size()) continue;
        Error(fmt::format("ranks[{}].communicators[{}]", rank, i),
              fmt::format("{} does not exist (there are {})", of_rank[i],
                          trace_.communicators.size()));
      }
    }
  }

  // Ranks that share a program and what its numbers of communicators stand for.
  std::vector<std::vector<GlobalRank>> AlikeRanks() const {
    std::vector<std::vector<GlobalRank>> alike;
    for (std::vector<GlobalRank>& ranks : trace_.operations.RanksOfPrograms()) {
      const auto own = std::stable_partition(ranks.begin(), ranks.end(), [&](GlobalRank rank) {
        return trace_.NumbersAreIndices(rank);
      });
      for (auto rank = own; rank != ranks.end(); ++rank) alike.push_back({*rank});
      ranks.erase(own, ranks.end());
      if (!ranks.empty()) alike.push_back(std::move(ranks));
    }
    return alike;
  }

  void CheckOperations() {
    // Ranks that are alike are checked once, and named by the first of them.
    const std::vector<std::vector<GlobalRank>> ranks = AlikeRanks();
    // The callers on each communicator: alike ranks and the first such operation of each.
    std::vector<std::vector<std::pair<size_t, size_t>>> callers(trace_.communicators.size());
    for (size_t alike = 0; alike < ranks.size(); ++alike) {
      const GlobalRank rank = ranks[alike].front();
      const std::vector<TraceOperation>& operations = trace_.operations[rank];
      for (size_t i = 0; i < operations.size(); ++i) {
        CheckOperation(rank, i, operations[i]);
        if (operations[i].kind == CollectiveKind::kCompute) continue;
        const std::optional<uint32_t> c = CommunicatorOf(rank, operations[i]);
        if (!c) continue;
        if (callers[*c].empty() || callers[*c].back().first != alike) {
          callers[*c].emplace_back(alike, i);
        }
      }
    }
    CheckIterations(trace_.operations.RanksOfPrograms());
    // Membership, communicator by communicator, so that it needs one mark per rank only.
    std::vector<size_t> member_of(trace_.rank_count, 0);
    for (size_t c = 0; c < callers.size(); ++c) {
      for (const GlobalRank rank : trace_.communicators[c].ranks) member_of[rank] = c + 1;
      for (const auto& [alike, i] : callers[c]) {
        for (const GlobalRank rank : ranks[alike]) {
          if (member_of[rank] == c + 1) continue;
          Error(Field(rank, i, "communicator"),
                fmt::format("rank {} is not in communicator {}", rank, c));
        }
      }
    }
  }

  // Ranks that do anything at all are in each iteration.
  void CheckIterations(const std::vector<std::vector<GlobalRank>>& ranks) {
    std::optional<std::pair<GlobalRank, std::ptrdiff_t>> first;  // rank, and iterations it begins
    for (uint32_t program = 0; program < ranks.size(); ++program) {
      const std::vector<TraceOperation>& operations = trace_.operations.program(program);
      if (ranks[program].empty() || operations.empty()) continue;
      const auto begins =
          std::count_if(operations.begin(), operations.end(),
                        [](const TraceOperation& call) { return call.begins_iteration; });
      if (!first) first = {ranks[program].front(), begins};
      if (begins == first->second) continue;
      Error(fmt::format("ranks[{}].operations", ranks[program].front()),
            fmt::format("begin {} iterations, those of rank {} {} (expected equally many)", begins,
                        first->first, first->second));
    }
  }

  static std::string Field(GlobalRank rank, size_t index, std::string_view name) {
    return fmt::format("ranks[{}].operations[{}].{}", rank, index, name);
  }

  // Returns nullopt if no communicator has that number.
  std::optional<uint32_t> CommunicatorOf(GlobalRank rank, const TraceOperation& operation) const {
    const uint32_t number = operation.communicator;
    if (number >= NumbersOf(rank)) return std::nullopt;
    return trace_.CommunicatorOf(rank, number);
  }
  size_t NumbersOf(GlobalRank rank) const {
    return trace_.NumbersAreIndices(rank) ? trace_.communicators.size()
                                          : trace_.communicators_of_rank[rank].size();
  }

  void CheckOperation(GlobalRank rank, size_t i, const TraceOperation& operation) {
    CheckOrder(rank, i, operation);
    if (operation.kind == CollectiveKind::kCompute) {
      if (operation.count != 0) {
        Error(Field(rank, i, "count"), "is set for Compute (which transfers nothing)");
      }
      return;
    }
    const std::optional<uint32_t> communicator = CommunicatorOf(rank, operation);
    if (!communicator) {
      Error(Field(rank, i, "communicator"), fmt::format("{} does not exist (there are {})",
                                                        operation.communicator, NumbersOf(rank)));
      return;
    }
    const auto size = static_cast<uint32_t>(trace_.communicators[*communicator].ranks.size());
    if (operation.count == 0) {
      Error(Field(rank, i, "count"), "is 0 (operations that transfer nothing are left out)");
    }
    // 128 bits: count is any 64-bit number here.
    const auto bytes =
        static_cast<unsigned __int128>(operation.count) * DatatypeBytes(operation.datatype) * size;
    if (bytes > kOperationBytesMax) {
      Error(Field(rank, i, "count"),
            fmt::format("{} elements of {} over {} ranks exceed {} bytes", operation.count,
                        DatatypeName(operation.datatype), size, kOperationBytesMax));
    }
    if (operation.root >= size) {
      Error(Field(rank, i, "root"),
            fmt::format("{} is outside the communicator (0 to {})", operation.root, size - 1));
    }
    if (operation.peer >= size) {
      Error(Field(rank, i, "peer"),
            fmt::format("{} is outside the communicator (0 to {})", operation.peer, size - 1));
    }
    const bool is_p2p =
        operation.kind == CollectiveKind::kSend || operation.kind == CollectiveKind::kRecv;
    if (operation.group != 0 && !is_p2p) {
      Error(Field(rank, i, "group"), fmt::format("is set for {} (only Send and Recv are grouped)",
                                                 CollectiveKindName(operation.kind)));
    }
    if (operation.all_to_all != 0 && operation.group == 0) {
      Error(Field(rank, i, "all_to_all"),
            "is set without a group (the calls of an AllToAllv are Sends and Recvs of one group)");
    }
    if (operation.expert.kernel != ExpertKernel::kNone) CheckExpert(rank, i, operation, size);
    if (operation.in_place && !CopiesWithinRank(operation.kind)) {
      Error(Field(rank, i, "in_place"),
            fmt::format("is set for {} (only AllToAll, Gather and Scatter copy within a rank)",
                        CollectiveKindName(operation.kind)));
    }
    if (operation.measured_ps < 0) Error(Field(rank, i, "measured_ps"), "is negative");
    if (operation.loss_tolerance_ppm > kLossTolerancePpmMax) {
      Error(Field(rank, i, "loss_tolerance_ppm"),
            fmt::format("{} is out of range (expected 0 to {})", operation.loss_tolerance_ppm,
                        kLossTolerancePpmMax));
    }
    if (operation.source_line != 0 && operation.source_file >= trace_.source_files.size()) {
      Error(Field(rank, i, "source_file"),
            fmt::format("{} does not exist (there are {})", operation.source_file,
                        trace_.source_files.size()));
    }
  }

  void CheckExpert(GlobalRank rank, size_t i, const TraceOperation& operation, uint32_t size) {
    const ExpertCall& expert = operation.expert;
    if (operation.all_to_all == 0) {
      Error(Field(rank, i, "expert"), "is set without all_to_all (expert kernels run AllToAllvs)");
    }
    if (expert.channels == 0) {
      Error(Field(rank, i, "expert.channels"), "is 0 or missing (expected 1 to 255)");
    }
    if (expert.relayed_for > size) {
      Error(Field(rank, i, "expert.relayed_for"),
            fmt::format("{} is outside the communicator (0 to {})", expert.relayed_for, size));
    }
    if (expert.token_bytes == 0 || expert.token_bytes > kTokenBytesMax) {
      Error(
          Field(rank, i, "expert.token_bytes"),
          fmt::format("{} is out of range (expected 1 to {})", expert.token_bytes, kTokenBytesMax));
    } else if (operation.count * DatatypeBytes(operation.datatype) % expert.token_bytes != 0) {
      Error(Field(rank, i, "count"),
            fmt::format("is no multiple of expert.token_bytes {}", expert.token_bytes));
    } else if (operation.count * DatatypeBytes(operation.datatype) / expert.token_bytes >
               kExpertCallTokensMax) {
      Error(Field(rank, i, "count"), fmt::format("is more than {} tokens", kExpertCallTokensMax));
    }
  }

  // Checks the fields that say when the operation may begin.
  void CheckOrder(GlobalRank rank, size_t i, const TraceOperation& operation) {
    if (operation.stream >= kStreamsPerRankMax) {
      Error(Field(rank, i, "stream"),
            fmt::format("{} is out of range (0 to {})", operation.stream, kStreamsPerRankMax - 1));
    }
    if (operation.compute_before_ps < 0) {
      Error(Field(rank, i, "compute_before_ps"), "is negative");
    }
    if (operation.after > i) {
      Error(Field(rank, i, "after"),
            fmt::format("{} is no earlier operation (0 to {})", operation.after, i));
    }
  }

  const Trace& trace_;
  const std::string& file_;
  Diagnostics& diagnostics_;
  uint64_t error_count_ = 0;
};

}  // namespace

bool CheckTrace(const Trace& trace, const std::string& file, Diagnostics& diagnostics) {
  return TraceChecker(trace, file, diagnostics).Run();
}

std::optional<uint32_t> LossTolerancePpm(double share) {
  constexpr double kMillion = 1e6;
  const double ppm = std::round(share * kMillion);
  if (!(ppm >= 0 && ppm <= kLossTolerancePpmMax)) return std::nullopt;
  return static_cast<uint32_t>(ppm);
}

std::string OutOfLossTolerance(double share) {
  return fmt::format("{} is out of range (expected 0 to 0.999999)", share);
}

}  // namespace railyard
