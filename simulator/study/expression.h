// SPDX-License-Identifier: GPL-2.0-only
// Evaluates arithmetic expressions over the axes of a study. They consist of + - * / % ^,
// comparisons, and, or, not, parentheses, min, max, floor, ceil, round, sqrt and log2; texts in
// single quotes compare with == and !=. A comparison is 1 or 0; every number except 0 is true.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace railyard {

// Returns the number if the whole `text` is one, e.g. "-1.5e3"; nullopt for other texts, infinities
// and NaN.
std::optional<double> FiniteNumberOf(std::string_view text);

// Describes a mistake in an expression, or the reason why it has no value at a point.
struct ExpressionError {
  size_t character = 0;  // of the expression, from 1
  std::string what;
};

class Expression {
 public:
  // This limits the text of an expression, and thereby the depth of its evaluation.
  static constexpr size_t kBytesMax = 1'000;

  // Parses an expression. Precondition of all other members: it was parsed without an error.
  static std::variant<Expression, ExpressionError> Parse(std::string_view text);

  // Returns the axes that it names, by first appearance.
  const std::vector<std::string>& names() const { return names_; }
  // Evaluates it with the values of names(). The result is finite.
  std::variant<double, ExpressionError> Evaluate(std::span<const std::string> values) const;

 private:
  friend class ExpressionParser;
  friend class ExpressionEvaluation;

  enum class Kind : uint8_t {
    kNumber,
    kText,
    kName,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kModulo,
    kPower,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kEqual,
    kUnequal,
    kAnd,
    kOr,
    kNot,
    kNegate,
    kMin,
    kMax,
    kFloor,
    kCeil,
    kRound,
    kSqrt,
    kLog2,
  };
  struct Node {
    Kind kind = Kind::kNumber;
    size_t character = 0;
    double number = 0;
    size_t index = 0;  // into texts_ or names_
    size_t left = 0;   // into nodes_, before this one
    size_t right = 0;
  };

  std::vector<Node> nodes_;  // the last one is the whole
  std::vector<std::string> texts_;
  std::vector<std::string> names_;
};

}  // namespace railyard
