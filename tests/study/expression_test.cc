// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/expression.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace railyard {
namespace {

// The value where servers = 8, rate = 2.5 and kind = "ring".
std::variant<double, ExpressionError> ValueOf(const std::string& text) {
  const auto parsed = Expression::Parse(text);
  if (const auto* const error = std::get_if<ExpressionError>(&parsed)) return *error;
  const auto& expression = std::get<Expression>(parsed);
  std::vector<std::string> values;
  for (const std::string& name : expression.names()) {
    values.emplace_back(name == "servers" ? "8" : name == "rate" ? "2.5" : "ring");
  }
  return expression.Evaluate(values);
}

TEST(ExpressionTest, ArithmeticHasItsUsualPrecedence) {
  const std::vector<std::pair<std::string, double>> cases = {
      {"1 + 2 * 3", 7},
      {"(1 + 2) * 3", 9},
      {"10 - 4 - 3", 3},
      {"2 ^ 3 ^ 2", 512},
      {"-2 ^ 2", -4},
      {"2 ^ -1", 0.5},
      {"7 % 4 + 1", 4},
      {"servers * rate", 20},
      {"servers / 4 / 2", 1},
      {"min(servers, 3, 5)", 3},
      {"max(1, rate)", 2.5},
      {"floor(rate) + ceil(rate) + round(2.4)", 7},
      {"sqrt(2 * servers)", 4},
      {"log2(servers)", 3},
      {"1.5e3", 1500},
      {"--servers", 8},
      {std::string(40, '-') + "1", 1},
  };
  for (const auto& [text, value] : cases) {
    const auto result = ValueOf(text);
    ASSERT_TRUE(std::holds_alternative<double>(result)) << text;
    EXPECT_DOUBLE_EQ(std::get<double>(result), value) << text;
  }
}

TEST(ExpressionTest, ComparisonsAreOneOrZero) {
  const std::vector<std::pair<std::string, double>> cases = {
      {"servers == 8.0", 1},
      {"servers != 8", 0},
      {"servers <= 8 and rate > 2", 1},
      {"servers < 8 or rate >= 2.5", 1},
      {"not servers < 8 and 1", 1},
      {"kind == 'ring'", 1},
      {"kind != 'tree'", 1},
      {"kind == 3", 0},
      {"kind == 'ring' and servers > 8", 0},
      {"(servers > 4) + (rate > 4)", 1},
      // The operand that decides is evaluated first, and the rest no longer.
      {"servers == 8 or 1 / 0 > 1", 1},
      {"servers == 7 and kind > 1", 0},
  };
  for (const auto& [text, value] : cases) {
    const auto result = ValueOf(text);
    ASSERT_TRUE(std::holds_alternative<double>(result))
        << text << ": " << std::get<ExpressionError>(result).what;
    EXPECT_EQ(std::get<double>(result), value) << text;
  }
}

TEST(ExpressionTest, MistakesHaveTheirCharacter) {
  const std::vector<std::pair<std::string, size_t>> cases = {
      {"", 1},
      {"1 +", 4},
      {"1 2", 3},
      {"(1", 3},
      {"1)", 2},
      {"sin(1)", 1},
      {"2 * max(1)", 10},
      {"'ring", 1},
      {"1 & 2", 3},
      {"and", 1},
      {"floor(1, 2)", 8},
      {"1e999", 1},
      {"servers $", 9},
      {"1 < 2 < 3", 7},
      {std::string(1'001, '1'), 1},
      {"1 + kind", 5},
      {"1 / (8 - servers)", 3},
      {"sqrt(0 - servers)", 1},
      {"log2(0)", 1},
      {"2 * 10 ^ 400", 8},
  };
  for (const auto& [text, character] : cases) {
    const auto result = ValueOf(text);
    ASSERT_TRUE(std::holds_alternative<ExpressionError>(result)) << text;
    EXPECT_EQ(std::get<ExpressionError>(result).character, character) << text;
  }
}

// Neither the stack nor time grows with what a hostile text nests.
TEST(ExpressionTest, NestingIsLimited) {
  for (const std::string& text : {std::string(500, '(') + "1", std::string(999, '-') + "1",
                                  std::string("not not not not not not not not not not not not "
                                              "not not not not not not not not not not not not "
                                              "not not not not not not not not not not not not "
                                              "not not not not not not not not not not not not "
                                              "not not not not not 1")}) {
    const auto result = ValueOf(text);
    ASSERT_TRUE(std::holds_alternative<ExpressionError>(result)) << text;
    EXPECT_EQ(std::get<ExpressionError>(result).what, "nested too deeply");
  }
}

TEST(ExpressionTest, ANumberIsAWholeText) {
  EXPECT_EQ(FiniteNumberOf("1e-4"), 1e-4);
  EXPECT_EQ(FiniteNumberOf("-3"), -3);
  for (const char* const text : {"", "64MiB", "inf", "nan", "1 ", "0x10"}) {
    EXPECT_EQ(FiniteNumberOf(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace railyard
