// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_collectives.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace railyard {
namespace {

// Matches the ranks' sequences of logged calls, and drops calls that not every rank has.
// CollectiveMatcher of workloads/job then makes collectives of those that are left.
class CallSequenceMatcher {
 public:
  CallSequenceMatcher(PlacedCalls& calls, ImportReport& report, Diagnostics& diagnostics)
      : calls_(calls), report_(report), diagnostics_(diagnostics) {}

  // Matches the calls of each communicator. Communicators of a family must have equal calls if a
  // missing rank has to repeat them.
  void Run() {
    std::map<uint32_t, std::vector<Sequence>> sequences_of;  // by communicator
    std::unordered_map<uint32_t, size_t> sequence_of_handle;
    for (const std::vector<uint32_t>& calls : calls_.by_rank()) {
      std::optional<uint32_t> handle;  // of the call before, whose sequence is `last`
      Sequence* last = nullptr;
      for (const uint32_t i : calls) {
        if (IsP2p(calls_[i])) continue;
        if (handle != calls_[i].handle) {
          handle = calls_[i].handle;
          const uint32_t communicator = calls_.CommunicatorOf(calls_[i]);
          std::vector<Sequence>& sequences = sequences_of[communicator];
          const auto [entry, is_new] = sequence_of_handle.try_emplace(*handle, sequences.size());
          if (is_new) {
            sequences.push_back(
                {.communicator = communicator, .rank = calls_.RankOfHandle(*handle), .calls = {}});
          }
          last = &sequences[entry->second];
        }
        last->calls.push_back(i);
      }
    }
    std::map<std::pair<bool, uint32_t>, std::vector<Sequence>> units;
    for (auto& [g, sequences] : sequences_of) {
      const uint32_t family = calls_.placement().communicators[g].family;
      const bool as_family =
          !calls_.missing().empty() && calls_.placement().families[family].stride.has_value();
      std::vector<Sequence>& unit = units[{as_family, as_family ? family : g}];
      std::move(sequences.begin(), sequences.end(), std::back_inserter(unit));
    }
    for (auto& [key, unit] : units) MatchUnit(unit);
  }

 private:
  // One rank's collective calls on a communicator.
  struct Sequence {
    uint32_t communicator = 0;
    uint32_t rank = 0;  // global
    std::vector<uint32_t> calls;
  };

  void MatchUnit(std::vector<Sequence>& unit) {
    if (!Agree(unit) && !AlignByOpCount(unit)) {
      ReportDisagreement(unit);
      return;
    }
    CutToShortest(unit);
    StateAlgorithms(unit);
  }

  static bool SameCall(const LoggedCall& a, const LoggedCall& b) {
    return a.kind == b.kind && a.count == b.count && a.datatype == b.datatype &&
           a.root_or_peer == b.root_or_peer;
  }

  // Returns whether all sequences are equal up to the end of the shortest.
  bool Agree(const std::vector<Sequence>& unit) const {
    const std::vector<uint32_t>& first = unit.front().calls;
    size_t shortest = first.size();
    for (const Sequence& sequence : unit) shortest = std::min(shortest, sequence.calls.size());
    for (const Sequence& sequence : unit) {
      for (size_t i = 0; i < shortest; ++i) {
        if (!SameCall(calls_[first[i]], calls_[sequence.calls[i]])) return false;
      }
    }
    return true;
  }

  // Keeps the calls whose opCount all sequences have, if every sequence's opCounts rise and what is
  // kept agrees.
  bool AlignByOpCount(std::vector<Sequence>& unit) {
    std::map<uint64_t, size_t> sequences_with;
    for (const Sequence& sequence : unit) {
      for (size_t i = 0; i < sequence.calls.size(); ++i) {
        const uint64_t op_count = calls_[sequence.calls[i]].op_count;
        if (i > 0 && op_count <= calls_[sequence.calls[i - 1]].op_count) return false;
        ++sequences_with[op_count];
      }
    }
    std::vector<Sequence> aligned = unit;
    const auto is_common = [&](uint32_t i) {
      return sequences_with.at(calls_[i].op_count) == unit.size();
    };
    for (Sequence& sequence : aligned) {
      std::erase_if(sequence.calls, [&](uint32_t i) { return !is_common(i); });
    }
    if (aligned.front().calls.empty() || !Agree(aligned)) return false;
    uint64_t dropped = 0;
    for (const Sequence& sequence : unit) {
      for (const uint32_t i : sequence.calls) {
        if (is_common(i)) continue;
        calls_.Drop(i, CallDropReason::kIncompleteOnRank,
                    "not every rank's log holds this opCount");
        ++dropped;
      }
    }
    report_.assumed.push_back(fmt::format(
        "calls of equal opCount on {} belong together, since the ranks' logs begin at different "
        "calls; {} others were dropped",
        calls_.placement().communicators[unit.front().communicator].name, dropped));
    unit = std::move(aligned);
    return true;
  }

  std::string Describe(const LoggedCall& call) const {
    return fmt::format("{} of {} {} with root {}", CollectiveKindName(call.kind), call.count,
                       DatatypeName(call.datatype), call.root_or_peer);
  }

  void ReportDisagreement(const std::vector<Sequence>& unit) {
    const Sequence& first = unit.front();
    for (const Sequence& sequence : unit) {
      const size_t length = std::min(first.calls.size(), sequence.calls.size());
      for (size_t i = 0; i < length; ++i) {
        const LoggedCall& a = calls_[first.calls[i]];
        const LoggedCall& b = calls_[sequence.calls[i]];
        if (SameCall(a, b)) continue;
        const uint64_t truncated = report_.DroppedFor(CallDropReason::kTruncatedLine).count +
                                   report_.DroppedFor(CallDropReason::kUnknownProcess).count;
        diagnostics_.Error(
            calls_.PlaceOf(b), "",
            fmt::format(
                "call {} of rank {} on communicator {} is {}, that of rank {} at {} is {} "
                "(the same call on every rank{})",
                i + 1, sequence.rank, calls_.placement().communicators[sequence.communicator].name,
                Describe(b), first.rank, calls_.PlaceText(a), Describe(a),
                truncated == 0 ? ""
                               : fmt::format("; {} calls were lost to damaged lines", truncated)));
        return;
      }
    }
  }

  void CutToShortest(std::vector<Sequence>& unit) {
    const auto shortest = std::min_element(
        unit.begin(), unit.end(),
        [](const Sequence& a, const Sequence& b) { return a.calls.size() < b.calls.size(); });
    const size_t length = shortest->calls.size();
    const uint32_t rank = shortest->rank;
    for (Sequence& sequence : unit) {
      for (size_t i = length; i < sequence.calls.size(); ++i) {
        calls_.Drop(sequence.calls[i], CallDropReason::kIncompleteOnRank,
                    fmt::format("incomplete on rank {}", rank));
      }
      sequence.calls.resize(length);
    }
  }

  // Rank 0 of the communicator states them for all; communicators of a unit that make the same
  // calls are taken to run them alike.
  void StateAlgorithms(std::vector<Sequence>& unit) {
    std::vector<uint32_t> calls(unit.front().calls.size());
    for (size_t i = 0; i < calls.size(); ++i) {
      std::map<uint32_t, uint32_t> stating;  // communicator → call
      for (const Sequence& sequence : unit) {
        if (calls_[sequence.calls[i]].algorithm != Algorithm::kUnstated) {
          stating.try_emplace(sequence.communicator, sequence.calls[i]);
        }
      }
      if (stating.empty()) continue;
      for (const Sequence& sequence : unit) {
        const auto own = stating.find(sequence.communicator);
        const LoggedCall& source =
            calls_[own != stating.end() ? own->second : stating.begin()->second];
        LoggedCall& call = calls_[sequence.calls[i]];
        call.algorithm = source.algorithm;
        call.protocol = source.protocol;
      }
    }
  }

  PlacedCalls& calls_;
  ImportReport& report_;
  Diagnostics& diagnostics_;
};

}  // namespace

void MatchCollectives(PlacedCalls& calls, ImportReport& report, Diagnostics& diagnostics) {
  CallSequenceMatcher(calls, report, diagnostics).Run();
}

}  // namespace railyard
