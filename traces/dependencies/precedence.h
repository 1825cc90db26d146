// SPDX-License-Identifier: GPL-2.0-only
// Knows which operations of a rank follow which others. Operations stand on lanes, and those of a
// lane run one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace railyard {

class Precedence {
 public:
  uint32_t NewLane();
  // Adds the next operation of `lane`, which also follows the operations `after`. Returns its
  // number: operations are numbered from 0.
  uint32_t Add(uint32_t lane, const std::vector<uint32_t>& after);

  // Returns whether `operation` is known to follow `earlier`. It may follow without that being
  // known where operations follow, on average, more than kEntriesPerOperation other lanes.
  bool Follows(uint32_t operation, uint32_t earlier) const;
  // Returns those of the operations that none of the others is known to follow, the latest first.
  std::vector<uint32_t> Latest(std::vector<uint32_t> operations);
  // Returns the lowest lane whose last operation one of `after` follows; nullopt if there is none
  // among the first kLanesTriedMax that they follow.
  std::optional<uint32_t> LaneBehind(const std::vector<uint32_t>& after) const;
  bool IsLastOfLane(uint32_t operation) const {
    return last_of_lane_[operations_[operation].lane] == operation;
  }
  std::optional<uint32_t> LastOfLane(uint32_t lane) const { return last_of_lane_[lane]; }
  uint32_t LaneOf(uint32_t operation) const { return operations_[operation].lane; }
  size_t lane_count() const { return last_of_lane_.size(); }

  static constexpr size_t kLanesTriedMax = 512;
  // They bound the memory: 1 KiB for each operation and 8 MiB beside.
  static constexpr size_t kEntriesPerOperation = 128;
  static constexpr size_t kEntriesBeside = 1U << 20;

 private:
  // The latest operation of a lane that an operation follows.
  struct LaneEnd {
    uint32_t lane = 0;
    uint32_t operation = 0;
  };
  // Holds one entry per lane, ascending, and is shared by operations that follow the same ones on
  // other lanes. Operations of one lane follow each other by their numbers, so that the list has no
  // entry for the operation's own lane.
  using Followed = std::shared_ptr<const std::vector<LaneEnd>>;
  struct Operation {
    uint32_t lane = 0;
    Followed followed;  // nullptr: nothing on other lanes
  };

  // Merges two lists.
  static std::vector<LaneEnd> LatestOfBoth(const std::vector<LaneEnd>& a,
                                           const std::vector<LaneEnd>& b);
  Followed FollowedBehind(const std::vector<uint32_t>& before);

  std::vector<Operation> operations_;
  std::vector<std::optional<uint32_t>> last_of_lane_;
  size_t entries_ = 0;  // in all lists
  // The arguments and the result of the last call of FollowedBehind, for siblings follow the same.
  std::vector<uint32_t> last_before_;
  Followed last_followed_;
  // The arguments and the result of the last call of Latest().
  std::vector<uint32_t> last_operations_;
  std::vector<uint32_t> last_latest_;
};

}  // namespace railyard
