// SPDX-License-Identifier: GPL-2.0-only
#include "traces/chakra/chakra_reader.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/reference_dir.h"
#include "tests/traces/imported_files.h"
#include "traces/chakra/chakra_message.h"
#include "workloads/job/job.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ImportedFiles;
using ::testing::Not;
using ::testing::Pair;

void ExpectMatches(const Trace& trace) {
  Diagnostics diagnostics;
  EXPECT_TRUE(BuildJob(trace, diagnostics).has_value()) << diagnostics.ToString();
}

ChakraNode Collective(uint64_t id, uint64_t comm_type, uint64_t bytes) {
  ChakraNode node;
  node.id = id;
  node.name = "c" + std::to_string(id);
  node.type = static_cast<uint64_t>(ChakraNodeType::kCollective);
  node.comm_type = comm_type;
  node.comm_size = bytes;
  return node;
}

ChakraNode Computation(uint64_t id, uint64_t us, std::vector<uint64_t> deps = {}) {
  ChakraNode node;
  node.id = id;
  node.name = "k";
  node.type = static_cast<uint64_t>(ChakraNodeType::kCompute);
  node.duration_us = us;
  node.data_deps = std::move(deps);
  return node;
}

std::string FileOf(const std::vector<ChakraNode>& nodes) {
  std::string bytes;
  AppendChakraMetadata(bytes);
  for (const ChakraNode& node : nodes) AppendChakraNode(node, bytes);
  return bytes;
}

TEST(ChakraMessageTest, NodesAreReadAsTheyAreWritten) {
  ChakraNode node = Collective(300, 6, uint64_t{5} << 40);
  node.data_deps = {1, 200, 70'000};
  node.duration_us = 12;
  node.group = "7";
  node.root = 3;
  node.name = std::string(100, 'n');
  std::string bytes;
  AppendChakraNode(node, bytes);
  ChakraNode read;
  // Two bytes of length: it is longer than 127.
  ASSERT_GT(bytes.size(), 130u);
  ASSERT_TRUE(ParseChakraNode(std::string_view(bytes).substr(2), read));
  EXPECT_EQ(read.id, 300u);
  EXPECT_EQ(read.name, node.name);
  EXPECT_EQ(read.type, 7u);
  EXPECT_THAT(read.data_deps, ElementsAre(1, 200, 70'000));
  EXPECT_EQ(read.duration_us, 12u);
  EXPECT_EQ(read.comm_type, 6u);
  EXPECT_EQ(read.comm_size, uint64_t{5} << 40);
  EXPECT_EQ(read.group, "7");
  EXPECT_EQ(read.root, 3u);
}

TEST(ChakraReaderTest, ComputationIsTheGapBeforeWhatWaitsForIt) {
  ImportedFiles files;
  ChakraNode last = Collective(3, 2, 1000);
  last.data_deps = {2};
  const std::string file = FileOf({Collective(1, 0, 4096), Computation(2, 5, {1}), last});
  const TraceImport& import =
      files.Import({files.Write("job.0.et", file), files.Write("job.1.et", file)});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.report.format, "chakra");
  const auto& program = import.trace->operations[GlobalRank{1}];
  ASSERT_EQ(program.size(), 2u);
  EXPECT_EQ(program[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(program[1].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(program[1].count, 1000u);  // comm_size is what a rank sends
  EXPECT_EQ(program[1].compute_before_ps, 5'000'000);
  EXPECT_EQ(program[1].stream, program[0].stream);
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(2, 8192));
  ExpectMatches(*import.trace);
}

TEST(ChakraReaderTest, DividedKindsCountWhatARankReceives) {
  ImportedFiles files;
  const std::string file = FileOf({Collective(1, 7, 100), Collective(2, 6, 100)});
  std::vector<std::string> paths;
  for (int rank = 0; rank < 4; ++rank) {
    paths.push_back(files.Write("job." + std::to_string(rank) + ".et", file));
  }
  const TraceImport& import = files.Import(paths);
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.trace->operations[GlobalRank{0}][0].kind, CollectiveKind::kReduceScatter);
  EXPECT_EQ(import.trace->operations[GlobalRank{0}][0].count, 25u);
  EXPECT_EQ(import.trace->operations[GlobalRank{0}][1].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(import.trace->operations[GlobalRank{0}][1].count, 25u);
}

TEST(ChakraReaderTest, GroupsHaveTheRanksOfTheirFile) {
  ImportedFiles files;
  std::vector<std::string> paths;
  for (int rank = 0; rank < 4; ++rank) {
    ChakraNode node = Collective(1, 0, 64);
    node.group = rank % 2 == 0 ? "even" : "odd";
    paths.push_back(files.Write("job." + std::to_string(rank) + ".et", FileOf({node})));
  }
  paths.push_back(files.Write("groups.json", R"({"even": [0, 2], "odd": [1, 3]})"));
  const TraceImport& import = files.Import(paths);
  ASSERT_TRUE(import.trace) << files.findings();
  ASSERT_EQ(import.trace->communicators.size(), 2u);
  EXPECT_THAT(import.trace->communicators[0].ranks, ElementsAre(0, 2));
  EXPECT_THAT(import.trace->communicators[1].ranks, ElementsAre(1, 3));
  ASSERT_EQ(import.report.assumed.size(), 1u);  // nothing but the units
  EXPECT_THAT(import.report.assumed[0], HasSubstr("durations in microseconds"));
  ExpectMatches(*import.trace);
}

// The number in a model's name is no rank, and the rank in a name says nothing about the job's
// size.
TEST(ChakraReaderTest, TheNameOfAFileAloneDoesNotSizeTheJob) {
  for (const char* name : {"resnet50.et", "job.3.et", "rank3.et", "trace.et"}) {
    ImportedFiles files;
    const TraceImport& import = files.Import({files.Write(name, FileOf({Collective(1, 0, 64)}))});
    ASSERT_TRUE(import.trace) << files.findings();
    EXPECT_EQ(import.trace->rank_count, 8u) << name;
    EXPECT_THAT(import.report.ToString(), HasSubstr("The job has 8 ranks")) << name;
  }
}

TEST(ChakraReaderTest, OneFileIsTheProgramOfAllRanks) {
  ImportedFiles files;
  const std::string path = files.Write("job.0.et", FileOf({Collective(1, 0, 64)}));
  const TraceImport& import = files.Import({path}, {.ranks = 16});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.trace->rank_count, 16u);
  EXPECT_EQ(import.report.ranks_reconstructed, 15u);
  EXPECT_EQ(import.report.calls_reconstructed, 15u);
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(1, 64));
  ExpectMatches(*import.trace);
  files.Import({path}, {.missing_ranks = MissingRanks::kRefuse, .ranks = 16});
  EXPECT_THAT(files.findings(), HasSubstr("15 ranks have no file"));
}

TEST(ChakraReaderTest, JsonIsReadInBothForms) {
  ImportedFiles files;
  const TraceImport& flat = files.Import({files.Write("a.0.json", R"({"workload_graph": [
    {"Id": 1, "Name": "k", "NodeType": 4, "runtime": 3, "data_deps": [], "is_cpu_op": false},
    {"Id": 2, "Name": "n", "NodeType": 7, "runtime": 9, "data_deps": [1], "comm_type": 5,
     "comm_size": 77, "root": 1}], "ngpus": 8})")});
  ASSERT_TRUE(flat.trace) << files.findings();
  EXPECT_THAT(files.Kind(CollectiveKind::kBroadcast), Pair(1, 77));
  EXPECT_EQ(flat.trace->operations[GlobalRank{0}][0].root, 1u);
  EXPECT_EQ(flat.trace->operations[GlobalRank{0}][0].compute_before_ps, 3'000'000);
  const TraceImport& proto = files.Import({files.Write("b.0.json", R"({"version": "0.0.4"}
    {"id": "1", "name": "n", "type": "COMM_COLL_NODE", "dataDeps": ["4"],
     "attr": [{"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "int64Val": "64"}]})")});
  ASSERT_TRUE(proto.trace) << files.findings();
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(1, 64));
}

// protobuf's JSON leaves out the id 0.
TEST(ChakraReaderTest, TheFirstNodeOfJsonMayHaveNoId) {
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write("a.0.json", R"({"version": "0.0.4"}
    {"name": "first", "type": "COMM_COLL_NODE",
     "attr": [{"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "int64Val": "64"}]}
    {"id": "1", "name": "second", "type": "COMM_COLL_NODE", "dataDeps": ["0"],
     "attr": [{"name": "comm_type", "int64Val": "2"}, {"name": "comm_size", "int64Val": "32"}]})")});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.report.calls_seen(), 2u);
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(1, 64));
  EXPECT_THAT(import.report.ToString(), Not(HasSubstr("not in the file")));
}

TEST(ChakraReaderTest, CallsWithoutSizeOrKindAreCounted) {
  ImportedFiles files;
  ChakraNode sizeless = Collective(2, 0, 64);
  sizeless.comm_size.reset();
  files.Import(
      {files.Write("job.0.et", FileOf({Collective(1, 0, 64), sizeless, Collective(3, 9, 64),
                                       Collective(4, 0, 0), Collective(5, 0, UINT64_MAX)}))});
  EXPECT_EQ(files.import().report.calls_imported(), 1u);
  EXPECT_EQ(files.Dropped(CallDropReason::kSizesNotRecorded), 1u);
  EXPECT_EQ(files.Dropped(CallDropReason::kUnsupportedKind), 1u);  // a barrier
  EXPECT_EQ(files.Dropped(CallDropReason::kZeroCount), 1u);
  EXPECT_EQ(files.Dropped(CallDropReason::kOutOfRange), 1u);
}

TEST(ChakraReaderTest, CollectivesOnWhichRanksDisagreeAreDropped) {
  ImportedFiles files;
  const TraceImport& import = files.Import(
      {files.Write("a.0.et",
                   FileOf({Collective(1, 0, 64), Collective(2, 0, 1024), Collective(3, 0, 64)})),
       files.Write("a.1.et",
                   FileOf({Collective(1, 0, 64), Collective(2, 0, 2048), Collective(3, 0, 64)}))});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(2, 128));
  EXPECT_EQ(files.Dropped(CallDropReason::kRanksDisagree), 4u);
  EXPECT_EQ(import.report.DroppedFor(CallDropReason::kRanksDisagree).first_lines[0].detail,
            "call 2 of group \"world\": rank 0 makes AllReduce of 1024 bytes from rank 0, rank 1 "
            "AllReduce of 2048 bytes from rank 0");
  ExpectMatches(*import.trace);
  files.Import({files.Write("a.0.et", FileOf({Collective(1, 0, 64)})),
                files.Write("a.1.et", FileOf({Collective(1, 2, 64)}))});
  EXPECT_FALSE(files.import().trace);
  EXPECT_EQ(files.Dropped(CallDropReason::kRanksDisagree), 2u);
}

TEST(ChakraReaderTest, CollectivesThatARankLacksAreDropped) {
  ImportedFiles files;
  const std::string one = FileOf({Collective(1, 0, 64)});
  const std::string two = FileOf({Collective(1, 0, 64), Collective(2, 0, 64)});
  // Rank 2 has no file and runs the program of rank 0.
  const TraceImport& import =
      files.Import({files.Write("a.0.et", two), files.Write("a.1.et", one)}, {.ranks = 3});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(2, 128));
  EXPECT_EQ(files.Dropped(CallDropReason::kIncompleteOnRank), 1u);
  EXPECT_EQ(import.trace->operations[GlobalRank{2}].size(), 1u);
  ExpectMatches(*import.trace);
  files.Import({files.Write("a.0.et", one), files.Write("a.1.et", FileOf({Computation(1, 5)}))});
  EXPECT_EQ(files.Dropped(CallDropReason::kIncompleteOnRank), 1u);
}

TEST(ChakraReaderTest, DurationsBeyondThoseOfAGraphAreCounted) {
  ImportedFiles files;
  ChakraNode call = Collective(2, 0, 64);
  call.data_deps = {1};
  const TraceImport& import =
      files.Import({files.Write("job.0.et", FileOf({Computation(1, UINT64_MAX), call}))});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_THAT(import.report.ToString(),
              HasSubstr("1 nodes have a duration_micros of more than 13 days"));
}

TEST(ChakraReaderTest, CyclesAreErrors) {
  ImportedFiles files;
  ChakraNode call = Collective(1, 0, 64);
  call.data_deps = {2};
  files.Import({files.Write("job.0.et", FileOf({call, Computation(2, 5, {1})}))});
  EXPECT_THAT(files.findings(), HasSubstr("waits for itself"));
}

// A file of zeros is one of empty messages, which are nodes of id 0. Zeros compress well, so that a
// small file may have any number of them.
TEST(ChakraReaderTest, AnIdThatIsRepeatedEndsTheReadingEarly) {
  ImportedFiles files;
  const std::string zeros(200'000, '\0');
  files.Import({files.Write("job.0.et", FileOf({Collective(1, 0, 64)}) + zeros)});
  EXPECT_THAT(files.findings(), HasSubstr("node 0 is there twice"));
  EXPECT_LT(files.import().report.files.at(0).bytes_read, 100'000u);
}

TEST(ChakraReaderTest, IdsAreUnique) {
  ImportedFiles files;
  files.Import({files.Write("job.0.et", FileOf({Collective(1, 0, 64), Computation(1, 5)}))});
  EXPECT_THAT(files.findings(), HasSubstr("node 1 is there twice"));
}

TEST(ChakraReaderTest, EveryTruncationIsAnErrorOrEndsBetweenNodes) {
  ImportedFiles files;
  const std::string first = FileOf({Collective(1, 0, 64)});
  const std::string whole = FileOf({Collective(1, 0, 64), Collective(2, 0, 64)});
  for (size_t size = first.size(); size <= whole.size(); ++size) {
    files.Import({files.Write("job.0.et", whole.substr(0, size))});
    const bool is_between = size == first.size() || size == whole.size();
    EXPECT_EQ(files.import().trace.has_value(), is_between) << size;
  }
}

TEST(ChakraReaderTest, LengthsCostNoMemoryUntilTheirBytesAreThere) {
  ImportedFiles files;
  // 64 MiB are announced, which is the most that is read; none is there.
  files.Import({files.Write("job.0.et", FileOf({Collective(1, 0, 64)}) + "\x80\x80\x80\x20")});
  EXPECT_THAT(files.findings(), HasSubstr("ends within a message of 67108864 bytes"));
}

TEST(ChakraReaderTest, NestingOfJsonIsBounded) {
  ImportedFiles files;
  files.Import({files.Write("a.0.json", R"({"workload_graph": )" + std::string(100'000, '['))});
  EXPECT_THAT(files.findings(), HasSubstr("nested too deeply"));
}

TEST(ChakraReaderTest, NumbersOfJsonMayBeFractionsOrTooLarge) {
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write("a.0.json", R"({"workload_graph": [
    {"Id": 1, "NodeType": 4, "runtime": 3.9},
    {"Id": 2, "NodeType": 7, "data_deps": [1], "comm_type": 0, "comm_size": 6.4e1},
    {"Id": 3, "NodeType": 4, "runtime": 1e99, "is_cpu_op": null},
    {"Id": 4, "NodeType": 7, "data_deps": [3], "comm_type": 0, "comm_size": -1}]})")});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(1, 64));
  EXPECT_EQ(import.trace->operations[GlobalRank{0}][0].compute_before_ps, 3'000'000);
  EXPECT_EQ(files.Dropped(CallDropReason::kOutOfRange), 1u);
  EXPECT_THAT(import.report.ToString(), HasSubstr("1 nodes have a duration_micros of more than"));
}

TEST(ChakraReaderTest, MistakesInJsonAreFindingsAtTheirLine) {
  ImportedFiles files;
  files.Import({files.Write("a.0.json",
                            "{\"version\": \"0.0.4\"}\n"
                            "{\"type\": \"COMM_COLL_NODE\", \"attr\": []}\n"
                            "{\"id\": 1,\n"
                            " \"name\": one}\n")});
  EXPECT_THAT(files.findings(), HasSubstr("a.0.json:4:1: error: is no JSON"));
}

// for f in DIR/*.et; do python3 -c '
//   split the file at its varint lengths and pipe each message to protoc --decode_raw'; done
// shows one node of type 7 each with comm_type 0, 2, 6, 7 and comm_size 1048576, as AttributeProto.
TEST(ChakraReaderTest, ReferenceMicrobenchmarksHaveOneCallARank) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const std::pair<const char*, CollectiveKind> jobs[] = {
      {"all_reduce", CollectiveKind::kAllReduce},
      {"all_gather", CollectiveKind::kAllGather},
      {"all_to_all", CollectiveKind::kAllToAll},
      {"reduce_scatter", CollectiveKind::kReduceScatter}};
  for (const auto& [name, kind] : jobs) {
    ImportedFiles files;
    const TraceImport& import =
        files.Import({reference_dir + "/traces/astra-sim-et/" + name + "_8npus_1MB"});
    ASSERT_TRUE(import.trace) << files.findings();
    EXPECT_THAT(files.Kind(kind), Pair(8, 8388608)) << name;
    EXPECT_EQ(import.trace->rank_count, 8u);
    ExpectMatches(*import.trace);
  }
}

// protoc --decode_raw of custom_allreduce.1.et: 14 nodes of type 5 and 14 of type 6, each of
// 131072 bytes, 7 of type 4 with 7 us.
TEST(ChakraReaderTest, ReferenceRingIsMessages) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportedFiles files;
  const TraceImport& import =
      files.Import({reference_dir + "/traces/astra-sim-et/custom_ring_allreduce_8npus_1MB"});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_THAT(files.Kind(CollectiveKind::kSend), Pair(8 * 14, 8 * 14 * 131072));
  EXPECT_THAT(files.Kind(CollectiveKind::kRecv), Pair(8 * 14, 8 * 14 * 131072));
  EXPECT_EQ(import.report.calls_dropped(), 0u);
  ExpectMatches(*import.trace);
}

// 21 of 3664 nodes are of type 7; the 7 that are not CPU operations have comm_size: 212480 + 424
// for comm_type 5, 8196000 + 31502336 + 26255360 + 26550272 + 9724160 for comm_type 0.
TEST(ChakraReaderTest, ReferenceProfileHasSevenKernels) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportedFiles files;
  const TraceImport& import = files.Import({reference_dir + "/traces/chakra-feeder-et.tar.gz"});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_THAT(files.Kind(CollectiveKind::kBroadcast), Pair(2, 212904));
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(5, 102228128));
  EXPECT_EQ(files.Dropped(CallDropReason::kSizesNotRecorded), 14u);
}

// python3: sum(n["NodeType"] == 7 for n in json.load(f)["workload_graph"]) is 21 and 3; no node has
// comm_size.
TEST(ChakraReaderTest, ReferenceJsonHasNoSizes) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportedFiles files;
  files.Import({reference_dir + "/traces/chakra-json.tar.gz"});
  EXPECT_FALSE(files.import().trace);
}

}  // namespace
}  // namespace railyard
