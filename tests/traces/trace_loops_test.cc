// SPDX-License-Identifier: GPL-2.0-only
// Loops of programs: what is found, and that files with loops are read as what was written.
#include "traces/trace/trace_loops.h"

#include <cstdint>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/processes/temporary_directory.h"
#include "traces/trace/trace_file.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Program = std::vector<TraceOperation>;

TraceOperation AllReduceOf(uint64_t count) {
  TraceOperation operation;
  operation.count = count;
  return operation;
}

// A step of 12 equal calls of layers, which are a loop in themselves, and 5 different ones.
void AddStep(Program& program) {
  for (int layer = 0; layer < 12; ++layer) program.push_back(AllReduceOf(1'000));
  for (uint64_t count = 1; count <= 5; ++count) program.push_back(AllReduceOf(count));
}

TEST(TraceLoopsTest, TheLoopOfStepsIsFoundNotThatOfLayers) {
  Program program = {AllReduceOf(77), AllReduceOf(78), AllReduceOf(79)};
  for (int step = 0; step < 50; ++step) AddStep(program);
  program.push_back(AllReduceOf(80));
  EXPECT_THAT(FindLoops(program), ElementsAre(ProgramLoop{3, 17, 50}));
}

TEST(TraceLoopsTest, LongLoopsAreSeveral) {
  const Program program(600'000, AllReduceOf(1));
  EXPECT_THAT(FindLoops(program),
              ElementsAre(ProgramLoop{0, 1, 262'144}, ProgramLoop{262'144, 1, 262'144},
                          ProgramLoop{524'288, 1, 75'712}));
}

TEST(TraceLoopsTest, FewOperationsOrDifferentOnesAreNoLoop) {
  Program program;
  EXPECT_THAT(FindLoops(program), IsEmpty());
  program.assign(8, AllReduceOf(1));
  EXPECT_THAT(FindLoops(program), IsEmpty());
  program.push_back(AllReduceOf(1));
  EXPECT_THAT(FindLoops(program), ElementsAre(ProgramLoop{0, 1, 9}));
  for (size_t i = 0; i < program.size(); ++i) program[i].count = i;
  EXPECT_THAT(FindLoops(program), IsEmpty());
}

TEST(TraceLoopsTest, NumbersGrowByTheSameAmountWithinALoop) {
  Program program(30, AllReduceOf(1));
  for (uint32_t i = 0; i < program.size(); ++i) program[i].after = i < 20 ? i : 1;
  // The first operation waits for nothing, and from the 21st on all wait for the first.
  EXPECT_THAT(FindLoops(program), ElementsAre(ProgramLoop{1, 1, 19}, ProgramLoop{20, 1, 10}));
}

class TraceLoopFileTest : public ::testing::Test {
 protected:
  static Trace TraceOf(Program program) {
    Trace trace;
    trace.origin = "program";
    trace.rank_count = 2;
    trace.source_files = {"a.log"};
    trace.communicators = {{.name = "world", .ranks = GlobalRanksOf({0, 1})}};
    trace.operations.resize(2);
    trace.operations[GlobalRank{1}] = std::move(program);
    return trace;
  }

  std::string Bytes() const {
    std::ostringstream bytes;
    bytes << std::ifstream(path_, std::ios::binary).rdbuf();
    return bytes.str();
  }
  void Put(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  // The trace is read as it was written, and then written as the same bytes.
  void ExpectSameAgain(const Trace& trace) {
    WriteTrace(path_, trace);
    const std::string bytes = Bytes();
    Diagnostics diagnostics;
    const auto read = ReadTrace(path_, diagnostics);
    ASSERT_TRUE(read) << diagnostics.ToString();
    for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
      EXPECT_EQ(read->operations[rank], trace.operations[rank]);
    }
    WriteTrace(path_, *read);
    EXPECT_EQ(Bytes(), bytes);
  }

  std::string Findings() const {
    Diagnostics diagnostics;
    EXPECT_FALSE(ReadTrace(path_, diagnostics));
    return diagnostics.ToString();
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.File("job.trace");
};

// Step k of a loop of a Send and a Recv that are a group, an AllToAllv and wait for the step
// before, at lines and with times that follow no rule.
void AddExchange(uint32_t k, std::mt19937& random, Program& program) {
  for (uint32_t i = 0; i < 2; ++i) {
    TraceOperation operation = AllReduceOf(4'096);
    operation.kind = i == 0 ? CollectiveKind::kSend : CollectiveKind::kRecv;
    operation.peer = 0;
    operation.group = 3 + 2 * k;
    operation.all_to_all = 1 + k;
    operation.after = k == 0 ? 0 : static_cast<uint32_t>(program.size()) - i;
    operation.begins_iteration = i == 0;
    operation.source_line = 10 * k + 1 + static_cast<uint32_t>(random() % 8);
    operation.compute_before_ps = i == 0 ? static_cast<int64_t>(random()) : 0;
    operation.measured_ps = static_cast<int64_t>(random());
    program.push_back(operation);
  }
}

TEST_F(TraceLoopFileTest, StepsWithOtherTimesLinesAndNumbersAreOneLoop) {
  std::mt19937 random(1);
  Program program;
  for (uint32_t k = 0; k < 300; ++k) AddExchange(k, random, program);
  // Waiting distinguishes the first step.
  EXPECT_THAT(FindLoops(program), ElementsAre(ProgramLoop{2, 2, 299}));
  Trace trace = TraceOf(program);
  trace.operations[GlobalRank{0}] = {program.front()};
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    for (TraceOperation& operation : trace.operations[rank]) operation.begins_iteration = false;
  }
  ExpectSameAgain(trace);
  EXPECT_EQ(Bytes().substr(1, 2), "\x08\x03");  // schema_version
}

TEST_F(TraceLoopFileTest, AJobThatRepeatsTakesTheSpaceOfOneStep) {
  Program program;
  for (int step = 0; step < 10'000; ++step) AddStep(program);
  ExpectSameAgain(TraceOf(program));
  // An operation has six bytes without its count of up to three, and two before it.
  constexpr size_t kHeaderBytes = 64;
  EXPECT_LT(Bytes().size(), 17 * 11 + kHeaderBytes);
}

TEST_F(TraceLoopFileTest, RandomProgramsAreReadAsTheyWereWritten) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Program program;
    while (program.size() < 200) {
      const size_t begin = program.empty() ? 0 : random() % program.size();
      const size_t end = begin + (program.empty() ? 0 : random() % (program.size() - begin));
      // The repeated part was there before, or is new.
      for (uint32_t times = static_cast<uint32_t>(random() % 4); times > 0; --times) {
        for (size_t i = begin; i < end && program.size() < 400; ++i) {
          program.push_back(program[i]);
          program.back().source_line += times;
          if (random() % 16 == 0) program.back().compute_before_ps += 5;
        }
      }
      program.push_back(AllReduceOf(1 + random() % 3));
      program.back().after = static_cast<uint32_t>(random() % program.size());
    }
    ExpectSameAgain(TraceOf(program));
  }
}

TEST_F(TraceLoopFileTest, BeyondTheBoundForASmallFileOperationsAreNoLoop) {
  ExpectSameAgain(TraceOf(Program(1'400'000, AllReduceOf(1))));
  // Three loops of 262,144 fit a million, a fourth and fifth do not; an operation has 6 bytes.
  EXPECT_GT(Bytes().size(), 6 * (1'400'000U - 4 * 262'144U));
}

// Header: version 3, one rank, one communicator of it, a source file, and 3 operations.
const std::string kHeader("\x0e\x08\x03\x20\x01\x2a\x01\x61\x32\x03\x12\x01\x00\x38\x03", 15);
// AllReduce of 5 Float32 at line 10, after 1 ps.
const std::string kAllReduce("\x0a\x0a\x08\x01\x18\x05\x20\x07\x48\x01\x68\x0a", 12);

std::string Loop(const std::string& fields) {
  const std::string loop = kAllReduce + fields;
  const std::string rank = std::string("\x08\x00\x2a", 3) + static_cast<char>(loop.size()) + loop;
  return static_cast<char>(rank.size()) + rank;
}

// Written by hand by the rules of protobuf's encoding: 3 iterations, lines 2 further each, gaps 7
// more and 3 less.
TEST_F(TraceLoopFileTest, ReadsWhatTheSchemaSays) {
  Put(kHeader + Loop("\x10\x03\x32\x01\x04\x42\x02\x0e\x05"));
  Diagnostics diagnostics;
  const auto trace = ReadTrace(path_, diagnostics);
  ASSERT_TRUE(trace) << diagnostics.ToString();
  const Program& program = trace->operations[GlobalRank{0}];
  ASSERT_EQ(program.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(program[i].count, 5u);
    EXPECT_EQ(program[i].source_line, 10 + 2 * i);
  }
  EXPECT_EQ(program[0].compute_before_ps, 1);
  EXPECT_EQ(program[1].compute_before_ps, 8);
  EXPECT_EQ(program[2].compute_before_ps, 5);
}

TEST_F(TraceLoopFileTest, LoopsThatCannotBeAreFindings) {
  Put(kHeader + Loop("\x10\x01"));
  EXPECT_THAT(Findings(), HasSubstr("its loop has 1 iterations of 1 operations (expected 2"));
  Put(kHeader + Loop("\x10\x81\x80\x10"));
  EXPECT_THAT(Findings(), HasSubstr("at most 262144 operations in all"));
  Put(kHeader + Loop("\x10\x03\x32\x02\x04\x04"));
  EXPECT_THAT(Findings(), HasSubstr("neither empty nor of its 1 operations"));
  Put(kHeader + Loop("\x10\x03\x32\x01\x0f"));  // 8 lines less each
  EXPECT_THAT(Findings(), HasSubstr("out of range in a later iteration"));
  Put(kHeader + Loop("\x10\x03\x42\x02\x05\x04"));  // 3 ps less than 1, then 2 more
  EXPECT_THAT(Findings(), HasSubstr("compute_before_ps: is negative"));
  // An operation beside the loop, and same_as 0.
  const std::string operation("\x12\x0a\x08\x01\x18\x05\x20\x07\x48\x01\x68\x0a", 12);
  Put(kHeader + std::string("\x1e\x08\x00", 3) + operation + std::string("\x2a\x0e", 2) +
      kAllReduce + "\x10\x03");
  EXPECT_THAT(Findings(), HasSubstr("has a loop and operations in one message"));
}

TEST_F(TraceLoopFileTest, ASmallFileDoesNotExpandWithoutBound) {
  std::string bytes = kHeader;
  for (int i = 0; i < 5; ++i) bytes += Loop("\x10\x80\x80\x10");
  Put(bytes);
  EXPECT_THAT(Findings(),
              HasSubstr("its loops expand to more operations than a file of this size"));
}

}  // namespace
}  // namespace railyard
