// SPDX-License-Identifier: GPL-2.0-only
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/flight_recorder/flight_recorder_text.h"
#include "traces/flight_recorder/hang.h"
#include "traces/import/import.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

TEST(FlightRecorderHangTest, AHangBecomesAScenario) {
  // Rank 1 never comes to the second AllReduce; rank 0 has a third one enqueued behind it.
  const Imported imported = Import({Dump(Entry(0, 1, "completed") + "," + Entry(1, 2, "started") +
                                         "," + Entry(2, 3, "scheduled")),
                                    Dump(Entry(0, 1, "completed"))},
                                   {.hang_trace_path = "hang.trace"});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  const std::string& scenario = imported.import.hang_scenario;
  EXPECT_THAT(scenario, HasSubstr("rank 0 waits for rank 1, which has not come to it."));
  EXPECT_THAT(scenario, HasSubstr("workload { trace: \"hang.trace\" }"));
  const auto& late = imported.import.trace->operations[GlobalRank{1}];
  ASSERT_EQ(late.size(), 2u);
  EXPECT_EQ(late[0].compute_before_ps, 0);
  EXPECT_EQ(late[1].compute_before_ps, kHangPs);
  EXPECT_EQ(imported.import.trace->operations[GlobalRank{0}].size(), 2u);
  EXPECT_EQ(imported.import.report.calls_imported(), 3u);
  EXPECT_EQ(imported.import.report.calls_reconstructed, 1u);
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kIncompleteOnRank).count, 1u);
}

TEST(FlightRecorderHangTest, ARankWhoseGpuHasNotBegunIsLate) {
  const Imported imported = Import({Dump(Entry(0, 1, "started")), Dump(Entry(0, 1, "scheduled"))},
                                   {.hang_trace_path = "t"});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.trace->operations[GlobalRank{0}][0].compute_before_ps, 0);
  EXPECT_EQ(imported.import.trace->operations[GlobalRank{1}][0].compute_before_ps, kHangPs);
}

TEST(FlightRecorderHangTest, ARankWithoutADumpIsWaitedFor) {
  const Imported imported = Import({Dump(Entry(0, 1, "started"))}, {.hang_trace_path = "t"});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_THAT(imported.import.hang_scenario, HasSubstr("rank 1, of which there is no dump"));
  EXPECT_EQ(imported.import.trace->operations[GlobalRank{1}][0].compute_before_ps, kHangPs);
}

TEST(FlightRecorderHangTest, RanksThatMakeAnotherCallAreLateAndNamed) {
  const std::string first = Entry(0, 1, "completed");
  const std::string call = Entry(1, 2, "started");
  const std::string usual = OfGroup(Dump(first + "," + call), "[0, 1, 2]");
  const std::string gather =
      OfGroup(Dump(first + "," + Replaced(call, "all_reduce", "_all_gather_base")), "[0, 1, 2]");
  const Imported kinds = Import({usual, usual, gather}, {.hang_trace_path = "t"});
  ASSERT_TRUE(kinds.import.trace) << kinds.diagnostics.ToString();
  const std::string sentence =
      "AllReduce of 12 float32 in group \"0\": ranks 0, 1 wait for rank 2, because the calls "
      "differ: rank 2 makes AllGather of 12 float32.";
  EXPECT_THAT(kinds.import.hang_scenario, HasSubstr("# " + sentence));
  EXPECT_THAT(kinds.diagnostics.ToString(),
              HasSubstr("warning: the job hung in calls that differ"));
  EXPECT_THAT(kinds.import.report.ToString(), HasSubstr(sentence));
  const auto& late = kinds.import.trace->operations[GlobalRank{2}];
  ASSERT_EQ(late.size(), 2u);
  EXPECT_EQ(late[1].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(late[1].compute_before_ps, kHangPs);
  EXPECT_EQ(kinds.import.report.DroppedFor(CallDropReason::kRanksDisagree).count, 1u);
  // The first of two calls that as many ranks make is the awaited one.
  const Imported sizes =
      Import({Dump(call), Dump(Replaced(call, "[[3, 4]]", "[[3, 5]]"))}, {.hang_trace_path = "t"});
  EXPECT_THAT(sizes.import.hang_scenario,
              HasSubstr("rank 0 waits for rank 1, because the calls differ: rank 1 makes AllReduce "
                        "of 15 float32."));
}

TEST(FlightRecorderHangTest, APeerWithoutItsRecvIsLate) {
  for (const std::string state : {"started", "scheduled"}) {
    const Imported imported =
        Import({Dump(Message(0, "send 0->1", "completed") + "," + Message(1, "send 0->1", state) +
                     "," + Message(2, "send 0->1", "scheduled")),
                Dump(Message(0, "recv 1<-0", "completed"))},
               {.hang_trace_path = "t"});
    ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
    EXPECT_THAT(imported.import.hang_scenario,
                HasSubstr("Send of 12 float32 to rank 1 in group \"0\": rank 0 waits for rank 1, "
                          "which has not come to it."));
    EXPECT_THAT(imported.import.hang_scenario, HasSubstr("leaves without its Recv"));
    EXPECT_THAT(imported.import.hang_scenario, ::testing::Not(HasSubstr("expect: STALLED")));
    const auto& late = imported.import.trace->operations[GlobalRank{1}];
    ASSERT_EQ(late.size(), 2u);
    EXPECT_EQ(late[1].kind, CollectiveKind::kRecv);
    EXPECT_EQ(late[1].compute_before_ps, kHangPs);
    EXPECT_EQ(imported.import.trace->operations[GlobalRank{0}].size(), 2u);
    EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kIncompleteOnRank).count, 1u);
  }
}

TEST(FlightRecorderHangTest, RingsOfMessagesAreAlignedAtTheirEnds) {
  // The ring of rank 1 has lost its first call.
  const Imported imported =
      Import({Dump(Message(4, "send 0->1", "completed") + "," +
                   Message(5, "send 0->1", "completed") + "," + Message(6, "send 0->1", "started")),
              Dump(Message(7, "recv 1<-0", "completed"))},
             {.hang_trace_path = "t"});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.trace->operations[GlobalRank{0}].size(), 2u);
  EXPECT_EQ(imported.import.trace->operations[GlobalRank{1}].size(), 2u);
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kIncompleteOnRank).count, 1u);
}

// Without times a dump does not say which calls have begun, and a ring may begin anywhere.
TEST(FlightRecorderHangTest, RingsWithoutTimesAreAlignedAtWhatHasEnded) {
  const auto scenario = [](const std::string& sends, const std::string& receives) {
    return Import({Dump(sends), Dump(receives)}, {.hang_trace_path = "t"}).import.hang_scenario;
  };
  const auto send = [](int record, const char* state) {
    return Message(record, "send 0->1", state);
  };
  const auto recv = [](int record, const char* state) {
    return Message(record, "recv 1<-0", state);
  };
  EXPECT_THAT(scenario(send(4, "completed") + "," + send(5, "completed"),
                       recv(7, "completed") + "," + recv(8, "scheduled")),
              HasSubstr("Recv of 12 float32 from rank 0 in group \"0\": rank 1 waits for rank 0"));
  EXPECT_THAT(scenario(send(4, "completed") + "," + send(5, "scheduled"), recv(7, "completed")),
              HasSubstr("Send of 12 float32 to rank 1 in group \"0\": rank 0 waits for rank 1"));
  // Both have come to it.
  EXPECT_EQ(scenario(send(5, "scheduled"), recv(7, "completed") + "," + recv(8, "scheduled")), "");
  // The collective before the Recv may be what rank 1 waits for.
  EXPECT_EQ(
      scenario(send(4, "completed") + "," + Entry(5, 3, "scheduled"),
               recv(7, "completed") + "," + Entry(8, 3, "scheduled") + "," + recv(9, "scheduled")),
      "");
}

TEST(FlightRecorderHangTest, CallsCoalescedWithTheOneThatHangsAreOfItsGroup) {
  const std::string first = Entry(0, 4, "scheduled");
  const Imported imported =
      Import({Dump(first + "," + Entry(1, 4, "scheduled") + "," + Entry(2, 5, "scheduled")),
              Dump(Entry(0, 3, "completed"))},
             {.hang_trace_path = "t"});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  const std::string report = imported.import.report.ToString();
  EXPECT_THAT(report, HasSubstr("it is of the coalesced group that hung"));
  EXPECT_THAT(report, HasSubstr("the job hung in a call of its group before it"));
}

TEST(FlightRecorderHangTest, MessagesOfDifferentSizesAreNamed) {
  const Imported imported =
      Import({Dump(Message(0, "send 0->1", "started")),
              Dump(Replaced(Message(0, "recv 1<-0", "started"), "[[3, 4]]", "[[3, 5]]"))},
             {.hang_trace_path = "t"});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_THAT(imported.import.hang_scenario,
              HasSubstr("Send of 12 float32 to rank 1 in group \"0\": rank 0 waits for rank 1, "
                        "because the calls differ: rank 1 receives 15 float32."));
}

TEST(FlightRecorderHangTest, HangsOfMessagesThatNoTraceCanHaveAreErrors) {
  const Imported alone =
      Import({Dump(Message(0, "send 0->1", "started"))}, {.hang_trace_path = "t"});
  EXPECT_THAT(alone.diagnostics.ToString(),
              HasSubstr("rank 0 waits in Send of 12 float32 to rank 1 in group \"0\", of which "
                        "there is no dump"));
  const Imported network =
      Import({Dump(Message(0, "send 0->1", "started")), Dump(Message(0, "recv 1<-0", "started"))},
             {.hang_trace_path = "t"});
  EXPECT_THAT(network.diagnostics.ToString(), HasSubstr("is not recorded"));
}

// Rank 1's second Recv has not begun, and its peer has no dump.
TEST(FlightRecorderHangTest, MessagesWithoutTheirPeersCallsAreSaidToBeUnfinished) {
  const Imported imported = Import({Dump(""), Dump(Message(7, "recv 1<-0", "completed") + "," +
                                                   Message(8, "recv 1<-0", "scheduled"))},
                                   {.hang_trace_path = "t"});
  EXPECT_THAT(imported.diagnostics.ToString(), HasSubstr("a Send or Recv has not ended"));
}

TEST(FlightRecorderHangTest, WhatIsNoHangMakesNoScenario) {
  const Imported done = Import({Dump(Entry(0, 1, "completed"))}, {.hang_trace_path = "t"});
  EXPECT_FALSE(done.import.trace);
  EXPECT_THAT(done.diagnostics.ToString(), HasSubstr("no collective is unfinished"));
  const Imported network = Import({Dump(Entry(0, 1, "started")), Dump(Entry(0, 1, "started"))},
                                  {.hang_trace_path = "t"});
  EXPECT_FALSE(network.import.trace);
  EXPECT_THAT(network.diagnostics.ToString(), HasSubstr("is not recorded"));
}

}  // namespace
}  // namespace railyard
