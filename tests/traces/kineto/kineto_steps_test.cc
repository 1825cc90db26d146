// SPDX-License-Identifier: GPL-2.0-only
// Steps of PyTorch's profiler, alone and as iterations of what is imported.
#include "traces/kineto/kineto_steps.h"

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/kineto/kineto_text.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

TEST(KinetoStepsTest, AStepLastsUntilTheNextOne) {
  const KinetoSteps steps({{.number = 5, .start = {20, 500'000}},
                           {.number = 4, .start = {10, 0}},
                           {.number = 5, .start = {30, 0}}});
  EXPECT_EQ(steps.count(), 2u);
  EXPECT_EQ(steps.BegunBy({9, 999'999}), 0u);
  EXPECT_EQ(steps.BegunBy({10, 0}), 1u);
  EXPECT_EQ(steps.BegunBy({20, 499'999}), 1u);
  EXPECT_EQ(steps.BegunBy({20, 500'000}), 2u);
  EXPECT_EQ(steps.BegunBy({40, 0}), 2u);
}

// A step of the profiler as the host has it.
std::string Step(int number, int start, int duration) {
  return fmt::format(
      R"({{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{}", "ts": {}, "dur": {}}})",
      number, start, duration);
}

// Returns whether each operation begins an iteration.
std::vector<bool> IterationBegins(const std::vector<TraceOperation>& program) {
  std::vector<bool> begins;
  for (const TraceOperation& call : program) begins.push_back(call.begins_iteration);
  return begins;
}

// The host makes the call of kernel 30 in step 5, although the kernel runs in step 6; no record of
// the host has that of kernel 70. Call 5 is before the first step.
TEST(KinetoStepsTest, StepsOfTheProfilerAreIterations) {
  const std::string host = HostRecord(5, "allreduce", 1000, 1000) + "," +
                           HostRecord(12, "allreduce", 1000, 1000) + "," +
                           HostRecord(30, "allreduce", 1000, 1000) + ",";
  const std::string kernels =
      Kernel("6", "1", 7, 5, kAllReduce) + "," + Kernel("13", "1", 7, 12, kAllReduce) + "," +
      Kernel("45", "1", 7, 30, kAllReduce) + "," + Kernel("70", "1", 7, 70, kAllReduce);
  const std::string steps = Step(6, 40, 20) + "," + Step(4, 10, 10) + "," + Step(5, 25, 10) + ",";
  const Imported imported =
      Import({File(0, steps + host + kernels), File(1, steps + host + kernels)});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{1}}) {
    EXPECT_EQ(IterationBegins(imported.import.trace->operations[rank]),
              (std::vector<bool>{false, false, true, true}));
  }
  EXPECT_THAT(imported.import.report.assumed, ::testing::Contains(HasSubstr("3 steps are")));
}

TEST(KinetoStepsTest, StepsOfSeveralFilesOfARankFollowEachOther) {
  const auto file = [](uint32_t rank, int step, int start) {
    return File(rank, Step(step, start, 10) + "," +
                          Kernel(std::to_string(start + 1), "1", 7, start, kAllReduce));
  };
  const Imported imported =
      Import({file(0, 4, 10), file(0, 5, 20), file(1, 4, 10), file(1, 5, 20)});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(IterationBegins(imported.import.trace->operations[GlobalRank{1}]),
            (std::vector<bool>{false, true}));
}

// The profile does not say which of the two records launched the kernel, but it has the begin of
// the kernel.
TEST(KinetoStepsTest, ACallWhoseIdTheHostUsesTwiceIsInTheStepOfItsKernel) {
  const std::string events =
      Step(4, 10, 10) + "," + Step(5, 25, 10) + "," + HostRecord(12, "allreduce", 1000, 1000) +
      "," + HostRecord(12, "allreduce", 1000, 1000) + "," + Kernel("13", "1", 7, 12, kAllReduce) +
      "," + Kernel("26", "1", 9, 12, kAllReduce);
  const Imported imported = Import({File(0, events), File(1, events)});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(IterationBegins(imported.import.trace->operations[GlobalRank{0}]),
            (std::vector<bool>{false, true}));
}

// The ranks' windows are not the same, or one made a call in another step.
TEST(KinetoStepsTest, StepsOnWhichRanksDisagreeAreNoIterations) {
  const std::string kernels =
      Kernel("11", "1", 7, 1, kAllReduce) + "," + Kernel("21", "1", 7, 2, kAllReduce);
  const std::string more = kernels + "," + Kernel("31", "1", 7, 3, kAllReduce);
  for (const auto& [first, second, why] :
       {std::tuple(Step(1, 10, 9) + "," + Step(2, 20, 9) + "," + kernels,
                   Step(1, 10, 9) + "," + kernels,
                   "call 2 of group \"0\" is in iteration 1 of rank 0 and 0 of rank 1"),
        std::tuple(Step(1, 10, 9) + "," + Step(2, 20, 9) + "," + more,
                   Step(1, 10, 9) + "," + Step(2, 30, 9) + "," + more,
                   "call 2 of group \"0\" is in iteration 1 of rank 0 and 0 of rank 1")}) {
    const Imported imported = Import({File(0, first), File(1, second)});
    ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
    EXPECT_THAT(IterationBegins(imported.import.trace->operations[GlobalRank{0}]),
                ::testing::Each(false));
    EXPECT_THAT(imported.import.report.assumed, ::testing::Contains(HasSubstr(why)));
  }
}

// A missing rank makes the calls of the one that was captured, in its steps.
TEST(KinetoStepsTest, MissingRanksAreInTheSameSteps) {
  const Imported imported = Import(
      {File(0, Step(1, 10, 9) + "," + Step(2, 20, 9) + "," + Kernel("11", "1", 7, 1, kAllReduce) +
                   "," + Kernel("21", "1", 7, 2, kAllReduce))});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(IterationBegins(imported.import.trace->operations[GlobalRank{1}]),
            (std::vector<bool>{false, true}));
}

}  // namespace
}  // namespace railyard
