// SPDX-License-Identifier: GPL-2.0-only
// Computes keys of runs: runs with equal keys have equal outcomes.
#pragma once

#include <string>
#include <vector>

#include "simulator/study/study.h"

namespace railyard {

// Returns one key per run, 32 hexadecimal digits: the 128-bit XXH3 digest of this program, of the
// scenario, of the run's settings, of whether it is paired with a fault-free run, and of the
// content of every file that is named by a text in the scenario, in a file that it names, or in a
// setting (relative to the file or to the current directory). A file that
// happens to have the name of some other text only makes keys differ more often than necessary.
// Throws EnvironmentError if a file cannot be read.
std::vector<std::string> RunKeys(const Study& study, const std::vector<StudyRun>& runs);

// Returns the key of the fault-free run that a run of the scenario with these settings
// ("FIELD=VALUE") is paired with: a digest as above, but without settings of `faults`.
std::string FaultFreeKey(const std::string& scenario, const std::vector<std::string>& sets);

// Returns the FaultFreeKey() of each run; empty where no other run of the study has the same
// fault-free run, or where the study has none.
std::vector<std::string> SharedFaultFreeKeys(const Study& study, const std::vector<StudyRun>& runs);

}  // namespace railyard
