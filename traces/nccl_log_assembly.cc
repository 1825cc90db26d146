// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log_assembly.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace railyard {
namespace {

constexpr uint64_t kReconstructedCallsMax = 64'000'000;

bool IsP2p(const LoggedCall& call) {
  return call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kRecv;
}

// "0 to 3, 7": at most a handful of ranges, then how many more.
std::string DescribeRanks(const std::vector<uint32_t>& sorted) {
  std::string text;
  int ranges = 0;
  for (size_t i = 0; i < sorted.size();) {
    size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    if (++ranges > 4) return fmt::format("{} and {} more", text, sorted.size() - i);
    if (!text.empty()) text += ", ";
    text += end - i == 1 ? fmt::format("{}", sorted[i])
                         : fmt::format("{} to {}", sorted[i], sorted[end - 1]);
    i = end;
  }
  return text;
}

class Assembler {
 public:
  Assembler(LoggedCalls& logged, Placement& placement, const NcclLogOptions& options,
            ImportReport& report, Diagnostics& diagnostics)
      : logged_(logged),
        placement_(placement),
        options_(options),
        report_(report),
        diagnostics_(diagnostics) {}

  std::optional<Trace> Run() {
    DropUnplacedCalls();
    IndexCalls();
    if (diagnostics_.HasErrors()) return Fail(CallDropReason::kImportFailed);
    if (AllDropped()) return Fail(CallDropReason::kImportFailed);
    if (!reconstructs() && !RefuseMissingRanks()) return Fail(CallDropReason::kRanksMissing);
    DropCallsWithUnknownMembers();
    MatchCollectives();
    CutPointToPoint();
    GroupPointToPoint();
    if (!missing_.empty()) CheckPointToPointAlike();
    if (diagnostics_.HasErrors()) return Fail(CallDropReason::kRanksDisagree);
    if (AllDropped()) return Fail(CallDropReason::kImportFailed);
    BuildTrace();
    if (!missing_.empty()) Reconstruct();
    if (diagnostics_.HasErrors()) return Fail(CallDropReason::kImportFailed);
    CountImported();
    return std::move(trace_);
  }

 private:
  // One rank's collective calls on a communicator.
  struct Sequence {
    uint32_t communicator = 0;
    uint32_t communicator_rank = 0;
    uint32_t rank = 0;  // global
    std::vector<uint32_t> calls;
  };

  bool reconstructs() const {
    return options_.missing_ranks == NcclLogOptions::MissingRanks::kReconstruct;
  }
  LoggedCall& Call(uint32_t index) { return logged_.calls[index]; }
  const LoggedCall& Call(uint32_t index) const { return logged_.calls[index]; }
  uint32_t CommunicatorOf(const LoggedCall& call) const {
    return *placement_.communicator_of[call.handle];
  }
  uint32_t CommunicatorRankOf(const LoggedCall& call) const {
    return *placement_.communicator_rank_of[call.handle];
  }
  uint32_t RankOfHandle(uint32_t handle) const {
    return *placement_.endpoints[placement_.endpoint_of[handle]].rank;
  }
  SourceLocation PlaceOf(const LoggedCall& call) const {
    return {.file = report_.files[call.file].path,
            .line = static_cast<int>(std::min<uint64_t>(call.line, INT32_MAX))};
  }
  std::string PlaceText(const LoggedCall& call) const {
    return fmt::format("{}:{}", report_.files[call.file].path, call.line);
  }
  SourceLocation FirstFile() const {
    return {.file = report_.files.empty() ? std::string() : report_.files.front().path};
  }
  void Drop(uint32_t index, CallDropReason reason, std::string detail) {
    DropCall(Call(index), reason, std::move(detail), report_);
  }

  std::optional<Trace> Fail(CallDropReason reason) {
    for (uint32_t i = 0; i < logged_.calls.size(); ++i) {
      if (!Call(i).dropped) Drop(i, reason, "");
    }
    if (!diagnostics_.HasErrors()) {
      diagnostics_.Error(FirstFile(), "", NothingImported());
    }
    return std::nullopt;
  }

  std::string NothingImported() const {
    if (report_.calls_seen() == 0) {
      return "no call was found (NCCL prints them with NCCL_DEBUG=INFO and "
             "NCCL_DEBUG_SUBSYS=INIT,COLL)";
    }
    std::string reasons;
    for (int i = 0; i < kCallDropReasonCount; ++i) {
      const auto reason = static_cast<CallDropReason>(i);
      const uint64_t count = report_.DroppedFor(reason).count;
      if (count == 0) continue;
      reasons +=
          fmt::format("{}{} {}", reasons.empty() ? "" : ", ", count, CallDropReasonName(reason));
    }
    const bool rank_map_helps = report_.DroppedFor(CallDropReason::kUnknownRank).count > 0;
    return fmt::format("none of the {} calls can be imported: {} ({})", report_.calls_seen(),
                       reasons,
                       rank_map_helps ? "a rank_map says which rank each process is"
                                      : "the import report lists the lines");
  }

  bool AllDropped() const {
    return std::all_of(logged_.calls.begin(), logged_.calls.end(),
                       [](const LoggedCall& call) { return call.dropped; });
  }

  // ---- What can be placed. ----

  void DropUnplacedCalls() {
    for (uint32_t i = 0; i < logged_.calls.size(); ++i) {
      const auto& unplaced = placement_.unplaced[Call(i).handle];
      if (unplaced) Drop(i, unplaced->reason, unplaced->detail);
    }
  }

  void IndexCalls() {
    calls_of_rank_.resize(placement_.rank_count);
    endpoint_of_rank_.assign(placement_.rank_count, kNone);
    has_call_.assign(logged_.handles.size(), false);
    has_collective_.assign(logged_.handles.size(), false);
    for (uint32_t e = 0; e < placement_.endpoints.size(); ++e) {
      const auto& rank = placement_.endpoints[e].rank;
      if (!rank) continue;
      if (std::exchange(endpoint_of_rank_[*rank], e) != kNone) {
        diagnostics_.Error(FirstFile(), "",
                           fmt::format("two processes are global rank {} (one process per rank; "
                                       "logs of one job only)",
                                       *rank));
      }
    }
    for (uint32_t i = 0; i < logged_.calls.size(); ++i) {
      const LoggedCall& call = Call(i);
      if (call.dropped) continue;
      calls_of_rank_[RankOfHandle(call.handle)].push_back(i);
      has_call_[call.handle] = true;
      if (!IsP2p(call)) has_collective_[call.handle] = true;
    }
    FindMissing();
  }

  // Ranks without a process, and those whose process made no call at all.
  void FindMissing() {
    for (uint32_t rank = 0; rank < placement_.rank_count; ++rank) {
      if (calls_of_rank_[rank].empty()) missing_.push_back(rank);
    }
  }

  void DropCallsWithUnknownMembers() {
    for (uint32_t i = 0; i < logged_.calls.size(); ++i) {
      if (Call(i).dropped) continue;
      const JoinedCommunicator& communicator = placement_.communicators[CommunicatorOf(Call(i))];
      if (!communicator.ranks.empty()) continue;
      Drop(i, CallDropReason::kAmbiguousCommunicator,
           fmt::format("which ranks the log lacks of the communicator of {} ranks cannot be told",
                       communicator.size));
    }
    for (std::vector<uint32_t>& calls : calls_of_rank_) {
      std::erase_if(calls, [this](uint32_t i) { return Call(i).dropped; });
    }
    missing_.clear();
    FindMissing();
  }

  bool RefuseMissingRanks() {
    std::vector<uint32_t> absent;
    uint32_t unplaced = 0;
    for (uint32_t rank = 0; rank < placement_.rank_count; ++rank) {
      if (endpoint_of_rank_[rank] == kNone) absent.push_back(rank);
    }
    for (const Endpoint& endpoint : placement_.endpoints) unplaced += endpoint.rank ? 0 : 1;
    if (!absent.empty()) {
      diagnostics_.Error(
          FirstFile(), "missing_ranks",
          fmt::format("the job has {} ranks, the logs hold no process known to be rank {}{} (give "
                      "their logs as well, or missing_ranks: RECONSTRUCT to have them make the "
                      "same calls as those present)",
                      placement_.rank_count, DescribeRanks(absent),
                      unplaced == 0 ? ""
                                    : fmt::format("; {} processes have no known rank: a rank_map "
                                                  "says which they are",
                                                  unplaced)));
      return false;
    }
    bool complete = true;
    for (uint32_t g = 0; g < placement_.communicators.size(); ++g) {
      complete = RefuseSilentMembers(g) && complete;
    }
    return complete;
  }

  // A collective needs every rank of its communicator.
  bool RefuseSilentMembers(uint32_t g) {
    const JoinedCommunicator& communicator = placement_.communicators[g];
    std::set<uint32_t> callers;
    bool has_collective = false;
    for (const auto& [communicator_rank, handle] : communicator.handle_of_rank) {
      if (has_call_[handle]) callers.insert(communicator_rank);
      has_collective = has_collective || has_collective_[handle];
    }
    if (!has_collective || callers.size() == communicator.size) return true;
    std::vector<uint32_t> silent;
    for (uint32_t r = 0; r < communicator.size; ++r) {
      if (!callers.contains(r)) silent.push_back(r);
    }
    diagnostics_.Error(
        FirstFile(), "missing_ranks",
        fmt::format("communicator {} has {} ranks, the logs hold no call of its rank {} (give "
                    "their logs as well, or missing_ranks: RECONSTRUCT to have them make the same "
                    "calls as those present)",
                    communicator.name, communicator.size, DescribeRanks(silent)));
    return false;
  }

  // ---- Collectives. ----

  // What must agree. Communicators of a family are held to the same calls where a missing rank has
  // to repeat them.
  void MatchCollectives() {
    std::map<uint32_t, std::vector<Sequence>> sequences_of;  // by communicator
    std::unordered_map<uint32_t, size_t> sequence_of_handle;
    for (const std::vector<uint32_t>& calls : calls_of_rank_) {
      for (const uint32_t i : calls) {
        if (IsP2p(Call(i))) continue;
        const uint32_t handle = Call(i).handle;
        std::vector<Sequence>& sequences = sequences_of[CommunicatorOf(Call(i))];
        const auto [entry, is_new] = sequence_of_handle.try_emplace(handle, sequences.size());
        if (is_new) {
          sequences.push_back({.communicator = CommunicatorOf(Call(i)),
                               .communicator_rank = CommunicatorRankOf(Call(i)),
                               .rank = RankOfHandle(handle),
                               .calls = {}});
        }
        sequences[entry->second].calls.push_back(i);
      }
    }
    std::map<std::pair<bool, uint32_t>, std::vector<Sequence>> units;
    for (auto& [g, sequences] : sequences_of) {
      const uint32_t family = placement_.communicators[g].family;
      const bool as_family = !missing_.empty() && placement_.families[family].stride.has_value();
      std::vector<Sequence>& unit = units[{as_family, as_family ? family : g}];
      std::move(sequences.begin(), sequences.end(), std::back_inserter(unit));
    }
    for (auto& [key, unit] : units) MatchUnit(unit);
  }

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

  // Whether all sequences are equal up to the end of the shortest.
  bool Agree(const std::vector<Sequence>& unit) const {
    const std::vector<uint32_t>& first = unit.front().calls;
    size_t shortest = first.size();
    for (const Sequence& sequence : unit) shortest = std::min(shortest, sequence.calls.size());
    for (const Sequence& sequence : unit) {
      for (size_t i = 0; i < shortest; ++i) {
        if (!SameCall(Call(first[i]), Call(sequence.calls[i]))) return false;
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
        const uint64_t op_count = Call(sequence.calls[i]).op_count;
        if (i > 0 && op_count <= Call(sequence.calls[i - 1]).op_count) return false;
        ++sequences_with[op_count];
      }
    }
    std::vector<Sequence> aligned = unit;
    const auto is_common = [&](uint32_t i) {
      return sequences_with.at(Call(i).op_count) == unit.size();
    };
    for (Sequence& sequence : aligned) {
      std::erase_if(sequence.calls, [&](uint32_t i) { return !is_common(i); });
    }
    if (aligned.front().calls.empty() || !Agree(aligned)) return false;
    uint64_t dropped = 0;
    for (const Sequence& sequence : unit) {
      for (const uint32_t i : sequence.calls) {
        if (is_common(i)) continue;
        Drop(i, CallDropReason::kIncompleteOnRank, "not every rank's log holds this opCount");
        ++dropped;
      }
    }
    report_.assumed.push_back(fmt::format(
        "calls of equal opCount on {} belong together, since the ranks' logs begin at different "
        "calls; {} others were dropped",
        placement_.communicators[unit.front().communicator].name, dropped));
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
        const LoggedCall& a = Call(first.calls[i]);
        const LoggedCall& b = Call(sequence.calls[i]);
        if (SameCall(a, b)) continue;
        const uint64_t truncated = report_.DroppedFor(CallDropReason::kTruncatedLine).count +
                                   report_.DroppedFor(CallDropReason::kUnknownProcess).count;
        diagnostics_.Error(
            PlaceOf(b), "",
            fmt::format("call {} of rank {} on communicator {} is {}, that of rank {} at {} is {} "
                        "(the same call on every rank{})",
                        i + 1, sequence.rank, placement_.communicators[sequence.communicator].name,
                        Describe(b), first.rank, PlaceText(a), Describe(a),
                        truncated == 0
                            ? ""
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
        Drop(sequence.calls[i], CallDropReason::kIncompleteOnRank,
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
        if (Call(sequence.calls[i]).algorithm != Algorithm::kUnstated) {
          stating.try_emplace(sequence.communicator, sequence.calls[i]);
        }
      }
      if (stating.empty()) continue;
      for (const Sequence& sequence : unit) {
        const auto own = stating.find(sequence.communicator);
        const LoggedCall& source =
            Call(own != stating.end() ? own->second : stating.begin()->second);
        LoggedCall& call = Call(sequence.calls[i]);
        call.algorithm = source.algorithm;
        call.protocol = source.protocol;
      }
    }
  }

  // ---- Point to point. ----

  // The k-th send from a to b meets the k-th receive of b from a; what has no counterpart because
  // a log ends early is dropped. Peers the log does not hold are not judged.
  void CutPointToPoint() {
    struct Direction {
      std::vector<uint32_t> sends;
      std::vector<uint32_t> receives;
    };
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Direction> directions;
    for (const std::vector<uint32_t>& calls : calls_of_rank_) {
      for (const uint32_t i : calls) {
        const LoggedCall& call = Call(i);
        if (!IsP2p(call) || call.dropped) continue;
        const uint32_t g = CommunicatorOf(call);
        const uint32_t self = CommunicatorRankOf(call);
        if (call.kind == CollectiveKind::kSend) {
          directions[{g, self, call.root_or_peer}].sends.push_back(i);
        } else {
          directions[{g, call.root_or_peer, self}].receives.push_back(i);
        }
      }
    }
    for (auto& [key, direction] : directions) {
      const auto& [g, from, to] = key;
      const JoinedCommunicator& communicator = placement_.communicators[g];
      if (communicator.ranks.empty()) continue;
      const size_t pairs = std::min(direction.sends.size(), direction.receives.size());
      CutTo(direction.sends, pairs, communicator.ranks[to]);
      CutTo(direction.receives, pairs, communicator.ranks[from]);
    }
  }

  void CutTo(const std::vector<uint32_t>& calls, size_t length, uint32_t peer) {
    if (std::binary_search(missing_.begin(), missing_.end(), peer)) return;
    for (size_t i = length; i < calls.size(); ++i) {
      Drop(calls[i], CallDropReason::kIncompleteOnRank, fmt::format("incomplete on rank {}", peer));
    }
  }

  // Send and Recv lines in a row with the same communicator, stream and opCount are one group.
  // Where the opCount of a communicator never changes it cannot tell groups apart (NCCL from 2.27
  // on within one server); there a group also ends when its first call comes again while it has as
  // many sends as receives.
  void GroupPointToPoint() {
    group_of_.assign(logged_.calls.size(), 0);
    std::set<uint32_t> counting;  // handles whose opCount changes
    std::unordered_map<uint32_t, uint64_t> op_count_of;
    for (const LoggedCall& call : logged_.calls) {
      const auto [entry, is_new] = op_count_of.try_emplace(call.handle, call.op_count);
      if (!is_new && entry->second != call.op_count) counting.insert(call.handle);
    }
    uint64_t guessed = 0;
    for (const std::vector<uint32_t>& calls : calls_of_rank_) {
      uint32_t group = 0;
      std::vector<uint32_t> members;
      int64_t balance = 0;  // sends minus receives
      const auto close = [&] {
        if (members.size() > 1) {
          ++group;
          for (const uint32_t i : members) group_of_[i] = group;
        }
        members.clear();
        balance = 0;
      };
      for (const uint32_t i : calls) {
        const LoggedCall& call = Call(i);
        if (call.dropped) continue;
        if (!IsP2p(call)) {
          close();
          continue;
        }
        if (!members.empty()) {
          const LoggedCall& first = Call(members.front());
          const bool same = first.handle == call.handle && first.stream == call.stream &&
                            first.op_count == call.op_count;
          const bool again = same && balance == 0 && !counting.contains(call.handle) &&
                             first.kind == call.kind && first.root_or_peer == call.root_or_peer;
          guessed += again ? 1 : 0;
          if (!same || again) close();
        }
        members.push_back(i);
        balance += call.kind == CollectiveKind::kSend ? 1 : -1;
      }
      close();
    }
    if (guessed > 0) {
      report_.assumed.push_back(
          fmt::format("{} groups of Send and Recv end where their first call comes again: their "
                      "opCount never changes",
                      guessed));
    }
  }

  // Distance from rank to peer, which a missing rank keeps.
  uint32_t ShiftOf(const LoggedCall& call) const {
    const uint32_t size = logged_.handles[call.handle].rank_count;
    return (call.root_or_peer + size - CommunicatorRankOf(call)) % size;
  }

  // Missing ranks repeat the groups of those present, so these must be alike up to the shift.
  void CheckPointToPointAlike() {
    using Message = std::tuple<CollectiveKind, uint32_t, uint64_t, Datatype>;
    using Batch = std::vector<Message>;
    struct Program {
      std::vector<Batch> batches;
      uint32_t first_call = 0;
    };
    std::map<uint32_t, std::map<uint32_t, Program>> programs_of;  // family, handle
    for (const std::vector<uint32_t>& calls : calls_of_rank_) {
      uint32_t last_group = 0;
      for (const uint32_t i : calls) {
        const LoggedCall& call = Call(i);
        if (call.dropped || !IsP2p(call)) continue;
        const uint32_t family = placement_.communicators[CommunicatorOf(call)].family;
        const auto [entry, is_new] = programs_of[family].try_emplace(call.handle);
        Program& program = entry->second;
        if (is_new) program.first_call = i;
        if (group_of_[i] == 0 || group_of_[i] != last_group) program.batches.emplace_back();
        last_group = group_of_[i];
        program.batches.back().emplace_back(call.kind, ShiftOf(call), call.count, call.datatype);
      }
    }
    for (auto& [family, programs] : programs_of) {
      for (auto& [handle, program] : programs) {
        for (Batch& batch : program.batches) std::sort(batch.begin(), batch.end());
      }
      const Program& first = programs.begin()->second;
      for (const auto& [handle, program] : programs) {
        if (program.batches == first.batches) continue;
        diagnostics_.Error(
            PlaceOf(Call(program.first_call)), "missing_ranks",
            fmt::format("rank {} sends and receives otherwise than rank {} does from {} on, so "
                        "missing ranks cannot repeat it (give the logs of every rank)",
                        RankOfHandle(handle), RankOfHandle(programs.begin()->first),
                        PlaceText(Call(first.first_call))));
        break;
      }
    }
  }

  // ---- The trace. ----

  uint32_t TraceCommunicatorOf(uint32_t g) {
    const auto [entry, is_new] =
        trace_communicator_of_.try_emplace(g, static_cast<uint32_t>(trace_.communicators.size()));
    if (is_new) {
      const JoinedCommunicator& communicator = placement_.communicators[g];
      trace_.communicators.push_back({.name = communicator.name, .ranks = communicator.ranks});
      StateGraph(communicator, trace_.communicators.back());
    }
    return entry->second;
  }

  // Its rings and trees, where the lines of its ranks give them all.
  void StateGraph(const JoinedCommunicator& communicator, TraceCommunicator& stated) {
    std::vector<const LoggedGraph*> by_rank(communicator.size);
    bool has_rings = false;
    bool has_trees = false;
    for (const auto& [rank, handle] : communicator.handle_of_rank) {
      const LoggedGraph& graph = logged_.handles[handle].graph;
      by_rank[rank] = &graph;
      has_rings = has_rings || graph.has_rings();
      has_trees = has_trees || !graph.parent.empty();
    }
    stated.rings = RingsOf(by_rank);
    stated.tree_parents = TreeParentsOf(by_rank);
    const auto note = [&](bool has_lines, bool is_stated, std::string_view what) {
      if (!has_lines || is_stated) return;
      report_.assumed.push_back(fmt::format(
          "{} of communicator {} are those of NCCL's rules: the lines of its ranks do not give all",
          what, communicator.name));
    };
    note(has_rings, !stated.rings.empty(), "rings");
    note(has_trees, !stated.tree_parents.empty(), "trees");
  }

  void BuildTrace() {
    trace_.origin = report_.format;
    trace_.nccl_version = report_.nccl_version;
    trace_.rank_count = placement_.rank_count;
    for (const ImportedFile& file : report_.files) trace_.source_files.push_back(file.path);
    trace_.operations.resize(placement_.rank_count);
    // In the order of the log, so that communicators are numbered as they are first used.
    std::vector<std::unordered_map<uint64_t, uint32_t>> streams(placement_.rank_count);
    for (uint32_t i = 0; i < logged_.calls.size(); ++i) {
      const LoggedCall& call = Call(i);
      if (call.dropped) continue;
      const uint32_t rank = RankOfHandle(call.handle);
      auto& streams_of_rank = streams[rank];
      TraceOperation operation;
      operation.kind = call.kind;
      operation.communicator = TraceCommunicatorOf(CommunicatorOf(call));
      operation.count = call.count;
      operation.datatype = call.datatype;
      (IsP2p(call) ? operation.peer : operation.root) = call.root_or_peer;
      operation.stream =
          streams_of_rank.try_emplace(call.stream, static_cast<uint32_t>(streams_of_rank.size()))
              .first->second;
      operation.group = group_of_[i];
      operation.algorithm = call.algorithm;
      operation.protocol = call.protocol;
      operation.source_file = call.file;
      operation.source_line = static_cast<uint32_t>(std::min<uint64_t>(call.line, UINT32_MAX));
      trace_.operations[rank].push_back(operation);
    }
  }

  void CountImported() {
    for (const LoggedCall& call : logged_.calls) {
      if (call.dropped) continue;
      ++report_.files[call.file].calls_imported;
      if (call.algorithm != Algorithm::kUnstated) ++report_.calls_with_algorithm;
    }
    report_.rank_count = trace_.rank_count;
  }

  // ---- Reconstruction. ----

  // Families a rank's kept calls use, by how many calls.
  std::map<uint32_t, uint64_t> CallsByFamily(uint32_t rank) const {
    std::map<uint32_t, uint64_t> calls;
    for (const uint32_t i : calls_of_rank_[rank]) {
      if (Call(i).dropped) continue;
      const uint32_t family = placement_.communicators[CommunicatorOf(Call(i))].family;
      if (CanRepeat(family)) ++calls[family];
    }
    return calls;
  }

  // A family whose communicators are known for every rank.
  bool CanRepeat(uint32_t family) const {
    return placement_.families[family].stride ||
           placement_.families[family].size == placement_.rank_count;
  }

  void Reconstruct() {
    uint32_t first = 0;
    while (calls_of_rank_[first].empty()) ++first;
    const auto program = CallsByFamily(first);
    for (uint32_t rank = first + 1; rank < placement_.rank_count; ++rank) {
      if (calls_of_rank_[rank].empty() || CallsByFamily(rank) == program) continue;
      diagnostics_.Error(
          PlaceOf(Call(calls_of_rank_[rank].front())), "missing_ranks",
          fmt::format("rank {} makes other calls than rank {}, so the missing ranks {} cannot "
                      "repeat them (give the logs of every rank)",
                      rank, first, DescribeRanks(missing_)));
      return;
    }
    const uint64_t calls = trace_.operations[first].size();
    if (calls * missing_.size() > kReconstructedCallsMax) {
      diagnostics_.Error(FirstFile(), "missing_ranks",
                         fmt::format("{} ranks are missing, {} calls each: more than {} calls "
                                     "would be reconstructed (give the logs of more ranks)",
                                     missing_.size(), calls, kReconstructedCallsMax));
      return;
    }
    for (const uint32_t rank : missing_) RepeatProgram(first, rank);
    NoteReconstruction(first);
  }

  void RepeatProgram(uint32_t from, uint32_t to) {
    const std::vector<TraceOperation>& program = trace_.operations[from];
    size_t next = 0;  // into the program: one operation per kept call, in the same order
    for (const uint32_t i : calls_of_rank_[from]) {
      const LoggedCall& call = Call(i);
      if (call.dropped) continue;
      TraceOperation operation = program[next++];
      const uint32_t family = placement_.communicators[CommunicatorOf(call)].family;
      if (!CanRepeat(family)) {
        not_repeated_.insert(CommunicatorOf(call));
        continue;
      }
      const auto [communicator, own_rank] = PlaceInFamily(family, to);
      operation.communicator = TraceCommunicatorOf(communicator);
      if (IsP2p(call)) {
        operation.peer = (own_rank + ShiftOf(call)) % placement_.families[family].size;
      }
      operation.source_file = 0;
      operation.source_line = 0;
      trace_.operations[to].push_back(operation);
      ++report_.calls_reconstructed;
    }
    ++report_.ranks_reconstructed;
  }

  // The communicator of the family that `rank` is in, made if the log holds none of its ranks, and
  // its rank there.
  std::pair<uint32_t, uint32_t> PlaceInFamily(uint32_t family_index, uint32_t rank) {
    const auto known = place_in_family_.find({family_index, rank});
    if (known != place_in_family_.end()) return known->second;
    CommunicatorFamily& family = placement_.families[family_index];
    if (indexed_families_.insert(family_index).second) {
      for (const uint32_t g : family.communicators) IndexMembers(family_index, g);
      return PlaceInFamily(family_index, rank);
    }
    const uint32_t tile = family.size * *family.stride;
    JoinedCommunicator made;
    made.name = fmt::format("comm{}", placement_.communicators.size());
    made.size = family.size;
    made.family = family_index;
    for (uint32_t r = 0; r < family.size; ++r) {
      made.ranks.push_back(rank / tile * tile + rank % *family.stride + r * *family.stride);
    }
    const auto g = static_cast<uint32_t>(placement_.communicators.size());
    placement_.communicators.push_back(std::move(made));
    family.communicators.push_back(g);
    IndexMembers(family_index, g);
    return place_in_family_.at({family_index, rank});
  }

  void IndexMembers(uint32_t family, uint32_t g) {
    const std::vector<uint32_t>& ranks = placement_.communicators[g].ranks;
    for (uint32_t r = 0; r < ranks.size(); ++r) {
      place_in_family_.try_emplace({family, ranks[r]}, g, r);
    }
  }

  void NoteReconstruction(uint32_t first) {
    report_.reconstructed.push_back(
        fmt::format("ranks {} make the calls of rank {}: {} calls, which no line stands for; peers "
                    "of Send and Recv keep their distance",
                    DescribeRanks(missing_), first, report_.calls_reconstructed));
    for (const uint32_t g : not_repeated_) {
      report_.reconstructed.push_back(
          fmt::format("calls on {} were not repeated: on which ranks it would have siblings cannot "
                      "be told",
                      placement_.communicators[g].name));
    }
  }

  static constexpr uint32_t kNone = UINT32_MAX;

  LoggedCalls& logged_;
  Placement& placement_;
  const NcclLogOptions& options_;
  ImportReport& report_;
  Diagnostics& diagnostics_;

  std::vector<std::vector<uint32_t>> calls_of_rank_;  // by global rank, in order
  std::vector<uint32_t> endpoint_of_rank_;
  std::vector<bool> has_call_;        // by handle
  std::vector<bool> has_collective_;  // by handle
  std::vector<uint32_t> missing_;     // ranks without calls, ascending
  std::vector<uint32_t> group_of_;    // by call; 0: none
  Trace trace_;
  std::map<uint32_t, uint32_t> trace_communicator_of_;
  std::map<std::pair<uint32_t, uint32_t>, std::pair<uint32_t, uint32_t>> place_in_family_;
  std::set<uint32_t> indexed_families_;
  std::set<uint32_t> not_repeated_;
};

}  // namespace

std::optional<Trace> AssembleTrace(LoggedCalls& logged, Placement& placement,
                                   const NcclLogOptions& options, ImportReport& report,
                                   Diagnostics& diagnostics) {
  return Assembler(logged, placement, options, report, diagnostics).Run();
}

}  // namespace railyard
