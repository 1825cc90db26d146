// SPDX-License-Identifier: GPL-2.0-only
// Finds the global rank of each process if a capture states only ranks of communicators.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace railyard {

struct SeenCommunicator {
  uint32_t size = 0;
  std::map<uint32_t, std::string> process_of_rank;
};

struct ProcessPlacement {
  std::map<std::string, uint32_t> rank_of_process;                     // global
  std::map<std::string, std::vector<uint32_t>> ranks_of_communicator;  // empty: unknown
  std::vector<std::string> assumed;                                    // sentences
};

// A process gets its rank in the largest communicator that it is in, because that one has all
// ranks. Members of another communicator are inferred from the processes that are known, if their
// ranks are one stride apart.
ProcessPlacement PlaceProcesses(const std::map<std::string, SeenCommunicator>& communicators);

}  // namespace railyard
