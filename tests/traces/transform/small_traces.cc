// SPDX-License-Identifier: GPL-2.0-only
#include "tests/traces/transform/small_traces.h"

#include <string>

#include <gtest/gtest.h>

#include "simulator/diagnostics/diagnostics.h"
#include "workloads/job/job.h"

namespace railyard::testing {

void ExpectMatches(const Trace& trace) {
  Diagnostics diagnostics;
  EXPECT_TRUE(BuildJob(trace, diagnostics).has_value()) << diagnostics.ToString();
}

TraceOperation Call(CollectiveKind kind, uint32_t communicator, uint64_t count) {
  TraceOperation call;
  call.kind = kind;
  call.communicator = communicator;
  call.count = count;
  call.datatype = Datatype::kUint8;
  return call;
}

Trace TwoByTwo() {
  Trace trace;
  trace.origin = "test";
  trace.rank_count = 4;
  trace.source_files = {"/home/someone/secret.log"};
  trace.communicators = {{.name = "tp0", .ranks = GlobalRanksOf({0, 1})},
                         {.name = "tp1", .ranks = GlobalRanksOf({2, 3})},
                         {.name = "dp0", .ranks = GlobalRanksOf({0, 2})},
                         {.name = "dp1", .ranks = GlobalRanksOf({1, 3})}};
  trace.operations.resize(4);
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    for (int iteration = 0; iteration < 2; ++iteration) {
      TraceOperation first = Call(CollectiveKind::kAllReduce, rank / 2, 100);
      first.begins_iteration = iteration > 0;
      first.compute_before_ps = 5'000'000;
      first.source_line = 7;
      trace.operations[rank].push_back(first);
      trace.operations[rank].push_back(Call(CollectiveKind::kAllGather, 2 + rank % 2, 30));
      trace.operations[rank].push_back(Call(CollectiveKind::kAllReduce, 2 + rank % 2, 80));
    }
  }
  return trace;
}

Trace TwoByTwoExperts() {
  Trace trace;
  trace.origin = "test";
  trace.rank_count = 4;
  trace.communicators = {{.name = "ep0", .ranks = GlobalRanksOf({0, 1})},
                         {.name = "ep1", .ranks = GlobalRanksOf({2, 3})},
                         {.name = "edp0", .ranks = GlobalRanksOf({0, 2})},
                         {.name = "edp1", .ranks = GlobalRanksOf({1, 3})},
                         {.name = "dp", .ranks = GlobalRanksOf({0, 1, 2, 3})}};
  trace.operations.resize(4);
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    trace.operations[rank].push_back(Call(CollectiveKind::kAllToAll, rank / 2, 60));
    trace.operations[rank].push_back(Call(CollectiveKind::kAllReduce, 2 + rank % 2, 80));
    trace.operations[rank].push_back(Call(CollectiveKind::kAllReduce, 4, 100));
  }
  return trace;
}

Trace FourStages() {
  constexpr uint32_t kStages = 4;
  constexpr uint32_t kEnds = kStages - 1;  // the communicator behind those of neighbors
  Trace trace;
  trace.origin = "test";
  trace.rank_count = kStages;
  trace.operations.resize(kStages);
  for (uint32_t stage = 0; stage + 1 < kStages; ++stage) {
    trace.communicators.push_back(
        {.name = "pp" + std::to_string(stage), .ranks = GlobalRanksOf({stage, stage + 1})});
  }
  trace.communicators.push_back({.name = "ends", .ranks = GlobalRanksOf({0, kStages - 1})});
  for (uint32_t stage = 0; stage < kStages; ++stage) {
    const auto add = [&](CollectiveKind kind, bool is_with_next, uint64_t bytes) {
      if (is_with_next ? stage + 1 == kStages : stage == 0) return;
      TraceOperation message = Call(kind, is_with_next ? stage : stage - 1, bytes);
      message.peer = is_with_next ? 1 : 0;
      message.compute_before_ps = kind == CollectiveKind::kSend ? 1'000'000 : 0;
      trace.operations[GlobalRank{stage}].push_back(message);
    };
    for (int pass = 0; pass < 2; ++pass) {
      add(CollectiveKind::kRecv, false, 70);
      add(CollectiveKind::kSend, true, 70);
    }
    for (int pass = 0; pass < 2; ++pass) {
      add(CollectiveKind::kRecv, true, 50);
      add(CollectiveKind::kSend, false, 50);
    }
    if (stage == 0 || stage + 1 == kStages) {
      trace.operations[GlobalRank{stage}].push_back(Call(CollectiveKind::kAllReduce, kEnds, 12));
    }
  }
  return trace;
}

}  // namespace railyard::testing
