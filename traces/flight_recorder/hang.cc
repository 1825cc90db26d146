// SPDX-License-Identifier: GPL-2.0-only
#include "traces/flight_recorder/hang.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/units/divide_up.h"
#include "traces/reading/captured_matching.h"

namespace railyard {
namespace {

constexpr uint32_t kGpusOfServer = 8;
constexpr size_t kListedRanksMax = 16;

std::string Listed(const std::vector<uint32_t>& ranks) {
  if (ranks.empty()) return "none";
  if (ranks.size() <= kListedRanksMax) return fmt::format("{}", fmt::join(ranks, ", "));
  return fmt::format("{} and {} more",
                     fmt::join(ranks.begin(), ranks.begin() + kListedRanksMax, ", "),
                     ranks.size() - kListedRanksMax);
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
    if (call == nullptr) {
      copy.operation.stream = job.StreamOf(rank, hang.group);
      call = &calls.emplace_back(copy);
    }
    call->operation.compute_before_ps = kHangPs;
  }
  for (auto& [rank, calls] : job.calls()) {
    for (CapturedCall& call : calls) {
      if (call.operation.communicator != hang.group || call.identity <= identity) continue;
      DropCapturedCall(call, CallDropReason::kIncompleteOnRank,
                       "it never ran: the job hung in a call of its group before it", report);
    }
  }
}

}  // namespace

std::vector<Hang> PlaceHangs(CapturedJob& job, const UnfinishedCalls& unfinished,
                             ImportReport& report) {
  std::vector<Hang> hangs;
  for (auto it = unfinished.begin(); it != unfinished.end();) {
    const auto [group, identity] = it->first;
    Hang hang;
    hang.group = group;
    if (FindWaiting(job, group, identity, it->second, hang)) {
      const uint32_t first = hang.waiting.front();
      const CapturedCall* const call = Find(job.calls()[first], group, identity).call;
      if (call != nullptr) {
        hang.collective =
            fmt::format("{} of {} {} in group \"{}\"", ReportedKindName(call->operation.kind),
                        call->operation.count, DatatypeName(call->operation.datatype),
                        job.groups()[group].name);
        PlaceHang(job, hang, identity, report);
        hangs.push_back(std::move(hang));
      }
    }
    // Calls that the group enqueued after its first unfinished one wait for that one.
    while (it != unfinished.end() && it->first.first == group) ++it;
  }
  return hangs;
}

void HoldUncapturedRanks(const std::vector<Hang>& hangs, CapturedJob& job, Trace& trace) {
  for (const Hang& hang : hangs) {
    if (!hang.late.empty()) continue;  // it hangs without them
    const std::string& name = job.groups()[hang.group].name;
    for (const uint32_t rank : hang.without_dump) {
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
  std::string text = "# expect: STALLED\n# Where the job hung, by the dumps of its ranks:\n";
  for (const Hang& hang : hangs) {
    text += fmt::format("# {}: ranks {} wait for ranks {}", hang.collective, Listed(hang.waiting),
                        Listed(hang.late.empty() ? hang.without_dump : hang.late));
    text += hang.late.empty() ? ", of which there is no dump.\n" : ", which have not come to it.\n";
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
