// SPDX-License-Identifier: GPL-2.0-only
// Holds the used fields of a node of a Chakra execution trace (MLCommons Chakra,
// schema/protobuf/et_def.proto), and the numbers of that schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/trace/trace.h"

namespace railyard {

enum class ChakraNodeType : uint8_t {
  kInvalid = 0,
  kMetadata = 1,
  kMemoryLoad = 2,
  kMemoryStore = 3,
  kCompute = 4,
  kSend = 5,
  kRecv = 6,
  kCollective = 7,
};

struct ChakraNode {
  uint64_t id = 0;
  std::string name = {};
  uint64_t type = 0;  // ChakraNodeType, or a type of later schemas
  std::vector<uint64_t> data_deps = {};
  std::vector<uint64_t> ctrl_deps = {};
  uint64_t duration_us = 0;
  std::optional<uint64_t> comm_type = {};
  std::optional<uint64_t> comm_size = {};  // bytes of a rank's send buffer
  std::optional<uint64_t> comm_src = {};
  std::optional<uint64_t> comm_dst = {};
  uint64_t comm_tag = 0;
  uint64_t root = 0;
  std::string group = {};             // pg_name; empty for all ranks
  bool leaves_out_dimension = false;  // involved_dim names some dimensions of a topology, not all
  bool is_cpu_op = false;

  // Clears the fields, but keeps their memory for the next node.
  void Clear() {
    name.clear();
    data_deps.clear();
    ctrl_deps.clear();
    group.clear();
    *this = {.name = std::move(name),
             .data_deps = std::move(data_deps),
             .ctrl_deps = std::move(ctrl_deps),
             .group = std::move(group)};
  }
  bool is(ChakraNodeType other) const { return type == static_cast<uint64_t>(other); }
  bool IsCall() const {
    return is(ChakraNodeType::kSend) || is(ChakraNodeType::kRecv) ||
           is(ChakraNodeType::kCollective);
  }
};

// Returns the kind of a CollectiveCommType of the schema; nullopt for a type that moves no data (a
// barrier) or is unknown.
std::optional<CollectiveKind> ChakraKindOf(uint64_t comm_type);
// Returns the kind's number. Precondition: the kind is not Send, Recv or Compute, which have none.
uint64_t ChakraCommType(CollectiveKind kind);

}  // namespace railyard
