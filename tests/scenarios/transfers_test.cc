// SPDX-License-Identifier: GPL-2.0-only
// The sample of messages over the network, against what links carry and how fast they can.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

class TransfersTest : public ProgramTest {
 protected:
  static std::string Broadcast(const std::string& bytes, const std::string& more = "") {
    return "fabric { rail_optimized { servers: 2 gpus_per_server: 1 } }\n" +
           Program("BROADCAST", bytes, more);
  }
};

// All of 64 MiB go from one GPU to the other in messages of the protocol SIMPLE, which has no
// flags. None can be faster than its link of 400 Gb/s, 20 ps a byte.
TEST_F(TransfersTest, HaveAllBytesWhereAllAreInTheSample) {
  const EndedRun run = RunText(Broadcast("64MiB"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const Table transfers = ReadCsv(run.directory + "/transfers.csv");
  EXPECT_EQ(transfers.Sum("bytes"), int64_t{64} << 20);
  const Table seen = run.Query("SELECT value AS n FROM run WHERE key = 'transfers_seen'");
  EXPECT_EQ(seen.Integer(0, "n"), static_cast<int64_t>(transfers.size()));
  int64_t ready_before_ps = 0;
  for (size_t row = 0; row < transfers.size(); ++row) {
    EXPECT_EQ(transfers.Integer(row, "source_gpu"), 0);
    EXPECT_EQ(transfers.Integer(row, "destination_gpu"), 1);
    EXPECT_EQ(transfers.Integer(row, "collective_index"), 0);
    const int64_t ready_ps = transfers.Integer(row, "ready_ps");
    const int64_t posted_ps = transfers.Integer(row, "posted_ps");
    EXPECT_GE(ready_ps, ready_before_ps);
    EXPECT_GT(posted_ps, ready_ps);  // the proxy takes time to post
    EXPECT_GT(transfers.Integer(row, "acknowledged_ps"),
              posted_ps + 20 * transfers.Integer(row, "bytes"));
    ready_before_ps = ready_ps;
  }
  EXPECT_EQ(run.Query("SELECT COUNT(*) AS n FROM transfers").Integer(0, "n"),
            static_cast<int64_t>(transfers.size()));
}

// 12,000 broadcasts of one message each: 10,000 are in the sample, each with the same chance. The
// number that falls into the first half is hypergeometric, its deviation about 20.
TEST_F(TransfersTest, AreASampleWhereTheyAreMany) {
  const EndedRun run = RunText(Broadcast("1KiB", "repeat: 12000"), {"--no-replay-cache"});
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const Table transfers = ReadCsv(run.directory + "/transfers.csv");
  const Table seen = run.Query("SELECT value AS n FROM run WHERE key = 'transfers_seen'");
  EXPECT_EQ(seen.Integer(0, "n"), 12'000);
  ASSERT_EQ(transfers.size(), 10'000u);
  int64_t in_first_half = 0;
  for (size_t row = 0; row < transfers.size(); ++row) {
    in_first_half += transfers.Integer(row, "collective_index") < 6'000;
  }
  EXPECT_NEAR(static_cast<double>(in_first_half), 5'000, 5 * 20);
}

}  // namespace
}  // namespace railyard::testing
