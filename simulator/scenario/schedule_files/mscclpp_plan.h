// SPDX-License-Identifier: GPL-2.0-only
// Parses execution plans of MSCCL++ (the JSON that its language writes and its executor runs:
// ExecutionPlan in src/core/executor/execution_plan.cc of mscclpp 0.8) into operations whose
// buffers and channels are resolved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/units/rank_index.h"
#include "traces/trace/trace.h"

namespace railyard {

// The mailbox, of programs of MSCCL, has a slot for each message to the GPU.
enum class MscclppBuffer : uint8_t { kInput, kOutput, kScratch, kMailbox };

// Describes adjacent chunks of a buffer, of the GPU itself or of another one.
struct MscclppChunks {
  RankIndex gpu{0};
  MscclppBuffer buffer = MscclppBuffer::kInput;
  uint32_t index = 0;
  uint32_t size = 1;
};

// Identifies the number-th channel of a type between two GPUs, by the GPU at this end.
struct MscclppChannel {
  RankIndex peer{0};
  bool is_port = false;  // through a proxy; else by direct loads and stores
  uint32_t number = 0;
};

enum class MscclppKind : uint8_t {
  kNothing,
  kMove,     // each source to the target with its index, or the only source to all
  kReceive,  // waits until the source is written; it is then the target's
  kReduce,   // all sources are reduced to one value, which all targets get
  kSignal,
  kWait,
  kBarrier,  // between thread blocks of the GPU
  kAcquire,  // acquires semaphores of the GPU
  kRelease,
};

// Names an operation in findings: by its line, or by its place in JSON.
struct MscclppPlace {
  int line = 0;
  std::string name = {};  // "gpus[0].threadblocks[1].ops[2]"
};

struct MscclppOperation {
  MscclppKind kind = MscclppKind::kNothing;
  bool waits_for_data = false;  // its sources are packets, which have flags
  bool signals = false;         // when it has ended
  std::vector<MscclppChunks> sources = {};
  std::vector<MscclppChunks> targets = {};
  std::vector<MscclppChannel> channels = {};  // on which it signals
  std::vector<uint32_t> numbers = {};         // of the barrier or semaphores
  uint32_t block_count = 0;                   // number of thread blocks at the barrier
  // A reduction reads these instead of its first source if they are written.
  std::optional<MscclppChunks> instead_of_first = {};
  MscclppPlace place = {};
};

struct MscclppPlan {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Protocol protocol = Protocol::kSimple;
  bool is_in_place = false;
  // The number of chunks of the vector, or of each rank's block of AllGather and ReduceScatter.
  uint32_t chunk_count = 1;
  // The operations by GPU and thread block.
  std::vector<std::vector<std::vector<MscclppOperation>>> gpus;
  std::vector<std::vector<int64_t>> semaphores;  // initial values, by GPU
};

// Returns nullopt with findings at the place in the JSON. A pipeline is replaced by its operations,
// once.
std::optional<MscclppPlan> ParseMscclppPlan(const std::string& path, const std::string& text,
                                            Diagnostics& diagnostics);

}  // namespace railyard
