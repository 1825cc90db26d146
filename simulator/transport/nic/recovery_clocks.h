// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/state/field_table.h"
#include "simulator/transport/contract/transport.h"
#include "simulator/transport/nic/queue_id.h"

namespace railyard {

// Holds the time that a sending queue's recoveries have taken, and the start of the current phase
// of a recovery (-1 if no recovery is in progress).
struct RecoveryClock {
  RecoveryTimes times;
  int64_t since_ps = -1;

  static constexpr auto Fields() {
    return FieldTable("recovery", field::Fixed("times", &RecoveryClock::times),
                      field::Idle("since_ps", &RecoveryClock::since_ps, -1));
  }
};

// Measures how long queues take to recover from losses, in phases: until a timer expires, and from
// a retransmission to the next or to the repair. Instants are in ps and never decrease.
class RecoveryClocks {
 public:
  void AddQueue() { clocks_.emplace_back(); }

  // Begins a recovery at a loss, unless one is in progress.
  void Begin(QueueId queue, int64_t now_ps) {
    if (clocks_[queue].since_ps < 0) clocks_[queue].since_ps = now_ps;
  }
  // Ends a phase of the current recovery, which counts as `part`, and begins the next one. Has no
  // effect if no recovery is in progress.
  void Clock(QueueId queue, int64_t RecoveryTimes::*part, int64_t now_ps) {
    RecoveryClock& clock = clocks_[queue];
    if (clock.since_ps < 0) return;
    clock.times.*part += now_ps - clock.since_ps;
    clock.since_ps = now_ps;
  }
  // Checks that the queue is in no recovery.
  void Check(QueueId queue, StateArchive& archive) { CheckFields(clocks_[queue], queue, archive); }
  // Ends the recovery. The time since its last phase is not counted.
  void End(QueueId queue) { clocks_[queue].since_ps = -1; }

  // Returns the times of all phases that have ended.
  RecoveryTimes TimesOf(QueueId queue) const { return clocks_[queue].times; }
  // Returns the same and, if a recovery is in progress, its current phase up to now, as a
  // retransmission.
  RecoveryTimes TimesUntil(QueueId queue, int64_t now_ps) const {
    const RecoveryClock& clock = clocks_[queue];
    RecoveryTimes times = clock.times;
    if (clock.since_ps >= 0) times.retransmission_ps += now_ps - clock.since_ps;
    return times;
  }

 private:
  std::vector<RecoveryClock> clocks_;  // by queue
};

}  // namespace railyard
