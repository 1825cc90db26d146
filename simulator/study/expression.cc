// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/expression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/units/number.h"

namespace railyard {
namespace {

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<double> FiniteNumberOf(std::string_view text) {
  const auto number = NumberOf<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

// Parses by recursive descent; the first mistake is thrown.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  Expression Parse() {
    if (text_.size() > Expression::kBytesMax) {
      Fail(0, fmt::format("longer than {} B", Expression::kBytesMax));
    }
    ParseOr();
    SkipSpace();
    if (at_ < text_.size()) Fail(at_, "expected an operator, or the end");
    return std::move(expression_);
  }

 private:
  using Kind = Expression::Kind;
  static constexpr int kDepthMax = 50;

  [[noreturn]] static void Fail(size_t at, std::string what) {
    throw ExpressionError{.character = at + 1, .what = std::move(what)};
  }

  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool TakeSymbol(std::string_view symbol) {
    SkipSpace();
    if (!text_.substr(at_).starts_with(symbol)) return false;
    // "<" is not the beginning of "<=".
    if ((symbol == "<" || symbol == ">") && text_.substr(at_ + 1).starts_with("=")) return false;
    at_ += symbol.size();
    return true;
  }
  std::string_view PeekName() {
    SkipSpace();
    size_t end = at_;
    if (end == text_.size() || !IsNameStart(text_[end])) return {};
    while (end < text_.size() &&
           (IsNameStart(text_[end]) || IsDigit(text_[end]) || text_[end] == '.')) {
      ++end;
    }
    return text_.substr(at_, end - at_);
  }
  bool TakeWord(std::string_view word) {
    if (PeekName() != word) return false;
    at_ += word.size();
    return true;
  }

  size_t Add(Expression::Node node) {
    expression_.nodes_.push_back(node);
    return expression_.nodes_.size() - 1;
  }
  size_t AddBinary(Kind kind, size_t at, size_t left, size_t right) {
    return Add({.kind = kind, .character = at + 1, .left = left, .right = right});
  }
  size_t AddUnary(Kind kind, size_t at, size_t operand) {
    return AddBinary(kind, at, operand, operand);
  }

  size_t ParseOr() {
    size_t left = ParseAnd();
    while (TakeWord("or")) {
      const size_t at = at_ - 2;
      left = AddBinary(Kind::kOr, at, left, ParseAnd());
    }
    return left;
  }

  size_t ParseAnd() {
    size_t left = ParseNot();
    while (TakeWord("and")) {
      const size_t at = at_ - 3;
      left = AddBinary(Kind::kAnd, at, left, ParseNot());
    }
    return left;
  }

  size_t ParseNot() {
    if (!TakeWord("not")) return ParseComparison();
    const size_t at = at_ - 3;
    const Nesting nesting(*this);
    return AddUnary(Kind::kNot, at, ParseNot());
  }

  size_t ParseComparison() {
    const size_t left = ParseSum();
    constexpr std::array<std::pair<std::string_view, Kind>, 6> kComparisons = {{
        {"<=", Kind::kLessEqual},
        {">=", Kind::kGreaterEqual},
        {"==", Kind::kEqual},
        {"!=", Kind::kUnequal},
        {"<", Kind::kLess},
        {">", Kind::kGreater},
    }};
    for (const auto& [symbol, kind] : kComparisons) {
      if (!TakeSymbol(symbol)) continue;
      const size_t at = at_ - symbol.size();
      return AddBinary(kind, at, left, ParseSum());
    }
    return left;
  }

  size_t ParseSum() {
    size_t left = ParseProduct();
    while (true) {
      const bool is_sum = TakeSymbol("+");
      if (!is_sum && !TakeSymbol("-")) return left;
      const size_t at = at_ - 1;
      left = AddBinary(is_sum ? Kind::kAdd : Kind::kSubtract, at, left, ParseProduct());
    }
  }

  size_t ParseProduct() {
    size_t left = ParseSigned();
    while (true) {
      Kind kind = Kind::kMultiply;
      if (TakeSymbol("/")) {
        kind = Kind::kDivide;
      } else if (TakeSymbol("%")) {
        kind = Kind::kModulo;
      } else if (!TakeSymbol("*")) {
        return left;
      }
      const size_t at = at_ - 1;
      left = AddBinary(kind, at, left, ParseSigned());
    }
  }

  // "-2^2" is -4, and "2^-1" is 0.5.
  size_t ParseSigned() {
    if (!TakeSymbol("-")) return ParsePower();
    const size_t at = at_ - 1;
    const Nesting nesting(*this);
    return AddUnary(Kind::kNegate, at, ParseSigned());
  }

  size_t ParsePower() {
    const size_t base = ParsePrimary();
    if (!TakeSymbol("^")) return base;
    const size_t at = at_ - 1;
    const Nesting nesting(*this);
    return AddBinary(Kind::kPower, at, base, ParseSigned());
  }

  size_t ParsePrimary() {
    const Nesting nesting(*this);
    if (TakeSymbol("(")) {
      const size_t inner = ParseOr();
      if (!TakeSymbol(")")) Fail(at_, "expected \")\"");
      return inner;
    }
    if (TakeSymbol("'")) return ParseText();
    if (const std::string_view name = PeekName(); !name.empty()) return ParseNamed(name);
    return ParseNumber();
  }

  size_t ParseText() {
    const size_t begin = at_;
    const size_t end = text_.find('\'', begin);
    if (end == std::string_view::npos) Fail(begin - 1, "expected another ' behind the text");
    at_ = end + 1;
    expression_.texts_.emplace_back(text_.substr(begin, end - begin));
    return Add({.kind = Kind::kText, .character = begin, .index = expression_.texts_.size() - 1});
  }

  size_t ParseNumber() {
    double number = 0;
    const char* const begin = text_.data() + at_;
    const bool is_number = at_ < text_.size() && (IsDigit(*begin) || *begin == '.');
    const auto [stop, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (!is_number || error != std::errc()) {
      Fail(at_, "expected a number, an axis, a text in ' or \"(\"");
    }
    const size_t at = std::exchange(at_, static_cast<size_t>(stop - text_.data()));
    return Add({.kind = Kind::kNumber, .character = at + 1, .number = number});
  }

  size_t ParseNamed(std::string_view name) {
    const size_t at = std::exchange(at_, at_ + name.size());
    if (name == "and" || name == "or" || name == "not") {
      Fail(at, fmt::format("expected an operand, not \"{}\"", name));
    }
    if (TakeSymbol("(")) return ParseCall(name, at);
    auto& names = expression_.names_;
    const auto found = std::ranges::find(names, name);
    const auto index = static_cast<size_t>(found - names.begin());
    if (found == names.end()) names.emplace_back(name);
    return Add({.kind = Kind::kName, .character = at + 1, .index = index});
  }

  size_t ParseCall(std::string_view name, size_t at) {
    constexpr std::array<std::pair<std::string_view, Kind>, 7> kFunctions = {{
        {"min", Kind::kMin},
        {"max", Kind::kMax},
        {"floor", Kind::kFloor},
        {"ceil", Kind::kCeil},
        {"round", Kind::kRound},
        {"sqrt", Kind::kSqrt},
        {"log2", Kind::kLog2},
    }};
    const auto* const function = std::ranges::find(
        kFunctions, name,
        [](const std::pair<std::string_view, Kind>& entry) { return entry.first; });
    if (function == kFunctions.end()) {
      Fail(at,
           fmt::format("there is no function {} (expected min, max, floor, ceil, round, sqrt or "
                       "log2)",
                       Quote(std::string(name))));
    }
    const Kind kind = function->second;
    const bool has_many = kind == Kind::kMin || kind == Kind::kMax;
    size_t value = ParseOr();
    if (!has_many) value = AddUnary(kind, at, value);
    bool is_one = true;
    while (has_many && TakeSymbol(",")) {
      value = AddBinary(kind, at, value, ParseOr());
      is_one = false;
    }
    if (has_many && is_one) Fail(at_, "expected \",\" and another number");
    if (!TakeSymbol(")")) Fail(at_, "expected \")\"");
    return value;
  }

  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDepthMax) Fail(parser_.at_, "nested too deeply");
    }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    ~Nesting() { --parser_.depth_; }

   private:
    ExpressionParser& parser_;
  };

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  Expression expression_;
};

class ExpressionEvaluation {
 public:
  ExpressionEvaluation(const Expression& expression, std::span<const std::string> values)
      : expression_(expression), values_(values) {}

  double Number(size_t index) const {
    const Expression::Node& node = expression_.nodes_[index];
    switch (node.kind) {
      case Kind::kNumber:
        return node.number;
      case Kind::kText:
      case Kind::kName:
        return NumberOfText(node);
      case Kind::kAnd:
        return Number(node.left) != 0 && Number(node.right) != 0 ? 1 : 0;
      case Kind::kOr:
        return Number(node.left) != 0 || Number(node.right) != 0 ? 1 : 0;
      case Kind::kNot:
        return Number(node.left) == 0 ? 1 : 0;
      case Kind::kEqual:
        return AreEqual(node) ? 1 : 0;
      case Kind::kUnequal:
        return AreEqual(node) ? 0 : 1;
      default:
        return OfNumbers(node);
    }
  }

 private:
  using Kind = Expression::Kind;

  double OfNumbers(const Expression::Node& node) const {
    const double left = Number(node.left);
    // A single operand is both.
    const double right = node.right == node.left ? left : Number(node.right);
    return Finite(node, Arithmetic(node, left, right));
  }

  static double Arithmetic(const Expression::Node& node, double left, double right) {
    switch (node.kind) {
      case Kind::kAdd:
        return left + right;
      case Kind::kSubtract:
        return left - right;
      case Kind::kMultiply:
        return left * right;
      case Kind::kDivide:
        return left / right;
      case Kind::kModulo:
        return std::fmod(left, right);
      case Kind::kPower:
        return std::pow(left, right);
      case Kind::kLess:
        return left < right ? 1 : 0;
      case Kind::kLessEqual:
        return left <= right ? 1 : 0;
      case Kind::kGreater:
        return left > right ? 1 : 0;
      case Kind::kGreaterEqual:
        return left >= right ? 1 : 0;
      case Kind::kNegate:
        return -left;
      case Kind::kMin:
        return std::min(left, right);
      case Kind::kMax:
        return std::max(left, right);
      case Kind::kFloor:
        return std::floor(left);
      case Kind::kCeil:
        return std::ceil(left);
      case Kind::kRound:
        return std::round(left);
      case Kind::kSqrt:
        return std::sqrt(left);
      default:
        return std::log2(left);
    }
  }

  static double Finite(const Expression::Node& node, double number) {
    if (std::isfinite(number)) return number;
    throw ExpressionError{.character = node.character,
                          .what =
                              "the result is no finite number (division by zero, overflow, or "
                              "outside of a function's domain)"};
  }

  // The text of a text or of an axis's value; nullopt for other operands.
  std::optional<std::string_view> TextOf(size_t index) const {
    const Expression::Node& node = expression_.nodes_[index];
    if (node.kind == Kind::kText) return expression_.texts_[node.index];
    if (node.kind == Kind::kName) return values_[node.index];
    return std::nullopt;
  }

  double NumberOfText(const Expression::Node& node) const {
    const std::string& text =
        node.kind == Kind::kText ? expression_.texts_[node.index] : values_[node.index];
    if (const auto number = FiniteNumberOf(text)) return *number;
    throw ExpressionError{.character = node.character,
                          .what = fmt::format("{} is no number", Quote(text))};
  }

  // As numbers if both are, else as texts.
  bool AreEqual(const Expression::Node& node) const {
    const auto left = TextOf(node.left);
    const auto right = TextOf(node.right);
    const bool are_texts = (left && !FiniteNumberOf(*left)) || (right && !FiniteNumberOf(*right));
    if (!are_texts) return Number(node.left) == Number(node.right);
    return left && right && *left == *right;
  }

  const Expression& expression_;
  std::span<const std::string> values_;
};

std::variant<Expression, ExpressionError> Expression::Parse(std::string_view text) {
  try {
    return ExpressionParser(text).Parse();
  } catch (ExpressionError& error) {
    return std::move(error);
  }
}

std::variant<double, ExpressionError> Expression::Evaluate(
    std::span<const std::string> values) const {
  try {
    return ExpressionEvaluation(*this, values).Number(nodes_.size() - 1);
  } catch (ExpressionError& error) {
    return std::move(error);
  }
}

}  // namespace railyard
