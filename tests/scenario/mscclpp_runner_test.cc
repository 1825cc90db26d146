// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/schedule_files/mscclpp_runner.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/scenario/schedule_files/schedule_file_loader.h"
#include "tests/scenario/schedule_text.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

class MscclppRunnerTest : public ScheduleTextTest {
 protected:
  // Counts the messages that the rank sends on a channel.
  static size_t Sends(const ExplicitAlgorithm& algorithm, uint32_t rank, uint32_t channel) {
    size_t sends = 0;
    for (const auto& lane : algorithm.lanes.at({RankIndex{rank}, channel})) {
      for (const ExplicitStep& step : lane) sends += step.step.send_to != kNoPeer ? 1 : 0;
    }
    return sends;
  }
};

// --- Plans as the language of MSCCL++ writes them ------------------------------------------------

std::string Local(const std::string& buffer, uint32_t index, uint32_t size = 1) {
  return fmt::format(R"({{"type": "{}", "index": {}, "size": {}}})", buffer, index, size);
}
std::string Remote(uint32_t id, uint32_t index, uint32_t size = 1) {
  return fmt::format(R"({{"buffer_id": {}, "index": {}, "size": {}}})", id, index, size);
}
std::string Operation(const std::string& name, const std::vector<std::string>& sources = {},
                      const std::vector<std::string>& targets = {}, const std::string& more = "") {
  return fmt::format(
      R"({{"name": "{}", "src_buff": [{}], "dst_buff": [{}], "channel_type": "memory"{}}})", name,
      fmt::join(sources, ", "), fmt::join(targets, ", "), more);
}
std::string OnChannel(const std::string& name, uint32_t channel) {
  return Operation(name, {}, {}, fmt::format(R"(, "channel_ids": [{}])", channel));
}

// The other GPUs, whose channel and scratch buffer have the number of their place in this list.
std::vector<uint32_t> Others(uint32_t gpu, uint32_t gpus) {
  std::vector<uint32_t> others;
  for (uint32_t i = 1; i < gpus; ++i) others.push_back((gpu + i) % gpus);
  return others;
}

using Blocks = std::vector<std::vector<std::string>>;

std::string PlanText(const std::string& collective, uint32_t gpus, uint32_t inputs,
                     uint32_t outputs, uint32_t scratch, const std::string& buffer,
                     const std::function<Blocks(uint32_t gpu)>& blocks_of) {
  std::vector<std::string> all;
  for (uint32_t gpu = 0; gpu < gpus; ++gpu) {
    const std::vector<uint32_t> others = Others(gpu, gpus);
    std::vector<uint32_t> numbers;
    std::vector<std::string> buffers;
    for (const uint32_t other : others) {
      numbers.push_back(static_cast<uint32_t>(numbers.size()));
      buffers.push_back(fmt::format(
          R"({{"rank": {}, "type": "{}", "access_channel_types": ["memory"]}})", other, buffer));
    }
    std::vector<std::string> blocks;
    for (const auto& operations : blocks_of(gpu)) {
      blocks.push_back(fmt::format(
          R"({{"id": {}, "ops": [{}],
 "channels": [{{"channel_type": "memory", "channel_ids": [{}]}}],
 "remote_buffer_refs": [{{"access_channel_type": "memory", "remote_buffer_ids": [{}]}}]}})",
          blocks.size(), fmt::join(operations, ", "), fmt::join(numbers, ", "),
          fmt::join(numbers, ", ")));
    }
    all.push_back(fmt::format(
        R"({{"id": {}, "input_chunks": {}, "output_chunks": {}, "scratch_chunks": {},
 "threadblocks": [{}], "channels": [{{"channel_type": "memory", "connected_to": [{}]}}],
 "remote_buffers": [{}], "semaphores": []}})",
        gpu, inputs, outputs, scratch, fmt::join(blocks, ", "), fmt::join(others, ", "),
        fmt::join(buffers, ", ")));
  }
  return fmt::format(
      R"({{"name": "test", "collective": "{}", "protocol": "Simple", "inplace": true,
 "gpus": [{}]}})",
      collective, fmt::join(all, ",\n"));
}

// All pairs in two phases, with packets: each GPU reduces the chunk of its number.
std::string AllPairs(uint32_t gpus) {
  return PlanText("allreduce", gpus, gpus, gpus, 2 * gpus, "s", [&](uint32_t gpu) {
    const std::vector<uint32_t> others = Others(gpu, gpus);
    std::vector<std::string> put;
    std::vector<std::string> sources = {Local("i", gpu)};
    std::vector<std::string> targets = {Local("i", gpu)};
    std::vector<std::string> unpack;
    for (uint32_t i = 0; i < others.size(); ++i) {
      put.push_back(Operation("ppkt", {Local("i", others[i])}, {Remote(i, gpu)}));
      sources.push_back(Local("s", others[i]));
      targets.push_back(Remote(i, gpus + gpu));
      unpack.push_back(Operation("upkt", {Local("s", gpus + others[i])}, {Local("i", others[i])}));
    }
    return Blocks{put, {Operation("recspkt", sources, targets)}, unpack};
  });
}

TEST_F(MscclppRunnerTest, PacketsOfAllPairsBecomeTwoPhases) {
  for (const uint32_t gpus : {2u, 4u, 8u}) {
    const auto algorithm = Load(AllPairs(gpus));
    ASSERT_NE(algorithm, nullptr) << findings_;
    EXPECT_EQ(algorithm->kind, CollectiveKind::kAllReduce);
    EXPECT_EQ(algorithm->rank_count, gpus);
    // Three thread blocks share each chunk.
    EXPECT_EQ(algorithm->channel_count, 3u);
    EXPECT_EQ(algorithm->chunk_count, 3 * gpus);
    for (uint32_t rank = 0; rank < gpus; ++rank) {
      // A chunk to each other GPU to be reduced there, and the reduced one to each.
      EXPECT_EQ(Sends(*algorithm, rank, 0), 2 * (gpus - 1));
      EXPECT_EQ(Sends(*algorithm, rank, 2), 2 * (gpus - 1));
    }
  }
}

TEST_F(MscclppRunnerTest, TheProtocolHolds) {
  std::string text = AllPairs(2);
  const auto algorithm = Load(text.replace(text.find("\"Simple\""), 8, "\"LL\""));
  ASSERT_NE(algorithm, nullptr) << findings_;
  EXPECT_EQ(algorithm->protocol, Protocol::kLl);
  EXPECT_EQ(Load(text.replace(text.find("\"LL\""), 4, "\"RDMA\"")), nullptr);
  EXPECT_THAT(findings_, HasSubstr("protocol: \"RDMA\" is not read (expected Simple or LL)"));
}

// Data are sent as soon as they are put: each rank's first steps send to all others, and in none of
// them two ranks send to one.
TEST_F(MscclppRunnerTest, WhatIsPutIsSentAtOnceToDifferentRanks) {
  constexpr uint32_t kGpus = 8;
  const auto algorithm = Load(AllPairs(kGpus));
  ASSERT_NE(algorithm, nullptr) << findings_;
  for (uint32_t i = 0; i + 1 < kGpus; ++i) {
    std::set<int32_t> receivers;
    for (uint32_t rank = 0; rank < kGpus; ++rank) {
      receivers.insert(algorithm->lanes.at({RankIndex{rank}, 0}).front()[i].step.send_to);
    }
    EXPECT_FALSE(receivers.contains(kNoPeer)) << i;
    EXPECT_EQ(receivers.size(), kGpus) << i;
  }
}

TEST_F(MscclppRunnerTest, GetsAndReductionsOfRemoteDataAreMessages) {
  // Each of two GPUs reads the other's contribution to its chunk, and puts the result there.
  const auto algorithm = Load(PlanText("allreduce", 2, 2, 2, 0, "i", [](uint32_t gpu) {
    return Blocks{
        {Operation("rres", {Local("i", gpu), Remote(0, gpu)}, {Local("i", gpu), Remote(0, gpu)}),
         OnChannel("signal", 0), OnChannel("wait", 0)}};
  }));
  ASSERT_NE(algorithm, nullptr) << findings_;
  EXPECT_EQ(Sends(*algorithm, 0, 0), 2u);
  EXPECT_EQ(Sends(*algorithm, 1, 0), 2u);
}

// Recursive doubling: each round sends the sum so far and then adds the other's, so that the value
// that was put is not there any more when it is read.
TEST_F(MscclppRunnerTest, WhatWasPutIsSentBeforeItIsReducedAgain) {
  const auto algorithm = Load(PlanText("allreduce", 4, 1, 1, 2, "s", [](uint32_t gpu) {
    const std::vector<uint32_t> others = Others(gpu, 4);
    std::vector<std::string> operations;
    for (uint32_t round = 0; round < 2; ++round) {
      const auto peer = std::ranges::find(others, gpu ^ (1u << round));
      const auto channel = static_cast<uint32_t>(peer - others.begin());
      operations.push_back(Operation("put", {Local("i", 0)}, {Remote(channel, round)}));
      operations.push_back(OnChannel("signal", channel));
      operations.push_back(OnChannel("wait", channel));
      operations.push_back(Operation("re", {Local("i", 0), Local("s", round)}, {Local("i", 0)}));
    }
    return Blocks{operations};
  }));
  ASSERT_TRUE(algorithm) << findings_;
  for (uint32_t rank = 0; rank < 4; ++rank) EXPECT_EQ(Sends(*algorithm, rank, 0), 2u) << rank;
}

// Each rank's contribution is where the other's is to be.
// GPU 0 puts its contribution 20 times into a slot that nobody reads, and keeps the chunk anew.
TEST_F(MscclppRunnerTest, NothingIsSentToWhoeverDoesNotReadIt) {
  const auto algorithm = Load(PlanText("allreduce", 2, 1, 1, 22, "s", [](uint32_t gpu) {
    std::vector<std::string> put = {
        Operation("ppkt", {Local("i", 0)}, {Remote(0, 0)}),
        Operation("recpkt", {Local("i", 0), Local("s", 0)}, {Local("i", 0)})};
    for (uint32_t i = 0; i < 20 && gpu == 0; ++i) {
      put.push_back(Operation("ppkt", {Local("i", 0)}, {Remote(0, 1 + i)}));
    }
    return Blocks{put};
  }));
  ASSERT_NE(algorithm, nullptr) << findings_;
  EXPECT_EQ(Sends(*algorithm, 0, 0), 1u);
}

TEST_F(MscclppRunnerTest, PipelinesDoNotNestWithoutEnd) {
  std::string text = Operation("nop");
  for (int i = 0; i < 200; ++i) text = fmt::format(R"({{"name": "pipeline", "ops": [{}]}})", text);
  EXPECT_EQ(Load(PlanText("allreduce", 2, 1, 1, 0, "i", [&](uint32_t) { return Blocks{{text}}; })),
            nullptr);
  EXPECT_THAT(findings_, HasSubstr("pipelines lie more than 8 deep in each other"));
}

TEST_F(MscclppRunnerTest, ChunksInTheWrongPlaceAreFound) {
  std::string text = PlanText("allgather", 2, 1, 2, 0, "o", [](uint32_t gpu) {
    return Blocks{{Operation("copy", {Local("i", 0)}, {Local("o", 1 - gpu)}),
                   Operation("put", {Local("i", 0)}, {Remote(0, 1 - gpu)}), OnChannel("signal", 0),
                   OnChannel("wait", 0)}};
  });
  text.replace(text.find("\"inplace\": true"), 15, "\"inplace\": false");
  EXPECT_FALSE(Load(text));
  EXPECT_THAT(findings_, HasSubstr("leaves chunk 1 in slot 0 of the result (expected chunk 0)"));
}

// Scratch is a GPU's own: GPU 0 has none and writes into that of GPU 1.
TEST_F(MscclppRunnerTest, GpusMayHaveScratchOfDifferentSizes) {
  std::string text = PlanText("allreduce", 2, 1, 1, 1, "s", [](uint32_t gpu) {
    if (gpu == 0) {
      return Blocks{{Operation("put", {Local("i", 0)}, {Remote(0, 0)}), OnChannel("signal", 0),
                     OnChannel("wait", 0), Operation("get", {Remote(0, 0)}, {Local("i", 0)})}};
    }
    return Blocks{{OnChannel("wait", 0),
                   Operation("re", {Local("i", 0), Local("s", 0)}, {Local("i", 0), Local("s", 0)}),
                   OnChannel("signal", 0)}};
  });
  const std::string scratch = "\"scratch_chunks\": 1";
  text.replace(text.find(scratch), scratch.size(), "\"scratch_chunks\": 0");
  EXPECT_TRUE(Load(text)) << findings_;
}

TEST_F(MscclppRunnerTest, AllGatherAndReduceScatterHaveBlocks) {
  const auto gather = Load(PlanText("allgather", 4, 1, 4, 0, "o", [](uint32_t gpu) {
    std::vector<std::string> operations;
    for (uint32_t i = 0; i < 3; ++i) {
      operations.push_back(Operation("put", {Local("o", gpu)}, {Remote(i, gpu)}));
    }
    for (uint32_t i = 0; i < 3; ++i) operations.push_back(OnChannel("signal", i));
    for (uint32_t i = 0; i < 3; ++i) operations.push_back(OnChannel("wait", i));
    return Blocks{operations};
  }));
  ASSERT_NE(gather, nullptr) << findings_;
  EXPECT_EQ(gather->kind, CollectiveKind::kAllGather);
  EXPECT_EQ(gather->chunk_count, 1u);
  EXPECT_EQ(Sends(*gather, 2, 0), 3u);

  const auto scatter = Load(PlanText("reducescatter", 4, 4, 1, 0, "i", [](uint32_t gpu) {
    std::vector<std::string> sources = {Local("i", gpu)};
    for (uint32_t i = 0; i < 3; ++i) sources.push_back(Remote(i, gpu));
    return Blocks{{Operation("rre", sources, {Local("o", 0)})}};
  }));
  ASSERT_NE(scatter, nullptr) << findings_;
  EXPECT_EQ(scatter->kind, CollectiveKind::kReduceScatter);
  EXPECT_EQ(Sends(*scatter, 2, 0), 3u);
}

// In place: each GPU puts block p into scratch of GPU p, and has its own where it is to be.
TEST_F(MscclppRunnerTest, AnAllToAllHasBlocksOfEachPair) {
  const auto plan = [&](uint32_t shift) {
    return PlanText("alltoall", 4, 4, 4, 4, "s", [&](uint32_t gpu) {
      const std::vector<uint32_t> others = Others(gpu, 4);
      std::vector<std::string> operations;
      for (uint32_t i = 0; i < 3; ++i) {
        operations.push_back(Operation("put", {Local("i", others[i])}, {Remote(i, gpu)}));
        operations.push_back(OnChannel("signal", i));
      }
      for (uint32_t i = 0; i < 3; ++i) operations.push_back(OnChannel("wait", i));
      for (uint32_t i = 0; i < 3; ++i) {
        operations.push_back(
            Operation("copy", {Local("s", others[i])}, {Local("i", others[(i + shift) % 3])}));
      }
      return Blocks{operations};
    });
  };
  const auto algorithm = Load(plan(0));
  ASSERT_NE(algorithm, nullptr) << findings_;
  EXPECT_EQ(algorithm->kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(algorithm->chunk_count, 1u);
  EXPECT_EQ(Sends(*algorithm, 2, 0), 3u);
  // Chunk of rank 3 to rank 0 where that of rank 1 belongs: (0 x 4 + 3) for (0 x 4 + 1).
  EXPECT_EQ(Load(plan(1)), nullptr);
  EXPECT_THAT(findings_, HasSubstr("gpus[0]: leaves chunk 3 in slot 1 of the result (expected "
                                   "chunk 1)"));
}

TEST_F(MscclppRunnerTest, BarriersHoldThreadBlocksAndPipelinesAreTheirOperations) {
  const std::string barrier = R"({"name": "barrier", "barrier_id": 0, "num_threadblocks": 2})";
  const auto plan = [&](const std::string& before) {
    return PlanText("allreduce", 2, 2, 2, 2, "s", [&](uint32_t gpu) {
      // The first block puts into scratch what the second one reduces behind the barrier.
      const std::string pipeline =
          R"({"name": "pipeline", "iter_context": {"unit_size": 1, "num_chunks": 1}, "ops": [)" +
          Operation("put", {Local("i", 1 - gpu)}, {Remote(0, 1 - gpu)}) + "]}";
      return Blocks{{pipeline, OnChannel("signal", 0), OnChannel("wait", 0), barrier},
                    {before, Operation("re", {Local("i", gpu), Local("s", gpu)}, {Local("i", gpu)}),
                     OnChannel("signal", 0), OnChannel("wait", 0)}};
    });
  };
  // Nothing sends the reduced chunks back: the result lacks contributions.
  EXPECT_EQ(Load(plan(barrier)), nullptr);
  EXPECT_THAT(findings_, HasSubstr("without the contribution"));
  EXPECT_EQ(Load(plan(R"({"name": "nop"})")), nullptr);
  EXPECT_THAT(findings_, HasSubstr("waits for ever"));
}

TEST_F(MscclppRunnerTest, MistakesAreFoundAtTheirPlaces) {
  const std::string good = AllPairs(2);
  const auto with = [&](const std::string& what, const std::string& instead) {
    std::string text = good;
    const size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), instead);
  };
  struct Case {
    std::string text;
    std::string finding;
  };
  const std::vector<Case> cases = {
      {good.substr(0, 300), ":3:1: error: is no JSON"},
      {"{}", "collective: \"\" cannot be run"},
      {with("allreduce", "sendrecv"), "collective: \"sendrecv\" cannot be run"},
      {with("recspkt", "glres"),
       fmt::format(
           ":{}:1: error: gpus[0].threadblocks[1].ops[0]: \"glres\" is not read",
           1 + std::count(good.begin(),
                          good.begin() + static_cast<std::ptrdiff_t>(good.find("recspkt")), '\n'))},
      {with("\"input_chunks\"", "\"inputChunks\""), "older version of MSCCL++"},
      {with("\"output_chunks\": 2", "\"output_chunks\": 3"), "do not become 3 output chunks"},
      {with("\"buffer_id\": 0", "\"buffer_id\": 7"), "buffer_id is missing or out of range"},
      {with("\"type\": \"i\", \"index\": 1", "\"type\": \"i\", \"index\": 2"),
       "index is missing or out of range (expected 0 to 1)"},
      {with("\"connected_to\": [1]", "\"connected_to\": [0]"), "no other GPU"},
      {with("\"name\": \"ppkt\", \"src_buff\": [{\"type\": \"i\"",
            "\"name\": \"put\", \"src_buff\": [{\"type\": \"s\""),
       "gpus[0].threadblocks[0].ops[0]: reads chunk 1 of a buffer of GPU 0, in which nothing is"},
      {with("\"channel_ids\": [0]", "\"channel_ids\": [1]"), "that the GPU does not have"},
      {std::string(100'000, '['), "error"},
      {"{\"gpus\": " + std::string(100'000, '[') + "}", "is no JSON"}};
  for (const Case& c : cases) {
    EXPECT_EQ(Load(c.text), nullptr) << c.finding;
    EXPECT_THAT(findings_, HasSubstr(c.finding));
  }
}

// Each thread block of a group moves its part of the chunks.
TEST_F(MscclppRunnerTest, GroupsOfThreadBlocksAreWhole) {
  const auto plan = [](const std::vector<std::string>& groups) {
    return PlanText("allgather", 2, 1, 2, 0, "o", [&](uint32_t gpu) {
      Blocks blocks;
      for (const std::string& group : groups) {
        blocks.push_back({Operation("copy", {Local("i", 0)}, {Local("o", gpu)}, group),
                          Operation("put", {Local("i", 0)}, {Remote(0, gpu)},
                                    ", \"channel_ids\": [0]" + group)});
      }
      return blocks;
    });
  };
  const auto group = [](int number, int size) {
    return fmt::format(R"(, "tbg_info": {{"tb_id": {}, "tbg_size": {}}})", number, size);
  };
  EXPECT_NE(Load(plan({group(0, 2), group(1, 2)})), nullptr) << findings_;
  EXPECT_EQ(Load(plan({group(0, 2)})), nullptr);
  EXPECT_THAT(findings_,
              HasSubstr("gpus[0].threadblocks[0].ops[0]: thread block 1 of its group does "
                        "so 0 times, the first one 1"));
  EXPECT_EQ(Load(plan({group(2, 2)})), nullptr);
  EXPECT_THAT(findings_, HasSubstr("tb_id 2 is none of 2 thread blocks"));
}

TEST_F(MscclppRunnerTest, WhateverBecomesOfTheBytesItEnds) {
  std::mt19937 random(1);
  const std::string whole = AllPairs(2);
  int read = 0;
  for (int round = 0; round < 2'000; ++round) {
    std::string text = whole;
    for (int edit = static_cast<int>(random() % 3); edit >= 0; --edit) {
      const size_t at = random() % (text.size() - 1);
      if (random() % 2 == 0) {
        text[at + 1] = static_cast<char>('0' + random() % 75);
      } else {
        text.erase(at + 1, random() % 4);
      }
    }
    read += Load(text) != nullptr ? 1 : 0;
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace railyard
