// SPDX-License-Identifier: GPL-2.0-only
// Opens the connections of programs before they run, so that several processes have the same
// connections with the same numbers.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/lanes/lane.h"

namespace railyard {

class ConnectionOpening {
 public:
  explicit ConnectionOpening(ConnectionTable& table) : table_(table) {}

  // Opens all connections of the program, in the order in which its lanes claim them, and sets what
  // their receivers would learn from their senders. If that cannot be known, or a connection is not
  // one of its two ends alone, obstacle() says so.
  void Open(const RankProgram& program);
  const std::string& obstacle() const { return obstacle_; }
  // Returns whether each program's connections are opened when it starts. If not, connections have
  // other numbers than in a run that opens them when it needs them.
  bool is_in_order() const { return is_in_order_; }

 private:
  void OpenLane(const RankProgram& program, const LaneId& lane);
  void OpenSide(const RankProgram& program, const LaneId& lane, RankIndex from, RankIndex to,
                ConnectionUse use);

  ConnectionTable& table_;
  std::unordered_map<uint32_t, uint8_t> costs_;  // by network connection
  std::string obstacle_;
  bool is_in_order_ = true;
};

}  // namespace railyard
