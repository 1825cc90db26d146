// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/schedule_files/msccl_loader.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/scenario/schedule_files/schedule_file_loader.h"
#include "tests/scenario/msccl_text.h"
#include "tests/scenario/schedule_text.h"
#include "tests/support/reference_dir.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

class MscclLoaderTest : public ScheduleTextTest {};

// Two GPUs, two chunks: each reduces one and returns it.
std::string Ring(const std::string& last_type = "r") {
  std::string text =
      R"(<algo name="ring" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1">)"
      "\n";
  for (int gpu = 0; gpu < 2; ++gpu) {
    const std::string own = std::to_string(gpu);
    const std::string other = std::to_string(1 - gpu);
    const auto step = [&](int s, const std::string& type, const std::string& chunk) {
      return fmt::format(R"(<step s="{}" type="{}" srcbuf="i" srcoff="{}" dstbuf="i" dstoff="{}" )"
                         "cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n",
                         s, type, chunk, chunk);
    };
    text += fmt::format(R"(<gpu id="{}" i_chunks="2" o_chunks="0" s_chunks="0">)"
                        "\n<tb id=\"0\" send=\"{}\" recv=\"{}\" chan=\"0\">\n",
                        own, other, other);
    text += step(0, "s", other);
    text += step(1, "rrc", own);
    text += step(2, "s", own);
    text += step(3, last_type, other);
    text += "</tb>\n</gpu>\n";
  }
  return text + "</algo>\n";
}

// Out of place: what is received is added to the source, and the sum is at the target.
TEST_F(MscclLoaderTest, SumsMayBeOfTheirSource) {
  std::string text =
      R"(<algo name="sums" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="reduce_scatter" inplace="0">)"
      "\n";
  for (int gpu = 0; gpu < 2; ++gpu) {
    const int other = 1 - gpu;
    text += fmt::format(R"(<gpu id="{}" i_chunks="2" o_chunks="1" s_chunks="0">)"
                        "\n<tb id=\"0\" send=\"{}\" recv=\"{}\" chan=\"0\">\n",
                        gpu, other, other);
    const auto step = [&](int s, const char* type, int from, const char* buffer, int to) {
      text +=
          fmt::format(R"(<step s="{}" type="{}" srcbuf="i" srcoff="{}" dstbuf="{}" dstoff="{}" )"
                      "cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n",
                      s, type, from, buffer, to);
    };
    step(0, "s", other, "i", other);
    step(1, "rrc", gpu, "o", 0);
    text += "</tb>\n</gpu>\n";
  }
  EXPECT_NE(Load(text + "</algo>\n"), nullptr) << findings_;
}

TEST_F(MscclLoaderTest, StepsBecomeALane) {
  const auto algorithm = Load(Ring());
  ASSERT_NE(algorithm, nullptr) << findings_;
  EXPECT_EQ(algorithm->kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(algorithm->rank_count, 2u);
  EXPECT_EQ(algorithm->chunk_count, 2u);
  const auto& lanes = algorithm->lanes.at({RankIndex{0}, 0});
  ASSERT_EQ(lanes.size(), 1u);
  ASSERT_EQ(lanes[0].size(), 4u);
  EXPECT_EQ(lanes[0][0].chunk, 1u);
  EXPECT_TRUE(lanes[0][0].step.load_local);
  EXPECT_TRUE(lanes[0][1].step.reduce);
  EXPECT_TRUE(lanes[0][1].step.store);
  EXPECT_TRUE(lanes[0][2].step.load_kept);  // the sum, not the rank's own
  EXPECT_TRUE(lanes[0][3].step.store);
}

TEST_F(MscclLoaderTest, TheProtocolHolds) {
  const auto with = [&](const std::string& protocol) {
    std::string text = Ring();
    return Load(text.replace(text.find("Simple"), 6, protocol));
  };
  for (const auto& [name, protocol] :
       {std::pair{"Simple", Protocol::kSimple}, std::pair{"LL", Protocol::kLl},
        std::pair{"LL128", Protocol::kLl128}}) {
    const auto algorithm = with(name);
    ASSERT_NE(algorithm, nullptr) << findings_;
    EXPECT_EQ(algorithm->protocol, protocol);
  }
  EXPECT_EQ(with("LL64"), nullptr);
  EXPECT_THAT(findings_, HasSubstr(":1:1: error: proto \"LL64\" is not read (expected Simple, LL"));
}

// In place, an AllGather has its contribution in the result; msccl-tools write no buffer i then.
TEST_F(MscclLoaderTest, AnAllGatherMayBeInPlace) {
  const auto text = [](const char* in_place) {
    std::string all =
        fmt::format(R"(<algo name="ag" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2")"
                    R"( coll="allgather" inplace="{}" outofplace="{}">)",
                    in_place, in_place[0] == '1' ? '0' : '1');
    for (int gpu = 0; gpu < 2; ++gpu) {
      all += fmt::format(R"(<gpu id="{0}"><tb id="0" send="{1}" recv="{1}" chan="0">)"
                         R"(<step s="0" type="s" srcbuf="o" srcoff="{0}" dstbuf="o" dstoff="{0}")"
                         R"( cnt="1" depid="-1" deps="-1" hasdep="0"/>)"
                         R"(<step s="1" type="r" srcbuf="o" srcoff="{1}" dstbuf="o" dstoff="{1}")"
                         R"( cnt="1" depid="-1" deps="-1" hasdep="0"/></tb></gpu>)",
                         gpu, 1 - gpu);
    }
    return all + "</algo>";
  };
  EXPECT_NE(Load(text("1")), nullptr) << findings_;
  EXPECT_EQ(Load(text("0")), nullptr);
  EXPECT_THAT(findings_, HasSubstr("reads chunk 0 of a buffer of GPU 0, in which nothing is"));
}

// Each GPU reduces its chunk in i, where no result is to be, and has all of them in o.
TEST_F(MscclLoaderTest, OutOfPlaceTheResultIsInTheOutput) {
  std::string text = R"(<algo name="ar" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2")"
                     R"( coll="allreduce" inplace="0" outofplace="1">)";
  for (int gpu = 0; gpu < 2; ++gpu) {
    text +=
        fmt::format(R"(<gpu id="{0}"><tb id="0" send="{1}" recv="{1}" chan="0">)", gpu, 1 - gpu);
    int s = 0;
    const auto step = [&](const char* type, char from, char to, int chunk) {
      text +=
          fmt::format(R"(<step s="{}" type="{}" srcbuf="{}" srcoff="{}" dstbuf="{}" dstoff="{}")"
                      R"( cnt="1" depid="-1" deps="-1" hasdep="0"/>)",
                      s++, type, from, chunk, to, chunk);
    };
    step("s", 'i', 'i', 1 - gpu);
    step("rrc", 'i', 'i', gpu);
    step("s", 'i', 'o', gpu);
    step("cpy", 'i', 'o', gpu);
    step("r", 'o', 'o', 1 - gpu);
    text += "</tb></gpu>";
  }
  const auto algorithm = Load(text + "</algo>");
  EXPECT_NE(algorithm, nullptr) << findings_;
}

TEST_F(MscclLoaderTest, WrongAlgorithmsAreFound) {
  // The last step reduces what it should take over: a contribution is there twice.
  EXPECT_EQ(Load(Ring("rrc")), nullptr);
  EXPECT_THAT(findings_, HasSubstr("expected every rank to end with every contribution"));
}

TEST_F(MscclLoaderTest, BadInputIsALocatedError) {
  EXPECT_EQ(Load("<algo"), nullptr);
  EXPECT_EQ(Load("<other/>"), nullptr);
  EXPECT_THAT(findings_, HasSubstr("expected XML with an element algo"));
  EXPECT_EQ(Load(Ring().replace(Ring().find("allreduce"), 9, "custom   ")), nullptr);
  EXPECT_THAT(findings_, HasSubstr("cannot be run as a custom algorithm"));
  std::string endless = Ring();
  endless.replace(endless.find("type=\"s\""), 8, "type=\"r\"");
  EXPECT_EQ(Load(endless), nullptr);
  EXPECT_THAT(findings_, HasSubstr("waits for ever"));
  std::string many = Ring();
  many.replace(many.find("nchunksperloop=\"2\""), 18, "nchunksperloop=\"999999999999\"");
  EXPECT_EQ(Load(many), nullptr);
  EXPECT_THAT(findings_, HasSubstr("out of range"));
}

TEST_F(MscclLoaderTest, EntitiesAreNotExpanded) {
  std::string bomb = "<!DOCTYPE algo [<!ENTITY a \"aaaaaaaaaaaaaaaa\">";
  for (char c = 'b'; c <= 'k'; ++c) {
    bomb += std::string("<!ENTITY ") + c + " \"";
    for (int i = 0; i < 16; ++i) bomb += std::string("&") + static_cast<char>(c - 1) + ";";
    bomb += "\">";
  }
  EXPECT_EQ(Load("<?xml version=\"1.0\"?>" + bomb + "]><algo coll=\"&k;\"/>"), nullptr);
  EXPECT_EQ(Load("<?xml version=\"1.0\"?><!DOCTYPE algo [<!ENTITY f SYSTEM \"/etc/passwd\">]>"
                 "<algo coll=\"&f;\"/>"),
            nullptr);
  EXPECT_THAT(findings_, ::testing::Not(HasSubstr("root:")));
}

// Each GPU sends its vector to every other one by a thread block of each channel. One more
// thread block of each, on the next channel, adds up the arrivals in scratch.
std::string OnePass(int gpus, int channels, const std::string& last_type = "re") {
  std::string text = fmt::format(
      "<algo nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" coll=\"allreduce\" "
      "inplace=\"1\" outofplace=\"0\">\n",
      channels, channels, gpus);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    text += fmt::format("<gpu id=\"{}\">\n", gpu);
    int id = 0;
    for (int other = 0; other < gpus; ++other) {
      for (int channel = 0; channel < channels && other != gpu; ++channel) {
        text += fmt::format("<tb id=\"{0}\" send=\"{1}\" recv=\"{1}\" chan=\"{2}\">\n", id++, other,
                            channel);
        const std::string chunk = fmt::format("i{}", channel);
        text += StepText(0, "s", chunk, chunk);
        text += StepText(1, "r", chunk, fmt::format("s{}", other * channels + channel)) + "</tb>\n";
      }
    }
    for (int channel = 0; channel < channels; ++channel) {
      text += fmt::format("<tb id=\"{}\" send=\"-1\" recv=\"-1\" chan=\"{}\">\n", id++,
                          (channel + 1) % channels);
      size_t step = 0;
      for (int other = 0, place = 0; other < gpus; ++other) {
        if (other == gpu) continue;
        text += StepText(step++, "nop", "i-1", "o-1", 0,
                         fmt::format("{}:1", place++ * channels + channel));
        const std::string from = fmt::format("s{}", other * channels + channel);
        text += StepText(step++, other + 1 == gpus ? last_type : "re", from,
                         fmt::format("i{}", channel));
      }
      text += "</tb>\n";
    }
    text += "</gpu>\n";
  }
  return text + "</algo>\n";
}

// Each of 4 GPUs sends 2 chunks to 3 others, and reduces what it receives at once: with
// 3 * 2 + 2 = 8 thread blocks there are 8 channels, and 4 parts of a chunk for them.
TEST_F(MscclLoaderTest, ReductionsMayFollowInOtherThreadBlocksAndChannels) {
  const auto algorithm = Load(OnePass(4, 2));
  ASSERT_NE(algorithm, nullptr) << findings_;
  EXPECT_EQ(algorithm->channel_count, 8u);
  EXPECT_EQ(algorithm->chunk_count, 2u * 4);
  EXPECT_EQ(CountOf(*algorithm, [](const Step& step) { return step.send_to != kNoPeer; }),
            size_t{4} * 3 * 2 * 4);
  EXPECT_EQ(CountOf(*algorithm, [](const Step& step) { return step.reduce; }),
            size_t{4} * 3 * 2 * 4);
}

// Two servers of two GPUs: the sum of a server is exchanged with the other one, and returned after
// a step of another channel's thread block.
std::string TwoLevels(const std::string& after = "1:2") {
  std::string text = "<algo nchunksperloop=\"2\" ngpus=\"4\" coll=\"allreduce\" inplace=\"1\">\n";
  for (int gpu = 0; gpu < 4; ++gpu) {
    const std::string own = fmt::format("i{}", gpu % 2);
    const std::string other = fmt::format("i{}", 1 - gpu % 2);
    const auto block = [&](int id, int peer, int channel) {
      return fmt::format("<tb id=\"{0}\" send=\"{1}\" recv=\"{1}\" chan=\"{2}\">\n", id, peer,
                         channel);
    };
    text += fmt::format("<gpu id=\"{}\">\n", gpu);
    text += block(0, gpu ^ 1, 0) + StepText(0, "s", other, other) + StepText(1, "rrc", own, own) +
            "</tb>\n";
    text += block(1, gpu ^ 2, 0) + StepText(0, "s", own, "s0", 1, "0:1") +
            StepText(1, "r", own, "s0") + StepText(2, "re", "s0", own) + "</tb>\n";
    text += block(2, gpu ^ 1, 1) + StepText(0, "s", own, own, 1, after) +
            StepText(1, "r", other, other, 1, "0:0") + "</tb>\n</gpu>\n";
  }
  return text + "</algo>\n";
}

TEST_F(MscclLoaderTest, StepsMayWaitForOtherChannels) {
  const auto algorithm = Load(TwoLevels());
  ASSERT_NE(algorithm, nullptr) << findings_;
  EXPECT_EQ(algorithm->channel_count, 3u);
  // Each GPU sends each of the parts of half the vector three times.
  EXPECT_EQ(CountOf(*algorithm, [](const Step& step) { return step.send_to != kNoPeer; }),
            size_t{4} * 3 * algorithm->chunk_count / 2);
  // The GPU returns the sum of all only if it waits for it.
  EXPECT_EQ(Load(TwoLevels("-1:-1")), nullptr);
  EXPECT_THAT(findings_, HasSubstr("expected every rank to end with every contribution"));
}

// Only the order of the thread blocks in the file differs: GPU 0 puts the messages of two chunks in
// another order than GPU 1 takes them.
TEST_F(MscclLoaderTest, TheNumbersOfThreadBlocksDoNotMatter) {
  for (const int first : {0, 1, 2}) {
    std::string text = "<algo nchunksperloop=\"3\" ngpus=\"2\" coll=\"allreduce\" inplace=\"1\">\n";
    for (int gpu = 0; gpu < 2; ++gpu) {
      text += fmt::format("<gpu id=\"{}\">\n", gpu);
      for (int i = 0; i < 3; ++i) {
        const int id = gpu == 0 ? (i + first) % 3 : i;
        const std::string chunk = fmt::format("i{}", i);
        const std::string scratch = fmt::format("s{}", i);
        text += fmt::format("<tb id=\"{0}\" send=\"{1}\" recv=\"{1}\" chan=\"{2}\">\n", id, 1 - gpu,
                            i) +
                StepText(0, "s", chunk, scratch) + StepText(1, "r", chunk, scratch) +
                StepText(2, "re", scratch, chunk) + "</tb>\n";
      }
      text += "</gpu>\n";
    }
    EXPECT_NE(Load(text + "</algo>\n"), nullptr) << findings_;
  }
}

// A step of several chunks is one message, and so it costs the same as one of a larger chunk.
TEST_F(MscclLoaderTest, ChunksThatAllStepsTreatAlikeAreOne) {
  const std::string text = Ring();
  std::string larger = Replaced(text, "nchunksperloop=\"2\"", "nchunksperloop=\"32\"");
  for (const char* side : {"src", "dst"}) {
    const std::string from = fmt::format("{}off=\"1\"", side);
    while (larger.find(from) != std::string::npos) {
      larger = Replaced(larger, from, fmt::format("{}off=\"16\"", side));
    }
  }
  while (larger.find("cnt=\"1\"") != std::string::npos) {
    larger = Replaced(larger, "cnt=\"1\"", "cnt=\"16\"");
  }
  const auto algorithm = Load(larger);
  ASSERT_NE(algorithm, nullptr) << findings_;
  EXPECT_EQ(algorithm->chunk_count, 2u);
  EXPECT_EQ(algorithm->lanes.at({RankIndex{0}, 0}).front().size(), 4u);
}

// GPU 1 keeps the sum of two contributions, adds the third, and forwards the sum of two.
TEST_F(MscclLoaderTest, LanesForwardWhatASlotHas) {
  const auto program = [](const std::string& forwarded) {
    return "<algo nchunksperloop=\"1\" ngpus=\"3\" coll=\"allreduce\" inplace=\"0\" "
           "outofplace=\"1\">\n"
           "<gpu id=\"0\"><tb id=\"0\" send=\"1\" recv=\"1\" chan=\"0\">\n" +
           StepText(0, "s", "i0", "i0") + StepText(1, "r", "o0", "o0") +
           "</tb></gpu>\n<gpu id=\"1\"><tb id=\"0\" send=\"2\" recv=\"2\" chan=\"0\">\n" +
           StepText(0, "rrc", "i0", "s0") + StepText(1, "s", forwarded, "o0", 1, "1:0") +
           "</tb><tb id=\"1\" send=\"0\" recv=\"0\" chan=\"0\">\n" +
           StepText(0, "rrc", "s0", "o0", 1, "0:0") + StepText(1, "s", "o0", "o0") +
           "</tb></gpu>\n<gpu id=\"2\"><tb id=\"0\" send=\"1\" recv=\"1\" chan=\"0\">\n" +
           StepText(0, "s", "i0", "i0") + StepText(1, "r", "o0", "o0") + "</tb></gpu>\n</algo>\n";
  };
  EXPECT_NE(Load(program("o0")), nullptr) << findings_;
  EXPECT_EQ(Load(program("s0")), nullptr);
}

TEST_F(MscclLoaderTest, ABlankOrAMarkMayPrecedeTheProgram) {
  EXPECT_NE(Load("\n  " + Ring()), nullptr) << findings_;
  EXPECT_NE(Load("\xef\xbb\xbf" + Ring()), nullptr) << findings_;
  // Lines are counted beyond 65,535.
  EXPECT_EQ(Load(std::string(70'000, '\n') + Ring("rrx")), nullptr);
  EXPECT_THAT(findings_, HasSubstr(":70007:1: error: type \"rrx\" is not read"));
}

TEST_F(MscclLoaderTest, MistakesInSuchProgramsAreFoundAtTheirLines) {
  struct Mistake {
    std::string text;
    std::string finding;
  };
  const std::string step_5 = StepText(0, "s", "i0", "s0", 1, "0:1");
  for (const Mistake& mistake : std::vector<Mistake>{
           // The last one is not added: GPU 0 lacks the contribution of GPU 3. Found at the step
           // that leaves the result without it.
           {OnePass(4, 2, "nop"), ":39:1: error: GPU 0, channel 7 of the lanes that it becomes: "},
           {Replaced(TwoLevels(), step_5, StepText(0, "s", "i0", "s0", 1, "7:1")),
            ":8:1: error: depid 7 is no thread block of the GPU"},
           {Replaced(TwoLevels(), step_5, StepText(0, "s", "i0", "s0", 1, "0:2")),
            ":8:1: error: deps 2 is no step of thread block 0, which has 2"},
           {Replaced(TwoLevels(), step_5, StepText(0, "s", "s7", "s0", 1, "0:1")),
            ":8:1: error: reads chunk 7 of a buffer of GPU 0, in which nothing is"},
           {Replaced(TwoLevels(), step_5, StepText(0, "s", "i0", "s0", 1, "1:2")),
            ":8:1: error: waits for ever"},
           {Replaced(TwoLevels(), step_5, step_5 + step_5),
            ":8:1: error: GPU 0 sends 2 chunks to GPU 2 on channel 0, which receives 1"},
           {Replaced(TwoLevels(), "<tb id=\"2\" send=\"1\" recv=\"1\" chan=\"1\">",
                     "<tb id=\"2\" send=\"1\" recv=\"1\" chan=\"0\">"),
            ":13:1: error: uses a connection of thread block 0"},
           {Replaced(TwoLevels(), "send=\"2\" recv=\"2\"", "send=\"2\" recv=\"0\""),
            ":7:1: error: has its own GPU as peer"},
           {Replaced(TwoLevels(), step_5, StepText(0, "s", "i-1", "s0", 1, "0:1")),
            ":8:1: error: srcoff=\"-1\" is out of range (expected 0 to 2147483647)"},
           {Replaced(TwoLevels(), "type=\"re\"", "type=\"rx\""), "type \"rx\" is not read"}}) {
    EXPECT_EQ(Load(mistake.text), nullptr) << mistake.finding;
    EXPECT_THAT(findings_, HasSubstr(mistake.finding));
  }
}

// grep -c '<tb ' ncv4-ar_tree_12_LL.xml: 192; its steps are s 48, r 24, rrs 48, rcs 48, rrc 24.
TEST_F(MscclLoaderTest, ReferenceTreeIsAnAllReduce) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  Diagnostics diagnostics;
  const auto algorithm =
      LoadScheduleFile(reference_dir + "/traces/msccl/ncv4-ar_tree_12_LL.xml", diagnostics);
  ASSERT_NE(algorithm, nullptr) << diagnostics.ToString();
  EXPECT_EQ(algorithm->rank_count, 4u);
  EXPECT_EQ(algorithm->channel_count, 24u);
  size_t steps = 0;
  for (const auto& [place, lanes] : algorithm->lanes) {
    for (const auto& lane : lanes) steps += lane.size();
  }
  EXPECT_EQ(steps, 48u + 24 + 48 + 48 + 24);
}

}  // namespace
}  // namespace railyard
