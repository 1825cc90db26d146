// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/load/program_trace.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/scenario/loaded_scenario.h"
#include "tests/text_proto/text_file.h"

namespace railyard {
namespace {

LoadedScenario LoadProgram(const std::string& collectives) {
  return LoadedScenario(std::string(kFabric) + "workload { program {\n" + collectives + "\n} }\n");
}

// Counts of the API for nccl-tests' sizes: floats; blocks per rank for AllGather, ReduceScatter and
// AllToAll (nccl-tests' PERFORMANCE.md and its *GetCollByteCount functions).
TEST(ProgramTraceTest, SizesBecomeCountsAsInNcclTests) {
  const auto loaded = LoadProgram(
      "collectives { kind: ALL_REDUCE bytes: \"1MiB\" repeat: 2 }\n"
      "collectives { kind: ALL_GATHER bytes: \"1MiB\" }\n"
      "collectives { kind: REDUCE_SCATTER bytes: \"1MiB\" }\n"
      "collectives { kind: BROADCAST bytes: \"4\" root: 15 }\n"
      "collectives { kind: REDUCE bytes: \"8B\" }\n"
      "collectives { kind: ALL_TO_ALL bytes: \"1MiB\" }\n");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  const Trace& trace = *loaded.calls;
  EXPECT_EQ(trace.origin, "program");
  EXPECT_EQ(trace.rank_count, 16u);
  ASSERT_EQ(trace.operations.size(), 16u);
  const std::vector<TraceOperation>& calls = trace.operations[GlobalRank{9}];
  ASSERT_EQ(calls.size(), 7u);
  constexpr uint64_t kFloats = (1u << 20) / 4;
  EXPECT_EQ(calls[0].count, kFloats);
  EXPECT_EQ(calls[1].count, kFloats);
  EXPECT_EQ(calls[2].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(calls[2].count, kFloats / 16);
  EXPECT_EQ(calls[3].count, kFloats / 16);
  EXPECT_EQ(calls[4].count, 1u);
  EXPECT_EQ(calls[4].root, 15u);
  EXPECT_EQ(calls[5].count, 2u);
  EXPECT_EQ(calls[6].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(calls[6].count, kFloats / 16);
  EXPECT_EQ(loaded.scenario->job.collectives.size(), 7u);
}

TEST(ProgramTraceTest, GatherAndScatterHaveBlocksAndARoot) {
  const auto loaded = LoadProgram(
      "collectives { kind: GATHER bytes: \"1MiB\" root: 3 }\n"
      "collectives { kind: SCATTER bytes: \"1MiB\" }\n");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  const std::vector<TraceOperation>& calls = loaded.calls->operations[GlobalRank{9}];
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].kind, CollectiveKind::kGather);
  EXPECT_EQ(calls[0].count, (1u << 20) / 4 / 16);
  EXPECT_EQ(calls[0].root, 3u);
  EXPECT_EQ(calls[1].kind, CollectiveKind::kScatter);
  EXPECT_EQ(calls[1].count, (1u << 20) / 4 / 16);
}

// As nccl-tests' sendrecv.cu: to (rank + 1) % n, from (rank - 1 + n) % n, in one group.
TEST(ProgramTraceTest, SendRecvIsARingOfGroups) {
  const auto loaded = LoadProgram("collectives { kind: SEND_RECV bytes: \"8\" repeat: 2 }");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  const std::vector<TraceOperation>& calls = loaded.calls->operations[GlobalRank{0}];
  ASSERT_EQ(calls.size(), 4u);
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].kind, i % 2 == 0 ? CollectiveKind::kSend : CollectiveKind::kRecv);
    EXPECT_EQ(calls[i].peer, i % 2 == 0 ? 1u : 15u);
    EXPECT_EQ(calls[i].count, 2u);
  }
  EXPECT_NE(calls[0].group, 0u);
  EXPECT_EQ(calls[0].group, calls[1].group);
  EXPECT_NE(calls[1].group, calls[2].group);
  EXPECT_EQ(calls[2].group, calls[3].group);
  EXPECT_EQ(loaded.scenario->job.collectives.size(), 2u);
}

TEST(ProgramTraceTest, APermutationIsOneCycleThatTheSeedDraws) {
  const auto destinations = [](const std::string& seed) {
    const LoadedScenario loaded("seed: " + seed + "\n" + kFabric +
                                "workload { program { collectives { kind: PERMUTATION bytes: "
                                "\"8\" } } }\n");
    EXPECT_NE(loaded.scenario, nullptr) << loaded.findings;
    std::vector<uint32_t> peers;
    const auto& operations = loaded.calls->operations;
    for (size_t rank = 0; rank < operations.size(); ++rank) {
      peers.push_back(operations[GlobalRank{rank}][0].peer);
    }
    for (GlobalRank rank{0}; rank < peers.size(); ++rank) {
      EXPECT_EQ(loaded.calls->operations[GlobalRank{peers[rank]}][1].peer, rank);
    }
    return peers;
  };
  const std::vector<uint32_t> peers = destinations("1");
  ASSERT_EQ(peers.size(), 16u);
  uint32_t length = 1;
  for (uint32_t rank = peers[0]; rank != 0 && length <= 16; rank = peers[rank]) ++length;
  EXPECT_EQ(length, 16u);
  EXPECT_EQ(destinations("1"), peers);
  EXPECT_NE(destinations("2"), peers);
}

// The calls of a group begin together: what is computed before them is computed once.
TEST(ProgramTraceTest, AGroupComputesOnce) {
  for (const char* collective :
       {"kind: SEND_RECV bytes: \"1MiB\"", "kind: PERMUTATION bytes: \"1MiB\"",
        "kind: ALL_TO_ALL bytes: \"1MiB\"",
        "kind: ALL_TO_ALL bytes: \"1MiB\" hierarchical_groups_of: 8",
        "kind: ALL_REDUCE bytes: \"1MiB\""}) {
    const auto loaded = LoadProgram("collectives { " + std::string(collective) +
                                    " compute_before: \"1ms\" repeat: 2 }");
    ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
    const Job& job = loaded.scenario->job;
    for (GlobalRank rank{0}; rank < job.rank_count; ++rank) {
      int64_t computed_ps = 0;
      for (const JobOperation& operation : job.operations[GlobalRank{rank}]) {
        computed_ps += operation.compute_before_ps;
      }
      EXPECT_EQ(computed_ps, 2 * kPsPerMs) << collective << ", rank " << rank;
      EXPECT_EQ(job.operations[GlobalRank{rank}][0].compute_before_ps, kPsPerMs) << collective;
    }
  }
}

TEST(ProgramTraceTest, OneGpuCannotSendToAnother) {
  EXPECT_EQ(
      LoadedScenario("fabric { rail_optimized { servers: 1 gpus_per_server: 1 } }\n"
                     "workload { program { collectives { kind: SEND_RECV bytes: \"8\" } } }")
          .findings,
      ":2:36: error: workload.program.collectives[0].kind: needs two GPUs or more (the fabric "
      "has one)\n");
}

TEST(ProgramTraceTest, MistakesAreFoundAllAtOnce) {
  EXPECT_EQ(
      LoadProgram("collectives { }\n"
                  "collectives { kind: ALL_REDUCE bytes: \"6\" }\n"
                  "collectives { kind: ALL_GATHER bytes: \"100\" }\n"
                  "collectives { kind: REDUCE bytes: \"4 potatoes\" root: 16 }\n"
                  "collectives { kind: ALL_REDUCE bytes: \"0\" root: 1 }\n"
                  "collectives { kind: BROADCAST bytes: \"4\" repeat: 0 }")
          .findings,
      ":3:1: error: workload.program.collectives[0].kind: missing (expected e.g. "
      "ALL_REDUCE)\n"
      ":3:1: error: workload.program.collectives[0].bytes: missing (expected a size, e.g. "
      "\"64MiB\" (K, M, G are powers of 1,024))\n"
      ":4:32: error: workload.program.collectives[1].bytes: 6 bytes are not a whole number of "
      "float32 elements (expected a multiple of 4)\n"
      ":5:32: error: workload.program.collectives[2].bytes: 100 bytes are not a whole number "
      "of float32 elements for each of 16 ranks (expected a multiple of 64)\n"
      ":6:28: error: workload.program.collectives[3].bytes: \"4 potatoes\" has an "
      "unknown unit (expected B, KiB, MiB, GiB, TiB or PiB)\n"
      ":6:48: error: workload.program.collectives[3].root: 16 is out of range (expected 0 to "
      "15)\n"
      ":7:32: error: workload.program.collectives[4].bytes: \"0\" is out of range (expected 4 "
      "B to 1 PiB)\n"
      ":7:43: error: workload.program.collectives[4].root: means nothing for this kind "
      "(expected BROADCAST, REDUCE, GATHER or SCATTER)\n"
      ":8:42: error: workload.program.collectives[5].repeat: 0 is out of range (expected 1 to "
      "20000000)\n");
}

TEST(ProgramTraceTest, AnAllToAllInTwoStepsIsTwoAllToAllvs) {
  const auto loaded = LoadProgram(
      "collectives { kind: ALL_TO_ALL bytes: \"16KiB\" hierarchical_groups_of: 4 repeat: 2 }");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  const Job& job = loaded.scenario->job;
  ASSERT_EQ(job.collectives.size(), 4u);
  EXPECT_TRUE(job.collectives[0].is_all_to_all_v);
  // 1 KiB for each of 16: for each of 3 in the group what 4 groups get of it; then of 4 ranks.
  EXPECT_EQ(job.collectives[0].bytes, 16u * 3 * 4 * 1024);
  EXPECT_EQ(job.collectives[1].bytes, 16u * 3 * 4 * 1024);
}

TEST(ProgramTraceTest, AnAllToAllInTwoStepsNeedsGroups) {
  EXPECT_EQ(
      LoadProgram("collectives { kind: ALL_TO_ALL bytes: \"16KiB\" hierarchical_groups_of: 3 "
                  "}\ncollectives { kind: ALL_REDUCE bytes: \"4\" hierarchical_groups_of: 4 "
                  "}\ncollectives { kind: ALL_TO_ALL bytes: \"16KiB\" groups_of: 8 "
                  "hierarchical_groups_of: 4 }")
          .findings,
      ":3:47: error: workload.program.collectives[0].hierarchical_groups_of: 3 does not divide "
      "the 16 ranks into several groups of several (expected a divisor between, e.g. a "
      "server's GPUs)\n"
      ":4:43: error: workload.program.collectives[1].hierarchical_groups_of: means nothing for "
      "this kind (expected ALL_TO_ALL or ALL_TO_ALL_V)\n"
      ":5:60: error: workload.program.collectives[2].hierarchical_groups_of: stands beside "
      "groups_of or stride (expected an AllToAll over all ranks)\n");
}

class AllToAllVTest : public ::testing::Test {
 protected:
  // `more`: of the entry, whose file is `rows` under the header of a run's pairs.csv.
  LoadedScenario Load(const std::string& rows, const std::string& more = "") {
    file_.emplace("source_gpu,destination_gpu,payload_bytes\n" + rows, "matrix.csv");
    return LoadProgram("collectives { kind: ALL_TO_ALL_V pair_bytes: \"" + file_->path() + "\" " +
                       more + "}");
  }
  std::string FindingsOf(const std::string& rows, const std::string& more = "") {
    std::string findings = Load(rows, more).findings;
    const std::string& path = file_->path();
    for (size_t at = 0; (at = findings.find(path, at)) != std::string::npos;) {
      findings.replace(at, path.size(), "FILE");
    }
    return findings;
  }

 private:
  std::optional<TextFile> file_;
};

TEST_F(AllToAllVTest, EachPairHasItsOwnBytes) {
  const auto loaded = Load("0,1,1000\n0,9,7\n9,0,1\n0,9,3\n3,4,0\n", "repeat: 2 ");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  const Job& job = loaded.scenario->job;
  ASSERT_EQ(job.collectives.size(), 2u);
  EXPECT_TRUE(job.collectives[0].is_all_to_all_v);
  EXPECT_EQ(job.collectives[0].bytes, 1011u);
  EXPECT_EQ(job.collectives[1].bytes, 1011u);
  const Trace& trace = *loaded.calls;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> sent;
  for (GlobalRank rank{0}; rank < 16; ++rank) {
    for (const TraceOperation& call : trace.operations[GlobalRank{rank}]) {
      if (call.kind == CollectiveKind::kSend) sent[{rank, call.peer}] += call.count;
    }
  }
  const std::map<std::pair<uint32_t, uint32_t>, uint64_t> expected = {
      {{0, 1}, 2000}, {{0, 9}, 20}, {{9, 0}, 2}};
  EXPECT_EQ(sent, expected);
  EXPECT_TRUE(trace.operations[GlobalRank{3}].empty());
}

// Ranks that neither send nor receive compute as long as the others.
TEST_F(AllToAllVTest, ARankComputesOnceWhateverItSends) {
  const auto loaded = Load("0,1,1000\n0,9,7\n9,0,1\n", "compute_before: \"1ms\" ");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  const Job& job = loaded.scenario->job;
  for (GlobalRank rank{0}; rank < job.rank_count; ++rank) {
    ASSERT_EQ(job.operations[GlobalRank{rank}].size(), 1u) << rank;
    EXPECT_EQ(job.operations[GlobalRank{rank}][0].compute_before_ps, kPsPerMs) << rank;
  }
}

// Servers of 8: what 0 has for 9 goes by way of 1, in whose place 9 is.
TEST_F(AllToAllVTest, InTwoStepsBytesChangeRailsWithinServers) {
  const auto loaded = Load("0,9,10\n", "hierarchical_groups_of: 8 ");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  EXPECT_EQ(loaded.scenario->job.collectives.size(), 2u);
  const Trace& trace = *loaded.calls;
  ASSERT_EQ(trace.operations[GlobalRank{0}].size(), 1u);
  EXPECT_EQ(trace.operations[GlobalRank{0}][0].peer, 1u);
  ASSERT_EQ(trace.operations[GlobalRank{1}].size(), 2u);
  EXPECT_EQ(trace.operations[GlobalRank{1}][1].kind, CollectiveKind::kSend);
  EXPECT_EQ(trace.operations[GlobalRank{1}][1].peer, 9u);
  EXPECT_EQ(trace.operations[GlobalRank{1}][1].count, 10u);
}

TEST_F(AllToAllVTest, WhatCannotBeIsRefused) {
  EXPECT_EQ(FindingsOf("16,0,5\n0,1,x\n"),
            "FILE:2:1: error: source_gpu: \"16\" (expected a whole number, 0 to 15)\n"
            "FILE:3:5: error: payload_bytes: \"x\" (expected a whole number, 0 to "
            "1152921504606846976)\n");
  EXPECT_EQ(FindingsOf("0,1,0\n"),
            ":3:34: error: workload.program.collectives[0].pair_bytes: \"FILE\": nobody sends "
            "anything (expected payload_bytes above 0)\n");
  EXPECT_EQ(FindingsOf("0,1,1152921504606846976\n"),
            ":3:34: error: workload.program.collectives[0].pair_bytes: \"FILE\": "
            "1152921504606846976 bytes from rank 0 to rank 1 (expected at most 1 PiB)\n");
  EXPECT_EQ(LoadProgram("collectives { kind: ALL_TO_ALL_V bytes: \"1MiB\" }\n"
                        "collectives { kind: ALL_TO_ALL bytes: \"1MiB\" pair_bytes: \"x\" }\n"
                        "collectives { kind: ALL_TO_ALL_V pair_bytes: \"/none.csv\" }")
                .findings,
            ":3:1: error: workload.program.collectives[0].pair_bytes: missing (expected a CSV "
            "file, e.g. a run's \"pairs.csv\")\n"
            ":3:34: error: workload.program.collectives[0].bytes: means nothing for this kind, of "
            "unequal parts (expected pair_bytes)\n"
            ":4:46: error: workload.program.collectives[1].pair_bytes: means nothing for this kind "
            "(expected kind: ALL_TO_ALL_V)\n"
            ":5:34: error: workload.program.collectives[2].pair_bytes: \"/none.csv\": there is no "
            "such file\n");
}

TEST(ProgramTraceTest, OnlyWhatIsCopiedWithinARankCanBeInPlace) {
  const auto loaded = LoadProgram("collectives { kind: SCATTER bytes: \"1MiB\" in_place: true }");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  EXPECT_TRUE(loaded.calls->operations[GlobalRank{0}][0].in_place);
  const std::string wrong =
      "means nothing for this kind (expected ALL_TO_ALL in one step, GATHER or SCATTER)\n";
  EXPECT_EQ(LoadProgram("collectives { kind: ALL_REDUCE bytes: \"1MiB\" in_place: true }\n"
                        "collectives { kind: ALL_TO_ALL bytes: \"1MiB\" in_place: true "
                        "hierarchical_groups_of: 8 }")
                .findings,
            ":3:46: error: workload.program.collectives[0].in_place: " + wrong +
                ":4:46: error: workload.program.collectives[1].in_place: " + wrong);
}

TEST(ProgramTraceTest, AnEmptyProgramIsRefused) {
  EXPECT_EQ(
      LoadProgram("").findings,
      ":2:12: error: workload.program.collectives: missing (expected e.g. collectives { kind: "
      "ALL_REDUCE bytes: \"64MiB\" })\n");
}

TEST(ProgramTraceTest, MoreCallsThanMemoryHoldsAreRefused) {
  EXPECT_EQ(LoadProgram("collectives { kind: ALL_REDUCE bytes: \"4\" repeat: 1250001 }").findings,
            ":2:12: error: workload.program.collectives: 20000016 calls over 16 ranks (expected at "
            "most 20000000)\n");
}

TEST(ProgramTraceTest, WithoutAFabricWhatDoesNotDependOnItIsStillChecked) {
  EXPECT_EQ(
      LoadedScenario("fabric { preset: \"h100-4x8-rail-optimised\" }\n"
                     "workload { program { collectives { kind: REDUCE bytes: \"5\" } } }")
          .findings,
      ":1:10: error: fabric.preset: unknown preset \"h100-4x8-rail-optimised\" (did you mean "
      "\"h100-4x8-rail-optimized\"?)\n"
      ":2:49: error: workload.program.collectives[0].bytes: 5 bytes are not a whole number of "
      "float32 elements (expected a multiple of 4)\n");
}

}  // namespace
}  // namespace railyard
