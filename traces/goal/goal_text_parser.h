// SPDX-License-Identifier: GPL-2.0-only
// Parses GOAL's text, the language of LogGOPSim's schedules, line by line, as its txt2bin accepts
// it (Hoefler, Siebert, Lumsdaine: "Group Operation Assembly Language", ICPP 2009).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/goal/goal_schedule.h"

namespace railyard {

class GoalTextParser {
 public:
  // `file` is its name in findings. Both arguments must outlive this.
  GoalTextParser(const std::string& file, Diagnostics& diagnostics)
      : file_(file), diagnostics_(diagnostics) {}

  // Reads the next line, without its end. Returns false after a line that is not GOAL, which is an
  // error.
  bool ReadLine(std::string_view line);
  // Ends the schedule after the last line; nullopt after an error.
  std::optional<GoalSchedule> Finish();

 private:
  struct Token {
    std::string_view text;
    int column = 0;
  };
  struct Dependency {
    uint32_t operation = 0;
    uint32_t on = 0;
    bool on_start = false;  // irequires: may begin when the other has begun
  };

  bool Error(int column, std::string what);
  bool Split(std::string_view line);
  // Each of these reads one kind of statement at tokens_[at_].
  bool ReadStatement();
  bool ReadRankCount();
  bool BeginRank();
  bool EndRank();
  bool ReadOperation(std::optional<Token> label);
  bool ReadMessage(GoalOperation& operation);
  bool ReadPlace();
  bool ReadDependency(Token label);

  bool IsAtEnd() const { return at_ == tokens_.size(); }
  const Token* Next() { return IsAtEnd() ? nullptr : &tokens_[at_++]; }
  bool Expect(std::string_view text);
  // Reads a number of at most `max`, or "-1" as UINT32_MAX if that is allowed.
  bool ReadNumber(uint64_t max, bool any_allowed, uint64_t& number);
  std::optional<uint32_t> Find(Token label);

  const std::string& file_;
  Diagnostics& diagnostics_;
  GoalSchedule schedule_;
  std::vector<bool> is_defined_;  // by rank
  std::optional<uint32_t> rank_;  // the rank of these operations
  std::map<std::string, uint32_t, std::less<>> labels_;
  std::vector<Dependency> dependencies_;
  std::vector<Token> tokens_;  // of the line
  size_t at_ = 0;
  bool in_comment_ = false;
  int line_ = 0;
};

}  // namespace railyard
