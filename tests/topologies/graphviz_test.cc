// SPDX-License-Identifier: GPL-2.0-only
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topologies/format_test.h"
#include "topologies/formats/graph_writer.h"
#include "topologies/formats/graphviz_loader.h"
#include "topologies/graph/fabric_copy.h"
#include "topologies/platforms/preset.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

class GraphvizTest : public testing::FormatTest {
 protected:
  std::string FindingsOf(const std::string& text) {
    Load("f.dot", text);
    return findings_;
  }
};

constexpr const char* kTwoGpus =
    "graph {\na [kind=GPU server=0 local_index=0]\nb [kind=GPU server=1, local_index=\"0\"];\n";

TEST_F(GraphvizTest, EveryPresetOfTheRegularSizesIsTheSameWhenReadAgain) {
  for (const Preset& preset : Presets()) {
    const FabricGraph fabric = MakePreset(preset.name).value();
    if (fabric.gpus().size() > 256) continue;
    const auto read = Load("f.dot", ToDot(fabric));
    ASSERT_TRUE(read.has_value()) << preset.name << findings_;
    EXPECT_EQ(ToTopologyText(*read), ToTopologyText(fabric)) << preset.name;
  }
}

TEST_F(GraphvizTest, ACopyOfAPresetIsTheSame) {
  for (const Preset& preset : Presets()) {
    const FabricGraph fabric = MakePreset(preset.name).value();
    const FabricGraph copy = CopyOf(fabric);
    EXPECT_EQ(ToDot(copy), ToDot(fabric)) << preset.name;
    ASSERT_EQ(copy.link_count(), fabric.link_count());
    for (LinkId link{0}; link < fabric.link_count(); ++link) {
      EXPECT_EQ(copy.link(link).name, fabric.link(link).name);
    }
    EXPECT_EQ(copy.circuits.has_value(), fabric.circuits.has_value());
  }
}

TEST_F(GraphvizTest, AUsersGraphIsRead) {
  const auto fabric = Load("f.gv", R"(// by hand
strict graph "mine" {
  # cables first
  a -- b [tier=DIRECT rate="1Gbps" color=red];
  name = "two"; graph [routing=SHORTEST]
  a [kind=GPU server=0 local_index=0 label="GPU \"a\""] /* and its peer */
  b [kind=GPU, server=1, local_index=0]
}
)");
  ASSERT_TRUE(fabric.has_value()) << findings_;
  EXPECT_EQ(fabric->name, "two");
  EXPECT_TRUE(fabric->FindCable("a--b").has_value());
}

TEST_F(GraphvizTest, MistakesAreAtTheirPlaces) {
  const std::string head = kTwoGpus;
  EXPECT_EQ(FindingsOf(head + "a [kind=GPU]\n}"),
            "f.dot:4:1: error: there is already a node \"a\", at line 2\n");
  EXPECT_EQ(FindingsOf(head + "a -- z [tier=DIRECT rate=\"1Gbps\"]\n}"),
            "f.dot:4:6: error: \"z\" is no node of this graph\n");
  EXPECT_THAT(FindingsOf(head + "a -- a [tier=DIRECT rate=\"1Gbps\"]\n}"),
              HasSubstr("f.dot:4:1: error: links[0].to: joins a to itself"));
  EXPECT_THAT(FindingsOf(head + "a -- b [tier=DIRECT rate=\"0Gbps\"]\n}"),
              HasSubstr("f.dot:4:1: error: links[0].rate: 0 bps is out of range"));
  EXPECT_THAT(FindingsOf(head + "a -- b [tier=DIRECT rate=\"9999Tbps\"]\n}"),
              HasSubstr("is out of range (expected 1Mbps to 100Tbps)"));
  EXPECT_THAT(FindingsOf("graph { a [kind=GUP] }"), HasSubstr("f.dot:1:17: error: unknown kind"));
  EXPECT_THAT(FindingsOf("graph { a [server=-1] }"),
              HasSubstr("f.dot:1:19: error: server \"-1\" is not a number"));
  EXPECT_THAT(FindingsOf("graph { a [kind=GPU kind=NIC] }"), HasSubstr("kind is given twice"));
}

TEST_F(GraphvizTest, WhatCannotBeReadEndsTheReading) {
  EXPECT_EQ(FindingsOf("graph { subgraph s { a } }"),
            "f.dot:1:9: error: a subgraph (expected nodes and edges only)\n");
  EXPECT_EQ(FindingsOf("graph " + std::string(1'000'000, '{')),
            "f.dot:1:8: error: a subgraph (expected nodes and edges only)\n");
  EXPECT_THAT(FindingsOf("graph { node [kind=GPU] }"), HasSubstr("defaults of nodes"));
  EXPECT_THAT(FindingsOf("graph { a:n -- b }"), HasSubstr("f.dot:1:10: error: a port"));
  EXPECT_THAT(FindingsOf("graph { a [label=<b>] }"), HasSubstr("a text in HTML"));
  EXPECT_THAT(FindingsOf("graph { a"), HasSubstr("the file ends (expected \"}\")"));
  EXPECT_THAT(FindingsOf("graph { a [kind="), HasSubstr("kind has no value"));
  EXPECT_THAT(FindingsOf("graph { \"a"), HasSubstr("a text without its closing quote"));
  EXPECT_THAT(FindingsOf("graph { /* a"), HasSubstr("a comment without end"));
  EXPECT_THAT(FindingsOf("graph { } graph { }"), HasSubstr("a second graph"));
  EXPECT_THAT(FindingsOf("graph { \"" + std::string(10'000, 'x') + "\" }"),
              HasSubstr("a text of more than 4096 bytes"));
}

}  // namespace
}  // namespace railyard
