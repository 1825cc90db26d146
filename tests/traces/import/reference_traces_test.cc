// SPDX-License-Identifier: GPL-2.0-only
// Captures of real jobs, each against what an independent program counts in it.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/units/units.h"
#include "tests/support/reference_dir.h"
#include "traces/import/import.h"
#include "traces/trace/trace.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

struct Counted {
  uint64_t calls = 0;
  uint64_t bytes = 0;
  bool operator==(const Counted&) const = default;
};
void PrintTo(const Counted& counted, std::ostream* out) {
  *out << counted.calls << " calls of " << counted.bytes << " bytes";
}

struct Imported {
  TraceImport import;
  Diagnostics diagnostics;
  std::map<std::string, Counted> by_kind;
};

Imported Import(const std::vector<std::string>& paths, const ImportOptions& options = {}) {
  Imported imported;
  imported.import = ImportFiles(paths, kAutoFormat, options, imported.diagnostics);
  for (int i = 0; i < kCollectiveKindCount; ++i) {
    const ImportedKind& kind = imported.import.report.by_kind[static_cast<size_t>(i)];
    if (kind.calls == 0) continue;
    imported.by_kind[std::string(ReportedKindName(static_cast<CollectiveKind>(i)))] = {kind.calls,
                                                                                       kind.bytes};
  }
  return imported;
}
Imported Import(const std::string& path, const ImportOptions& options = {}) {
  return Import(std::vector{path}, options);
}

// python3 -c 'import json,gzip,collections as c; n=c.Counter(); b=c.Counter()
// for e in json.load(gzip.open("kineto-ddp-2ranks-rank0-ncclargs.json.gz"))["traceEvents"]:
//   a=e.get("args",{})
//   if e.get("cat")=="kernel" and "nccl" in e["name"]:
//     k=a["Collective name"]; n[k]+=1; b[k]+=a["In msg nelems"]*{"Float":4,"Long":8}[a["dtype"]]
// print(n,b)'
TEST(ReferenceTracesTest, KinetoOfTwoRanks) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const Imported imported =
      Import(reference_dir + "/traces/kineto-ddp-2ranks-rank0-ncclargs.json.gz");
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.report.format, "kineto");
  EXPECT_THAT(imported.by_kind, ElementsAre(Pair("AllReduce", Counted{15, 306'684'384}),
                                            Pair("Broadcast", Counted{6, 638'712})));
  EXPECT_EQ(imported.import.report.calls_dropped(), 0u);
  EXPECT_EQ(imported.import.trace->rank_count, 2u);
  EXPECT_EQ(imported.import.report.calls_reconstructed, 21u);
  EXPECT_EQ(imported.import.trace->nccl_version, "2.17.1");
}

// The expected values come from the same loop over kineto-mi300-8ranks-rank0-resnet-ddp.json.gz; 5
// kernels have no arguments.
TEST(ReferenceTracesTest, KinetoOfRcclWhereEveryKernelIsGeneric) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const Imported imported =
      Import(reference_dir + "/traces/kineto-mi300-8ranks-rank0-resnet-ddp.json.gz");
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_THAT(imported.by_kind, ElementsAre(Pair("AllReduce", Counted{6, 70'137'072}),
                                            Pair("Broadcast", Counted{6, 58'080})));
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kSizesNotRecorded).count, 5u);
  EXPECT_EQ(imported.import.report.calls_dropped(), 5u);
  EXPECT_EQ(imported.import.trace->rank_count, 8u);
}

// zcat FILE | grep -o '"ncclKernel' | wc -l says how many kernels each has.
TEST(ReferenceTracesTest, KinetoWithoutSizesIsRefused) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const std::vector<std::pair<std::string, uint64_t>> files = {
      {"kineto-16ranks-rank0-a2a-rs-ag.json.gz", 80},
      {"kineto-8ranks-rank3-a2a-allreduce.json.gz", 60},
      {"kineto-dlrm-128ranks-rank0-sampled.json.gz", 10},
      {"kineto-dlrm-8ranks.tar.gz", 64}};
  for (const auto& [file, kernels] : files) {
    const Imported imported = Import(reference_dir + "/traces/" + file);
    EXPECT_FALSE(imported.import.trace) << file;
    EXPECT_EQ(imported.import.report.calls_seen(), kernels) << file;
    EXPECT_EQ(imported.import.report.calls_dropped(), kernels) << file;
    EXPECT_THAT(imported.diagnostics.ToString(), HasSubstr("sizes not recorded")) << file;
  }
}

// python3 -c 'import json,gzip,collections as c; n=c.Counter(); b=c.Counter()
// for e in json.load(gzip.open("pytorch-et-resnet-2ranks.json.gz"))["nodes"]:
//   a={x["name"]:x["value"] for x in e["attrs"]}; k=a.get("collective_name")
//   if k not in (None,"wait","init"):
//     n[k]+=1; b[k]+=a["in_msg_nelems"]*{"Float":4,"Long":8}[a["dtype"]]
// print(n,b)'
TEST(ReferenceTracesTest, ExecutionTraceOfOneOfTwoRanks) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const Imported imported = Import(reference_dir + "/traces/pytorch-et-resnet-2ranks.json.gz");
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.report.format, "pytorch-et");
  EXPECT_THAT(imported.by_kind, ElementsAre(Pair("AllReduce", Counted{15, 306684384}),
                                            Pair("Broadcast", Counted{6, 638712})));
  EXPECT_EQ(imported.import.report.calls_dropped(), 0u);
  EXPECT_EQ(imported.import.trace->rank_count, 2u);
  EXPECT_EQ(imported.import.report.calls_reconstructed, 21u);
}

// tar -xOf pytorch-et-allgather-1.0.2.tgz 1.0.2-chakra.0.0.4.json | grep -o '"all_gather"' | wc -l
TEST(ReferenceTracesTest, ExecutionTraceWhoseGroupsAreInAnInitNode) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const Imported imported = Import(reference_dir + "/traces/pytorch-et-allgather-1.0.2.tgz");
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_THAT(imported.by_kind, ElementsAre(Pair("AllGather", Counted{10, 40})));
  EXPECT_EQ(imported.import.trace->rank_count, 2u);
}

// 5 all_to_all and 3 all_reduce of each of 8 ranks, with the elements of their first tensors:
// python3 -c 'import json,tarfile,collections as c; n=c.Counter(); b=c.Counter()
// t=tarfile.open("pytorch-et-dlrm-8ranks.tar.gz")
// for m in filter(tarfile.TarInfo.isfile,t.getmembers()):
//   for e in json.load(t.extractfile(m))["nodes"]:
//     if e["name"]=="record_param_comms":
//       k=[x for x in e["inputs"] if isinstance(x,str)][0]; v=e["inputs"][0]
//       if k!="wait":
//         v=v if isinstance(v[0],int) else v[0]; n[k[:9]]+=1; b[k[:9]]+=v[3]*v[4]
// print(n,b)'
TEST(ReferenceTracesTest, ExecutionTracesOfEightRanksInAnArchive) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const Imported imported = Import(reference_dir + "/traces/pytorch-et-dlrm-8ranks.tar.gz");
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_THAT(imported.by_kind, ElementsAre(Pair("AllReduce", Counted{24, 19882016}),
                                            Pair("AllToAll", Counted{40, 515584})));
  EXPECT_EQ(imported.import.report.calls_dropped(), 0u);
  EXPECT_EQ(imported.import.report.calls_reconstructed, 0u);
  EXPECT_EQ(imported.import.trace->rank_count, 8u);
}

// The profiles of the same step, whose 64 kernels have no sizes (as above). The durations are "dur"
// of the kernels of worker7, in order of "ts", in microseconds.
TEST(ReferenceTracesTest, ProfilesWithoutSizesAreCompletedByExecutionTraces) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const std::string traces = reference_dir + "/traces/";
  for (const bool profiles_first : {false, true}) {
    std::vector<std::string> paths = {traces + "pytorch-et-dlrm-8ranks.tar.gz",
                                      traces + "kineto-dlrm-8ranks.tar.gz"};
    if (profiles_first) std::swap(paths[0], paths[1]);
    const Imported imported = Import(paths);
    ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
    EXPECT_EQ(imported.import.report.format, "kineto");
    EXPECT_THAT(imported.by_kind, ElementsAre(Pair("AllReduce", Counted{24, 19882016}),
                                              Pair("AllToAll", Counted{40, 515584})));
    EXPECT_EQ(imported.import.report.calls_seen(), 64u);
    EXPECT_EQ(imported.import.trace->rank_count, 8u);
    std::vector<int64_t> measured_us;
    uint32_t group = 0;
    for (const TraceOperation& operation : imported.import.trace->operations[GlobalRank{7}]) {
      // The parts of an AllToAllv are one kernel.
      if (operation.group != 0 && operation.group == group) continue;
      group = operation.group;
      measured_us.push_back(operation.measured_ps / kPsPerUs);
    }
    EXPECT_THAT(measured_us, ElementsAre(10, 8, 7, 7, 86, 357, 468, 803));
  }
}

// One entry of 3 x 4 Float; its group has ranks 0 and 1.
TEST(ReferenceTracesTest, FlightRecorderOfTheTutorial) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const Imported imported =
      Import(reference_dir + "/traces/flight-recorder/tutorial-2.5-rank0.json");
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.report.format, "flight-recorder");
  EXPECT_THAT(imported.by_kind, ElementsAre(Pair("AllReduce", Counted{1, 48})));
  EXPECT_EQ(imported.import.trace->rank_count, 2u);
}

// grep -o '"coll":"[A-Za-z]*"\|"coll_msg_size_bytes":[0-9]*' FILE
TEST(ReferenceTracesTest, InspectorLinesOfItsDocumentation) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const Imported first = Import(reference_dir + "/traces/inspector/v4.0-documentation.jsonl");
  ASSERT_TRUE(first.import.trace) << first.diagnostics.ToString();
  EXPECT_EQ(first.import.report.format, "inspector");
  EXPECT_THAT(first.by_kind, ElementsAre(Pair("AllReduce", Counted{1, 17'179'869'184}),
                                         Pair("ReduceScatter", Counted{1, 65'536})));
  const Imported second = Import(reference_dir + "/traces/inspector/v4.3-documentation.jsonl");
  ASSERT_TRUE(second.import.trace) << second.diagnostics.ToString();
  EXPECT_THAT(second.by_kind, ElementsAre(Pair("AllReduce", Counted{1, 17'179'869'184}),
                                          Pair("ReduceScatter", Counted{1, 2'147'483'648})));
  EXPECT_THAT(second.import.report.ToString(), HasSubstr("itself dropped 512 records"));
  EXPECT_THAT(second.import.report.ToString(), HasSubstr("announce 1024 records, 2 are in"));
}

}  // namespace
}  // namespace railyard
