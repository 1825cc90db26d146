// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/text_proto/text_proto_set.h"

#include <gtest/gtest.h>

#include "tests/text_proto/text_file.h"

namespace railyard {
namespace {

constexpr const char* kText =
    "name: \"x\"\n"
    "fabric { preset: \"p\" }\n"
    "workload { nccl_log { files: \"a\" files: \"b\" } }\n"
    "faults { at: \"1ms\" kind: LINK_DOWN }\n"
    "faults { at: \"2ms\" }\n";

class TextProtoSetTest : public ::testing::Test {
 protected:
  // The scenario after the edits; the default one, and a failure, if they are refused.
  protos::Scenario Edited(const std::vector<std::string>& sets) {
    loaded_ = file_.Load(sets);
    EXPECT_FALSE(file_.diagnostics.HasErrors()) << file_.Findings();
    return loaded_ ? AsScenario(*loaded_) : protos::Scenario();
  }
  std::string Refused(const std::string& set) {
    loaded_ = file_.Load({set});
    EXPECT_EQ(AsScenario(*loaded_).DebugString(), AsScenario(*file_.Load()).DebugString());
    loaded_ = file_.Load({set});
    return file_.Findings();
  }

  TextFile file_{kText};
  std::unique_ptr<TextProtoFile> loaded_;
};

TEST_F(TextProtoSetTest, AScalarIsReplacedAndAnAbsentOneCreated) {
  EXPECT_EQ(Edited({"seed=9"}).seed(), 9u);
  EXPECT_EQ(Edited({"name=y"}).name(), "y");
  EXPECT_EQ(Edited({"name = y z "}).name(), "y z");
  EXPECT_EQ(Edited({"name=\"y=\\\"z\\\"\""}).name(), "y=\"z\"");
  EXPECT_EQ(Edited({"name="}).name(), "");
  EXPECT_EQ(Edited({"nccl.IB_TIMEOUT=14"}).nccl().ib_timeout(), 14u);
  EXPECT_TRUE(Edited({"nccl.PXN_DISABLE=true"}).nccl().pxn_disable());
  EXPECT_EQ(Edited({"workload.algorithm=RING"}).workload().algorithm(), protos::Workload::RING);
}

TEST_F(TextProtoSetTest, AnElementIsChangedReplacedOrAppended) {
  EXPECT_EQ(Edited({"faults[1].at=5ms"}).faults(1).at(), "5ms");
  const protos::Scenario replaced = Edited({"faults[0]={link: \"l\"}"});
  ASSERT_EQ(replaced.faults_size(), 2);
  EXPECT_EQ(replaced.faults(0).link(), "l");
  EXPECT_FALSE(replaced.faults(0).has_at());
  EXPECT_EQ(replaced.faults(1).at(), "2ms");
  const protos::Scenario appended = Edited({"faults[2].at=3ms", "faults[2].kind=LINK_DOWN"});
  ASSERT_EQ(appended.faults_size(), 3);
  EXPECT_EQ(appended.faults(2).kind(), protos::Fault::LINK_DOWN);
  const protos::Scenario files = Edited({"workload.nccl_log.files[0]=z"});
  EXPECT_EQ(files.workload().nccl_log().files(0), "z");
  EXPECT_EQ(files.workload().nccl_log().files(1), "b");
}

TEST_F(TextProtoSetTest, ARepeatedFieldIsClearedOrReplacedAsAWhole) {
  EXPECT_EQ(Edited({"faults=[]"}).faults_size(), 0);
  const protos::Scenario scenario = Edited({"workload.nccl_log.files=[\"z\"]"});
  ASSERT_EQ(scenario.workload().nccl_log().files_size(), 1);
  EXPECT_EQ(scenario.workload().nccl_log().files(0), "z");
}

TEST_F(TextProtoSetTest, AMessageIsReplacedAsAWhole) {
  const protos::Scenario scenario =
      Edited({"nccl.IB_RETRY_CNT=3", "nccl={ IB_TIMEOUT: 14 version: \"2.27.5\" }"});
  EXPECT_EQ(scenario.nccl().ib_timeout(), 14u);
  EXPECT_FALSE(scenario.nccl().has_ib_retry_cnt());
}

TEST_F(TextProtoSetTest, SettingOneOfSeveralAlternativesRemovesTheOther) {
  const protos::Scenario scenario = Edited({"fabric.rail_optimized.servers=4"});
  EXPECT_FALSE(scenario.fabric().has_preset());
  EXPECT_EQ(scenario.fabric().rail_optimized().servers(), 4u);
  EXPECT_FALSE(loaded_->places.contains("fabric.preset"));
}

TEST_F(TextProtoSetTest, LaterEditsWinAndFindingsPointAtThem) {
  EXPECT_EQ(Edited({"seed=1", "seed=2"}).seed(), 2u);
  EXPECT_EQ(loaded_->Locate(loaded_->places.at("seed")).file, "--set seed=2");
  Edited({"faults=[]", "faults[0].at=1s"});
  EXPECT_EQ(loaded_->Locate(loaded_->places.at("faults[0].at")).file, "--set faults[0].at=1s");
  EXPECT_FALSE(loaded_->places.contains("faults[1]"));
  EXPECT_FALSE(loaded_->places.contains("faults[0].kind"));
}

TEST_F(TextProtoSetTest, EveryMistakeHasItsLine) {
  EXPECT_EQ(Refused("seed"), "--set seed: error: expected FIELD=VALUE, e.g. seed=7\n");
  EXPECT_EQ(Refused("a..b=3"),
            "--set a..b=3: error: \"a..b\" is not the path of a field (expected e.g. "
            "faults[0].until)\n");
  EXPECT_EQ(Refused("faults[x]=3"),
            "--set faults[x]=3: error: \"faults[x]\" is not the path of a field (expected e.g. "
            "faults[0].until)\n");
  EXPECT_EQ(
      Refused("faults[0].untill=5ms"),
      "--set faults[0].untill=5ms: error: faults[0].untill: unknown field \"untill\" (did you "
      "mean \"until\"?)\n");
  EXPECT_EQ(Refused("seed=x"),
            "--set seed=x: error: seed: \"x\" is not a whole number, 0 to 18446744073709551615\n");
  EXPECT_EQ(Refused("faults[0].kind=LINKDOWN"),
            "--set faults[0].kind=LINKDOWN: error: faults[0].kind: unknown \"LINKDOWN\" (did you "
            "mean \"LINK_DOWN\"?)\n");
  EXPECT_EQ(Refused("faults[3].at=1ms"),
            "--set faults[3].at=1ms: error: faults[3]: there are only 2 (faults[2] would append "
            "one)\n");
  EXPECT_EQ(Refused("faults.at=1ms"),
            "--set faults.at=1ms: error: faults: which one? (expected e.g. faults[0].at)\n");
  EXPECT_EQ(Refused("faults=1"),
            "--set faults=1: error: faults: is repeated (expected faults[0]=… for one of them, or "
            "faults=[…])\n");
  EXPECT_EQ(Refused("faults[0]=[]"),
            "--set faults[0]=[]: error: faults[0]: is one of several, not a list\n");
  EXPECT_EQ(Refused("seed[0]=1"),
            "--set seed[0]=1: error: seed: is not repeated, [0] means nothing\n");
  EXPECT_EQ(Refused("seed.x=1"),
            "--set seed.x=1: error: seed: has no field \"x\", it is not a message\n");
  EXPECT_EQ(Refused("nccl=4"), "--set nccl=4: error: nccl: expected { … }, found \"4\"\n");
  EXPECT_EQ(Refused("seed=3 name: \"y\""),
            "--set seed=3 name: \"y\": error: seed: \"3 name: \"y\"\" is more than one value\n");
  EXPECT_EQ(
      Refused("name=a\tb"),
      "--set name=a\\x09b: error: name: the value holds a character that cannot be printed\n");
}

TEST_F(TextProtoSetTest, AllMistakesAreFoundAtOnce) {
  file_.Load({"seed=x", "sede=1", "seed=4"});
  EXPECT_EQ(file_.diagnostics.error_count(), 2);
}

TEST_F(TextProtoSetTest, AnEmptyValueRemovesAField) {
  EXPECT_FALSE(Edited({"name="}).has_name());
  EXPECT_FALSE(loaded_->places.contains("name"));
  EXPECT_FALSE(Edited({"faults[0].at="}).faults(0).has_at());
  EXPECT_FALSE(Edited({"fabric= "}).has_fabric());
  EXPECT_FALSE(loaded_->places.contains("fabric.preset"));
  EXPECT_EQ(Edited({"faults="}).faults_size(), 0);
  EXPECT_TRUE(Edited({"name=\"\""}).has_name());  // an empty text is a value
}

TEST_F(TextProtoSetTest, RemovingWhatIsNotThereChangesNothing) {
  EXPECT_FALSE(Edited({"nccl.IB_TIMEOUT="}).has_nccl());
  EXPECT_EQ(Edited({"fabric.rail_optimized.servers="}).fabric().preset(), "p");
  EXPECT_EQ(Edited({"fabric.file="}).fabric().preset(), "p");
}

TEST_F(TextProtoSetTest, OneOfSeveralIsNotRemoved) {
  EXPECT_EQ(Refused("faults[0]="),
            "--set faults[0]=: error: faults[0]: one of several cannot be removed (expected "
            "faults=[…] with those that stay)\n");
  EXPECT_EQ(Refused("workload.nccl_log.files[1]="),
            "--set workload.nccl_log.files[1]=: error: workload.nccl_log.files[1]: one of several "
            "cannot be removed (expected workload.nccl_log.files=[…] with those that stay)\n");
}

TEST_F(TextProtoSetTest, ARefusedEditLeavesItsFieldDoubtfulAndThePlacesOfOthers) {
  Refused("fabric.rail_optimized.servers=x");
  EXPECT_TRUE(loaded_->IsUnreadable("fabric.rail_optimized.servers"));
  EXPECT_TRUE(loaded_->places.contains("fabric.preset"));
  Refused("faults[0].untill=5ms");
  EXPECT_TRUE(loaded_->IsDoubtful("faults[0].until"));
  EXPECT_FALSE(loaded_->IsDoubtful("faults[1]"));
  Refused("faults=1");
  EXPECT_TRUE(loaded_->IsDoubtful("faults"));
  EXPECT_FALSE(loaded_->IsUnreadable("faults[0].at"));
}

TEST_F(TextProtoSetTest, EditsApplyToWhatIsReadableOfAFileWithMistakes) {
  TextFile file("sede: 1\nseed: x\nfaults: 3\nfaults { at: \"1ms\" }\n");
  const auto loaded = file.Load({"seed=7", "faults[1].at=2ms", "faults[2].at=3ms"});
  ASSERT_NE(loaded, nullptr);
  EXPECT_EQ(file.diagnostics.error_count(), 3);
  EXPECT_EQ(AsScenario(*loaded).seed(), 7u);
  EXPECT_FALSE(loaded->IsDoubtful("seed"));
  EXPECT_TRUE(loaded->IsUnreadable("faults[0]"));
  EXPECT_EQ(AsScenario(*loaded).faults(1).at(), "2ms");
  EXPECT_EQ(AsScenario(*loaded).faults(2).at(), "3ms");
}

}  // namespace
}  // namespace railyard
