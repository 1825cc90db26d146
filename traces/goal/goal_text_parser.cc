// SPDX-License-Identifier: GPL-2.0-only
#include "traces/goal/goal_text_parser.h"

#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/units/number.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsLabel(std::string_view text) {
  if (text.empty() || !IsLetter(text[0])) return false;
  for (const char c : text) {
    if (!IsLetter(c) && !IsDigit(c) && c != '_') return false;
  }
  return true;
}

}  // namespace

bool GoalTextParser::Error(int column, std::string what) {
  diagnostics_.Error({.file = file_, .line = line_, .column = column}, "", std::move(what));
  return false;
}

// Words, numbers and ":", "{", "}", without comments.
bool GoalTextParser::Split(std::string_view line) {
  tokens_.clear();
  at_ = 0;
  for (size_t i = 0; i < line.size();) {
    if (in_comment_) {
      const size_t end = line.find("*/", i);
      if (end == std::string_view::npos) return true;
      in_comment_ = false;
      i = end + 2;
      continue;
    }
    const char c = line[i];
    if (IsSpace(c)) {
      ++i;
      continue;
    }
    if (line.substr(i).starts_with("//")) return true;
    if (line.substr(i).starts_with("/*")) {
      in_comment_ = true;
      i += 2;
      continue;
    }
    const size_t begin = i;
    if (c == ':' || c == '{' || c == '}') {
      ++i;
    } else if (IsLetter(c)) {
      while (i < line.size() && (IsLetter(line[i]) || IsDigit(line[i]) || line[i] == '_')) ++i;
    } else if (IsDigit(c) || c == '-') {
      ++i;
      while (i < line.size() && IsDigit(line[i])) ++i;
    } else {
      return Error(static_cast<int>(begin) + 1,
                   fmt::format("{} is not of GOAL (expected num_ranks, rank, send, recv, calc, "
                               "requires or a label)",
                               Quote(line.substr(begin, 1))));
    }
    tokens_.push_back({line.substr(begin, i - begin), static_cast<int>(begin) + 1});
  }
  return true;
}

bool GoalTextParser::ReadLine(std::string_view line) {
  ++line_;
  if (!Split(line)) return false;
  while (!IsAtEnd()) {
    if (!ReadStatement()) return false;
  }
  return true;
}

bool GoalTextParser::ReadStatement() {
  const Token token = *Next();
  if (token.text == "num_ranks") return ReadRankCount();
  if (token.text == "rank") return BeginRank();
  if (token.text == "}") return EndRank();
  if (!rank_) {
    return Error(token.column, fmt::format("{} stands outside of a rank (expected rank N {{)",
                                           Quote(token.text)));
  }
  if (token.text == "send" || token.text == "recv" || token.text == "calc") {
    --at_;
    return ReadOperation(std::nullopt);
  }
  if (!IsLabel(token.text)) {
    return Error(token.column, fmt::format("{} is no statement (expected send, recv, calc, a label "
                                           "or a closing brace)",
                                           Quote(token.text)));
  }
  if (!IsAtEnd() && tokens_[at_].text == ":") {
    ++at_;
    return ReadOperation(token);
  }
  return ReadDependency(token);
}

bool GoalTextParser::Expect(std::string_view text) {
  const int column = IsAtEnd() ? 0 : tokens_[at_].column;
  const Token* const token = Next();
  if (token != nullptr && token->text == text) return true;
  return Error(column, fmt::format("{} is missing (expected it {})", text,
                                   token == nullptr ? std::string("before the line ends")
                                                    : "instead of " + Quote(token->text)));
}

bool GoalTextParser::ReadNumber(uint64_t max, bool any_allowed, uint64_t& number) {
  const Token* const token = Next();
  if (token == nullptr) return Error(0, "a number is missing (expected it before the line ends)");
  if (any_allowed && token->text == "-1") {
    number = kGoalAny;
    return true;
  }
  if (ParseNumber(token->text, number) && number <= max) return true;
  return Error(token->column, fmt::format("{} is out of range (expected a number up to {})",
                                          Quote(token->text), max));
}

bool GoalTextParser::ReadRankCount() {
  const int column = tokens_[at_ - 1].column;
  if (!is_defined_.empty()) return Error(column, "num_ranks is said twice (expected it once)");
  uint64_t ranks = 0;
  if (!ReadNumber(kTraceRanksMax, false, ranks)) return false;
  if (ranks == 0) return Error(column, "num_ranks is 0 (expected one or more)");
  schedule_.ranks.resize(ranks);
  is_defined_.resize(ranks, false);
  return true;
}

bool GoalTextParser::BeginRank() {
  const int column = tokens_[at_ - 1].column;
  if (rank_) return Error(column, "the rank before has no end (expected a closing brace)");
  if (is_defined_.empty()) return Error(column, "num_ranks is missing (expected it before ranks)");
  uint64_t rank = 0;
  if (!ReadNumber(is_defined_.size() - 1, false, rank) || !Expect("{")) return false;
  if (is_defined_[rank]) {
    return Error(column, fmt::format("rank {} is there twice (expected each rank once)", rank));
  }
  is_defined_[rank] = true;
  rank_ = static_cast<uint32_t>(rank);
  return true;
}

bool GoalTextParser::EndRank() {
  if (!rank_) return Error(tokens_[at_ - 1].column, "closes no rank (expected rank N { before)");
  GoalStarts starts(schedule_.ranks[*rank_]);
  for (const Dependency& dependency : dependencies_) {
    if (dependency.on_start) starts.Make(dependency.on);
  }
  for (const Dependency& dependency : dependencies_) {
    if (dependency.on_start) {
      starts.WaitForStart(dependency.operation, dependency.on);
    } else {
      starts.WaitForEnd(dependency.operation, dependency.on);
    }
  }
  dependencies_.clear();
  labels_.clear();
  rank_.reset();
  return true;
}

bool GoalTextParser::ReadOperation(std::optional<Token> label) {
  std::vector<GoalOperation>& operations = schedule_.ranks[*rank_];
  if (label) {
    const bool is_new =
        labels_.emplace(label->text, static_cast<uint32_t>(operations.size())).second;
    if (!is_new) {
      return Error(label->column, fmt::format("label {} is there twice (expected one operation)",
                                              Quote(label->text)));
    }
  }
  GoalOperation operation;
  operation.line = static_cast<uint32_t>(line_);
  const int column = IsAtEnd() ? 0 : tokens_[at_].column;
  const Token* const kind = Next();
  if (kind != nullptr && kind->text == "calc") {
    if (!ReadNumber(UINT64_MAX, false, operation.size)) return false;
  } else if (kind != nullptr && (kind->text == "send" || kind->text == "recv")) {
    operation.kind = kind->text == "send" ? GoalKind::kSend : GoalKind::kRecv;
    if (!ReadMessage(operation)) return false;
  } else {
    return Error(column, "no operation follows the label (expected send, recv or calc)");
  }
  while (!IsAtEnd() && (tokens_[at_].text == "cpu" || tokens_[at_].text == "nic")) {
    if (!ReadPlace()) return false;
  }
  operations.push_back(std::move(operation));
  if (IsAtEnd() || tokens_[at_].text == "}") return true;
  return Error(
      tokens_[at_].column,
      fmt::format("{} follows the operation (expected the line's end)", Quote(tokens_[at_].text)));
}

bool GoalTextParser::ReadMessage(GoalOperation& operation) {
  const bool is_send = operation.kind == GoalKind::kSend;
  uint64_t peer = 0;
  if (!ReadNumber(UINT64_MAX, false, operation.size) || !Expect("b") ||
      !Expect(is_send ? "to" : "from") || !ReadNumber(is_defined_.size() - 1, !is_send, peer)) {
    return false;
  }
  operation.peer = static_cast<uint32_t>(peer);
  if (IsAtEnd() || tokens_[at_].text != "tag") return true;
  ++at_;
  uint64_t tag = 0;
  if (!ReadNumber(UINT64_MAX, true, tag)) return false;
  operation.tag = static_cast<uint32_t>(tag);  // modulo 2^32, as LogGOPSim's txt2bin has it
  return true;
}

// By which CPU or NIC: a number that nothing here depends on.
bool GoalTextParser::ReadPlace() {
  ++at_;
  uint64_t number = 0;
  return ReadNumber(UINT64_MAX, false, number);
}

std::optional<uint32_t> GoalTextParser::Find(Token label) {
  const auto at = labels_.find(label.text);
  if (at != labels_.end()) return at->second;
  Error(label.column, fmt::format("label {} is not there (expected that of an operation above)",
                                  Quote(label.text)));
  return std::nullopt;
}

bool GoalTextParser::ReadDependency(Token label) {
  const std::optional<uint32_t> operation = Find(label);
  if (!operation) return false;
  const int column = IsAtEnd() ? 0 : tokens_[at_].column;
  const Token* const word = Next();
  if (word == nullptr || (word->text != "requires" && word->text != "irequires")) {
    return Error(column, "no word follows the label (expected \":\", requires or irequires)");
  }
  const bool on_start = word->text == "irequires";
  const Token* const other = Next();
  if (other == nullptr) return Error(0, "a label is missing (expected it before the line ends)");
  const std::optional<uint32_t> on = Find(*other);
  if (!on) return false;
  if (*on == *operation) {
    return Error(other->column, "an operation cannot wait for itself (expected another label)");
  }
  dependencies_.push_back({.operation = *operation, .on = *on, .on_start = on_start});
  return true;
}

std::optional<GoalSchedule> GoalTextParser::Finish() {
  if (rank_ || in_comment_) {
    ++line_;
    Error(0, fmt::format("the file ends within a {} (expected its end)",
                         in_comment_ ? "comment" : "rank"));
    return std::nullopt;
  }
  if (is_defined_.empty()) {
    Error(0, "num_ranks is missing (expected it at the beginning)");
    return std::nullopt;
  }
  return std::move(schedule_);
}

}  // namespace railyard
