// SPDX-License-Identifier: GPL-2.0-only
// Chooses the devices of a message as Amazon's plug-in for NCCL does (aws-ofi-nccl,
// src/nccl_ofi_scheduler.cpp), which calls the NICs of a GPU rails. All connections of a GPU take
// its rails in turn. Small messages use one rail each, and only large ones are divided.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simulator/state/field_table.h"
#include "simulator/state/state_archive.h"
#include "simulator/units/divide_up.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

struct RailSettings {
  // A message of more bytes is divided.
  uint64_t stripe_bytes = 128u << 10;
  // If true, it is divided over all rails. If false, it has a stripe for each begun multiple of
  // this size, as long as that number divides the number of rails.
  bool takes_all_rails = false;
};

// Holds the rail of a GPU's next message.
struct RailTurn {
  uint32_t next_rail = 0;

  static constexpr auto Fields() {
    return FieldTable("turn of a GPU's rails", field::Value("next_rail", &RailTurn::next_rail));
  }
};

class RailScheduler {
 public:
  explicit RailScheduler(const RailSettings& settings) : settings_(settings) {}

  struct Schedule {
    uint32_t first_rail = 0;
    uint32_t stripes = 1;  // on consecutive rails
  };
  // Returns the rails of the next message that a GPU with so many rails sends.
  Schedule Next(GpuIndex source_gpu, uint64_t bytes, uint32_t rails) {
    if (source_gpu >= turns_.size()) turns_.resize(source_gpu + 1);
    uint32_t& next_rail = turns_[source_gpu].next_rail;
    const Schedule schedule = {.first_rail = next_rail % rails, .stripes = Stripes(bytes, rails)};
    next_rail = (schedule.first_rail + schedule.stripes) % rails;
    return schedule;
  }

  // Returns the number of stripes of a message.
  uint32_t Stripes(uint64_t bytes, uint32_t rails) const {
    if (bytes <= settings_.stripe_bytes) return 1;
    if (settings_.takes_all_rails) return rails;
    auto stripes =
        static_cast<uint32_t>(std::min<uint64_t>(rails, DivideUp(bytes, settings_.stripe_bytes)));
    while (rails % stripes != 0) --stripes;
    return stripes;
  }

  void Visit(StateArchive& archive) { VisitFields(turns_, archive); }

 private:
  RailSettings settings_;
  std::vector<RailTurn> turns_;  // by GPU
};

}  // namespace railyard
