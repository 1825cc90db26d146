// SPDX-License-Identifier: GPL-2.0-only
// The paired fault-free run, and when there is none; repeatability.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OutcomeTest : public ProgramTest {
 protected:
  // Three AllReduces; every one takes some hundred microseconds.
  static std::string Job() {
    return RailOptimized(2) + Program("ALL_REDUCE", "16MiB", "repeat: 3") +
           "nccl { IB_TIMEOUT: 8 }\n";
  }
  static std::string Notes(const EndedRun& run) {
    std::string notes;
    const Table table = run.Query("SELECT note FROM notes");
    for (size_t row = 0; row < table.size(); ++row) notes += table.Text(row, "note") + "\n";
    return notes;
  }
};

TEST_F(OutcomeTest, WithoutFaultsThereIsNoSecondRunAndEveryStretchIsOne) {
  const EndedRun run = RunText(Job());
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Real("baseline_cpu_seconds"), 0);
  EXPECT_EQ(run.Real("collectives.stretch.max"), 1);
  EXPECT_EQ(run.Integer("collectives.count"), 3);
  EXPECT_EQ(run.Integer("collectives.calls"), 3 * 16);
  for (size_t row = 0; row < run.collectives.size(); ++row) {
    EXPECT_EQ(run.collectives.Text(row, "baseline_duration_ps"), "");
  }
}

TEST_F(OutcomeTest, EqualRunsHaveEqualFingerprintsAndFiles) {
  const std::string job = Job() + LinkDown("server0/nic1--leaf1", "150us", "400us");
  const EndedRun first = RunText(job);
  const EndedRun second = RunText(job);
  ASSERT_EQ(first.exit.status, 0) << first.exit.errors;
  EXPECT_EQ(first.Text("fingerprint"), second.Text("fingerprint"));
  for (const char* file : {"/collectives.csv", "/pairs.csv", "/links.csv", "/traffic.csv"}) {
    EXPECT_EQ(ReadText(first.directory + file), ReadText(second.directory + file));
  }
  EXPECT_EQ(first.Text("fingerprint"), RunText(job, {"--no-baseline"}).Text("fingerprint"));
}

// Swift goes by round trips that it has measured; DCQCN ends where it began.
TEST_F(OutcomeTest, ARunSaysWhatIsNeverTakenFromTheReplayCacheAndWhy) {
  const EndedRun swift = RunText(Job() + "nic { congestion_control { swift {} } }\n");
  ASSERT_EQ(swift.exit.status, 0) << swift.exit.errors;
  EXPECT_THAT(ReadText(swift.directory + "/summary.json"),
              HasSubstr(R"("owner": "queue pairs with railyard::Swift")"));
  const std::string note =
      "The replay cache does not cover queue pairs with railyard::Swift: Swift keeps a window of "
      "each queue pair.";
  EXPECT_THAT(Notes(swift), HasSubstr(note));
  const EndedRun adaptive = RunText(Job() + "network { load_balancing: ADAPTIVE }\n");
  EXPECT_THAT(ReadText(adaptive.directory + "/summary.json"),
              HasSubstr(R"("owner": "the network's queues and links")"));
  const EndedRun dcqcn = RunText(Job() + "nic { congestion_control { dcqcn {} } }\n");
  EXPECT_THAT(Notes(dcqcn), ::testing::Not(HasSubstr("replay cache")));
  const EndedRun without =
      RunText(Job() + "nic { congestion_control { swift {} } }\n", {"--no-replay-cache"});
  EXPECT_THAT(Notes(without), ::testing::Not(HasSubstr("replay cache")));
}

TEST_F(OutcomeTest, TheTrajectoryHashComparesRunsPacketByPacket) {
  const auto hash_of = [this](const std::string& job) {
    const EndedRun run = RunText(job + "network { trajectory_hash: true }\n");
    EXPECT_EQ(run.exit.status, 0) << run.exit.errors;
    EXPECT_EQ(run.Integer("collectives.replayed"), 0);
    EXPECT_THAT(ReadText(run.directory + "/summary.json"),
                HasSubstr("every packet enters the trajectory hash"));
    return run.Text("trajectory_hash");
  };
  const std::string hash = hash_of(Job());
  EXPECT_EQ(hash.size(), 16u);
  EXPECT_EQ(hash_of(Job()), hash);
  EXPECT_NE(hash_of(RailOptimized(2) + Program("ALL_REDUCE", "15MiB", "repeat: 3")), hash);
  EXPECT_THAT(ReadText(RunText(Job()).directory + "/summary.json"),
              HasSubstr(R"("trajectory_hash": null)"));
  const EndedRun undivided = RunText(
      RailOptimized(8) + Program("ALL_REDUCE", "1MiB") + "network { trajectory_hash: true }\n",
      {"--threads", "2", "--no-replay-cache"});
  EXPECT_EQ(undivided.Text("threads_why"), "the trajectory is hashed");
}

// The seed keys the hashes of ECMP. On a job that keeps to its rails there is no choice of paths,
// on one that crosses the spines there is.
TEST_F(OutcomeTest, TheSeedMattersWherePathsAreChosen) {
  const std::string rails = RailOptimized(2) + Program("ALL_REDUCE", "1MiB");
  EXPECT_EQ(RunText(rails, {"--seed", "1"}).Text("fingerprint"),
            RunText(rails, {"--seed", "2"}).Text("fingerprint"));
  const std::string spines =
      RailOptimized(3) + Program("ALL_TO_ALL", "6MiB") + "nccl { PXN_DISABLE: true }\n";
  EXPECT_NE(RunText(spines, {"--seed", "1"}).Text("fingerprint"),
            RunText(spines, {"--seed", "2"}).Text("fingerprint"));
}

// The second AllReduce of a rank begins late because the first was held up; that alone is no hit.
TEST_F(OutcomeTest, ACollectiveIsHitByAFaultIfItLostAPacketToIt) {
  const EndedRun run = RunText(Job() + LinkDown("server0/nic1--leaf1", "100us", "120us"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.collectives.Text(0, "hit_by_fault"), "true");
  EXPECT_EQ(run.collectives.Text(1, "hit_by_fault"), "false");
  EXPECT_EQ(run.collectives.Text(2, "hit_by_fault"), "false");
  EXPECT_GT(run.Integer("faults.0.ranks_hit"), 0);
  EXPECT_LT(run.Integer("faults.0.ranks_hit"), 16);
  EXPECT_EQ(run.Integer("faults.0.collectives_hit"), 1);
}

TEST_F(OutcomeTest, AFlapOnAnIdleLinkStretchesNothingInTwoRealRuns) {
  const EndedRun run = RunText(Job() + LinkDown("leaf3--spine0", "100us", "300us"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_GT(run.Real("cpu_seconds"), 0);
  EXPECT_GT(run.Real("baseline_cpu_seconds"), 0);
  ASSERT_EQ(run.collectives.size(), 3u);
  for (size_t row = 0; row < run.collectives.size(); ++row) {
    EXPECT_EQ(run.collectives.Text(row, "stretch"), "1");
    EXPECT_EQ(run.collectives.Text(row, "baseline_duration_ps"),
              run.collectives.Text(row, "duration_ps"));
  }
  EXPECT_EQ(run.Real("collectives.stretch.max"), 1);
  EXPECT_THAT(run.Drops(), IsEmpty());
}

TEST_F(OutcomeTest, TheBaselineIsTheRunWithoutFaults) {
  const EndedRun faulty = RunText(Job() + LinkDown("server0/nic1--leaf1", "150us", "400us"));
  const EndedRun free = RunText(Job());
  ASSERT_EQ(faulty.exit.status, 0) << faulty.exit.errors;
  for (size_t row = 0; row < free.collectives.size(); ++row) {
    EXPECT_EQ(faulty.collectives.Text(row, "baseline_duration_ps"),
              free.collectives.Text(row, "duration_ps"));
  }
  EXPECT_EQ(faulty.Query("SELECT value FROM run WHERE key = 'baseline_simulated_time_ps'")
                .Integer(0, "value"),
            free.Integer("simulated_time_ps"));
}

TEST_F(OutcomeTest, WithoutABaselineNothingHasAStretch) {
  const EndedRun run =
      RunText(Job() + LinkDown("server0/nic1--leaf1", "150us", "400us"), {"--no-baseline"});
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Real("baseline_cpu_seconds"), 0);
  EXPECT_TRUE(run.At("collectives.stretch.max").IsNull());
  EXPECT_TRUE(run.At("jobs.0.goodput").IsNull());
  for (size_t row = 0; row < run.collectives.size(); ++row) {
    EXPECT_EQ(run.collectives.Text(row, "stretch"), "");
  }
}

TEST_F(OutcomeTest, AFaultAfterTheJobsEndIsSaidToHaveDoneNothing) {
  const EndedRun run = RunText(Job() + LinkDown("server0/nic1--leaf1", "10s", "11s"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_THAT(Notes(run), HasSubstr("no fault had begun when the job ended"));
  EXPECT_THAT(run.exit.output, HasSubstr("no fault had begun when the job ended"));
  EXPECT_EQ(run.Real("collectives.stretch.max"), 1);
  EXPECT_EQ(run.collectives.Text(0, "stretch"), "1");
  EXPECT_LT(run.Integer("simulated_time_ps"), 10'000'000'000);
}

TEST_F(OutcomeTest, QuietPrintsNothing) {
  const EndedRun run = RunText(Job(), {"--quiet"});
  EXPECT_EQ(run.exit.status, 0);
  EXPECT_EQ(run.exit.output, "");
  EXPECT_EQ(run.exit.errors, "");
}

}  // namespace
}  // namespace railyard::testing
