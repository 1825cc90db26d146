// SPDX-License-Identifier: GPL-2.0-only
// Finds the global rank of each process if a capture states only ranks of communicators.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace railyard {

struct SeenCommunicator {
  uint32_t size = 0;
  std::map<uint32_t, std::string> process_of_rank;
};

struct ProcessPlacement {
  std::map<std::string, uint32_t> rank_of_process;                     // global
  std::map<std::string, std::vector<uint32_t>> ranks_of_communicator;  // empty if unknown
  std::vector<std::string> assumed;                                    // sentences
};

// Returns the processes that are seen as several ranks of a communicator, because each drives
// several GPUs, and makes each of their ranks in each communicator a process by its RankOfProcess()
// in `communicators`.
std::set<std::string> SeparateRanks(std::map<std::string, SeenCommunicator>& communicators);
std::string RankOfProcess(std::string_view process, uint32_t rank, std::string_view communicator);

// Places the processes. A process's global rank is its rank in its largest communicator, which is
// assumed to have all ranks; if there are more processes than that has ranks, it is the process's
// place in the natural order of their names, provided that these `are_named`: each name stands for
// one process in all communicators. Members of another communicator that are not seen are inferred
// from the known processes if their ranks have a constant stride.
ProcessPlacement PlaceProcesses(const std::map<std::string, SeenCommunicator>& communicators,
                                bool are_named);

}  // namespace railyard
