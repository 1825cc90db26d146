// SPDX-License-Identifier: GPL-2.0-only
// Durations that a capture measured are compared with those of the run that replays it.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

struct Kernel {
  int start_us = 0;
  int duration_us = 0;
  const char* collective = "allreduce";
  uint64_t elements = 0;
};

// The profile of one of two ranks.
std::string Profile(uint32_t rank, const std::vector<Kernel>& kernels) {
  std::vector<std::string> events;
  for (const Kernel& kernel : kernels) {
    events.push_back(fmt::format(
        R"({{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_{}", "pid": 0, "tid": 7,
            "ts": {}, "dur": {}, "args": {{"stream": 7, "correlation": {}, "device": 0,
            "Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {},
            "dtype": "Float", "Group size": 2, "Process Group Name": "0",
            "Process Group Ranks": "[0, 1]"}}}})",
        kernel.collective, kernel.start_us, kernel.duration_us, events.size() + 1,
        kernel.collective, kernel.elements, kernel.elements));
  }
  return fmt::format(
      R"({{"distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": 2}},
          "traceEvents": [{}]}})",
      rank, fmt::join(events, ",\n"));
}

class MeasuredTest : public ProgramTest {};

TEST_F(MeasuredTest, TheShortestRanksDurationIsComparedByKindAndSize) {
  std::filesystem::create_directory(scratch_.Path("profiles"));
  // Rank 1 begins the first AllReduce 400 us later, so that rank 0 measures its own waiting as
  // well.
  scratch_.Write("profiles/rank0.json", Profile(0, {{0, 500, "allreduce", 1 << 20},
                                                    {1'000, 90, "allreduce", 1 << 20},
                                                    {2'000, 30, "broadcast", 1 << 10}}));
  scratch_.Write("profiles/rank1.json", Profile(1, {{400, 100, "allreduce", 1 << 20},
                                                    {1'000, 110, "allreduce", 1 << 20},
                                                    {2'000, 40, "broadcast", 1 << 10}}));
  const ProgramExit import =
      Railyard({"import", scratch_.Path("profiles"), "-o", scratch_.Path("job.trace")});
  ASSERT_EQ(import.status, 0) << import.errors;
  const EndedRun run = RunText(
      "fabric { rail_optimized { servers: 1 } }\n"
      "workload { trace: \"job.trace\" }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  ASSERT_EQ(run.collectives.size(), 3u);
  const std::vector<int64_t> measured_us = {100, 90, 30};
  std::vector<double> ratios;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(run.collectives.Integer(i, "measured_ps"), measured_us[i] * kPsPerUs);
    ratios.push_back(static_cast<double>(run.collectives.Integer(i, "end_ps") -
                                         run.collectives.Integer(i, "last_start_ps")) /
                     static_cast<double>(measured_us[i] * kPsPerUs));
    EXPECT_NEAR(run.collectives.Real(i, "measured_ratio"), ratios[i], 1e-4 * ratios[i]);
  }
  EXPECT_EQ(run.Integer("measured.count"), 3);
  EXPECT_EQ(run.Text("measured.by_size.0.kind"), "AllReduce");
  EXPECT_EQ(run.Integer("measured.by_size.0.bytes"), 4 << 20);
  EXPECT_EQ(run.Integer("measured.by_size.0.count"), 2);
  EXPECT_EQ(run.Integer("measured.by_size.0.measured_p50_ps"), 90 * kPsPerUs);
  EXPECT_NEAR(run.Real("measured.by_size.0.ratio.min"), std::min(ratios[0], ratios[1]), 1e-9);
  EXPECT_EQ(run.Text("measured.by_size.1.kind"), "Broadcast");
  EXPECT_EQ(run.Integer("measured.by_size.1.measured_p50_ps"), 30 * kPsPerUs);
  EXPECT_THAT(run.exit.output, HasSubstr("Simulated and measured durations"));
}

}  // namespace
}  // namespace railyard::testing
