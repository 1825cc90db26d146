// SPDX-License-Identifier: GPL-2.0-only
// Registers the owners of state that affects the future of a simulation. A snapshot visits all of
// them, and a simulation can be replayed from a snapshot only as far as every owner permits.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "simulator/state/state_archive.h"

namespace railyard {

class StateOwner {
 public:
  // Returns e.g. "queue pairs", "the threads of sockets".
  virtual std::string state_name() const = 0;
  // Visits the state that affects the future of a quiescent simulation, and its counters.
  virtual void Visit(StateArchive& archive) = 0;
  // Returns why nothing that involves this state can be replayed; empty if it can.
  virtual std::string WhyNeverReplayed() const { return {}; }

 protected:
  ~StateOwner() = default;
};

// Describes an owner that prevents the replay of a run, or of the collectives that involve it.
struct ReplayObstacle {
  std::string owner;
  std::string why;
  bool operator==(const ReplayObstacle&) const = default;
};

class StateRegistry {
 public:
  // Adds an owner, which must outlive this. Owners are visited in the order of their additions.
  void Add(StateOwner& owner) { owners_.push_back(&owner); }
  bool Has(const StateOwner* owner) const {
    return std::ranges::find(owners_, owner) != owners_.end();
  }
  // Registers a part that has state but no owner to visit it. Nothing is replayed then.
  void AddUnknown(std::string name) {
    unknown_.push_back({.owner = std::move(name), .why = "it registers no state"});
  }

  // Visits the state of all owners.
  void Visit(StateArchive& archive) const {
    archive.Require(unknown_.empty());
    for (StateOwner* const owner : owners_) {
      if (archive.is_naming()) archive.BeginOwner(owner->state_name());
      owner->Visit(archive);
    }
  }
  // Returns the parts without an owner, and the owners that prevent a replay.
  std::vector<ReplayObstacle> Obstacles() const {
    std::vector<ReplayObstacle> obstacles = unknown_;
    for (const StateOwner* const owner : owners_) {
      std::string why = owner->WhyNeverReplayed();
      if (!why.empty()) {
        obstacles.push_back({.owner = owner->state_name(), .why = std::move(why)});
      }
    }
    return obstacles;
  }

 private:
  std::vector<StateOwner*> owners_;
  std::vector<ReplayObstacle> unknown_;
};

}  // namespace railyard
