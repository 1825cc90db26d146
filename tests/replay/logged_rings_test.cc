// SPDX-License-Identifier: GPL-2.0-only
// A job runs over the rings and trees that its log states.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

class LoggedRingsTest : public ProgramTest {
 protected:
  // Two servers of two GPUs. `graph` has what each rank's lines say between START and COMPLETE.
  std::string FingerprintOf(const std::vector<std::string>& graph, const std::string& algorithm) {
    std::string text;
    for (uint32_t rank = 0; rank < 4; ++rank) {
      const std::string prefix =
          fmt::format("node{}:{}:{} [{}] NCCL INFO ", rank / 2, 100 + rank, 200 + rank, rank % 2);
      const std::string init = fmt::format(
          "{}ncclCommInitRank comm 0xa{} rank {} nranks 4 cudaDev {} nvmlDev {} busId 1000 commId "
          "0x1 - Init ",
          prefix, rank, rank, rank % 2, rank % 2);
      text += init + "START\n";
      if (!graph.empty()) text += prefix + graph[rank] + "\n";
      text += init + "COMPLETE\n";
      text += fmt::format(
          "{}AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 4194304 datatype 7 op 0 root 0 "
          "comm 0xa{} [nranks=4] stream 0x3\n",
          prefix, rank);
    }
    scratch_.Write("job.log", text);
    const EndedRun run = RunText(
        "fabric { rail_optimized { servers: 2 gpus_per_server: 2 } }\n"
        "workload { nccl_log { files: \"job.log\" } algorithm: " +
            algorithm + " protocol: SIMPLE }\n",
        {"--no-baseline"});
    EXPECT_TRUE(run.has_result()) << run.exit.errors;
    return run.has_result() ? run.Text("fingerprint") : "";
  }
};

// One ring, all on one channel.
TEST_F(LoggedRingsTest, RingsOfTheLogAreRun) {
  const std::vector<std::string> one = {"Ring 00 : 2 -> 0 -> 1", "Ring 00 : 0 -> 1 -> 3",
                                        "Ring 00 : 3 -> 2 -> 0", "Ring 00 : 1 -> 3 -> 2"};
  const std::vector<std::string> other = {"Ring 00 : 1 -> 0 -> 2", "Ring 00 : 3 -> 1 -> 0",
                                          "Ring 00 : 0 -> 2 -> 3", "Ring 00 : 2 -> 3 -> 1"};
  const std::string by_rule = FingerprintOf({}, "RING");
  EXPECT_NE(FingerprintOf(one, "RING"), by_rule);
  EXPECT_NE(FingerprintOf(one, "RING"), FingerprintOf(other, "RING"));
}

TEST_F(LoggedRingsTest, TreesOfTheLogAreRun) {
  const std::vector<std::string> chain = {"Trees [0] 1/-1/-1->0->-1", "Trees [0] 3/-1/-1->1->0",
                                          "Trees [0] -1/-1/-1->2->3", "Trees [0] 2/-1/-1->3->1"};
  EXPECT_NE(FingerprintOf(chain, "TREE"), FingerprintOf({}, "TREE"));
}

}  // namespace
}  // namespace railyard::testing
