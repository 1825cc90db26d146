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

  // Opens all connections of the program, in the order in which its lanes claim them, and sets the
  // class of costs that their receivers would learn from their senders. obstacle() is set if that
  // class is not unique, if switches combine data, or if a network connection consists of more than
  // one queue pair.
  void Open(const RankProgram& program);
  // Returns why several processes cannot run the programs; empty if they can.
  const std::string& obstacle() const { return obstacle_; }
  // Returns whether all connections of the programs would also be opened when a program starts. If
  // not, connections have other numbers than in a run that opens them when it needs them.
  bool is_in_order() const { return is_in_order_; }

 private:
  void OpenLane(const RankProgram& program, const LaneId& lane);
  void OpenSide(const RankProgram& program, const LaneId& lane, RankIndex from, RankIndex to,
                ConnectionUse use);

  ConnectionTable& table_;
  std::unordered_map<ConnectionId, uint8_t> costs_;  // of network connections
  std::string obstacle_;
  bool is_in_order_ = true;
};

}  // namespace railyard
