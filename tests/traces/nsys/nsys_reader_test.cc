// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nsys/nsys_reader.h"

#include <cstdint>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/reference_dir.h"
#include "tests/traces/imported_files.h"
#include "tests/traces/nsys/nsys_file.h"
#include "traces/import/import.h"
#include "workloads/job/job.h"

namespace railyard {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::ImportedFiles;
using ::testing::Not;
using testing::NsysFile;
using ::testing::Pair;

std::string BytesOf(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

// Imports an export with what `fill` puts into it.
const TraceImport& Import(ImportedFiles& files, const std::function<void(NsysFile&)>& fill) {
  const std::string path = files.Write("job.sqlite", "");
  {
    NsysFile made(path);
    fill(made);
  }
  return files.Import({path});
}

TEST(NsysReaderTest, PayloadsSayRanksAndSizes) {
  ImportedFiles files;
  const TraceImport& import = Import(files, [](NsysFile& made) { made.AddTwoRanks(); });
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.report.format, "nsys");
  EXPECT_EQ(import.trace->rank_count, 2u);
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(2, 8192));
  EXPECT_THAT(files.Kind(CollectiveKind::kSend), Pair(2, 128));
  const auto& program = import.trace->operations[GlobalRank{1}];
  ASSERT_EQ(program.size(), 3u);
  EXPECT_EQ(program[0].count, 4096u);
  EXPECT_NE(program[1].group, 0u);
  EXPECT_EQ(program[1].group, program[2].group);
  EXPECT_EQ(program[1].peer, 0u);
  Diagnostics diagnostics;
  EXPECT_TRUE(BuildJob(*import.trace, diagnostics).has_value()) << diagnostics.ToString();
}

// The host is done before the GPU begins: durations and gaps are the kernels'.
TEST(NsysReaderTest, KernelsGiveDurationsGapsAndStreams) {
  ImportedFiles files;
  const TraceImport& import = Import(files, [](NsysFile& made) {
    for (const uint64_t process : {100u, 101u}) {
      made.Range(0, process, "ncclCommInitRank", 1, {0xabcd, 2 | (process - 100) << 32});
      made.Range(10, process, "ncclAllReduce", 2, {0xabcd, 4096});
      made.Kernel(11, 1'000, 1'300, process, 7);
      made.Kernel(17, 1'300, 1'700, process, 7, "gemm");  // is computation
      made.Range(20, process, "ncclAllReduce", 2, {0xabcd, 8192});
      made.Kernel(25, 1'720, 1'900, process, 7);
      made.Range(30, process, "ncclGroupStart", 0, {});
      made.Range(40, process, "ncclSend", 3, {0xabcd, 64, 101 - process});
      made.Range(50, process, "ncclRecv", 3, {0xabcd, 64, 101 - process});
      made.Range(60, process, "ncclGroupEnd", 0, {});
      made.Kernel(62, 1'500, 1'750, process, 13, "ncclDevKernel_SendRecv");
      made.Range(70, process, "ncclAllReduce", 2, {0xabcd, 512});  // its kernel was not captured
    }
  });
  ASSERT_TRUE(import.trace) << files.findings();
  const auto& program = import.trace->operations[GlobalRank{1}];
  ASSERT_EQ(program.size(), 5u);
  EXPECT_EQ(program[0].measured_ps, 300'000);
  EXPECT_EQ(program[0].compute_before_ps, 0);
  EXPECT_EQ(program[1].measured_ps, 180'000);
  EXPECT_EQ(program[1].compute_before_ps, 420'000);
  EXPECT_EQ(program[1].stream, program[0].stream);
  // The first on its stream waits from the beginning of the first kernel on.
  EXPECT_EQ(program[2].measured_ps, 250'000);
  EXPECT_EQ(program[2].compute_before_ps, 500'000);
  EXPECT_NE(program[2].stream, program[0].stream);
  EXPECT_EQ(program[3].measured_ps, 250'000);
  EXPECT_EQ(program[3].compute_before_ps, 0);
  EXPECT_EQ(program[3].stream, program[2].stream);
  EXPECT_EQ(program[4].measured_ps, 0);
  EXPECT_EQ(program[4].stream, program[3].stream);
  EXPECT_THAT(import.report.assumed, Contains(HasSubstr("is computation")));
}

TEST(NsysReaderTest, TimesMayBeIgnored) {
  ImportedFiles files;
  const std::string path = files.Write("job.sqlite", "");
  {
    NsysFile made(path);
    made.AddTwoRanks();
  }
  for (const auto& operation : files.Import({path}).trace->operations[GlobalRank{0}]) {
    EXPECT_NE(operation.measured_ps, 0);
  }
  const TraceImport& import = files.Import({path}, {.ignore_times = true});
  ASSERT_TRUE(import.trace) << files.findings();
  for (const auto& operation : import.trace->operations[GlobalRank{0}]) {
    EXPECT_EQ(operation.compute_before_ps, 0);
  }
}

// As with a CUDA graph, which is launched again and again.
TEST(NsysReaderTest, KernelsThatNoCallLaunchedAreCounted) {
  ImportedFiles files;
  const TraceImport& import = Import(files, [](NsysFile& made) {
    made.AddTwoRanks();
    made.Kernel(5'000, 6'000, 6'100, 100);
    made.Kernel(5'000, 6'200, 6'300, 101);
    made.Kernel(5, 6'200, 6'300, 103);  // a process without calls
  });
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_THAT(import.report.assumed,
              Contains(HasSubstr("3 of 7 kernels of NCCL were not launched by a call")));
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(2, 8192));
}

TEST(NsysReaderTest, KernelsThatEndBeforeTheyBeginHaveNoDuration) {
  ImportedFiles files;
  const TraceImport& import = Import(files, [](NsysFile& made) {
    for (const uint64_t process : {100u, 101u}) {
      made.Range(0, process, "ncclCommInitRank", 1, {0xabcd, 2 | (process - 100) << 32});
      made.Range(10, process, "ncclAllReduce", 2, {0xabcd, 4096});
      made.Kernel(11, 1'000, 999, process);
      made.Range(20, process, "ncclAllReduce", 2, {0xabcd, 4096});
      made.Kernel(21, INT64_MIN, INT64_MAX, process);
      made.Range(30, process, "ncclAllReduce", 2, {0xabcd, 4096});
      made.Kernel(31, 0, INT64_MAX / 2, process);
    }
  });
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.trace->operations[GlobalRank{0}][0].measured_ps, 0);
  EXPECT_EQ(import.trace->operations[GlobalRank{0}][1].measured_ps, 0);
  EXPECT_THAT(import.report.assumed, Contains(HasSubstr("4 calls state a duration that is none")));
}

// Schemas of other libraries have the same numbers, for NVTX gives each domain its own.
TEST(NsysReaderTest, SchemasAreThoseOfTheRangesDomain) {
  ImportedFiles files;
  const TraceImport& import = Import(files, [](NsysFile& made) {
    made.AddTwoRanks();
    made.Run(
        "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (4, 2, 'Message size [bytes]', 22, 0)");
  });
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(2, 8192));
}

// Groups of two in a job of four, whose members are in the order of their keys. The ranges state
// size and rank of the parent.
TEST(NsysReaderTest, ASplitHasItsMembersByTheirKeys) {
  ImportedFiles files;
  const TraceImport& import = Import(files, [](NsysFile& made) {
    for (uint64_t rank = 0; rank < 4; ++rank) {
      made.Range(1, 100 + rank, "ncclCommInitRank", 1, {0xabcd, 4 | rank << 32});
      made.Split(10, 100 + rank, 0x10 + rank % 2, 0xabcd, 4, rank, rank % 2, 4 - rank);
      made.Split(20, 100 + rank, 0, 0xabcd, 4, rank, 0, 0);  // before its number was known
      made.Range(30, 100 + rank, "ncclAllReduce", 2, {0x10 + rank % 2, 4096});
    }
  });
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.trace->rank_count, 4u);
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(4, 4 * 4096));
  ASSERT_EQ(import.trace->communicators.size(), 2u);
  EXPECT_THAT(import.trace->communicators[0].ranks, ::testing::ElementsAre(2, 0));
  EXPECT_THAT(import.trace->communicators[1].ranks, ::testing::ElementsAre(3, 1));
}

TEST(NsysReaderTest, ASplitOfWhichRanksAreMissingIsUnknown) {
  ImportedFiles files;
  const TraceImport& import = Import(files, [](NsysFile& made) {
    made.Range(1, 100, "ncclCommInitRank", 1, {0xabcd, 2});
    made.Split(10, 100, 0x10, 0xabcd, 2, 0, 0, 0);
    made.Range(20, 100, "ncclAllReduce", 2, {0x10, 4096});
    made.Range(30, 100, "ncclAllReduce", 2, {0xabcd, 4096});
  });
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(files.Dropped(CallDropReason::kAmbiguousCommunicator), 1u);
  EXPECT_THAT(import.report.ToString(),
              HasSubstr("communicator 0x10 is a split of 0xabcd, of which not all ranks were"));
}

// As with DistributedDataParallel: another thread makes the calls, and a third one ends the job.
TEST(NsysReaderTest, AnyThreadOfARankMayEndItsCommunicator) {
  ImportedFiles files;
  Import(files, [](NsysFile& made) {
    for (uint64_t rank = 0; rank < 2; ++rank) {
      made.Range(1, 100 + rank, "ncclCommInitRank", 1, {0xabcd, 2 | rank << 32}, 1);
      made.Range(10, 100 + rank, "ncclAllReduce", 2, {0xabcd, 4096}, 2);
      made.Range(20, 100 + rank, "ncclCommAbort", 1, {0xabcd, 2 | rank << 32}, 3);
    }
  });
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(2, 8192)) << files.findings();
}

TEST(NsysReaderTest, NewFunctionsAreCountedAtLeast) {
  ImportedFiles files;
  Import(files, [](NsysFile& made) {
    for (uint64_t rank = 0; rank < 2; ++rank) {
      made.Range(1, 100 + rank, "ncclCommInitRank", 1, {0xabcd, 2 | rank << 32});
      made.Range(10, 100 + rank, "ncclAllReduceConfig", 2, {0xabcd, 4096});
      made.Range(20, 100 + rank, "ncclPutSignal", 2, {0xabcd, 64});
      made.Range(30, 100 + rank, "ncclSomething", 2, {0xabcd, 64});
    }
  });
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(2, 8192)) << files.findings();
  EXPECT_EQ(files.import().report.calls_seen(), 6u);
  EXPECT_EQ(files.Dropped(CallDropReason::kUnsupportedKind), 4u);
}

// A Send outside of groups makes a separate group. Nothing says how long each of several
// collectives of a group took.
TEST(NsysReaderTest, KernelsOfGroups) {
  ImportedFiles files;
  const TraceImport& import = Import(files, [](NsysFile& made) {
    for (uint64_t rank = 0; rank < 2; ++rank) {
      const uint64_t process = 100 + rank;
      made.Range(1, process, "ncclCommInitRank", 1, {0xabcd, 2 | rank << 32});
      made.Range(10, process, rank == 0 ? "ncclSend" : "ncclRecv", 3, {0xabcd, 64, 1 - rank});
      made.Range(11, process, "ncclGroupStart", 0, {});
      made.Range(12, process, "ncclGroupEnd", 0, {});
      made.Kernel(13, 100, 150, process, 7, "ncclDevKernel_SendRecv");
      made.Range(20, process, "ncclGroupStart", 0, {});
      made.Range(30, process, "ncclAllReduce", 2, {0xabcd, 4096});
      made.Range(40, process, "ncclAllReduce", 2, {0xabcd, 8192});
      made.Range(50, process, "ncclGroupEnd", 0, {});
      made.Kernel(52, 200, 290, process);
    }
  });
  ASSERT_TRUE(import.trace) << files.findings();
  const auto& program = import.trace->operations[GlobalRank{0}];
  ASSERT_EQ(program.size(), 3u);
  EXPECT_EQ(program[0].measured_ps, 50'000);
  EXPECT_EQ(program[0].group, 0u);
  EXPECT_EQ(program[1].compute_before_ps, 50'000);
  EXPECT_EQ(program[1].measured_ps, 0);
  EXPECT_EQ(program[2].measured_ps, 0);
}

// PyTorch estimates times with groups that it only simulates.
TEST(NsysReaderTest, SimulatedGroupsAreNotMade) {
  ImportedFiles files;
  const TraceImport& import = Import(files, [](NsysFile& made) {
    for (const uint64_t rank : {0u, 1u}) {
      const uint64_t process = 100 + rank;
      made.Range(1, process, "ncclCommInitRank", 1, {0xabcd, 2 | rank << 32});
      made.Range(10, process, "ncclGroupStart", 0, {});
      made.Range(12, process, "ncclAllReduce", 2, {0xabcd, 1 << 20});
      made.Range(14, process, "ncclGroupSimulateEnd", 0, {});
      made.Range(20, process, "ncclAllReduce", 2, {0xabcd, 4096});
      made.Kernel(25, 100, 150, process, 7);
    }
  });
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(2, 8192));
  EXPECT_EQ(import.report.calls_dropped(), 0u);
  EXPECT_EQ(import.trace->operations[GlobalRank{0}][0].measured_ps, 50'000);
  EXPECT_THAT(import.report.assumed,
              Contains(HasSubstr("2 calls of groups that ended with ncclGroupSimulateEnd")));
}

// The payload of a creation within a group is written before its communicator is known.
TEST(NsysReaderTest, CreationsWithinAGroupAreThatOfTheOneCommunicator) {
  const auto init = [](NsysFile& made, uint64_t process, uint64_t rank) {
    made.Range(1, process, "ncclCommInitRank", 1, {0, 2 | rank << 32});
  };
  ImportedFiles files;
  const TraceImport& import = Import(files, [&](NsysFile& made) {
    for (const uint64_t rank : {0u, 1u}) {
      init(made, 100 + rank, rank);
      made.Range(20, 100 + rank, "ncclAllReduce", 2, {0xabcd, 4096});
    }
  });
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(2, 8192));
  EXPECT_THAT(import.report.assumed,
              Contains(HasSubstr("2 processes joined the one communicator that they use")));
  // Two such creations may be of either communicator.
  ImportedFiles others;
  Import(others, [&](NsysFile& made) {
    for (const uint64_t rank : {0u, 1u}) {
      init(made, 100 + rank, rank);
      init(made, 100 + rank, rank);
      made.Range(20, 100 + rank, "ncclAllReduce", 2, {0xabcd, 4096});
    }
  });
  EXPECT_EQ(others.Dropped(CallDropReason::kAmbiguousCommunicator), 2u);
  EXPECT_THAT(others.import().report.ToString(),
              HasSubstr("which ncclCommInitRank is that of communicator 0xabcd is not recorded"));
}

// Two servers whose process drives two GPUs, each by a thread, as with nccl-tests -t 2.
TEST(NsysReaderTest, ThreadsOfAProcessAreRanks) {
  ImportedFiles files;
  std::vector<std::string> paths;
  for (uint64_t server = 0; server < 2; ++server) {
    paths.push_back(files.Write("server" + std::to_string(server) + ".sqlite", ""));
    NsysFile made(paths.back());
    for (const uint64_t thread : {1u, 2u}) {
      const uint64_t rank = 2 * server + thread - 1;
      const auto start = static_cast<int64_t>(thread);
      made.Range(start, 100, "ncclCommInitRank", 1, {0xabcd, 4 | rank << 32}, thread);
      made.Range(start + 10, 100, "ncclAllReduce", 2, {0xabcd, 4096}, thread);
    }
  }
  const TraceImport& import = files.Import(paths);
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.trace->rank_count, 4u);
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(4, 16384));
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    EXPECT_EQ(import.trace->operations[rank].size(), 1u) << rank;
  }
}

// Nothing says which of its two ranks a call of the thread is.
TEST(NsysReaderTest, CallsOfAThreadOfSeveralRanksAreDropped) {
  ImportedFiles files;
  const TraceImport& import = Import(files, [](NsysFile& made) {
    for (uint64_t rank = 0; rank < 2; ++rank) {
      made.Range(1, 100, "ncclCommInitRank", 1, {0xabcd, 2 | rank << 32});
      made.Range(10, 100, "ncclAllReduce", 2, {0xabcd, 4096});
    }
  });
  EXPECT_FALSE(import.trace);
  EXPECT_EQ(import.report.calls_imported(), 0u);
  EXPECT_EQ(import.report.DroppedFor(CallDropReason::kUnknownRank).count, 2u);
  EXPECT_THAT(import.report.ToString(),
              HasSubstr("its thread is not one rank of communicator 0xabcd"));
}

// NCCL's first ranges with payloads have bytes and no communicator.
TEST(NsysReaderTest, RangesWithoutACommunicatorAreDroppedForThat) {
  ImportedFiles files;
  const TraceImport& import = Import(files, [](NsysFile& made) {
    made.Run(
        "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, 4, 'Message size [bytes]', 22, NULL)");
    made.Range(1, 100, "ncclCommInitRank", 1, {0xabcd, 1});
    made.Range(10, 100, "ncclAllReduce", 4, {4096});
  });
  EXPECT_EQ(import.report.DroppedFor(CallDropReason::kAmbiguousCommunicator).count, 1u);
  EXPECT_THAT(import.report.ToString(), HasSubstr("do not name the communicator"));
}

TEST(NsysReaderTest, CallsThatNotAllRanksMakeAreDropped) {
  ImportedFiles files;
  const TraceImport& import = Import(files, [](NsysFile& made) {
    made.AddTwoRanks();
    made.Range(100, 100, "ncclAllReduce", 2, {0xabcd, 64});
  });
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.report.DroppedFor(CallDropReason::kIncompleteOnRank).count, 1u);
  Diagnostics diagnostics;
  EXPECT_TRUE(BuildJob(*import.trace, diagnostics).has_value()) << diagnostics.ToString();
}

// The profile of rank 0 of two: rank 1 gets its program.
TEST(NsysReaderTest, RanksWithoutAProfileAreReconstructed) {
  ImportedFiles files;
  const TraceImport& import = Import(files, [](NsysFile& made) {
    made.Range(1, 100, "ncclCommInitRank", 1, {0xabcd, 2});
    made.Range(10, 100, "ncclAllReduce", 2, {0xabcd, 4096});
  });
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.trace->rank_count, 2u);
  EXPECT_EQ(import.trace->operations[GlobalRank{1}].size(), 1u);
}

// Members of a communicator that is complete need no order: 0, 1 and 3 of four.
TEST(NsysReaderTest, MembersOfACommunicatorMayBeAnyRanks) {
  ImportedFiles files;
  const TraceImport& import = Import(files, [](NsysFile& made) {
    uint64_t member = 0;
    for (uint64_t rank = 0; rank < 4; ++rank) {
      made.Range(1, 100 + rank, "ncclCommInitRank", 1, {0xabcd, 4 | rank << 32});
      if (rank == 2) continue;
      made.Range(2, 100 + rank, "ncclCommInitRank", 1, {0xef, 3 | member++ << 32});
      made.Range(3, 100 + rank, "ncclAllReduce", 2, {0xef, 4096});
    }
  });
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(3, 12288));
  ASSERT_EQ(import.trace->communicators.size(), 1u);
  EXPECT_THAT(import.trace->communicators[0].ranks, ::testing::ElementsAre(0, 1, 3));
}

TEST(NsysReaderTest, ViewsAreNotRun) {
  ImportedFiles files;
  Import(files, [](NsysFile& made) {
    made.Run("DROP TABLE NVTX_EVENTS");
    made.Run(
        "CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE r(start) AS (SELECT 1 UNION ALL SELECT "
        "start + 1 FROM r) SELECT start, 'ncclSend' AS text, 1 AS textId, 1 AS globalTid FROM r");
  });
  EXPECT_FALSE(files.import().trace);
  EXPECT_NE(files.findings(), "");
}

// Such a file is not unpacked, however long it is.
TEST(NsysReaderTest, OtherFilesAreErrors) {
  const ImportedFiles files;
  const std::string path = files.Write("job.sqlite", std::string(1'000, '\0'));
  Diagnostics diagnostics;
  EXPECT_FALSE(ImportFiles({path}, "nsys", {}, diagnostics).trace);
  EXPECT_EQ(diagnostics.ToString(), path +
                                        ": error: is no SQLite database (expected what `nsys "
                                        "export --type sqlite` writes)\n");
}

TEST(NsysReaderTest, DamagedDatabasesAreErrors) {
  ImportedFiles files;
  const std::string path = files.Write("job.sqlite", "");
  { NsysFile made(path); }
  std::string bytes = BytesOf(path);
  files.Import({files.Write("cut.sqlite", bytes.substr(0, 600))});
  EXPECT_FALSE(files.import().trace);
  files.Import({files.Write("head.sqlite", bytes.substr(0, 16))});
  EXPECT_FALSE(files.import().trace);
  for (size_t i = 100; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 37);
  files.Import({files.Write("noise.sqlite", bytes)});
  EXPECT_FALSE(files.import().trace);
}

// sqlite3 mfu_2gpu_before.sqlite "SELECT count(*) FROM NVTX_EVENTS e JOIN StringIds s ON
//   s.id = e.textId WHERE s.value IN ('ncclSend', 'ncclRecv')"   264, every binaryData NULL
TEST(NsysReaderTest, ReferenceHasNoSizes) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportedFiles files;
  files.Import({reference_dir + "/traces/nsys/mfu_2gpu_before.sqlite.gz"});
  EXPECT_FALSE(files.import().trace);
  EXPECT_EQ(files.import().report.format, "nsys");
  EXPECT_EQ(files.Dropped(CallDropReason::kSizesNotRecorded), 264u);
  EXPECT_THAT(files.findings(), HasSubstr("264 sizes not recorded"));
}

// sqlite3 mfu_2gpu_before.sqlite "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds
//   s ON s.id = k.shortName WHERE s.value LIKE 'nccl%'"   66, as many as there are ncclGroupEnd
TEST(NsysReaderTest, EveryKernelOfTheReferenceWasLaunchedByAGroup) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportedFiles files;
  files.Import({reference_dir + "/traces/nsys/mfu_2gpu_before.sqlite.gz"});
  EXPECT_THAT(files.import().report.assumed, Contains(HasSubstr("is computation")));
  EXPECT_THAT(files.import().report.assumed,
              Not(Contains(HasSubstr("were not launched by a call"))));
}

}  // namespace
}  // namespace railyard
