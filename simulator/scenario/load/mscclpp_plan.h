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
#include "traces/trace/trace.h"

namespace railyard {

enum class MscclppBuffer : uint8_t { kInput, kOutput, kScratch };

// Describes adjacent chunks of a buffer, of the GPU itself or of another one.
struct MscclppChunks {
  uint32_t gpu = 0;
  MscclppBuffer buffer = MscclppBuffer::kInput;
  uint32_t index = 0;
  uint32_t size = 1;
};

// Identifies the number-th channel of a type between two GPUs, by the GPU at this end.
struct MscclppChannel {
  uint32_t peer = 0;
  bool is_port = false;  // through a proxy; else by direct loads and stores
  uint32_t number = 0;
};

enum class MscclppKind : uint8_t {
  kNothing,
  kMove,    // each source to the target with its index, or the only source to all
  kReduce,  // all sources are reduced to one value, which all targets get
  kSignal,
  kWait,
  kBarrier,  // between thread blocks of the GPU
  kAcquire,  // acquires semaphores of the GPU
  kRelease,
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
  std::string place;                          // "gpus[0].threadblocks[1].ops[2]", for findings
};

struct MscclppPlan {
  CollectiveKind kind = CollectiveKind::kAllReduce;
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
