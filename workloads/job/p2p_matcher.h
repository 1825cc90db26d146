// SPDX-License-Identifier: GPL-2.0-only
// Matches the Send and Recv calls of a trace's ranks and joins the groups that they connect into
// collectives.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"
#include "workloads/job/job.h"

namespace railyard {

class P2pMatcher {
 public:
  // All arguments must outlive this. Every group first gets a separate collective in `collectives`;
  // its calls go to `calls`.
  P2pMatcher(const Trace& trace, std::vector<JobCollective>& collectives,
             std::vector<P2pCall>& calls, Diagnostics& diagnostics);

  // Reserves memory for the given numbers of groups, Sends and Recvs.
  void Reserve(size_t groups, size_t sends, size_t recvs);
  // Adds a Send or Recv of `rank` on the communicator with that index. The calls of one ncclGroup
  // on one communicator are one operation at the position and on the stream of its first call,
  // after the computation of all its calls. If the call begins a new operation, it is appended to
  // `operations`, and its collective to `called`. Returns the operation of the call, an index into
  // `operations`.
  uint32_t Add(const TraceOperation& operation, CommunicatorIndex communicator, RankIndex rank,
               std::vector<JobOperation>& operations, std::vector<CollectiveIndex>& called);
  // Completes a global rank and gives its operations their calls.
  void FinishRank(std::vector<JobOperation>& operations);
  // Matches the k-th Send from a to b with the k-th Recv of b from a and merges the collectives of
  // groups that communicate: remap[i] of the result is the collective into which group collective i
  // was merged (i for others). A Send or Recv without a partner is an error, and so are different
  // sizes.
  std::vector<uint32_t> Match();

 private:
  // Describes the calls of a rank that NCCL issues together.
  struct Group {
    CollectiveIndex collective{};
    CommunicatorIndex communicator{};
    RankIndex rank{};
    uint64_t sent_bytes = 0;       // to others
    uint64_t received_bytes = 0;   // from others
    int64_t measured_ps = 0;       // its longest call; 0 if unknown
    uint64_t exchanged_bytes = 0;  // bytes sent to each other rank, if `exchange`
    bool exchange = false;
    bool sends_to_itself = false;
    uint32_t all_to_all = 0;  // as in TraceOperation
  };
  struct Endpoint {
    CommunicatorIndex communicator{};
    RankIndex source{};
    RankIndex target{};
    uint32_t group = 0;
    uint64_t bytes = 0;
    uint32_t source_file = 0;
    uint32_t source_line = 0;
  };
  struct PendingCall {
    uint32_t group = 0;
    P2pCall call;
  };
  uint32_t Keep(std::span<const PendingCall> list);
  void Summarize(Group& group, const P2pCall* calls, uint32_t call_count);
  void Unmatched(const Endpoint& endpoint, bool is_send, size_t index);
  void Join(const Endpoint& send, const Endpoint& recv);
  void JoinAllToAlls();
  void Merge(uint32_t group, uint32_t other);
  uint32_t FindRoot(uint32_t group);
  void DescribeCollectives();

  const Trace& trace_;
  std::vector<JobCollective>& collectives_;
  std::vector<P2pCall>& calls_;
  Diagnostics& diagnostics_;
  std::vector<Group> groups_;
  std::vector<uint32_t> parent_;  // union-find over groups
  std::vector<Endpoint> sends_;
  std::vector<Endpoint> recvs_;
  size_t unmatched_count_ = 0;
  // These are the state of the rank that is being added.
  uint32_t first_group_ = 0;
  std::vector<PendingCall> pending_;
  std::vector<uint32_t> group_operations_;              // index into its operations
  std::unordered_map<uint64_t, uint32_t> open_groups_;  // by (ncclGroup, communicator)
  std::vector<uint32_t> seen_;  // last group that sent to a communicator rank
  // Locates the lists in calls_ by a hash of their contents.
  struct KeptList {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  std::unordered_multimap<uint64_t, KeptList> kept_;
};

}  // namespace railyard
