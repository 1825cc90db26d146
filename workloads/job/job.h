// SPDX-License-Identifier: GPL-2.0-only
// Represents a trace that is ready to run: the calls of its ranks are matched into collectives, and
// every mismatch is a located error.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/units/job_ids.h"
#include "simulator/units/rank_index.h"
#include "traces/trace/trace.h"

namespace railyard {

// Describes one Send or Recv of a rank within a point-to-point operation.
struct P2pCall {
  bool is_send = false;
  RankIndex peer{0};  // may be the rank itself (a local copy, no traffic)
  uint64_t bytes = 0;
  ExpertCall expert{};
  bool operator==(const P2pCall&) const = default;
};

// Describes one collective as the network sees it: the calls of all its ranks together. Groups of
// Send/Recv whose calls match each other are one collective: ALLTOALL if every rank of the
// communicator sends the same bytes to every other, each in one group, else SENDRECV (kind kSend).
// Two ranks that swap data are an ALLTOALL only if they send to themselves as well. In a SENDRECV a
// rank may have several operations (e.g. two groups that match one group of another rank). Groups
// that the trace marks as one AllToAllv are one SENDRECV, whether or not all its pairs exchange
// data.
struct JobCollective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  CommunicatorIndex communicator{};
  uint64_t count = 0;  // elements, as the API counts them; 0 for SENDRECV
  Datatype datatype = Datatype::kFloat32;
  RankIndex root{0};
  // Bytes as nccl-tests counts them (OperationBytes); for SENDRECV, the largest number that one
  // rank sends to or receives from others; for AllToAllv, the sum over its sends to others.
  uint64_t bytes = 0;
  uint32_t rank_count = 0;  // ranks that take part
  bool is_all_to_all_v = false;
  ExpertKernel expert_kernel = ExpertKernel::kNone;  // of all its calls
  Algorithm logged_algorithm = Algorithm::kUnstated;
  Protocol logged_protocol = Protocol::kUnstated;
  // If set, the replay uses these instead of those in the log (StatedChoice).
  Algorithm forced_algorithm = Algorithm::kUnstated;
  Protocol forced_protocol = Protocol::kUnstated;
  uint32_t source_file = 0;
  uint32_t source_line = 0;
  // The shortest duration among its ranks in the capture, which is that of a rank that arrived late
  // and waited least for others; 0 if unknown.
  int64_t measured_ps = 0;
  void AddMeasured(int64_t duration_ps) {
    if (duration_ps == 0) return;
    measured_ps = measured_ps == 0 ? duration_ps : std::min(measured_ps, duration_ps);
  }
  bool is_planned_whole = false;  // AllToAll (PlanAllToAllsWhole)
  // Returns true if it is made of Sends and Recvs (P2pCall) rather than planned as a whole.
  bool is_p2p() const {
    return kind == CollectiveKind::kSend || kind == CollectiveKind::kGather ||
           kind == CollectiveKind::kScatter ||
           (kind == CollectiveKind::kAllToAll && !is_planned_whole);
  }
};

// Describes one operation of a rank on one of its streams: its call of a collective, or
// computation, which keeps the stream busy for compute_before_ps. Ranks share their operations if
// their calls differ only in the collectives to which they belong.
struct JobOperation {
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kLossToleranceMask = (1u << 30) - 1;  // at most 1,000,000

  uint32_t call = kNone;      // index into the rank's calls (Job::called); kNone for computation
  uint32_t communicator = 0;  // the same number for all of a program's calls on it
  uint32_t stream = 0;
  // An earlier operation of the rank that this one waits for, in addition to its predecessors on
  // its stream and its communicator; or kNone.
  uint32_t after = kNone;
  uint32_t loss_tolerance_ppm : 30 = 0;  // as in TraceOperation, for its sends
  bool in_place : 1 = false;  // as in TraceOperation: calls to the rank itself move no data
  bool is_p2p : 1 = false;    // as in its collective
  uint32_t p2p_first = 0;     // into Job::p2p_calls; equal lists are stored once
  uint32_t p2p_count = 0;
  int64_t compute_before_ps = 0;

  bool is_compute() const { return call == kNone; }
  bool operator==(const JobOperation&) const = default;
};
// The size matters because long jobs whose ranks differ have millions of operations.
static_assert(sizeof(JobOperation) == 40);

// Describes one of the jobs that share a fabric, as a part of the combined Job.
struct JobPart {
  std::string name;
  std::vector<GlobalRank> global_ranks;  // by rank of the part
  int64_t start_ps = 0;                  // when its programs begin
  // Each of its ranks delays every operation by an amount drawn once per rank from [0,
  // rank_skew_max_ps].
  int64_t rank_skew_max_ps = 0;
  CommunicatorIndex first_communicator{};  // its communicators and collectives are consecutive
  CollectiveIndex first_collective{};
};

struct Job {
  std::vector<TraceCommunicator> communicators;
  std::vector<JobCollective> collectives;  // in the order of first appearance
  RankPrograms<JobOperation> operations;   // by global rank
  RankPrograms<CollectiveIndex> called;    // by global rank: the collective of each call
  std::vector<P2pCall> p2p_calls;
  // By program: the first operation of each iteration except the first, ascending, as the trace
  // states it.
  std::vector<std::vector<uint32_t>> iteration_begins;
  // By global rank: its communicators, ascending, each with the rank in it.
  std::vector<std::vector<std::pair<CommunicatorIndex, RankIndex>>> memberships;
  uint32_t rank_count = 0;
  std::string nccl_version;
  std::vector<std::string> source_files;  // named by collectives
  std::vector<JobPart> parts;             // one or more, in the order of their numbers

  // Returns the part to which a communicator belongs.
  PartIndex PartOf(CommunicatorIndex communicator) const;
  // Returns the part of each global rank; PartIndex::kNone if it belongs to none.
  std::vector<PartIndex> PartsOfRanks() const;

  // Returns the collective of a call. Precondition: `call` is one of the rank's operations and not
  // computation.
  CollectiveIndex CollectiveOf(GlobalRank rank, const JobOperation& call) const {
    return called[rank][call.call];
  }

  // Returns the communicator rank of a global rank. Precondition: the global rank is in the
  // communicator.
  RankIndex CommunicatorRank(CommunicatorIndex communicator, GlobalRank rank) const;
};

// Matches the k-th collective call of each communicator across its ranks, and sends with receives.
// Errors name the trace's source line: different kind, count, type, root or algorithm for the same
// call; ranks with fewer calls than others; sends without receives. Returns nullopt if
// `diagnostics` has an error afterwards. Precondition: `trace` passes CheckTrace.
std::optional<Job> BuildJob(const Trace& trace, Diagnostics& diagnostics);

// Has the job's AllToAlls over that many ranks planned as a whole, rather than as the Sends and
// Recvs that NCCL makes of them: a user's algorithm serves them. AllToAlls of expert kernels stay.
void PlanAllToAllsWhole(uint32_t rank_count, Job& job);

}  // namespace railyard
