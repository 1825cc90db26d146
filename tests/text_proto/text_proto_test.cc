// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/text_proto/text_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/text_proto/text_file.h"

namespace railyard {
namespace {

// Returns the findings in a text.
std::string FindingsIn(const std::string& text) {
  TextFile file(text);
  file.Load();
  EXPECT_TRUE(file.diagnostics.HasErrors());
  return file.Findings();
}

// Returns the readable part of a text with mistakes, on one line.
std::string Readable(const std::string& text) {
  TextFile file(text);
  const auto loaded = file.Load();
  EXPECT_TRUE(file.diagnostics.HasErrors());
  return loaded ? loaded->message->ShortDebugString() : "nothing";
}

TEST(TextProtoTest, ARightFileIsReadWithThePlaceOfEachField) {
  TextFile file(
      "# a comment with µ\n"
      "seed: 7\n"
      "workload { nccl_log { files: [\"a\", 'b'] files: \"c\" \"d\" } }\n"
      "faults [ { at: \"1ms\" }, { kind: LINK_DOWN } ]\n"
      "faults < link: \"x\"; >\n");
  const auto loaded = file.Load();
  ASSERT_NE(loaded, nullptr) << file.Findings();
  const protos::Scenario& scenario = AsScenario(*loaded);
  EXPECT_EQ(scenario.seed(), 7u);
  ASSERT_EQ(scenario.workload().nccl_log().files_size(), 3);
  EXPECT_EQ(scenario.workload().nccl_log().files(2), "cd");
  ASSERT_EQ(scenario.faults_size(), 3);
  EXPECT_EQ(scenario.faults(1).kind(), protos::Fault::LINK_DOWN);

  const auto place = [&](const char* path) {
    const FieldPlace& at = loaded->places.at(path);
    return std::pair(at.line, at.column);
  };
  EXPECT_EQ(place("seed"), std::pair(2, 1));
  EXPECT_EQ(place("workload.nccl_log.files[1]"), std::pair(3, 36));
  EXPECT_EQ(place("workload.nccl_log.files[2]"), std::pair(3, 41));
  EXPECT_EQ(place("faults[1].kind"), std::pair(4, 27));
  EXPECT_EQ(place("faults[2].link"), std::pair(5, 10));
}

TEST(TextProtoTest, ATabIsOneColumnAndSoIsACharacterOfSeveralBytes) {
  EXPECT_EQ(FindingsIn("\t\tsede: 1\n"),
            ":1:3: error: sede: unknown field \"sede\" (did you mean \"seed\"?)\n");
  EXPECT_EQ(FindingsIn("name: \"µµ\" sede: 1\n"),
            ":1:12: error: sede: unknown field \"sede\" (did you mean \"seed\"?)\n");
}

TEST(TextProtoTest, AnUnknownFieldIsShownInPartIfItIsLong) {
  const std::string name(100'000, 'x');
  const std::string findings = FindingsIn("faults { " + name + " { y: 1 } }");
  EXPECT_EQ(findings.find(":1:10: error: faults[0]." + name.substr(0, 80) + "…: unknown field \"" +
                          name.substr(0, 80) + "…\""),
            0u)
      << findings.substr(0, 1000);
  EXPECT_LT(findings.size(), 1000u);
}

TEST(TextProtoTest, AnUnknownFieldIsNamedWithAGuessOrTheChoice) {
  EXPECT_EQ(FindingsIn("faults { untill: \"2ms\" }"),
            ":1:10: error: faults[0].untill: unknown field \"untill\" (did you mean \"until\"?)\n");
  EXPECT_EQ(FindingsIn("potatoes { a: 1 b { c: [1, 2] } } seed: 1"),
            ":1:1: error: potatoes: unknown field \"potatoes\" (expected name, seed, fabric, "
            "workload, nccl, gpu, nic, routing, faults, switch, network, fault_domains, watchdog, "
            "nic_failover, restart, jobs, transport, nics, mode or switches)\n");
}

TEST(TextProtoTest, ValuesOfTheWrongTypeSayWhatIsRight) {
  EXPECT_EQ(FindingsIn("seed: \"4 potatoes\""),
            ":1:7: error: seed: \"4 potatoes\" is a text in quotes (expected a whole number, 0 to "
            "18446744073709551615)\n");
  EXPECT_EQ(FindingsIn("seed: -4"),
            ":1:7: error: seed: \"-4\" is not a whole number, 0 to 18446744073709551615\n");
  EXPECT_EQ(FindingsIn("seed: 1.5"),
            ":1:7: error: seed: \"1.5\" is not a whole number, 0 to 18446744073709551615\n");
  EXPECT_EQ(FindingsIn("nccl { IB_TIMEOUT: 4294967296 }"),
            ":1:20: error: nccl.IB_TIMEOUT: \"4294967296\" is not a whole number, 0 to "
            "4294967295\n");
  EXPECT_EQ(FindingsIn("faults { at: 300ms }"),
            ":1:14: error: faults[0].at: \"300ms\" is not a text in quotes\n");
  EXPECT_EQ(FindingsIn("nccl { PXN_DISABLE: 1 }"),
            ":1:21: error: nccl.PXN_DISABLE: \"1\" is not true or false\n");
  EXPECT_EQ(FindingsIn("name: { }"),
            ":1:7: error: name: found \"{\" (expected a text in quotes)\n");
  EXPECT_EQ(FindingsIn("nic: 3"), ":1:6: error: nic: expected { … }, found \"3\"\n");
  EXPECT_EQ(FindingsIn("nic: \"x\""), ":1:6: error: nic: expected { … }, found a text in quotes\n");
}

TEST(TextProtoTest, EnumsTakeNamesOnlyAndNeverTheUnspecifiedOne) {
  EXPECT_EQ(FindingsIn("faults { kind: LINK_DWON }"),
            ":1:16: error: faults[0].kind: unknown \"LINK_DWON\" (did you mean \"LINK_DOWN\"?)\n");
  EXPECT_EQ(FindingsIn("faults { direction: SIDEWAYS }"),
            ":1:21: error: faults[0].direction: unknown \"SIDEWAYS\" (expected BOTH, FORWARD or "
            "BACKWARD)\n");
  EXPECT_EQ(FindingsIn("faults { kind: 1 }"),
            ":1:16: error: faults[0].kind: \"1\" is not LINK_DOWN, SWITCH_REBOOT, DEGRADE, LOSS, "
            "DELAY, PAUSE_STORM, BACKGROUND_LOAD or STRAGGLER\n");
  EXPECT_EQ(FindingsIn("faults { kind: KIND_UNSPECIFIED }"),
            ":1:16: error: faults[0].kind: unknown \"KIND_UNSPECIFIED\" (expected LINK_DOWN, "
            "SWITCH_REBOOT, DEGRADE, LOSS, "
            "DELAY, PAUSE_STORM, BACKGROUND_LOAD or STRAGGLER)\n");
}

TEST(TextProtoTest, AFieldGivenTwiceIsAContradiction) {
  EXPECT_EQ(FindingsIn("seed: 1\nseed: 1\n"),
            ":2:1: error: seed: given twice (the first is in line 1)\n");
  EXPECT_EQ(FindingsIn("nccl { }\nnccl { }\n"),
            ":2:1: error: nccl: given twice (the first is in line 1)\n");
  EXPECT_EQ(FindingsIn("workload {\n trace: \"a\"\n program { }\n}"),
            ":3:2: error: workload.program: contradicts \"trace\" in line 2 (expected only one of "
            "nccl_log, trace, program, plan or inline_plan)\n");
}

TEST(TextProtoTest, SyntaxErrorsSayWhatIsMissing) {
  EXPECT_EQ(
      FindingsIn("seed 3"),
      ":1:6: error: seed: expected \":\" and a whole number, 0 to 18446744073709551615, found "
      "\"3\"\n");
  EXPECT_EQ(FindingsIn("nic { window: }"),
            ":1:15: error: nic.window: its value is missing (expected a text in quotes)\n");
  EXPECT_EQ(FindingsIn("nic {\n mtu_bytes: 4096\n"), ":1:5: error: nic: \"{\" is never closed\n");
  EXPECT_EQ(FindingsIn("nic < mtu_bytes: 4096"), ":1:5: error: nic: \"<\" is never closed\n");
  EXPECT_EQ(FindingsIn("seed: 1\n}\n"), ":2:1: error: expected a field's name, found \"}\"\n");
  EXPECT_EQ(FindingsIn("[a.b]: 3\nsede: 1"),
            ":1:1: error: expected a field's name, found \"[\"\n"
            ":2:1: error: sede: unknown field \"sede\" (did you mean \"seed\"?)\n");
  EXPECT_EQ(FindingsIn("name: \"abc\nseed: 1"),
            ":1:7: error: a text that does not end on its line (a closing quote is missing)\n");
  EXPECT_EQ(FindingsIn("workload { nccl_log { files: [\"a\" \"b\" 3] } }"),
            ":1:39: error: workload.nccl_log.files: expected \",\" or \"]\", found \"3\"\n");
  EXPECT_EQ(FindingsIn("µ: 1"), ":1:1: error: a character that is not ASCII outside quotes\n");
}

TEST(TextProtoTest, TextsHoldNothingThatCannotBePrinted) {
  EXPECT_EQ(FindingsIn(R"(name: "a\000b")"),
            ":1:7: error: name: \"a\\x00b\" holds a character that cannot be printed\n");
  EXPECT_EQ(FindingsIn(R"(name: "\xff")"),
            ":1:7: error: name: \"\\xff\" holds a character that cannot be printed\n");
}

TEST(TextProtoTest, AllMistakesAreFoundAtOnceInTheOrderOfTheFile) {
  EXPECT_EQ(FindingsIn("sede: 1\n"
                       "workload { algorithm: RNIG }\n"
                       "nccl { IB_TIMEOUT: yes  PXN_DISABLE: maybe }\n"
                       "faults { at: 3ms untill: \"4ms\" }\n"
                       "{ anything: 1 }\n"
                       "faults { kind: LINK_UP }\n"
                       "seed: 2 seed: 3\n"
                       "nic {\n"),
            ":1:1: error: sede: unknown field \"sede\" (did you mean \"seed\"?)\n"
            ":2:23: error: workload.algorithm: unknown \"RNIG\" (did you mean \"RING\"?)\n"
            ":3:20: error: nccl.IB_TIMEOUT: \"yes\" is not a whole number, 0 to 4294967295\n"
            ":3:38: error: nccl.PXN_DISABLE: \"maybe\" is not true or false\n"
            ":4:14: error: faults[0].at: \"3ms\" is not a text in quotes\n"
            ":4:18: error: faults[0].untill: unknown field \"untill\" (did you mean \"until\"?)\n"
            ":5:1: error: expected a field's name, found \"{\"\n"
            ":6:16: error: faults[1].kind: unknown \"LINK_UP\" (expected LINK_DOWN, SWITCH_REBOOT, "
            "DEGRADE, LOSS, "
            "DELAY, PAUSE_STORM, BACKGROUND_LOAD or STRAGGLER)\n"
            ":7:9: error: seed: given twice (the first is in line 7)\n"
            ":8:5: error: nic: \"{\" is never closed\n");
}

TEST(TextProtoTest, WhatIsRightIsReadBesideMistakes) {
  EXPECT_EQ(Readable("sede: 3 name: \"a\" potatoes { x: [1, { }] } nic { windw: \"1\" }"),
            "name: \"a\" nic { }");
  EXPECT_EQ(Readable("seed: \"x\", name: \"a\"; nic: 3 gpu 3 routing { detection_delay: }"),
            "name: \"a\" routing { }");
  EXPECT_EQ(Readable("seed 3; name: \"a\" nccl { PXN_DISABLE: 1, IB_TIMEOUT: x # { \n }"),
            "name: \"a\" nccl { }");
}

TEST(TextProtoTest, AByteOrderMarkIsPassedOver) {
  TextFile file("\xef\xbb\xbfseed: 3");
  EXPECT_NE(file.Load(), nullptr);
  EXPECT_FALSE(file.diagnostics.HasErrors());
  EXPECT_EQ(FindingsIn("\xef\xbb\xbfsede: 3"),
            ":1:1: error: sede: unknown field \"sede\" (did you mean \"seed\"?)\n");
}

TEST(TextProtoTest, WhatIsGivenAgainLeavesTheFirstStanding) {
  EXPECT_EQ(Readable("seed: 1 seed: 2 nic { window: \"a\" } nic { mtu_bytes: x }"),
            "seed: 1 nic { window: \"a\" }");
  EXPECT_EQ(Readable("fabric { preset: \"a\" file: \"b\" }"), "fabric { preset: \"a\" }");
}

TEST(TextProtoTest, ElementsKeepTheirNumbers) {
  EXPECT_EQ(Readable("faults: 3 faults { link: 5 } faults [ { at: \"x\" }, 7, { link: \"b\" } ]"),
            "faults { } faults { } faults { at: \"x\" } faults { } faults { link: \"b\" }");
  EXPECT_EQ(Readable("workload { nccl_log { files: [3, \"b\", , \"d\"] files: } }"),
            "workload { nccl_log { files: \"\" files: \"b\" files: \"\" files: \"d\" files: "
            "\"\" } }");
}

TEST(TextProtoTest, ASyntaxErrorLeavesNothingToRead) {
  for (const char* text : {"nic {", "nic { }}", "name: \"a", "name: \"\\q\"", "[a.b]: 3", "µ: 1",
                           "workload { nccl_log { files: [\"a\" 3] } }"}) {
    EXPECT_EQ(Readable(text), "nothing") << text;
  }
}

TEST(TextProtoTest, MistakesAreKnownByTheirFields) {
  TextFile file(
      "seed: x\n"
      "fabrik { }\n"
      "faults { at: 3 untill: \"1ms\" } faults { at: \"1ms\" }\n"
      "nic { potatoes: 1 }\n"
      "gpu { channel_rate: \"1Gbps\" } gpu { launch_latency: 3 }\n");
  const auto loaded = file.Load();
  ASSERT_NE(loaded, nullptr);
  EXPECT_TRUE(loaded->IsUnreadable("seed"));
  EXPECT_TRUE(loaded->IsUnreadable("faults[0].at"));
  EXPECT_FALSE(loaded->IsUnreadable("faults[0].until"));
  EXPECT_FALSE(loaded->IsUnreadable("gpu.launch_latency"));  // of the first one
  for (const char* doubtful : {"", "seed", "fabric", "faults", "faults[0]", "faults[0].at",
                               "faults[0].until", "nic", "gpu"}) {
    EXPECT_TRUE(loaded->IsDoubtful(doubtful)) << doubtful;
  }
  for (const char* certain : {"name", "faults[1]", "faults[1].at", "faults[0].link", "nic.window",
                              "gpu.channel_rate", "fault"}) {
    EXPECT_FALSE(loaded->IsDoubtful(certain)) << certain;
  }
}

TEST(TextProtoTest, WhatAnUnreadableFieldHoldsIsNotWorthAFinding) {
  TextFile file("faults: 3 nic { window: 4 mtu_bytse: 1 }");
  const auto loaded = file.Load();
  ASSERT_NE(loaded, nullptr);
  Diagnostics diagnostics;
  const ProtoCursor cursor(*loaded);
  cursor.Child("faults", 0).Error(diagnostics, "at", "any");
  cursor.Child("faults", 0).Missing(diagnostics, "kind", "any");
  const ProtoCursor nic = cursor.Child("nic");
  nic.Warning(diagnostics, "window", "any");
  nic.Missing(diagnostics, "window", "any");
  nic.Missing(diagnostics, "mtu_bytes", "any");  // that is what was meant
  EXPECT_EQ(diagnostics.ToString(), "");
  nic.Missing(diagnostics, "ack_every_packets", "a number");
  EXPECT_EQ(file.WithoutPath(diagnostics.ToString()),
            ":1:11: error: nic.ack_every_packets: missing (expected a number)\n");
}

TEST(TextProtoTest, AFileThatIsNoneIsAFinding) {
  Diagnostics diagnostics;
  EXPECT_EQ(LoadTextProto("/no/such/file", protos::Scenario(), {}, diagnostics), nullptr);
  const std::string directory = std::filesystem::temp_directory_path().string();
  EXPECT_EQ(LoadTextProto(directory, protos::Scenario(), {}, diagnostics), nullptr);
  EXPECT_EQ(LoadTextProto("/" + std::string(5000, 'x'), protos::Scenario(), {}, diagnostics),
            nullptr);
  EXPECT_EQ(LoadTextProto("/dev/zero", protos::Scenario(), {}, diagnostics), nullptr);
  EXPECT_THAT(
      diagnostics.ToString(),
      ::testing::AllOf(
          ::testing::HasSubstr("/no/such/file: error: there is no such file\n"),
          ::testing::HasSubstr("/dev/zero: error: that is a pipe or a device (expected a file)\n"),
          ::testing::HasSubstr(directory + ": error: that is a directory (expected a file)\n"),
          ::testing::HasSubstr(": error: the file's name is too long\n")));
}

}  // namespace
}  // namespace railyard
