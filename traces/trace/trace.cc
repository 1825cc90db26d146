// SPDX-License-Identifier: GPL-2.0-only
#include "traces/trace/trace.h"

#include <cctype>

#include "traces/trace/collective_blocks.h"

namespace railyard {

std::string_view CollectiveKindName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "AllReduce";
    case CollectiveKind::kAllGather:
      return "AllGather";
    case CollectiveKind::kReduceScatter:
      return "ReduceScatter";
    case CollectiveKind::kBroadcast:
      return "Broadcast";
    case CollectiveKind::kReduce:
      return "Reduce";
    case CollectiveKind::kAllToAll:
      return "AlltoAll";
    case CollectiveKind::kGather:
      return "Gather";
    case CollectiveKind::kScatter:
      return "Scatter";
    case CollectiveKind::kSend:
      return "Send";
    case CollectiveKind::kRecv:
      return "Recv";
    case CollectiveKind::kCompute:
      return "Compute";
  }
  return "?";
}

// Sizes: ncclTypeSize in NCCL's src/include/nccl_common.h.
uint32_t DatatypeBytes(Datatype type) {
  switch (type) {
    case Datatype::kInt8:
    case Datatype::kUint8:
    case Datatype::kFloat8E4M3:
    case Datatype::kFloat8E5M2:
      return 1;
    case Datatype::kFloat16:
    case Datatype::kBfloat16:
      return 2;
    case Datatype::kInt32:
    case Datatype::kUint32:
    case Datatype::kFloat32:
      return 4;
    case Datatype::kInt64:
    case Datatype::kUint64:
    case Datatype::kFloat64:
      return 8;
  }
  return 0;
}

std::string_view DatatypeName(Datatype type) {
  switch (type) {
    case Datatype::kInt8:
      return "int8";
    case Datatype::kUint8:
      return "uint8";
    case Datatype::kInt32:
      return "int32";
    case Datatype::kUint32:
      return "uint32";
    case Datatype::kInt64:
      return "int64";
    case Datatype::kUint64:
      return "uint64";
    case Datatype::kFloat16:
      return "float16";
    case Datatype::kFloat32:
      return "float32";
    case Datatype::kFloat64:
      return "float64";
    case Datatype::kBfloat16:
      return "bfloat16";
    case Datatype::kFloat8E4M3:
      return "float8e4m3";
    case Datatype::kFloat8E5M2:
      return "float8e5m2";
  }
  return "?";
}

std::string_view ExpertKernelName(ExpertKernel kernel) {
  switch (kernel) {
    case ExpertKernel::kNone:
      return "NCCL";
    case ExpertKernel::kDeepEp:
      return "DEEPEP";
    case ExpertKernel::kDeepEpLowLatency:
      return "DEEPEP_LOW_LATENCY";
    case ExpertKernel::kHybridEp:
      return "HYBRID_EP";
  }
  return "";
}

std::string_view AlgorithmName(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kUnstated:
      return "-";
    case Algorithm::kTree:
      return "TREE";
    case Algorithm::kRing:
      return "RING";
    case Algorithm::kCollnetDirect:
      return "COLLNET_DIRECT";
    case Algorithm::kCollnetChain:
      return "COLLNET_CHAIN";
    case Algorithm::kNvls:
      return "NVLS";
    case Algorithm::kNvlsTree:
      return "NVLS_TREE";
    case Algorithm::kPat:
      return "PAT";
    case Algorithm::kDirect:
      return "DIRECT";
    case Algorithm::kHalvingDoubling:
      return "HALVING_DOUBLING";
    case Algorithm::kExplicit:
      return "EXPLICIT";
  }
  return "?";
}

std::string_view ProtocolName(Protocol protocol) {
  switch (protocol) {
    case Protocol::kUnstated:
      return "-";
    case Protocol::kLl:
      return "LL";
    case Protocol::kLl128:
      return "LL128";
    case Protocol::kSimple:
      return "SIMPLE";
  }
  return "?";
}

namespace {

std::string LettersOf(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c != '_') letters += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return letters;
}

// Finds the value of this name among those up to `last`, but for the first, which is unstated.
template <typename Value>
std::optional<Value> FindNamed(std::string_view name, Value last,
                               std::string_view (*name_of)(Value)) {
  const std::string letters = LettersOf(name);
  for (int number = 1; number <= static_cast<int>(last); ++number) {
    const auto value = static_cast<Value>(number);
    if (LettersOf(name_of(value)) == letters) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Algorithm> FindAlgorithm(std::string_view name) {
  return FindNamed(name, Algorithm::kPat, AlgorithmName);
}

std::optional<Protocol> FindProtocol(std::string_view name) {
  return FindNamed(name, Protocol::kSimple, ProtocolName);
}

TraceOperation AsComputation(const TraceOperation& call) {
  return {.kind = CollectiveKind::kCompute,
          .stream = call.stream,
          .compute_before_ps = call.compute_before_ps,
          .after = call.after,
          .begins_iteration = call.begins_iteration,
          .source_file = call.source_file,
          .source_line = call.source_line};
}

std::vector<GlobalRank> GlobalRanksOf(const std::vector<uint32_t>& numbers) {
  std::vector<GlobalRank> ranks;
  ranks.reserve(numbers.size());
  for (const uint32_t number : numbers) ranks.emplace_back(number);
  return ranks;
}

uint64_t OperationBytes(const TraceOperation& operation, uint32_t communicator_size) {
  const uint64_t bytes = operation.count * DatatypeBytes(operation.datatype);
  return IsMadeOfBlocks(operation.kind) ? bytes * communicator_size : bytes;
}

}  // namespace railyard
