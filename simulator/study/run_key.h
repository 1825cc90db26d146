// SPDX-License-Identifier: GPL-2.0-only
// Keys of a study's runs: equal keys mean that all that decides the outcome is equal.
#pragma once

#include <string>
#include <vector>

#include "simulator/study/study.h"

namespace railyard {

// One key for each run, 32 hexadecimal digits: the 128-bit XXH3 digest of this program, of the
// scenario, of what the run sets, and of the content of every file that a text in the scenario, in
// a file that it names, or in a setting names (relative to the file, patterns expanded). A file
// that happens to have the name of some other text only makes keys differ more often than they
// must. Throws EnvironmentError where a file cannot be read.
std::vector<std::string> RunKeys(const Study& study, const std::vector<StudyRun>& runs);

}  // namespace railyard
