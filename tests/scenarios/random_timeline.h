// SPDX-License-Identifier: GPL-2.0-only
// Random fault timelines over random small fabrics and jobs, and what holds of every one of them:
// it ends, with an explanation that is true; every byte is accounted for; and without its faults
// nothing is stretched.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/run/program.h"

namespace railyard::testing {

// The scenario of a seed; the same everywhere.
std::string RandomTimeline(uint32_t seed);

class RandomTimelineTest : public ProgramTest {
 protected:
  // Runs the scenario of a seed with and without its faults.
  void Check(uint32_t seed);
  // Over all that were checked: by status, and by what became of jobs and connections.
  std::map<std::string, int64_t> seen_;
};

}  // namespace railyard::testing
