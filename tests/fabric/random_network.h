// SPDX-License-Identifier: GPL-2.0-only
// A fabric and a load drawn from a seed: NICs on switches, switches joined at random, small
// buffers, bursts of packets of all kinds, links that fail, slow down and lose. Everything is a
// function of the seed, so that two networks differ in nothing but what the test varies.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "simulator/fabric/fabric_network.h"

namespace railyard::testing {

struct RandomOutcome {
  uint64_t trajectory_hash = 0;
  std::vector<uint64_t> figures;  // counters of the network and its links, but for the form's own
  uint64_t general_hops = 0;
  uint64_t sent = 0;
  uint64_t xoff_frames = 0;
  uint64_t ecn_marked = 0;
  uint64_t dropped_for_buffers = 0;
  uint64_t holds = 0;
  uint64_t replicated_bytes = 0;
  uint64_t reduced_bytes = 0;
};

struct RandomCase {
  uint64_t seed = 1;
  PortForm form = PortForm::kShort;
  FlowControl flow_control = FlowControl::kPfc;
};

// Runs it to its end, checking conservation on the way and at the end.
RandomOutcome RunRandomCase(const RandomCase& random_case);

}  // namespace railyard::testing
