// SPDX-License-Identifier: GPL-2.0-only
// Finds the nodes of a rank by their ids. Files of millions of nodes mostly have ids that increase
// by one, which need no search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace railyard {

class ChakraNodeIds {
 public:
  // Appends the id of the next node. Whenever there are twice as many nodes as at the last time,
  // returns an id that was added twice, if there is one: a file that repeats one id ends early.
  std::optional<uint64_t> Add(uint64_t id);
  // Prepares Find, after the last node. Returns an id that was added twice, if there is one.
  std::optional<uint64_t> Sort();
  // Returns the number of the node with this id, counted from 0 in the order of Add.
  std::optional<uint32_t> Find(uint64_t id) const;
  void Clear() {
    places_.clear();
    check_at_ = kFirstCheck;
  }

 private:
  static constexpr size_t kFirstCheck = size_t{1} << 16;

  size_t check_at_ = kFirstCheck;                      // number of nodes
  std::vector<std::pair<uint64_t, uint32_t>> places_;  // id and number, by id after Sort
};

}  // namespace railyard
