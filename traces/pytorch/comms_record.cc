// SPDX-License-Identifier: GPL-2.0-only
#include "traces/pytorch/comms_record.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

// Lower case, without "nccl:", "c10::", "torch." and what is no letter or digit.
std::string Simplified(std::string_view name) {
  for (const std::string_view prefix : {"nccl:", "c10::", "torch."}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  std::string simple;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      simple += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return simple;
}

template <typename Value, size_t kSize>
std::optional<Value> Find(const std::array<std::pair<std::string_view, Value>, kSize>& table,
                          std::string_view name) {
  for (const auto& [entry, value] : table) {
    if (entry == name) return value;
  }
  return std::nullopt;
}

// The names of ProcessGroupNCCL.cpp, simplified; then "base", "coalesced", "intotensor", "single",
// "oop", "tensor" and "sparse" may follow, which say how buffers are given.
constexpr std::array<std::pair<std::string_view, CollectiveKind>, 14> kKinds = {{
    {"allreduce", CollectiveKind::kAllReduce},
    {"allgather", CollectiveKind::kAllGather},
    {"reducescatter", CollectiveKind::kReduceScatter},
    {"broadcast", CollectiveKind::kBroadcast},
    {"reduce", CollectiveKind::kReduce},
    {"alltoall", CollectiveKind::kAllToAll},
    {"alltoallv", CollectiveKind::kAllToAll},
    {"gather", CollectiveKind::kGather},
    {"scatter", CollectiveKind::kScatter},
    {"send", CollectiveKind::kSend},
    {"recv", CollectiveKind::kRecv},
    {"barrier", CollectiveKind::kAllReduce},
    {"allreducebarrier", CollectiveKind::kAllReduce},
    {"recvanysource", CollectiveKind::kRecv},
}};

constexpr std::array<std::pair<std::string_view, Datatype>, 35> kDatatypes = {{
    {"float", Datatype::kFloat32},
    {"float32", Datatype::kFloat32},
    {"fp32", Datatype::kFloat32},
    {"half", Datatype::kFloat16},
    {"float16", Datatype::kFloat16},
    {"fp16", Datatype::kFloat16},
    {"bfloat16", Datatype::kBfloat16},
    {"bf16", Datatype::kBfloat16},
    {"double", Datatype::kFloat64},
    {"float64", Datatype::kFloat64},
    {"long", Datatype::kInt64},
    {"longint", Datatype::kInt64},
    {"int64", Datatype::kInt64},
    {"int64t", Datatype::kInt64},
    {"longlong", Datatype::kInt64},
    {"int", Datatype::kInt32},
    {"int32", Datatype::kInt32},
    {"int32t", Datatype::kInt32},
    {"byte", Datatype::kUint8},
    {"unsignedchar", Datatype::kUint8},
    {"uint8", Datatype::kUint8},
    {"uint8t", Datatype::kUint8},
    {"bool", Datatype::kUint8},
    {"char", Datatype::kInt8},
    {"signedchar", Datatype::kInt8},
    {"int8", Datatype::kInt8},
    {"int8t", Datatype::kInt8},
    {"uint32", Datatype::kUint32},
    {"uint64", Datatype::kUint64},
    {"float8e4m3fn", Datatype::kFloat8E4M3},
    {"float8e4m3", Datatype::kFloat8E4M3},
    {"float8e5m2", Datatype::kFloat8E5M2},
    {"float8e4m3fnuz", Datatype::kFloat8E4M3},
    {"float8e5m2fnuz", Datatype::kFloat8E5M2},
    {"float8e8m0fnu", Datatype::kUint8},  // scales, which NCCL moves as bytes
}};

// Elements to or from each rank. Parts are listed along the first dimension of a tensor, so that
// each stands for as many elements as its others make; equal ones may not be listed.
std::optional<std::vector<uint64_t>> PartsOf(std::vector<uint64_t> split, uint64_t elements,
                                             uint32_t size) {
  if (elements > kOperationBytesMax) return std::nullopt;
  if (split.empty()) {
    if (elements % size != 0) return std::nullopt;
    return std::vector<uint64_t>(size, elements / size);
  }
  uint64_t sum = 0;
  for (const uint64_t part : split) {
    if (part > elements) return std::nullopt;
    sum += part;
  }
  if (sum == 0) return elements == 0 ? std::optional(std::move(split)) : std::nullopt;
  if (elements % sum != 0) return std::nullopt;
  for (uint64_t& part : split) part *= elements / sum;
  return split;
}

// torchcomms states all elements of a tensor as its one part, whatever is sent to each rank.
bool ListsParts(const std::vector<uint64_t>& split, uint64_t elements, uint32_t size) {
  const bool is_whole = size > 1 && split.size() == 1 && split.front() == elements;
  return !split.empty() && !is_whole;
}

// A call of such a name (PyTorch's all_to_allv, torchcomms' all_to_all_v_single) that does not list
// its parts is dropped: its sizes are not recorded.
bool IsOfUnequalParts(const CommsRecord& record) {
  return Simplified(record.collective).find("alltoallv") != std::string::npos;
}

// Elements as NCCL's call counts them.
std::optional<CommsDefect> SetCount(const CommsRecord& record, uint64_t in, uint64_t out,
                                    CapturedCall& call) {
  const uint32_t size = record.group_size;
  TraceOperation& operation = call.operation;
  switch (operation.kind) {
    case CollectiveKind::kReduceScatter:
      operation.count = record.out_elements ? out : in / size;
      return std::nullopt;
    case CollectiveKind::kScatter:
      // Versions of PyTorch differ in which of the two is of all parts; elsewhere than at the root
      // one may be empty.
      operation.count = in == 0 || out == 0 ? std::max(in, out) : std::min(in, out);
      return std::nullopt;
    case CollectiveKind::kRecv:
      operation.count = record.out_elements && out > 0 ? out : in;
      return std::nullopt;
    case CollectiveKind::kAllGather:
      // torchcomms states input and output the other way round.
      operation.count = in > out && in == out * size ? out : in;
      return std::nullopt;
    case CollectiveKind::kAllToAll:
      if (ListsParts(record.in_split, in, size) || ListsParts(record.out_split, out, size)) break;
      call.has_unknown_parts =
          in % size != 0 || (record.out_elements && in != out) || IsOfUnequalParts(record);
      operation.count = in / size;
      return std::nullopt;
    default:
      operation.count = in;
      return std::nullopt;
  }
  if (record.in_split.size() > size || record.out_split.size() > size) {
    return CommsDefect{CallDropReason::kMalformedRecord,
                       fmt::format("more parts than the {} ranks of its group", size)};
  }
  auto sends = PartsOf(record.in_split, in, size);
  auto receives = PartsOf(record.out_split, out, size);
  if (!sends || !receives) {
    return CommsDefect{CallDropReason::kMalformedRecord,
                       fmt::format("its parts do not make {} and {} elements", in, out)};
  }
  call.sends = *std::move(sends);
  call.receives = *std::move(receives);
  return std::nullopt;
}

// Returns the peer of a Send or Recv as a rank of its group; nullopt if it is not recorded, or not
// in the group. A group without a list of its ranks has all of them.
std::optional<uint32_t> PeerOf(const CommsRecord& record) {
  if (record.root_or_peer || !record.global_peer || record.group_ranks.empty()) {
    return record.root_or_peer ? record.root_or_peer : record.global_peer;
  }
  const auto peer = std::ranges::find(record.group_ranks, *record.global_peer);
  if (peer == record.group_ranks.end()) return std::nullopt;
  return static_cast<uint32_t>(peer - record.group_ranks.begin());
}

}  // namespace

std::optional<CollectiveKind> PytorchKind(std::string_view name) {
  // "nccl:send 0->1", "nccl:recv 0<-1"
  std::string simple = Simplified(name.substr(0, name.find(' ')));
  for (;;) {
    if (const auto kind = Find(kKinds, simple)) return kind;
    bool is_shorter = false;
    for (const std::string_view suffix :
         {"base", "coalesced", "intotensor", "single", "oop", "tensor", "sparse"}) {
      if (!simple.ends_with(suffix)) continue;
      simple.resize(simple.size() - suffix.size());
      is_shorter = true;
    }
    if (!is_shorter) return std::nullopt;
  }
}

bool IsBarrier(std::string_view name) { return Simplified(name).ends_with("barrier"); }

bool IsPseudoCollective(std::string_view name) {
  const std::string simple = Simplified(name);
  for (const std::string_view pseudo : {"wait", "init", "", "coalesced", "startcoalescing",
                                        "endcoalescing", "groupstart", "groupend", "pginit"}) {
    if (simple == pseudo) return true;
  }
  return false;
}

std::optional<Datatype> PytorchDatatype(std::string_view name) {
  return Find(kDatatypes, Simplified(name));
}

std::optional<std::vector<uint64_t>> ParseNumberList(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<uint64_t> numbers;
  while (!text.empty()) {
    while (!text.empty() && (text.front() == ' ' || text.front() == ',')) text.remove_prefix(1);
    if (text.empty()) break;
    uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || numbers.size() >= kTraceRanksMax) return std::nullopt;
    numbers.push_back(number);
    text.remove_prefix(static_cast<size_t>(stop - text.data()));
  }
  return numbers;
}

std::optional<std::vector<uint32_t>> ParseRankList(std::string_view text) {
  const auto numbers = ParseNumberList(text);
  if (!numbers) return std::nullopt;
  std::vector<uint32_t> ranks;
  for (const uint64_t number : *numbers) {
    if (number >= kTraceRanksMax) return std::nullopt;
    ranks.push_back(static_cast<uint32_t>(number));
  }
  return ranks;
}

std::optional<CommsDefect> CallOfRecord(const CommsRecord& record, CapturedJob& job,
                                        CapturedCall& call) {
  const auto kind = PytorchKind(record.collective);
  if (!kind) return CommsDefect{CallDropReason::kUnsupportedKind, record.collective};
  if (!record.wrong_elements.empty()) {
    const bool is_large =
        record.wrong_elements.find_first_not_of("0123456789") == std::string::npos;
    return CommsDefect{is_large ? CallDropReason::kOutOfRange : CallDropReason::kMalformedRecord,
                       fmt::format("{} elements", record.wrong_elements.substr(0, 40))};
  }
  if (!record.in_elements && !record.out_elements) {
    return CommsDefect{CallDropReason::kSizesNotRecorded, record.collective};
  }
  auto datatype = PytorchDatatype(record.dtype);
  uint64_t in =
      record.in_elements.value_or(*kind == CollectiveKind::kRecv ? *record.out_elements : 0);
  const uint64_t out = record.out_elements.value_or(in);
  if (in == 0 && *kind == CollectiveKind::kRecv) in = out;
  // A barrier is an AllReduce of one element, which the record does not count.
  const bool is_barrier = IsBarrier(record.collective);
  if (is_barrier && !datatype) datatype = Datatype::kFloat32;
  if (!datatype) return CommsDefect{CallDropReason::kUnknownDatatype, record.dtype};
  const uint32_t size =
      record.group_size > 0 ? record.group_size : static_cast<uint32_t>(record.group_ranks.size());
  if (size == 0 || size > kTraceRanksMax) {
    return CommsDefect{CallDropReason::kAmbiguousCommunicator, "the size of its group is unknown"};
  }
  call.operation.kind = *kind;
  call.operation.datatype = *datatype;
  call.stated_bytes = in > kOperationBytesMax ? 0 : in * DatatypeBytes(*datatype);
  CommsRecord sized = record;
  sized.group_size = size;
  if (auto defect = SetCount(sized, in, out, call)) return defect;
  if (is_barrier && call.operation.count == 0) call.operation.count = 1;
  if (*kind == CollectiveKind::kAllGather && call.operation.count < in) {
    call.stated_bytes = call.operation.count * DatatypeBytes(*datatype);
  }
  if (IsSendOrRecv(*kind)) {
    const std::optional<uint32_t> peer = PeerOf(record);
    if (!peer) {
      return CommsDefect{CallDropReason::kMalformedRecord,
                         record.global_peer
                             ? fmt::format("its peer {} is not in its group", *record.global_peer)
                             : "its peer is not recorded"};
    }
    call.operation.peer = *peer;
  } else if (HasRoot(*kind)) {
    call.operation.root = record.root_or_peer.value_or(0);
  }
  call.operation.communicator = job.GroupOf(record.group_name, size, record.group_ranks);
  return std::nullopt;
}

}  // namespace railyard
