// SPDX-License-Identifier: GPL-2.0-only
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topologies/formats/fabric_argument_loader.h"
#include "topologies/formats/fabric_attributes.h"
#include "topologies/formats/graph_writer.h"
#include "topologies/formats/graphml_loader.h"
#include "topologies/platforms/preset.h"

namespace railyard {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kHead =
    "<graphml>\n"
    "<key id='n' for='node' attr.name='name'/><key id='k' for='node' attr.name='kind'/>"
    "<key id='s' for='node' attr.name='server'/><key id='l' for='node' attr.name='local_index'/>"
    "<key id='t' for='edge' attr.name='tier'/><key id='r' for='edge' attr.name='rate'/>\n"
    "<graph>\n";
constexpr const char* kTail = "</graph></graphml>\n";

std::string Gpu(const std::string& id, int index) {
  return fmt::format(
      "<node id='{}'><data key='k'>GPU</data><data key='s'>0</data><data "
      "key='l'>{}</data></node>\n",
      id, index);
}
std::string Edge(const std::string& from, const std::string& to, const std::string& rate) {
  return fmt::format(
      "<edge source='{}' target='{}'><data key='t'>NVLINK</data><data key='r'>{}</data></edge>\n",
      from, to, rate);
}

class GraphMlTest : public ::testing::Test {
 protected:
  GraphMlTest() {
    std::string pattern = ::testing::TempDir() + "/graphml-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~GraphMlTest() override { std::filesystem::remove_all(directory_); }

  std::optional<FabricGraph> Load(const std::string& text) {
    const std::string path = directory_ + "/f.graphml";
    std::ofstream(path) << text;
    Diagnostics diagnostics;
    auto fabric = LoadFabricArgument(path, diagnostics);
    findings_ = diagnostics.ToString();
    for (size_t at; (at = findings_.find(directory_ + "/")) != std::string::npos;) {
      findings_.erase(at, directory_.size() + 1);
    }
    EXPECT_EQ(fabric.has_value(), !diagnostics.HasErrors()) << findings_;
    return fabric;
  }
  std::string FindingsOf(const std::string& graph) {
    Load(kHead + graph + kTail);
    return findings_;
  }

  std::string directory_;
  std::string findings_;
};

TEST_F(GraphMlTest, WhatIsWrittenAsTextIsReadAsTheSameFabric) {
  for (const char* preset : {"h100-4x8-rail-optimized", "torus-3d-4x4x4"}) {
    const FabricGraph fabric = *MakePreset(preset);
    const std::string path = directory_ + "/f.textproto";
    std::ofstream(path) << ToTopologyText(fabric);
    Diagnostics diagnostics;
    const auto read = LoadFabricArgument(path, diagnostics);
    ASSERT_TRUE(read.has_value()) << diagnostics.ToString();
    EXPECT_EQ(ToGraphMl(*read), ToGraphMl(fabric));
  }
}

TEST_F(GraphMlTest, WhatIsWrittenIsReadAsTheSameFabric) {
  for (const char* preset : {"h100-4x8-rail-optimized", "torus-3d-4x4x4", "h800-8x8-dual-plane"}) {
    const FabricGraph fabric = *MakePreset(preset);
    const auto read = Load(ToGraphMl(fabric));
    ASSERT_TRUE(read.has_value()) << findings_;
    for (const auto name : kFabricAttributes) {
      EXPECT_EQ(FabricAttribute(*read, name), FabricAttribute(fabric, name));
    }
    ASSERT_EQ(read->device_count(), fabric.device_count());
    for (DeviceId id{0}; id < fabric.device_count(); ++id) {
      for (const auto name : kDeviceAttributes) {
        ASSERT_EQ(DeviceAttribute(*read, id, name), DeviceAttribute(fabric, id, name));
      }
    }
    ASSERT_EQ(read->cables().size(), fabric.cables().size());
    for (uint32_t i = 0; i < fabric.cables().size(); ++i) {
      ASSERT_EQ(read->cables()[i].name, fabric.cables()[i].name);
      for (const auto name : kCableAttributes) {
        ASSERT_EQ(CableAttribute(*read, i, name), CableAttribute(fabric, i, name));
      }
    }
    EXPECT_EQ(ToGraphMl(*read), ToGraphMl(fabric));
  }
}

TEST_F(GraphMlTest, ANodeWithoutANameIsCalledAsItsId) {
  const auto fabric = Load(kHead + Gpu("a", 0) + Gpu("b", 1) + Edge("a", "b", "1Gbps") + kTail);
  ASSERT_TRUE(fabric.has_value()) << findings_;
  EXPECT_TRUE(fabric->FindCable("a--b").has_value());
}

TEST_F(GraphMlTest, TheTextOfDataMayBeInSeveralParts) {
  const auto fabric =
      Load(kHead +
           std::string("<node id='x'><data key='n'>a<![CDATA[1]]><!-- not this -->2</data>"
                       "<data key='k'>GPU</data><data key='s'>0</data><data key='l'>0</data>"
                       "</node>\n") +
           Gpu("b", 1) + Edge("x", "b", "1Gbps") + kTail);
  ASSERT_TRUE(fabric.has_value()) << findings_;
  EXPECT_TRUE(fabric->FindCable("a12--b").has_value());
}

// libxml2 goes on after an undeclared prefix.
TEST_F(GraphMlTest, FindingsAfterAnErrorOfXmlAreReported) {
  EXPECT_THAT(FindingsOf("<node id='a' x:y='z'/>\n<hyperedge/>\n"),
              AllOf(HasSubstr("f.graphml:5:1: error: a hyperedge (expected nodes and edges only)"),
                    HasSubstr("(expected GraphML)")));
}

TEST_F(GraphMlTest, ForeignAttributesAreNamedAndLeftOut) {
  const auto fabric = Load(
      "<graphml>\n<key id='k' for='node' attr.name='kind'/>"
      "<key id='s' for='node' attr.name='server'/>"
      "<key id='l' for='node' attr.name='local_index'/>"
      "<key id='t' for='edge' attr.name='tier'/>"
      "<key id='r' for='edge' attr.name='rate'/>"
      "<key id='c' for='node' attr.name='colour'/>\n<graph>\n" +
      Gpu("a", 0) + Gpu("b", 1) + Edge("a", "b", "1Gbps") + kTail);
  EXPECT_TRUE(fabric.has_value());
  EXPECT_EQ(findings_, "f.graphml:2:1: warning: attribute \"colour\" of \"node\" is not used\n");
}

TEST_F(GraphMlTest, MistakesOfTheGraphAreAtTheirLines) {
  EXPECT_THAT(FindingsOf(Gpu("a", 0) + Gpu("a", 1)),
              HasSubstr("f.graphml:5:1: error: there is already a node \"a\", at line 4\n"));
  EXPECT_THAT(
      FindingsOf(Gpu("a", 0) + Edge("a", "z", "1Gbps")),
      HasSubstr("f.graphml:5:1: error: target \"z\" is no node above (expected a node's id)"));
  EXPECT_THAT(FindingsOf("<node><data key='k'>GPU</data></node>\n"),
              HasSubstr("f.graphml:4:1: error: a node without an id\n"));
  EXPECT_THAT(FindingsOf("<node id='a'><data key='q'>1</data></node>\n"),
              HasSubstr("f.graphml:4:1: error: data of key \"q\", which is not declared\n"));
  EXPECT_THAT(FindingsOf("<node id='a'><data key='t'>HOST</data></node>\n"),
              HasSubstr("f.graphml:4:1: error: key \"t\" is for \"edge\", not for node\n"));
  EXPECT_THAT(FindingsOf("<node id='a'><data key='k'>GUP</data></node>\n"),
              HasSubstr("f.graphml:4:1: error: unknown kind \"GUP\""));
  EXPECT_THAT(FindingsOf("<node id='a'><data key='s'>one</data></node>\n"),
              HasSubstr("f.graphml:4:1: error: server \"one\" is not a number (expected 0 to "
                        "4294967295)\n"));
  EXPECT_THAT(FindingsOf("<node id='a'><data key='s'>1</data><data key='s'>1</data></node>\n"),
              HasSubstr("f.graphml:4:1: error: server is given twice\n"));
  EXPECT_THAT(FindingsOf("<node id='a'><port name='p'/></node>\n"),
              HasSubstr("f.graphml:4:1: error: a port (expected nodes and edges only)\n"));
  EXPECT_THAT(FindingsOf("<hyperedge/>\n"),
              HasSubstr("f.graphml:4:1: error: a hyperedge (expected nodes and edges only)\n"));
  EXPECT_THAT(FindingsOf("<node id='a'><graph/></node>\n"),
              HasSubstr("f.graphml:4:1: error: a second graph (expected one, not nested)\n"));
  EXPECT_THAT(
      FindingsOf("<node id='a'><data key='n'>" + std::string(5'000, 'x') + "</data></node>\n"),
      HasSubstr("f.graphml:4:1: error: a value of more than 4096 bytes\n"));
}

// Data of a node, and nodes in the graph alone.
TEST_F(GraphMlTest, ElementsElsewhereAreFindings) {
  for (const char* element : {"edge", "node", "data", "graph", "desc"}) {
    EXPECT_THAT(
        FindingsOf(fmt::format("<node id='a'><data key='s'>1<{}/></data></node>\n", element)),
        HasSubstr(
            fmt::format("f.graphml:4:1: error: \"{}\" in data (expected a text)\n", element)));
  }
  for (const char* outer : {"node", "edge"}) {
    for (const char* inner : {"node", "edge"}) {
      EXPECT_THAT(
          FindingsOf(
              fmt::format("<{0} id='a'><{1} id='b'/><data key='s'>1</data></{0}>\n", outer, inner)),
          HasSubstr(fmt::format("\"{}\" in a {} (expected nodes and edges in the graph alone)\n",
                                inner, outer)));
    }
  }
}

TEST_F(GraphMlTest, MistakesOfTheFabricAreAtTheirLines) {
  const std::string gpus = Gpu("a", 0) + Gpu("b", 1);
  EXPECT_THAT(FindingsOf(gpus + Edge("a", "a", "1Gbps")),
              HasSubstr("f.graphml:6:1: error: links[0].to: joins a to itself"));
  EXPECT_THAT(FindingsOf(gpus + Edge("a", "b", "0bps")),
              HasSubstr("f.graphml:6:1: error: links[0].rate: 0 bps is out of range"));
  EXPECT_THAT(
      FindingsOf(gpus + Edge("a", "b", "999Tbps")),
      HasSubstr("f.graphml:6:1: error: links[0].rate: 999000000000000 bps is out of range"));
  EXPECT_THAT(FindingsOf(Gpu("a", 0) + Gpu("b", 0) + Edge("a", "b", "1Gbps")),
              HasSubstr("server 0 already has a GPU 0"));
}

TEST_F(GraphMlTest, WhatIsNoGraphMlIsRefused) {
  Load("");
  EXPECT_THAT(
      findings_,
      HasSubstr("error: the document ends too early or goes on after its end (expected GraphML)"));
  Load("<graphml>\n<graph>\n<node id='a'>\n");
  EXPECT_THAT(findings_, HasSubstr("error: the document ends too early or goes on after its end"));
  Load("<svg/>\n");
  EXPECT_THAT(findings_, HasSubstr("error: there is no graph (expected <graphml> with a <graph>)"));
  Load(
      "\x7f"
      "ELF\x01\x02");
  EXPECT_THAT(findings_, HasSubstr("(expected GraphML)"));
}

// libxml2 shows the bytes in a second line.
TEST_F(GraphMlTest, BytesThatAreNotTextAreOneFinding) {
  Load("<graphml>\n<graph>\n<node id='\xa3'/>\n");
  EXPECT_THAT(findings_, HasSubstr("f.graphml:3:"));
  EXPECT_THAT(findings_, HasSubstr(": error: Input is not proper UTF-8"));
  EXPECT_EQ(std::count(findings_.begin(), findings_.end(), '\n'), 1) << findings_;
}

// libxml2 raises errors of encodings for no document, and would print them.
TEST_F(GraphMlTest, ErrorsOfEncodingsAreFindingsOnly) {
  ::testing::internal::CaptureStderr();
  Load("<?xml version=\"1.0\" encoding=\"UTF-7\"?>\n<g\xcdraphml>");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(findings_, HasSubstr("(expected GraphML)"));
}

TEST_F(GraphMlTest, KeysAreUnique) {
  Load(
      "<graphml>\n<key id='k' for='node' attr.name='kind'/>\n<key id='k' for='node' "
      "attr.name='name'/>\n<graph>" +
      Gpu("a", 0) + kTail);
  EXPECT_THAT(findings_, HasSubstr("f.graphml:3:1: error: there is already a key \"k\"\n"));
}

TEST_F(GraphMlTest, EntitiesDoNotExpand) {
  std::string bomb = "<?xml version='1.0'?>\n<!DOCTYPE graphml [<!ENTITY e0 'xxxxxxxxxx'>";
  for (int i = 1; i < 10; ++i) {
    bomb += "<!ENTITY e" + std::to_string(i) + " '";
    for (int j = 0; j < 10; ++j) bomb += "&e" + std::to_string(i - 1) + ";";
    bomb += "'>";
  }
  bomb += "]>\n" + std::string(kHead) + "<node id='a'><data key='n'>&e9;</data></node>\n" + kTail;
  Load(bomb);
  EXPECT_THAT(findings_, HasSubstr("error: Detected an entity reference loop (expected GraphML)"))
      << "what libxml2 calls it";
  Load("<?xml version='1.0'?>\n<!DOCTYPE graphml [<!ENTITY e 'x'>]>\n" + std::string(kHead) +
       "<node id='a'><data key='n'>&e;</data></node>\n" + kTail);
  EXPECT_THAT(findings_, HasSubstr("error: entity \"e\" (expected plain text)"));
}

TEST(FabricArgumentTest, AnUnknownNameIsComparedWithThePresets) {
  Diagnostics diagnostics;
  EXPECT_FALSE(LoadFabricArgument("torus-2d-8x9", diagnostics).has_value());
  EXPECT_EQ(
      diagnostics.ToString(),
      "torus-2d-8x9: error: neither a preset, a platform nor a file: there is no such file (did "
      "you mean \"torus-2d-8x8\"?)\n");
}

}  // namespace
}  // namespace railyard
