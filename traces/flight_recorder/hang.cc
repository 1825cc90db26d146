// SPDX-License-Identifier: GPL-2.0-only
#include "traces/flight_recorder/hang.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/units/divide_up.h"
#include "traces/flight_recorder/message_hang.h"
#include "traces/reading/captured_matching.h"

namespace railyard {
namespace {

constexpr uint32_t kGpusOfServer = 8;
constexpr size_t kListedRanksMax = 16;

std::string Listed(const std::vector<uint32_t>& ranks) {
  if (ranks.empty()) return "no rank";
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  if (ranks.size() <= kListedRanksMax) return fmt::format("ranks {}", fmt::join(ranks, ", "));
  return fmt::format("ranks {} and {} more",
                     fmt::join(ranks.begin(), ranks.begin() + kListedRanksMax, ", "),
                     ranks.size() - kListedRanksMax);
}

std::string_view WaitOf(const std::vector<uint32_t>& ranks) {
  return ranks.size() == 1 ? "waits" : "wait";
}

// The rank's call of this identity in the group, and the last identity that it has there.
struct RankInGroup {
  CapturedCall* call = nullptr;
  uint64_t last = 0;
};

RankInGroup Find(std::vector<CapturedCall>& calls, uint32_t group, uint64_t identity) {
  RankInGroup found;
  for (CapturedCall& call : calls) {
    if (call.operation.communicator != group || call.identity == 0) continue;
    found.last = std::max(found.last, call.identity);
    if (call.identity == identity && !call.dropped) found.call = &call;
  }
  return found;
}

// It is equal on all ranks of one collective. The sizes of an AllToAll need not be.
using Signature = std::tuple<CollectiveKind, uint64_t, Datatype, uint32_t>;
Signature SignatureOf(const TraceOperation& call) {
  return {call.kind, call.kind == CollectiveKind::kAllToAll ? 0 : call.count, call.datatype,
          call.root};
}

std::string Described(const TraceOperation& call) {
  return fmt::format("{} of {} {}", ReportedKindName(call.kind), call.count,
                     DatatypeName(call.datatype));
}

// If captured ranks make different calls here, those wait that most ranks have not finished, and
// the ranks that make another are late. Returns false if all make the same.
bool FindMismatch(CapturedJob& job, uint32_t group, uint64_t identity,
                  const std::map<uint32_t, UnfinishedCall>& unfinished, Hang& hang) {
  std::map<Signature, std::vector<uint32_t>> unfinished_by_call;
  std::map<Signature, std::vector<uint32_t>> ranks_by_call;
  std::map<uint32_t, const CapturedCall*> call_of;  // nullptr: it has not come to one
  for (const uint32_t rank : job.groups()[group].ranks) {
    const auto calls = job.calls().find(rank);
    if (calls == job.calls().end()) {
      hang.without_dump.push_back(rank);
      continue;
    }
    const RankInGroup found = Find(calls->second, group, identity);
    if (found.call == nullptr && found.last > identity) continue;  // its record is gone
    call_of[rank] = found.call;
    if (found.call == nullptr) continue;
    const Signature signature = SignatureOf(found.call->operation);
    ranks_by_call[signature].push_back(rank);
    if (unfinished.contains(rank)) unfinished_by_call[signature].push_back(rank);
  }
  if (ranks_by_call.size() < 2 || unfinished_by_call.empty()) {
    hang.without_dump.clear();
    return false;
  }
  // If as many ranks wait in each of two calls, the one of the lowest rank counts.
  const auto is_less = [](const auto& a, const auto& b) {
    if (a.second.size() != b.second.size()) return a.second.size() < b.second.size();
    return a.second.front() > b.second.front();
  };
  const auto awaited =
      std::max_element(unfinished_by_call.begin(), unfinished_by_call.end(), is_less);
  hang.waiting = awaited->second;
  for (const auto& [rank, call] : call_of) {
    if (call == nullptr || SignatureOf(call->operation) != awaited->first)
      hang.late.push_back(rank);
  }
  for (const auto& [signature, ranks] : ranks_by_call) {
    if (signature == awaited->first) continue;
    hang.other_calls += fmt::format("{}{} {} {}", hang.other_calls.empty() ? "" : "; ",
                                    Listed(ranks), ranks.size() == 1 ? "makes" : "make",
                                    Described(call_of.at(ranks.front())->operation));
  }
  return true;
}

// Finds the ranks that wait in the call and those that have not reached it; false if no rank is
// late.
bool FindWaiting(CapturedJob& job, uint32_t group, uint64_t identity,
                 const std::map<uint32_t, UnfinishedCall>& unfinished, Hang& hang) {
  const bool has_begun = std::any_of(unfinished.begin(), unfinished.end(),
                                     [](const auto& entry) { return entry.second.has_begun; });
  for (const uint32_t rank : job.groups()[group].ranks) {
    const auto calls = job.calls().find(rank);
    if (calls == job.calls().end()) {
      hang.without_dump.push_back(rank);
      continue;
    }
    const auto state = unfinished.find(rank);
    if (state != unfinished.end()) {
      const bool waits = state->second.has_begun || !has_begun;
      (waits ? hang.waiting : hang.late).push_back(rank);
    } else if (Find(calls->second, group, identity).last < identity) {
      hang.late.push_back(rank);
    }
  }
  return !hang.waiting.empty() && (!hang.late.empty() || !hang.without_dump.empty());
}

void PlaceHang(CapturedJob& job, const Hang& hang, uint64_t identity, ImportReport& report) {
  CapturedCall copy;
  for (const uint32_t rank : hang.waiting) {
    if (const CapturedCall* const call = Find(job.calls()[rank], hang.group, identity).call) {
      copy = *call;
    }
  }
  copy.is_reconstructed = true;
  copy.operation.measured_ps = 0;
  copy.operation.source_line = 0;
  for (const uint32_t rank : hang.late) {
    std::vector<CapturedCall>& calls = job.calls()[rank];
    CapturedCall* call = Find(calls, hang.group, identity).call;
    if (call != nullptr && SignatureOf(call->operation) != SignatureOf(copy.operation)) {
      DropCapturedCall(
          *call, CallDropReason::kRanksDisagree,
          fmt::format("rank {} makes {}, where {} {} in {}", rank, Described(call->operation),
                      Listed(hang.waiting), WaitOf(hang.waiting), hang.collective),
          report);
      call = nullptr;
    }
    if (call == nullptr) {
      copy.operation.stream = job.StreamOf(rank, hang.group);
      call = &calls.emplace_back(copy);
    }
    call->operation.compute_before_ps = kHangPs;
  }
  for (auto& [rank, calls] : job.calls()) {
    for (CapturedCall& call : calls) {
      if (call.operation.communicator != hang.group || call.identity <= identity) continue;
      const bool is_coalesced = NumberOfIdentity(call.identity) == NumberOfIdentity(identity);
      DropCapturedCall(call, CallDropReason::kIncompleteOnRank,
                       is_coalesced ? "it never ran: it is of the coalesced group that hung"
                                    : "it never ran: the job hung in a call of its group before it",
                       report);
    }
  }
}

}  // namespace

HangSearch PlaceHangs(CapturedJob& job, const UnfinishedWork& unfinished, ImportReport& report) {
  HangSearch search;
  for (auto it = unfinished.collectives.begin(); it != unfinished.collectives.end();) {
    const auto [group, identity] = it->first;
    Hang hang;
    hang.group = group;
    if (FindMismatch(job, group, identity, it->second, hang) ||
        FindWaiting(job, group, identity, it->second, hang)) {
      const uint32_t first = hang.waiting.front();
      const CapturedCall* const call = Find(job.calls()[first], group, identity).call;
      if (call != nullptr) {
        hang.collective =
            fmt::format("{} in group \"{}\"", Described(call->operation), job.groups()[group].name);
        PlaceHang(job, hang, identity, report);
        search.hangs.push_back(std::move(hang));
      }
    }
    // Calls that the group enqueued after its first unfinished one wait for that one.
    while (it != unfinished.collectives.end() && it->first.first == group) ++it;
  }
  PlaceMessageHangs(job, unfinished, search, report);
  return search;
}

std::string Sentence(const Hang& hang) {
  std::string text =
      fmt::format("{}: {} {} for {}", hang.collective, Listed(hang.waiting), WaitOf(hang.waiting),
                  Listed(hang.late.empty() ? hang.without_dump : hang.late));
  if (hang.late.empty()) return text + ", of which there is no dump.";
  if (hang.other_calls.empty()) {
    return text +
           (hang.late.size() == 1 ? ", which has not come to it." : ", which have not come to it.");
  }
  return text + fmt::format(", because the calls differ: {}.", hang.other_calls);
}

void HoldUncapturedRanks(const std::vector<Hang>& hangs, CapturedJob& job, Trace& trace) {
  for (const Hang& hang : hangs) {
    if (!hang.late.empty()) continue;  // it hangs without them
    const std::string& name = job.groups()[hang.group].name;
    for (const uint32_t number : hang.without_dump) {
      const GlobalRank rank{number};
      std::vector<TraceOperation>& program = trace.operations[rank];
      for (auto operation = program.rbegin(); operation != program.rend(); ++operation) {
        if (trace.communicators[trace.CommunicatorOf(rank, operation->communicator)].name != name) {
          continue;
        }
        operation->compute_before_ps = kHangPs;
        break;
      }
    }
  }
}

std::string HangScenario(const std::vector<Hang>& hangs, const std::string& trace_path,
                         uint32_t rank_count) {
  std::string text;
  if (!std::ranges::all_of(hangs, &Hang::is_of_send)) text += "# expect: STALLED\n";
  text += "# Where the job hung, by the dumps of its ranks:\n";
  for (const Hang& hang : hangs) text += fmt::format("# {}\n", Sentence(hang));
  if (std::ranges::any_of(hangs, &Hang::is_of_send)) {
    text +=
        "# A Send whose bytes fit NCCL's buffers leaves without its Recv: where nothing else "
        "waits, "
        "a run\n# ends when the Recv has come, after a day.\n";
  }
  text += fmt::format(
      "# Ranks that have not come to a collective compute before it for a day. The fabric is a "
      "choice:\n# put in the one that the job ran on.\n"
      "fabric {{ rail_optimized {{ servers: {} }} }}\nworkload {{ trace: \"{}\" }}\n"
      "watchdog {{ no_progress: \"600s\" }}\n",
      DivideUp(rank_count, kGpusOfServer), trace_path);
  return text;
}

}  // namespace railyard
