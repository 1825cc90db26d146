// SPDX-License-Identifier: GPL-2.0-only
// Computes the errors of simulated times by machine, collective, protocol and size, and the spread
// of measured times between machines of one kind. No simulator of that kind of machine can have
// errors below the spread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/measure/fidelity.h"
#include "simulator/measure/other_times.h"

namespace railyard {

// Holds the errors of one simulator in one class of rows.
struct Score {
  std::string simulator;
  uint64_t rows = 0;
  double median_abs_error = 0;
  double p90_abs_error = 0;
  double median_error = 0;  // below 0: too fast
};

// Holds the rows of one kind of machine, collective, protocol and class of sizes.
struct ScoreCell {
  std::string machine;  // as it is modelled
  std::string collective;
  std::string protocol;  // as replayed: "LL128"; "P2P" of Sends and Recvs
  std::string sizes;     // "1 MiB to 16 MiB"
  uint64_t bytes_min = 0;
  std::vector<Score> scores;  // this simulator's first
  uint64_t sources = 0;       // tables that the rows come from
  // The median, over the sizes that several tables have, of (greatest time / least time) - 1.
  std::optional<double> spread;
};

// Holds one simulated time and the measured one.
struct ScoredRow {
  const FidelityRow* row = nullptr;
  std::string machine;
  std::string protocol;
  std::string simulator;
  double simulated_us = 0;
  std::optional<double> spread;  // of its size between tables
};

struct Scoreboard {
  std::vector<ScoreCell> cells;  // by machine, collective, protocol and size
  std::vector<ScoredRow> rows;   // by machine, collective, size and simulator
  std::vector<Score> totals;     // of all rows, by simulator; this one's first
};

inline constexpr const char* kThisSimulator = "railyard";

// Computes the scoreboard. `result` must outlive it. The times in `others` are numbered as
// FidelityRow::input is.
Scoreboard MakeScoreboard(const FidelityResult& result, const std::vector<OtherTime>& others);

}  // namespace railyard
