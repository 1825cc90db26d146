// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/load/msccl_loader.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/scenario/load/schedule_file_loader.h"
#include "tests/support/reference_dir.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

class MscclLoaderTest : public ::testing::Test {
 protected:
  std::shared_ptr<const ExplicitAlgorithm> Load(const std::string& text) {
    const std::string path = ::testing::TempDir() + "/msccl_loader_test_" +
                             ::testing::UnitTest::GetInstance()->current_test_info()->name() +
                             ".xml";
    std::ofstream(path) << text;
    Diagnostics diagnostics;
    auto algorithm = LoadScheduleFile(path, diagnostics);
    findings_ = diagnostics.ToString();
    std::filesystem::remove(path);
    EXPECT_EQ(algorithm == nullptr, diagnostics.HasErrors());
    return algorithm;
  }
  std::string findings_;
};

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
  const auto& lanes = algorithm->lanes.at({0, 0});
  ASSERT_EQ(lanes.size(), 1u);
  ASSERT_EQ(lanes[0].size(), 4u);
  EXPECT_EQ(lanes[0][0].chunk, 1u);
  EXPECT_TRUE(lanes[0][0].step.load_local);
  EXPECT_TRUE(lanes[0][1].step.reduce);
  EXPECT_TRUE(lanes[0][1].step.store);
  EXPECT_TRUE(lanes[0][2].step.load_kept);  // the sum, not the rank's own
  EXPECT_TRUE(lanes[0][3].step.store);
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
  EXPECT_THAT(findings_, HasSubstr("reads a slot in which nothing is"));
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
  EXPECT_EQ(Load(Ring().replace(Ring().find("allreduce"), 9, "alltoall ")), nullptr);
  EXPECT_THAT(findings_, HasSubstr("cannot be run as an algorithm"));
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
  for (const auto& [place, lanes] : algorithm->lanes) steps += lanes.front().size();
  EXPECT_EQ(steps, 48u + 24 + 48 + 48 + 24);
}

}  // namespace
}  // namespace railyard
