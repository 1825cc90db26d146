// SPDX-License-Identifier: GPL-2.0-only
// Collects the nodes of a job's Chakra files into a graph, rank by rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/chakra/chakra_node.h"
#include "traces/chakra/chakra_node_ids.h"
#include "traces/dependencies/dependency_graph.h"
#include "traces/trace/import_report.h"

namespace railyard {

// Holds global ranks by the group's name, as in ASTRA-sim's --comm-group-configuration.
using ChakraGroups = std::map<std::string, std::vector<uint32_t>, std::less<>>;

class ChakraGraph {
 public:
  // Both must outlive this.
  ChakraGraph(ImportReport& report, Diagnostics& diagnostics)
      : report_(report), diagnostics_(diagnostics) {}

  // Begins a rank; the nodes that follow are from report.files[file].
  void BeginRank(uint32_t rank, uint32_t file);
  // Returns false after an error.
  bool Add(const ChakraNode& node);
  // Ends the rank after its last node. Returns false after an error.
  bool EndRank();

  bool HasRank(uint32_t rank) const { return ranks_.contains(rank); }
  // rank_count() returns the number of ranks that were begun, highest_rank() the highest number of
  // these ranks and of their peers.
  size_t rank_count() const { return ranks_.size(); }
  uint32_t highest_rank() const { return highest_rank_; }
  bool has_messages() const { return has_messages_; }
  uint32_t lowest_rank() const { return ranks_.begin()->first; }
  uint64_t missing_dependencies() const { return missing_dependencies_; }
  // Nodes whose durations are longer than a graph has; they take the longest.
  uint64_t shortened_durations() const { return shortened_durations_; }
  bool took_ctrl_deps() const { return took_ctrl_deps_; }
  bool took_groups_from_use() const { return took_groups_from_use_; }
  // Returns true if a group without a list has all ranks, on the word of those that have a file.
  bool took_groups_from_one() const { return took_groups_from_one_; }

  // Returns the graph of `ranks` ranks. Calls are dropped if their communicator is not stated or
  // contradicts `groups`. Ranks without a file have no operations.
  DependencyGraph Take(uint32_t ranks, const ChakraGroups& groups);

 private:
  // Describes a call whose operation lacks only its communicator and the fields that depend on its
  // size.
  struct Call {
    uint32_t operation = 0;
    std::string group;
    uint64_t root = 0;
    bool leaves_out_dimension = false;
  };
  // Holds the ids on which each node depends, as concatenated lists.
  struct NodeDependencies {
    std::vector<uint64_t> ids;
    std::vector<size_t> ends;  // by node
    void Add(const std::vector<uint64_t>& more) {
      ids.insert(ids.end(), more.begin(), more.end());
      ends.push_back(ids.size());
    }
  };
  struct Rank {
    std::vector<GraphOperation> operations;
    std::vector<Call> collectives;
  };

  bool Error(const std::string& what);
  bool IsTwice(uint64_t id);
  void AddCall(const ChakraNode& node, GraphOperation& operation);
  // Fills in the call's operation, or returns why the call cannot be imported.
  std::optional<CallDropReason> FillCall(const ChakraNode& node, GraphOperation& operation);
  void Place(GlobalRank rank, Call& call, uint32_t ranks, const ChakraGroups& groups);
  std::optional<uint32_t> CommunicatorOf(const std::string& group, uint32_t ranks,
                                         const ChakraGroups& groups);

  ImportReport& report_;
  Diagnostics& diagnostics_;
  std::map<uint32_t, Rank> ranks_;
  uint32_t highest_rank_ = 0;
  bool has_messages_ = false;
  uint64_t missing_dependencies_ = 0;
  uint64_t shortened_durations_ = 0;
  bool took_ctrl_deps_ = false;
  bool took_groups_from_use_ = false;
  bool took_groups_from_one_ = false;
  std::map<std::string, std::vector<uint32_t>, std::less<>> users_;  // by group: ranks of its files
  // These belong to the rank that is being read.
  Rank* rank_ = nullptr;
  uint32_t rank_number_ = 0;
  uint32_t file_ = 0;
  ChakraNodeIds ids_;
  NodeDependencies data_deps_;
  NodeDependencies ctrl_deps_;
  // These belong to the graph that is being made.
  std::vector<TraceCommunicator> communicators_;
  std::map<std::string, uint32_t, std::less<>> communicator_of_;
};

}  // namespace railyard
