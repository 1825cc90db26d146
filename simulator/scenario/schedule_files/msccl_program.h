// SPDX-License-Identifier: GPL-2.0-only
// Parses an algorithm in MSCCL's XML (msccl-tools, msccl-scheduler) into steps of thread blocks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"

namespace railyard {

struct MscclSlot {
  char buffer = 'i';    // i, o or s
  int64_t offset = -1;  // in chunks; -1 where the step does not use it
  bool operator<(const MscclSlot& other) const {
    return std::tie(buffer, offset) < std::tie(other.buffer, other.offset);
  }
};

// Describes what a step does with each of its `count` chunks: rrcs receives, reduces, keeps and
// sends; s sends; cpy keeps its source at its target; re reduces both there; nop does nothing.
struct MscclStep {
  bool receives = false;
  bool sends = false;
  bool reduces = false;
  bool keeps = false;
  MscclSlot source;
  MscclSlot target;
  int64_t count = 1;
  int64_t after_block = -1;  // it waits until this thread block of the GPU has ended `after_step`
  int64_t after_step = -1;
  int line = 0;

  bool is_local() const { return !receives && !sends; }
  bool ReadsSource() const { return reduces || (!receives && (sends || keeps)); }
  // rrc and rrcs add to their source (MSCCL's recvReduceCopy), where msccl-tools write the sender's
  // slot: they add to their target if anything is there.
  bool ReadsTarget() const { return receives && reduces && keeps; }
};

struct MscclBlock {
  int64_t send = -1;  // the peers
  int64_t recv = -1;
  int64_t channel = 0;
  std::vector<MscclStep> steps;
};

struct MscclProgram {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Protocol protocol = Protocol::kSimple;
  bool is_in_place = true;  // the buffers of an AllToAll are then one, i
  // Chunks of the larger of input and output; as many as divide all counts and offsets are one.
  int64_t chunks = 1;
  std::vector<std::map<int64_t, MscclBlock>> gpus;  // thread blocks by id

  // Returns the number of chunks of the vector, or of each rank's block.
  uint32_t ChunksOfBlock() const;
};

// Returns Simple for an empty name, and nullopt for one that MSCCL and MSCCL++ do not have.
std::optional<Protocol> MscclProtocolNamed(std::string_view name);

// Returns nullopt with findings at their lines. Each peer, thread block and step that the program
// names exists; whether it ends is not checked. XML entities are not expanded, and other files are
// not opened.
std::optional<MscclProgram> ParseMscclProgram(const std::string& path, const std::string& text,
                                              Diagnostics& diagnostics);

}  // namespace railyard
