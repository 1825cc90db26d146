// SPDX-License-Identifier: GPL-2.0-only
#include "traces/aicb/aicb_reader.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/reference_dir.h"
#include "tests/traces/imported_files.h"
#include "traces/aicb/aicb_job.h"
#include "workloads/job/job.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ImportedFiles;
using ::testing::Pair;

void ExpectMatches(const Trace& trace) {
  Diagnostics diagnostics;
  EXPECT_TRUE(BuildJob(trace, diagnostics).has_value()) << diagnostics.ToString();
}

TEST(AicbParallelismTest, RanksOfGroupsAreMegatrons) {
  // Megatron-LM's parallel_state.py: tensor parallel ranks are neighbours, stages farthest apart.
  const AicbParallelism sixteen{.ranks = 16, .tensor = 2, .pipeline = 2, .expert = 2};
  EXPECT_EQ(sixteen.data(), 4u);
  EXPECT_THAT(sixteen.MembersOf(AicbGroup::kTensor, GlobalRank{5}), ElementsAre(4, 5));
  EXPECT_THAT(sixteen.MembersOf(AicbGroup::kData, GlobalRank{5}), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(sixteen.MembersOf(AicbGroup::kData, GlobalRank{8}), ElementsAre(8, 10, 12, 14));
  EXPECT_THAT(sixteen.MembersOf(AicbGroup::kExpert, GlobalRank{5}), ElementsAre(5, 7));
  EXPECT_THAT(sixteen.MembersOf(AicbGroup::kExpertData, GlobalRank{5}), ElementsAre(1, 5));
  EXPECT_EQ(sixteen.Problem(), "");
  EXPECT_THAT((AicbParallelism{.ranks = 9, .tensor = 2}).Problem(), HasSubstr("multiple of 2"));
}

constexpr const char* kTwoLayers =
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 "
    "all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0\n"
    "2\n"
    "a -1 1000 ALLREDUCE 64 2000 ALLGATHER 128 3000 REDUCESCATTER 256 100\n"
    "b -1 10 NONE 0 20 NONE 0 30 ALLREDUCE 512 0\n";

TEST(AicbReaderTest, LayersAreRunForwardAndBack) {
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write("w.txt", kTwoLayers)});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.report.format, "aicb");
  EXPECT_EQ(import.trace->rank_count, 4u);
  const auto& program = import.trace->operations[GlobalRank{0}];
  // a's AllReduce; b forward, its input and weight gradient (60 ns), its AllReduce beside; a's
  // AllGather; a's weight gradient, its ReduceScatter beside, and 100 ns of update behind that.
  ASSERT_EQ(program.size(), 7u);
  EXPECT_EQ(program[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(program[0].compute_before_ps, 1'000'000);
  EXPECT_EQ(program[1].kind, CollectiveKind::kCompute);
  EXPECT_EQ(program[1].compute_before_ps, 60'000);
  EXPECT_EQ(program[2].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(program[2].stream, 1u);
  EXPECT_EQ(program[2].after, 2u);
  EXPECT_EQ(program[3].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(program[3].count, 64u);  // of 128 gathered from two ranks
  EXPECT_EQ(program[4].compute_before_ps, 3'000'000);
  EXPECT_EQ(program[5].kind, CollectiveKind::kReduceScatter);
  EXPECT_EQ(program[5].count, 128u);
  EXPECT_EQ(program[5].stream, 1u);
  EXPECT_EQ(program[6].compute_before_ps, 100'000);
  // The data group of rank 3 has ranks 1 and 3.
  EXPECT_THAT(import.trace->communicators[import.trace->CommunicatorOf(GlobalRank{3}, 1)].ranks,
              ElementsAre(1, 3));
  ExpectMatches(*import.trace);
}

TEST(AicbReaderTest, CallListsNameTheirGroups) {
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write(
      "c.csv",
      "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,"
      "algbw,busbw,count\n"
      "CommType.all_reduce,CommGroup.dp_group,4,64,s,None,None,,1.5,0,0,1\n"
      "CommType.computation,None,None,,s,None,None,,0.25,0,0,1\n"
      "CommType.all_gather,CommGroup.tp_group,2,32,s,None,None,,1.5,0,0,1\n"
      "CommType.epoch_end,None,None,0,,None,None,,9,None,None,1\n"
      "CommType.all_reduce,CommGroup.tp_group,None,16,s,None,None,,1.5,0,0,1\n"
      "CommType.isend,CommGroup.pp_group,2,16,s,None,None,,1.5,0,0,1\n"
      "CommType.all_to_all,CommGroup.ep_group,None,16,s,None,None,,1.5,0,0,1\n")});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.trace->rank_count, 8u);
  const auto& program = import.trace->operations[GlobalRank{0}];
  ASSERT_EQ(program.size(), 3u);
  EXPECT_EQ(program[0].compute_before_ps, 0);  // what a call took is no gap
  EXPECT_EQ(program[1].compute_before_ps, 250'000'000);
  EXPECT_EQ(program[1].count, 16u);
  EXPECT_TRUE(program[2].begins_iteration);
  EXPECT_EQ(files.Dropped(CallDropReason::kRanksMissing), 1u);
  EXPECT_EQ(files.Dropped(CallDropReason::kAmbiguousCommunicator), 1u);
  ExpectMatches(*import.trace);
}

// As aicb.py dumps a list with computation before it runs it.
TEST(AicbReaderTest, ComputationOfAListThatHasNotBeenRunIsInNanoseconds) {
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write(
      "c.csv",
      "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,"
      "algbw,busbw,count\n"
      "CommType.all_reduce,CommGroup.dp_group,4,64,s,None,None,,None,None,None,1\n"
      "CommType.computation,CommGroup.all,None,((4096 1 5120)),s,None,None,,1234567,None,None,1\n"
      "CommType.all_reduce,CommGroup.tp_group,2,64,s,None,None,,None,None,None,1\n")});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.trace->operations[GlobalRank{0}].back().compute_before_ps, 1'234'567'000);
  EXPECT_THAT(import.report.ToString(), HasSubstr("computation is in nanoseconds"));
}

// As log_analyzer/log.py writes rows: tuples without quotes, sizes with a fraction, a Reduce's root
// in `dst`.
TEST(AicbReaderTest, RowsAreAsTheLoggerWritesThem) {
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write(
      "c.csv",
      "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,"
      "algbw,busbw,count\n"
      "CommType.computation,None,None,((4096, 1, 5120), (5120, "
      "1920)),s,None,None,,1000,None,None,1\n"
      "CommType.all_to_all,CommGroup.dp_group,4,64.0,s,None,None,,1.25,0.0,0.0,1\n"
      "CommType.reduce,CommGroup.dp_group,4,64,s,3,None,,0.5,0.0,0.0,1\n"
      "CommType.broadcast,CommGroup.dp_group,4,64,s,None,2,,0.5,0.0,0.0,1\n")});
  ASSERT_TRUE(import.trace) << files.findings();
  const auto& program = import.trace->operations[GlobalRank{0}];
  ASSERT_EQ(program.size(), 3u);
  EXPECT_EQ(program[0].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(program[0].count, 16u);
  EXPECT_GT(program[0].compute_before_ps, 0);
  EXPECT_EQ(program[1].root, 3u);
  EXPECT_EQ(program[2].root, 2u);
}

TEST(AicbReaderTest, BytesBetweenStagesAreNamed) {
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write(
      "w.txt",
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 4 vpp: 8 ga: 2 "
      "all_gpus: 16 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 50331648\n1\n"
      "mlp_row -1 1000 ALLREDUCE 8388608 1000 ALLREDUCE 8388608 1000 NONE 0 100\n")});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_THAT(import.report.ToString(), HasSubstr("50331648 bytes (pp_comm)"));
}

struct BadText {
  const char* text;
  const char* finding;
};

class AicbBadTextTest : public ::testing::TestWithParam<BadText> {};

TEST_P(AicbBadTextTest, IsALocatedError) {
  ImportedFiles files;
  files.Import({files.Write("w.txt", GetParam().text)});
  EXPECT_THAT(files.findings(), HasSubstr(GetParam().finding));
}

INSTANTIATE_TEST_SUITE_P(
    All, AicbBadTextTest,
    ::testing::Values(
        BadText{"MICRO\n", "ends before its layers"},
        BadText{"MICRO\n1\nx -1 1 NONE 0\n", "w.txt:3:1: error: 5 columns"},
        BadText{"MICRO\n1\nx -1 -1 NONE 0 1 NONE 0 1 ALLREDUCE 8 0\n", "w.txt:3:1: error: \"-1\""},
        BadText{"MICRO\n1\nx -1 1 NONE 0 1 NONE 0 1 ALLMAGIC 8 0\n", "\"ALLMAGIC\" is no call"},
        BadText{"HYBRID_DLRM\n1\n", "w.txt:1:1: error: \"HYBRID_DLRM\""},
        BadText{"HYBRID_TRANSFORMER model_parallel_NPU_group: 0\n1\n", "is out of range"},
        BadText{"HYBRID_TRANSFORMER model_parallel_NPU_group: 3 all_gpus: 8\n1\n"
                "x -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 0\n",
                "8 ranks are not divided by 3"},
        BadText{"MICRO\n1\nx -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 10000000000000000000 0\n",
                "out of range"}));

TEST(AicbReaderTest, ReferenceMicroTestHasNineteenAllReduces) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportedFiles files;
  const TraceImport& import =
      files.Import({reference_dir + "/traces/aicb-workload/all_reduce.txt"});
  ASSERT_TRUE(import.trace) << files.findings();
  // awk '$10=="ALLREDUCE"{n++; s+=$11} END{print n, s}' all_reduce.txt
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(19, 2147479552));
  ExpectMatches(*import.trace);
}

TEST(AicbReaderTest, ReferenceModelsAreReadAsCounted) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportedFiles files;
  const TraceImport& import = files.Import(
      {reference_dir + "/traces/aicb-workload/L7B-M1-C04_Llama7B_megatron_tp2_pp1_mbs1_A100.txt"});
  ASSERT_TRUE(import.trace) << files.findings();
  // tr -s '\t ' '\n' <L7B-M1-C04*.txt | grep -cE '^(ALLREDUCE|ALLGATHER|REDUCESCATTER|BROADCAST)$'
  EXPECT_EQ(import.report.calls_seen(), 142u);
  ExpectMatches(*import.trace);
}

// DeepSpeed's ZeRO-3 has no tensor parallel ranks; its layers gather parameters from data parallel
// ones. tr -s '\t ' '\n' <L7B-D1*.txt | grep -cE '^(ALLREDUCE|ALLGATHER|REDUCESCATTER)$'
TEST(AicbReaderTest, ReferenceShardedModelGathersOverDataParallelRanks) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportedFiles files;
  const TraceImport& import = files.Import(
      {reference_dir + "/traces/aicb-workload/L7B-D1-C02_Llama7B_deepspeed_zero3_A100.txt"});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.report.calls_imported(), 13u);
  ExpectMatches(*import.trace);
}

TEST(AicbReaderTest, ReferenceCallListIsReadAsCounted) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportedFiles files;
  const TraceImport& import =
      files.Import({reference_dir + "/traces/aicb-workload/A100_example_measured.csv.gz"});
  ASSERT_TRUE(import.trace) << files.findings();
  // zcat A100_example_measured.csv.gz | grep -c '^CommType.all_gather'   3852
  // ... | grep -c 'ep_group,None'   1280, whose size no row states
  EXPECT_EQ(files.Kind(CollectiveKind::kAllGather).first, 3852u);
  EXPECT_EQ(files.Dropped(CallDropReason::kAmbiguousCommunicator), 1280u);
  EXPECT_EQ(import.trace->rank_count, 8u);
}

}  // namespace
}  // namespace railyard
