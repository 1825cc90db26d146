// SPDX-License-Identifier: GPL-2.0-only
// Small jobs on which random links fail at random times, and what holds of every one of them.
#pragma once

#include <cstdint>
#include <string>

#include "tests/run/program.h"

namespace railyard::testing {

// Returns the text of a scenario, which depends on the seed alone.
std::string RandomScenario(uint32_t seed);

class RandomScenarioTest : public ProgramTest {
 protected:
  // Runs the scenario of a seed with and without its faults.
  void Check(uint32_t seed);
};

}  // namespace railyard::testing
