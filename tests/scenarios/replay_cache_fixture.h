// SPDX-License-Identifier: GPL-2.0-only
// The fixture of tests that compare runs with the replay cache and without it.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "tests/run/program.h"

namespace railyard::testing {

inline constexpr int64_t kPsPerUs = 1'000'000;

class ReplayCacheTest : public ProgramTest {
 protected:
  static std::string Results(const EndedRun& run) {
    std::string text = run.Text("status") + " " + run.Text("fingerprint") + "\n";
    for (const char* file : {"/collectives.csv", "/pairs.csv", "/links.csv", "/traffic.csv"}) {
      text += ReadText(run.directory + file);
    }
    for (const char* figure :
         {"packets", "packet_hops", "control_hops", "transport.cnp", "transport.ecn_marked",
          "transport.pfc_pause_ps", "conservation.injected_bytes", "conservation.delivered_bytes",
          "conservation.replicated_bytes", "conservation.reduced_bytes"}) {
      text += fmt::format("{} {}\n", figure, run.Integer(figure));
    }
    return text;
  }
};

}  // namespace railyard::testing
