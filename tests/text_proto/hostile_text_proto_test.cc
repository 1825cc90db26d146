// SPDX-License-Identifier: GPL-2.0-only
// Whatever the bytes are, reading them ends soon, with findings, and without a crash.
#include <algorithm>
#include <random>

#include <google/protobuf/struct.pb.h>
#include <gtest/gtest.h>

#include "simulator/text_proto/text_proto_check.h"
#include "tests/text_proto/text_file.h"

namespace railyard {
namespace {

std::string Repeat(const std::string& part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

TEST(HostileTextProtoTest, BytesThatAreNotTextEndTheReadingThere) {
  TextFile file(std::string("seed: 1\nna\0me: 2\n", 17));
  EXPECT_EQ(file.Load(), nullptr);
  EXPECT_EQ(file.Findings(),
            ":2:3: error: byte 0x00 is not text (expected UTF-8 without control characters)\n");
  TextFile latin1("# caf\xe9\n");
  EXPECT_EQ(latin1.Load(), nullptr);
  EXPECT_EQ(latin1.Findings(),
            ":1:6: error: byte 0xe9 is not text (expected UTF-8 without control characters)\n");
}

// A Struct's ListValue contains itself: "values { list_value { values { …".
std::string NestedLists(int messages) {
  std::string text;
  for (int i = 0; i < messages; ++i) text += i % 2 == 0 ? "values {" : "list_value {";
  return text + Repeat("}", messages);
}

TEST(HostileTextProtoTest, NestingIsBounded) {
  const google::protobuf::ListValue prototype;
  TextFile deep(NestedLists(kTextProtoDepthMax - 1));
  EXPECT_NE(deep.LoadAs(prototype), nullptr) << deep.Findings();
  TextFile too_deep(NestedLists(kTextProtoDepthMax));
  EXPECT_EQ(too_deep.LoadAs(prototype), nullptr);
  EXPECT_NE(too_deep.Findings().find("error: nested more than 100 deep\n"), std::string::npos);
  TextFile far_too_deep(Repeat("values { list_value {", 1'000'000));
  EXPECT_EQ(far_too_deep.LoadAs(prototype), nullptr);
}

TEST(HostileTextProtoTest, UnknownFieldsMayNestAsTheyLike) {
  TextFile file(Repeat("a { b: [ ", 500'000));
  EXPECT_EQ(file.Load(), nullptr);
  EXPECT_EQ(file.diagnostics.error_count(), 2);  // the field, and that it never ends
}

TEST(HostileTextProtoTest, EndlessMistakesAreCutOff) {
  TextFile file(Repeat("sede: 1\n", 10'000));
  EXPECT_EQ(file.Load(), nullptr);
  EXPECT_EQ(file.diagnostics.error_count(), kTextProtoFindingsMax + 1);
  EXPECT_NE(file.Findings().find(":100:1: error: too many mistakes, the rest is not looked at\n"),
            std::string::npos);
}

TEST(HostileTextProtoTest, TenMebibytesOfPrintableGarbageEndSoon) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> printable(' ', '~');
  std::string text(size_t{10} << 20, '\0');
  for (char& c : text) c = static_cast<char>(printable(random));
  TextFile one_line(text);
  EXPECT_EQ(one_line.Load(), nullptr);
  EXPECT_TRUE(one_line.diagnostics.HasErrors());
}

TEST(HostileTextProtoTest, AFileThatIsTooLargeIsNotRead) {
  TextFile file("");
  std::filesystem::resize_file(file.path(), kTextProtoBytesMax + 1);  // a hole, no disk space
  EXPECT_EQ(file.Load(), nullptr);
  EXPECT_EQ(file.Findings(), ":1:1: error: larger than 64 MiB\n");
}

TEST(HostileTextProtoTest, EveryTruncationAndEveryChangedByteIsReadOrRefused) {
  const std::string text =
      "name: \"a\\nb\" seed: 0x10 # c\n"
      "workload { algorithm: RING nccl_log { files: [\"x\", 'y'] rank_map < pid: 3; > } }\n"
      "faults [{ at: \"1ms\" kind: LINK_DOWN }, {}]\n";
  const auto load = [](const std::string& bytes) {
    TextFile file(bytes);
    const auto loaded = file.Load();
    // Nothing is left out of the message without a finding, and the rest is never refused.
    EXPECT_EQ(loaded == nullptr || !loaded->mistakes.empty(), file.diagnostics.HasErrors())
        << bytes << file.Findings();
  };
  for (size_t length = 0; length <= text.size(); ++length) load(text.substr(0, length));
  for (size_t i = 0; i < text.size(); ++i) {
    for (const char replacement :
         {'{', '}', '[', ']', '"', ':', '-', '0', 'x', '#', '\n', '\x80'}) {
      std::string changed = text;
      changed[i] = replacement;
      load(changed);
    }
  }
}

}  // namespace
}  // namespace railyard
