// SPDX-License-Identifier: GPL-2.0-only
// Ends a job that does not restart. Only ranks with a failing queue pair receive an error; all
// others hang until they are ended.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "analysis/result/run_result.h"
#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/replay/engine/replay_engine.h"
#include "simulator/scenario/schema/restart_settings.h"
#include "simulator/units/job_ids.h"

namespace railyard {

// Returns when the last rank of a job with an error at `error_ps` will have been ended, as far as
// known now. `last_begin_ps` is the latest start of the job's running calls; 0 if none runs.
int64_t AllRanksGonePs(RestartSettings::Detection detection, int64_t error_ps,
                       int64_t last_begin_ps);

class JobAborter {
 public:
  // All references must outlive this.
  JobAborter(RestartSettings::Detection detection, ReplayEngine& replay,
             FabricSimulatorImpl& engine, PartIndex part)
      : detection_(detection), replay_(replay), engine_(engine), part_(part) {}

  // Reports an error to a rank now. The first error ends the job, after detection.
  void OnRankError(GlobalRank rank, const std::string& why);
  bool has_error() const { return !ranks_.empty(); }
  // Returns true while ranks hang that will be ended.
  bool is_waiting() const { return has_error() && result_.detection_ps == 0; }
  const AbortResult& result() const { return result_; }

 private:
  void TryToAbort();
  std::string Explain(size_t hung) const;

  RestartSettings::Detection detection_;
  ReplayEngine& replay_;
  FabricSimulatorImpl& engine_;
  PartIndex part_;              // of the job
  std::string why_;             // of the first error
  std::set<GlobalRank> ranks_;  // with an error
  AbortResult result_;
};

}  // namespace railyard
