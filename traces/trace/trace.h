// SPDX-License-Identifier: GPL-2.0-only
// Represents a captured or synthesized job in one typed form: communicators, and for each rank the
// ordered operations that it enqueued. Quantities are integers with units; nothing depends on the
// simulator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/units/job_ids.h"
#include "traces/trace/rank_programs.h"

namespace railyard {

enum class CollectiveKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kGather,
  kScatter,
  kSend,
  kRecv,
  kCompute,  // no communication; the stream is busy for compute_before_ps
};
inline constexpr int kCollectiveKindCount = 11;
inline bool IsSendOrRecv(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv;
}
// Returns true if a rank may have a part for itself, which it copies (ncclAlltoAll, ncclGather,
// ncclScatter). Calls in place then differ from those out of place.
inline bool CopiesWithinRank(CollectiveKind kind) {
  return kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kGather ||
         kind == CollectiveKind::kScatter;
}
std::string_view CollectiveKindName(CollectiveKind kind);  // "AllReduce", as NCCL prints it

enum class Datatype : uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBfloat16,
  kFloat8E4M3,
  kFloat8E5M2
};
uint32_t DatatypeBytes(Datatype type);
std::string_view DatatypeName(Datatype type);

// These name NCCL's algorithm and protocol, as a log states them; kUnstated if it does not.
enum class Algorithm : uint8_t {
  kUnstated,
  kTree,
  kRing,
  kCollnetDirect,
  kCollnetChain,
  kNvls,
  kNvlsTree,
  kPat,
  // Not NCCL's, so no log states these: baselines with which research compares NCCL.
  kDirect,
  kHalvingDoubling,
  kExplicit,  // a user's algorithm, from a schedule file
};
enum class Protocol : uint8_t { kUnstated, kLl, kLl128, kSimple };
std::string_view AlgorithmName(Algorithm algorithm);  // "RING"; "-" for kUnstated
std::string_view ProtocolName(Protocol protocol);
// Returns NCCL's algorithm or protocol of this name, in any case and with or without underscores:
// "NVLS_TREE", "NVLSTree". Names of the baselines and "-" are not found.
std::optional<Algorithm> FindAlgorithm(std::string_view name);
std::optional<Protocol> FindProtocol(std::string_view name);

// Names the kernels that move the tokens of a mixture of experts instead of NCCL's grouped Sends
// and Recvs (docs/model/expert-kernels.md).
enum class ExpertKernel : uint8_t { kNone, kDeepEp, kDeepEpLowLatency, kHybridEp };
inline constexpr int kExpertKernelCount = 4;
std::string_view ExpertKernelName(ExpertKernel kernel);  // "DEEPEP"; "NCCL" for kNone

// Describes a Send or Recv that is a hop of an expert kernel's exchange.
struct ExpertCall {
  // One more than the communicator rank whose tokens the call carries within its server; 0 for a
  // call between servers, or directly to the expert's rank.
  uint32_t relayed_for = 0;
  uint32_t token_bytes = 0;  // of one token with its scales and metadata
  ExpertKernel kernel = ExpertKernel::kNone;
  bool combines = false;  // results are returned; otherwise tokens are sent
  uint8_t channels = 0;   // that share the tokens evenly; for low latency, queue pairs of two ranks
  // Consecutive ranks that the kernel takes for a server; 0 for those of the machine.
  uint8_t server_ranks = 0;

  bool operator==(const ExpertCall&) const = default;
};
inline constexpr uint32_t kTokenBytesMax = 1u << 24;

struct TraceCommunicator {
  std::string name;               // stable within the trace, e.g. "0x3f2a" (commId) or "comm0"
  std::vector<GlobalRank> ranks;  // by communicator rank
  // Rings and trees by channel as a log states them, in communicator ranks. If they are empty,
  // NCCL's rules determine them.
  std::vector<std::vector<uint32_t>> rings{};        // in the ring's order, rank 0 first
  std::vector<std::vector<int32_t>> tree_parents{};  // by rank; -1 for the root
};

struct TraceOperation {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint32_t communicator = 0;  // number of a communicator (Trace::CommunicatorOf)
  uint64_t count = 0;         // elements, as the API counts them (for AllGather, per rank, …)
  Datatype datatype = Datatype::kFloat32;
  uint32_t root = 0;    // root of Broadcast/Reduce/Gather/Scatter, communicator rank
  uint32_t peer = 0;    // Send and Recv: the other communicator rank
  uint32_t stream = 0;  // dense stream number within the rank; a stream runs in order
  // Send/Recv of one ncclGroup share a non-zero number, unique within the rank; 0 if not grouped.
  uint32_t group = 0;
  // For Send and Recv: one more than the number, on the communicator, of the AllToAllv of which the
  // call is a part; 0 for none. The calls of one AllToAllv of a rank are one group.
  uint32_t all_to_all = 0;
  ExpertCall expert{};  // of Sends and Recvs of an AllToAllv only
  // The share of the bytes sent over the network that the receiver can do without, in millionths.
  uint32_t loss_tolerance_ppm = 0;
  int64_t compute_before_ps = 0;  // gap between the stream's previous operation and this one
  int64_t measured_ps = 0;        // duration of the call in the capture; 0 if unknown
  // One more than the number of an earlier operation of the rank, on any stream, that must end
  // before the gap begins; 0 for none. A group waits for the operation for which its first call
  // waits.
  uint32_t after = 0;
  // As the log states them for this collective; equal on all of its ranks.
  Algorithm algorithm = Algorithm::kUnstated;
  Protocol protocol = Protocol::kUnstated;
  bool begins_iteration = false;  // first of the rank in an iteration after the job's first
  // For AllToAll, Gather and Scatter: the rank's part for itself is already in place; otherwise it
  // is copied there.
  bool in_place = false;
  uint32_t source_file = 0;  // index into Trace::source_files
  uint32_t source_line = 0;  // 0 if reconstructed or synthesized

  bool operator==(const TraceOperation&) const = default;
};

// Returns computation of length 0 in the place of a call: on its stream, after its gap and after
// the operation for which it waits.
TraceOperation AsComputation(const TraceOperation& call);

struct Trace {
  std::string origin;        // "nccl-log", "program"
  std::string nccl_version;  // "2.27.5"; empty if unknown
  uint32_t rank_count = 0;   // global ranks
  std::vector<std::string> source_files;
  std::vector<TraceCommunicator> communicators;
  RankPrograms<TraceOperation> operations;  // by global rank
  // By global rank: the communicators to which the numbers in its program refer, as indices into
  // `communicators`, so that ranks of different groups can share a program. If a rank's list, or
  // this whole table, is empty, the numbers themselves are such indices.
  std::vector<std::vector<uint32_t>> communicators_of_rank{};
  std::string file{};  // the trace file from which it was read; may be empty

  // Returns the index of the communicator to which a rank's program refers by this number.
  CommunicatorIndex CommunicatorOf(GlobalRank rank, uint32_t number) const {
    return CommunicatorIndex{NumbersAreIndices(rank) ? number
                                                     : communicators_of_rank[rank][number]};
  }
  bool NumbersAreIndices(GlobalRank rank) const {
    return communicators_of_rank.empty() || communicators_of_rank[rank].empty();
  }
};

// Converts the numbers of global ranks as files state them.
std::vector<GlobalRank> GlobalRanksOf(const std::vector<uint32_t>& numbers);

// Returns the payload of one call in bytes as NCCL's tuner and nccl-tests count it: the larger of
// the send and receive buffers over the ranks (AllGather, ReduceScatter, AllToAll, Gather, Scatter:
// count x ranks x size; ncclFuncMaxSendRecvCount in NCCL's src/include/comm.h). Precondition: it
// fits 64 bits, which CheckTrace ensures.
uint64_t OperationBytes(const TraceOperation& operation, uint32_t communicator_size);

}  // namespace railyard
