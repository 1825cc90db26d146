// SPDX-License-Identifier: GPL-2.0-only
#include "traces/trace/trace_file.h"

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include <boost/crc.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::HasSubstr;

class TraceFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "trace_file_test_" +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directory(directory_);
    path_ = directory_ + "/job.trace";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static Trace Example() {
    Trace trace;
    trace.origin = "nccl-log";
    trace.nccl_version = "2.27.5";
    trace.rank_count = 3;
    trace.source_files = {"a.log", "b.log"};
    trace.communicators = {{.name = "0x1", .ranks = GlobalRanksOf({0, 1, 2})},
                           {.name = "pair", .ranks = GlobalRanksOf({2, 0})}};
    trace.operations.resize(3);
    for (GlobalRank rank{0}; rank < 3; ++rank) {
      TraceOperation operation;
      operation.kind = CollectiveKind::kReduceScatter;
      operation.count = uint64_t{1} << 40;
      operation.datatype = Datatype::kBfloat16;
      operation.stream = 3;
      operation.compute_before_ps = 123456789;
      operation.measured_ps = 987654321;
      operation.algorithm = Algorithm::kPat;
      operation.protocol = Protocol::kSimple;
      operation.source_file = 1;
      operation.source_line = 77;
      trace.operations[GlobalRank{rank}].push_back(operation);
    }
    TraceOperation send;
    send.kind = CollectiveKind::kSend;
    send.communicator = 1;
    send.count = 5;
    send.peer = 1;
    send.group = 9;
    send.all_to_all = 4;
    send.loss_tolerance_ppm = 250;
    for (GlobalRank rank{0}; rank < 3; ++rank)
      trace.operations[GlobalRank{rank}].back().begins_iteration = true;
    trace.operations[GlobalRank{2}].push_back(send);
    TraceOperation exchange;
    exchange.kind = CollectiveKind::kAllToAll;
    exchange.communicator = 1;
    exchange.count = 6;
    exchange.in_place = true;
    trace.operations[GlobalRank{2}].push_back(exchange);
    return trace;
  }
  // However many operations a rank then has, they are of one iteration.
  static Trace ExampleOfOneIteration() {
    Trace trace = Example();
    for (GlobalRank rank{0}; rank < 3; ++rank) {
      for (TraceOperation& operation : trace.operations[GlobalRank{rank}])
        operation.begins_iteration = false;
    }
    return trace;
  }

  std::string Bytes() const {
    std::ostringstream bytes;
    bytes << std::ifstream(path_, std::ios::binary).rdbuf();
    return bytes.str();
  }
  void Put(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string Findings() const {
    Diagnostics diagnostics;
    const bool read = ReadTrace(path_, diagnostics).has_value();
    EXPECT_EQ(read, !diagnostics.HasErrors());
    return diagnostics.ToString();
  }

  std::string directory_;
  std::string path_;
};

void ExpectEqual(const Trace& a, const Trace& b) {
  EXPECT_EQ(a.origin, b.origin);
  EXPECT_EQ(a.nccl_version, b.nccl_version);
  EXPECT_EQ(a.rank_count, b.rank_count);
  EXPECT_EQ(a.source_files, b.source_files);
  ASSERT_EQ(a.communicators.size(), b.communicators.size());
  for (size_t i = 0; i < a.communicators.size(); ++i) {
    EXPECT_EQ(a.communicators[i].name, b.communicators[i].name);
    EXPECT_EQ(a.communicators[i].ranks, b.communicators[i].ranks);
  }
  ASSERT_EQ(a.operations.size(), b.operations.size());
  for (size_t rank = 0; rank < a.operations.size(); ++rank) {
    ASSERT_EQ(a.operations[GlobalRank{rank}].size(), b.operations[GlobalRank{rank}].size());
    for (size_t i = 0; i < a.operations[GlobalRank{rank}].size(); ++i) {
      const TraceOperation& x = a.operations[GlobalRank{rank}][i];
      const TraceOperation& y = b.operations[GlobalRank{rank}][i];
      EXPECT_EQ(x.kind, y.kind);
      EXPECT_EQ(x.communicator, y.communicator);
      EXPECT_EQ(x.count, y.count);
      EXPECT_EQ(x.datatype, y.datatype);
      EXPECT_EQ(x.root, y.root);
      EXPECT_EQ(x.peer, y.peer);
      EXPECT_EQ(x.stream, y.stream);
      EXPECT_EQ(x.group, y.group);
      EXPECT_EQ(x.all_to_all, y.all_to_all);
      EXPECT_EQ(x.loss_tolerance_ppm, y.loss_tolerance_ppm);
      EXPECT_EQ(x.in_place, y.in_place);
      EXPECT_EQ(x.compute_before_ps, y.compute_before_ps);
      EXPECT_EQ(x.measured_ps, y.measured_ps);
      EXPECT_EQ(x.begins_iteration, y.begins_iteration);
      EXPECT_EQ(x.algorithm, y.algorithm);
      EXPECT_EQ(x.protocol, y.protocol);
      EXPECT_EQ(x.source_file, y.source_file);
      EXPECT_EQ(x.source_line, y.source_line);
    }
  }
}

TEST_F(TraceFileTest, ReadsBackWhatWasWritten) {
  WriteTrace(path_, Example());
  Diagnostics diagnostics;
  const auto trace = ReadTrace(path_, diagnostics);
  ASSERT_TRUE(trace) << diagnostics.ToString();
  ExpectEqual(*trace, Example());
  EXPECT_EQ(trace->file, path_);
}

TEST_F(TraceFileTest, ARanksOperationsMaySpanSeveralMessages) {
  Trace trace = ExampleOfOneIteration();
  trace.operations[GlobalRank{1}].assign(200'000, trace.operations[GlobalRank{1}].front());
  // No two are alike: a loop would be one message.
  for (size_t i = 0; i < 200'000; ++i) trace.operations[GlobalRank{1}][i].count = i + 1;
  WriteTrace(path_, trace);
  Diagnostics diagnostics;
  const auto read = ReadTrace(path_, diagnostics);
  ASSERT_TRUE(read) << diagnostics.ToString();
  ASSERT_EQ(read->operations[GlobalRank{1}].size(), 200'000u);
  EXPECT_EQ(read->operations[GlobalRank{1}].back().count, 200'000u);
}

TEST_F(TraceFileTest, RanksThatShareAProgramStillShareIt) {
  Trace trace = ExampleOfOneIteration();
  trace.operations[GlobalRank{0}].assign(50'000, trace.operations[GlobalRank{0}].front());
  trace.operations.SetProgram(GlobalRank{1}, trace.operations.program_of_rank(GlobalRank{0}));
  WriteTrace(path_, trace);
  Diagnostics diagnostics;
  const auto read = ReadTrace(path_, diagnostics);
  ASSERT_TRUE(read) << diagnostics.ToString();
  ExpectEqual(*read, trace);
  EXPECT_EQ(read->operations.program_of_rank(GlobalRank{1}),
            read->operations.program_of_rank(GlobalRank{0}));
  EXPECT_NE(read->operations.program_of_rank(GlobalRank{2}),
            read->operations.program_of_rank(GlobalRank{0}));
  EXPECT_EQ(read->operations.OperationCount(), 50'000u + 50'000u + 3u);
}

TEST_F(TraceFileTest, RanksOfDifferentGroupsShareAProgram) {
  Trace trace = ExampleOfOneIteration();
  trace.communicators = {{.name = "a", .ranks = GlobalRanksOf({0, 2})},
                         {.name = "b", .ranks = GlobalRanksOf({1})}};
  trace.operations.SetProgram(GlobalRank{1}, trace.operations.program_of_rank(GlobalRank{0}));
  trace.communicators_of_rank = {{0}, {1}, {}};
  trace.operations[GlobalRank{2}].resize(1);
  WriteTrace(path_, trace);
  Diagnostics diagnostics;
  const auto read = ReadTrace(path_, diagnostics);
  ASSERT_TRUE(read) << diagnostics.ToString();
  ExpectEqual(*read, trace);
  EXPECT_EQ(read->communicators_of_rank, trace.communicators_of_rank);
  EXPECT_EQ(read->operations.program_of_rank(GlobalRank{1}),
            read->operations.program_of_rank(GlobalRank{0}));
  // A reader that knows version 1 alone would take the numbers for indices.
  EXPECT_EQ(Bytes().substr(1, 2), "\x08\x02");
  WriteTrace(path_, Example());
  EXPECT_EQ(Bytes().substr(1, 2), "\x08\x01");
}

TEST_F(TraceFileTest, ARankSaysOnceWhatItsCommunicatorsAre) {
  // schema_version 2, rank_count 1; rank 0, communicators [0]; the same again.
  Put(std::string("\x04\x08\x02\x20\x01\x05\x08\x00\x22\x01\x00\x05\x08\x00\x22\x01\x00", 17));
  EXPECT_THAT(Findings(), HasSubstr("rank 0 says what its communicators are again, or late (its "
                                    "first message was expected to)"));
}

TEST_F(TraceFileTest, ARankThatSharesAHigherOnesProgramIsAFinding) {
  // schema_version 1, rank_count 2; rank 1, same_as 1.
  Put(std::string("\x04\x08\x01\x20\x02\x04\x08\x01\x18\x01", 10));
  EXPECT_THAT(Findings(), HasSubstr("rank 1 does the same as rank 1 (a lower rank was expected)"));
}

TEST_F(TraceFileTest, ARankWithOperationsSharesNone) {
  // schema_version 1, rank_count 2; rank 1, an empty operation, same_as 0.
  Put(std::string("\x04\x08\x01\x20\x02\x06\x08\x01\x12\x00\x18\x00", 12));
  EXPECT_THAT(Findings(), HasSubstr("has operations of its own (one of both was expected)"));
}

TEST_F(TraceFileTest, WritingLeavesNothingButTheFile) {
  WriteTrace(path_, Example());
  WriteTrace(path_, Example());
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory_)) {
    ++files;
  }
  EXPECT_EQ(files, 1);
}

TEST_F(TraceFileTest, AnImpossiblePathIsAnEnvironmentError) {
  EXPECT_THROW(WriteTrace(directory_ + "/absent/job.trace", Example()), EnvironmentError);
}

std::string LittleEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  return text;
}

// RFC 1952 around one stored block of RFC 1951, for fewer than 64 KiB.
std::string Gzip(const std::string& plain) {
  boost::crc_32_type crc;
  crc.process_bytes(plain.data(), plain.size());
  return std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10) + '\x01' + LittleEndian(plain.size(), 2) +
         LittleEndian(~plain.size() & 0xffff, 2) + plain + LittleEndian(crc.checksum(), 4) +
         LittleEndian(plain.size(), 4);
}

TEST_F(TraceFileTest, ReadsGzip) {
  WriteTrace(path_, Example());
  const std::string compressed = Gzip(Bytes());
  Put(compressed);
  Diagnostics diagnostics;
  const auto trace = ReadTrace(path_, diagnostics);
  ASSERT_TRUE(trace) << diagnostics.ToString();
  ExpectEqual(*trace, Example());
  Put(compressed.substr(0, compressed.size() / 2));
  EXPECT_NE(Findings(), "");
  Put("\x1f\x8b not gzip");
  EXPECT_NE(Findings(), "");
}

TEST_F(TraceFileTest, AMissingFileIsAFinding) {
  EXPECT_THAT(Findings(), HasSubstr("does not exist (a trace was expected)"));
  path_ = directory_;
  EXPECT_THAT(Findings(), HasSubstr("is not a file (a trace was expected)"));
}

TEST_F(TraceFileTest, AnEmptyFileIsAFinding) {
  Put("");
  EXPECT_THAT(Findings(), HasSubstr("byte 0: the file is empty"));
}

TEST_F(TraceFileTest, AFileThatIsNotATraceIsAFinding) {
  Put(std::string(1000, '\xff'));
  EXPECT_THAT(Findings(), HasSubstr("byte 0: the length of the header message is cut off or "
                                    "malformed"));
  Put("\xff\xff\xff\xff\x0f hello");
  EXPECT_THAT(Findings(), HasSubstr("is too large"));
  Put(std::string("\x05\x08\x63\x20\x01", 5) + '\0');
  EXPECT_THAT(Findings(), HasSubstr("header message is cut off, malformed"));
}

TEST_F(TraceFileTest, TextThatIsNotUtf8IsAFindingAndNothingElseIsPrinted) {
  // Field 2, origin: one byte that begins no character.
  Put(std::string("\x05\x08\x01\x12\x01\xff", 6));
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(Findings(),
              HasSubstr(":1:1: error: byte 0: the header message is cut off, malformed, "
                        "or has text that is not UTF-8"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(TraceFileTest, AnUnknownSchemaVersionIsAFinding) {
  // Field 1 = 99.
  Put("\x02\x08\x63");
  EXPECT_THAT(Findings(), HasSubstr("schema version 99 is not known (versions 1 to 3 are)"));
}

TEST_F(TraceFileTest, AnAbsurdRankCountIsAFinding) {
  // schema_version 1, rank_count 2^28 - 1.
  Put("\x07\x08\x01\x20\xff\xff\xff\x7f");
  EXPECT_THAT(Findings(), HasSubstr("rank_count 268435455 is out of range (1 to 1000000)"));
}

TEST_F(TraceFileTest, EveryTruncationIsAFinding) {
  WriteTrace(path_, Example());
  const std::string bytes = Bytes();
  for (size_t length = 0; length < bytes.size(); ++length) {
    Put(bytes.substr(0, length));
    EXPECT_NE(Findings(), "") << length;
  }
}

TEST_F(TraceFileTest, DamagedBytesNeverCrash) {
  WriteTrace(path_, Example());
  const std::string bytes = Bytes();
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = bytes;
    for (int edits = 0; edits < 3; ++edits) {
      damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    }
    Put(damaged);
    Findings();
  }
}

}  // namespace
}  // namespace railyard
