// SPDX-License-Identifier: GPL-2.0-only
#include "traces/reading/captured_iterations.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "traces/reading/captured_matching.h"

namespace railyard {
namespace {

class IterationMarker {
 public:
  explicit IterationMarker(CapturedJob& job) : job_(job) {}

  // Returns why the steps are no iterations of the job; an empty string if they are.
  std::string Mark() {
    std::optional<uint32_t> first_rank;
    for (auto& [rank, calls] : job_.calls()) {
      const std::optional<uint32_t> iterations = MarkCalls(rank, calls);
      if (!disagreement_.empty()) return disagreement_;
      if (!iterations) continue;
      if (!first_rank) {
        first_rank = rank;
        iterations_ = *iterations;
      } else if (*iterations != iterations_) {
        return fmt::format("rank {} has calls in {}, rank {} in {}", *first_rank,
                           Counted(iterations_, "step"), rank, Counted(*iterations, "step"));
      }
    }
    return {};
  }

  void Unmark() {
    for (auto& [rank, calls] : job_.calls()) {
      for (CapturedCall& call : calls) call.operation.begins_iteration = false;
    }
  }

  // Returns those of each rank; 0 without calls.
  uint32_t iterations() const { return iterations_; }

 private:
  // Group, then sender and receiver of a message; kNotAMember for collectives.
  using Place = std::tuple<uint32_t, uint32_t, uint32_t>;
  struct Calls {
    uint32_t rank = 0;                 // whose they were first
    std::vector<uint32_t> iterations;  // by call
  };

  // Returns the number of the rank's iterations; nullopt without calls.
  std::optional<uint32_t> MarkCalls(uint32_t rank, std::vector<CapturedCall>& calls) {
    std::optional<uint32_t> iteration;
    uint32_t step = 0;
    std::map<Place, size_t> calls_at;
    for (CapturedCall& call : calls) {
      TraceOperation& operation = call.operation;
      if (call.dropped || operation.kind == CollectiveKind::kCompute) continue;
      operation.begins_iteration = step != 0 && call.step > step;
      step = std::max(step, call.step);
      iteration = iteration.value_or(0) + (operation.begins_iteration ? 1 : 0);
      const Place place = PlaceOf(rank, operation);
      Compare(rank, place, calls_at[place]++, *iteration);
      if (!disagreement_.empty()) return std::nullopt;
    }
    return iteration ? std::optional(*iteration + 1) : std::nullopt;
  }

  Place PlaceOf(uint32_t rank, const TraceOperation& operation) const {
    if (!IsSendOrRecv(operation.kind)) return {operation.communicator, kNotAMember, kNotAMember};
    const uint32_t self = CommunicatorRankIn(job_.groups()[operation.communicator], rank);
    return operation.kind == CollectiveKind::kSend
               ? Place{operation.communicator, self, operation.peer}
               : Place{operation.communicator, operation.peer, self};
  }

  void Compare(uint32_t rank, const Place& place, size_t number, uint32_t iteration) {
    Calls& calls = calls_.try_emplace(place, Calls{.rank = rank, .iterations = {}}).first->second;
    if (number >= calls.iterations.size()) {
      calls.iterations.push_back(iteration);
    } else if (calls.iterations[number] != iteration) {
      disagreement_ =
          fmt::format("call {} of group \"{}\" is in iteration {} of rank {} and {} of rank {}",
                      number + 1, job_.groups()[std::get<0>(place)].name, calls.iterations[number],
                      calls.rank, iteration, rank);
    }
  }

  CapturedJob& job_;
  uint32_t iterations_ = 0;
  std::map<Place, Calls> calls_;
  std::string disagreement_;
};

bool HasSteps(CapturedJob& job) {
  for (const auto& [rank, calls] : job.calls()) {
    for (const CapturedCall& call : calls) {
      if (call.step != 0) return true;
    }
  }
  return false;
}

}  // namespace

void MarkIterations(CapturedJob& job, ImportReport& report) {
  if (!HasSteps(job)) return;
  IterationMarker marker(job);
  if (const std::string why = marker.Mark(); !why.empty()) {
    marker.Unmark();
    report.assumed.push_back("steps are not taken for iterations: " + why);
  } else if (marker.iterations() > 1) {
    report.assumed.push_back(
        fmt::format("the {} steps are iterations; a call belongs to the one in which it was made",
                    marker.iterations()));
  }
}

void RemoveUnequalIterations(Trace& trace, ImportReport& report) {
  std::optional<std::ptrdiff_t> expected;
  bool are_equal = true;
  const uint32_t programs = trace.operations.program_count();
  for (uint32_t i = 0; i < programs; ++i) {
    const std::vector<TraceOperation>& program = trace.operations.program(i);
    if (program.empty()) continue;
    const auto begins =
        std::count_if(program.begin(), program.end(),
                      [](const TraceOperation& call) { return call.begins_iteration; });
    are_equal = are_equal && begins == expected.value_or(begins);
    expected = begins;
  }
  if (are_equal) return;
  for (uint32_t i = 0; i < programs; ++i) {
    for (TraceOperation& call : trace.operations.program(i)) call.begins_iteration = false;
  }
  report.assumed.push_back(
      "steps are not taken for iterations: the calls of reconstructed ranks are in no step");
}

}  // namespace railyard
