// SPDX-License-Identifier: GPL-2.0-only
// The owners of state that decides what comes in a simulation. A snapshot is a walk over all of
// them, and a simulation can be replayed from a snapshot only as far as every owner says so.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "simulator/state/state_archive.h"

namespace railyard {

class StateOwner {
 public:
  // "queue pairs", "the threads of sockets".
  virtual std::string state_name() const = 0;
  // Walks what decides what comes once nothing is under way, and what was counted.
  virtual void Visit(StateArchive& archive) = 0;
  // Why nothing in which this state takes part can be replayed; empty: it can.
  virtual std::string WhyNeverReplayed() const { return {}; }

 protected:
  ~StateOwner() = default;
};

// What keeps a run, or what of it involves an owner, from being replayed.
struct ReplayObstacle {
  std::string owner;
  std::string why;
  bool operator==(const ReplayObstacle&) const = default;
};

class StateRegistry {
 public:
  // The order is that of the walk. The owner must outlive this.
  void Add(StateOwner& owner) { owners_.push_back(&owner); }
  // Something has state and no owner to show it: nothing is replayed.
  void AddUnknown(std::string name) {
    unknown_.push_back({.owner = std::move(name), .why = "it registers no state"});
  }

  void Visit(StateArchive& archive) const {
    archive.Require(unknown_.empty());
    for (StateOwner* const owner : owners_) {
      if (archive.is_naming()) archive.BeginOwner(owner->state_name());
      owner->Visit(archive);
    }
  }
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
