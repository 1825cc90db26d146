// SPDX-License-Identifier: GPL-2.0-only
// Parses SimAI's workload text, as AICB writes it and ASTRA-sim 1 read it: the parallelism, the
// number of layers, and for each layer the computation and the call of its forward pass, of its
// input gradients and of its weight gradients.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/aicb/aicb_job.h"

namespace railyard {

struct AicbWorkload {
  struct Phase {
    uint64_t compute_ns = 0;
    // kCompute stands for no call. The name's suffix selects the group among those that fit the
    // phase.
    CollectiveKind kind = CollectiveKind::kCompute;
    AicbGroup group = AicbGroup::kTensor;
    uint64_t bytes = 0;
  };
  struct Layer {
    Phase forward;
    Phase input_gradient;
    Phase weight_gradient;
    uint64_t update_ns = 0;
    uint32_t line = 0;
  };
  bool is_micro = false;  // MICRO: a list of calls, not a model
  uint32_t tensor = 1;
  uint32_t pipeline = 1;
  uint32_t expert = 1;
  uint32_t ranks = 0;        // 0 if not stated
  uint64_t stage_bytes = 0;  // that a stage sends to the next for a micro-batch; 0 if not stated
  uint64_t layers_stated = 0;
  std::vector<Layer> layers;
};

// Returns true if such a file may begin with this line.
bool IsAicbWorkloadHead(std::string_view line);

class AicbWorkloadParser {
 public:
  AicbWorkloadParser(const std::string& file, Diagnostics& diagnostics)
      : file_(file), diagnostics_(diagnostics) {}
  // Returns false after an error.
  bool ReadLine(std::string_view line);
  std::optional<AicbWorkload> Finish();

 private:
  bool Error(std::string what);
  bool ReadHead(const std::vector<std::string_view>& words);
  bool ReadLayer(const std::vector<std::string_view>& words);
  bool ReadPhase(const std::vector<std::string_view>& words, size_t at, AicbGroup usual,
                 AicbWorkload::Phase& phase);

  const std::string& file_;
  Diagnostics& diagnostics_;
  AicbWorkload workload_;
  int line_ = 0;
  int content_lines_ = 0;
};

// Returns the calls of a rank in the order in which SimAI makes them: forward through the layers,
// then back through them, with calls of weight gradients in parallel to the computation that
// follows.
std::vector<AicbCall> CallsOf(const AicbWorkload& workload);

}  // namespace railyard
