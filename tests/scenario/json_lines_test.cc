// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/schedule_files/json_lines.h"

#include <string>

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(JsonLinesTest, APlaceHasItsLineOrThatAroundIt) {
  const JsonLines lines(R"({
  "name": "x",
  "gpus": [
    {"id": 0, "blocks": [
      {"ops": []},
      {"ops": [[1],
               [2, 3]]}
    ]},
    {"id": 1}
  ]
})");
  EXPECT_EQ(lines.LineOf(""), 1);
  EXPECT_EQ(lines.LineOf("name"), 2);
  EXPECT_EQ(lines.LineOf("gpus"), 3);
  EXPECT_EQ(lines.LineOf("gpus[0]"), 4);
  EXPECT_EQ(lines.LineOf("gpus[0].blocks[1].ops[1]"), 7);
  EXPECT_EQ(lines.LineOf("gpus[1]"), 9);
  EXPECT_EQ(lines.LineOf("gpus[1].id"), 9) << "a value is in its object";
  EXPECT_EQ(lines.LineOf("gpus[0].blocks[9].ops"), 4) << "no such element";
  EXPECT_EQ(lines.LineOf("none"), 1);
}

TEST(JsonLinesTest, OtherTextsAndDeepOnesAreNoTrouble) {
  EXPECT_EQ(JsonLines("no JSON").LineOf("gpus"), 1);
  EXPECT_EQ(JsonLines("\n{\"gpus\": [\n{\"id\"").LineOf("gpus[0]"), 3);
  const JsonLines deep(std::string(1'000'000, '['));
  EXPECT_EQ(deep.LineOf("[0][0]"), 1);
  std::string many = "{\"a\":\n[";
  for (int i = 0; i < 1'500'000; ++i) many += "{},";
  EXPECT_EQ(JsonLines(many + "{}]}").LineOf("a[1400000]"), 2) << "that of the list";
  const std::string key(100'000, 'k');
  EXPECT_EQ(JsonLines("{\"" + key + "\":\n[{},{}]}").LineOf(key), 1);
}

}  // namespace
}  // namespace railyard
