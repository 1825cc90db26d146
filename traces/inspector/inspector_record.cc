// SPDX-License-Identifier: GPL-2.0-only
#include "traces/inspector/inspector_record.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "simulator/units/units.h"
#include "traces/pytorch/comms_record.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

constexpr uint64_t kMeasuredUsMax = uint64_t{1} << 42;

// The inspector spells names as `name_of` does; a name in another spelling is not one of its.
template <typename Choice>
Choice Named(std::string_view name, std::optional<Choice> (*find)(std::string_view),
             std::string_view (*name_of)(Choice)) {
  const std::optional<Choice> found = find(name);
  return found && name_of(*found) == name ? *found : Choice::kUnstated;
}

std::optional<int64_t> StartOf(const Value& perf, std::string_view prefix) {
  const Value* const times = perf.Find("event_trace_ts");
  if (times == nullptr) return std::nullopt;
  const Value* const start = times->Find(fmt::format("{}_start_ts", prefix));
  return start == nullptr ? std::nullopt : start->Signed();
}

}  // namespace

std::optional<InspectorSource> ParseInspectorSource(const Value& line) {
  const Value* const header = line.Find("header");
  if (header == nullptr) return std::nullopt;
  const auto rank = header->UnsignedOf("rank");
  const auto size = header->UnsignedOf("n_ranks");
  if (!rank || !size || *size == 0 || *size > kTraceRanksMax || *rank >= *size) {
    return std::nullopt;
  }
  InspectorSource source;
  source.communicator = header->TextOf("id");
  if (const std::string name = header->TextOf("comm_name"); !name.empty()) {
    source.communicator += " " + name;
  }
  source.rank = static_cast<uint32_t>(*rank);
  source.size = static_cast<uint32_t>(*size);
  if (const Value* const metadata = line.Find("metadata"); metadata != nullptr) {
    source.version = metadata->TextOf("inspector_output_format_version");
    source.process = metadata->TextOf("hostname") + ":" + metadata->TextOf("pid");
  }
  return source;
}

std::optional<InspectorCall> ParseInspectorCall(const Value& line) {
  std::string prefix = "coll";
  const Value* perf = line.Find("coll_perf");
  if (perf == nullptr) {
    prefix = "p2p";
    perf = line.Find("p2p_perf");
  }
  if (perf == nullptr || !perf->IsMap()) return std::nullopt;
  InspectorCall call;
  call.name = perf->TextOf(prefix);
  call.kind = PytorchKind(call.name);
  call.sequence = perf->UnsignedOf(prefix + "_sn").value_or(0);
  const auto bytes = perf->UnsignedOf(prefix + "_msg_size_bytes");
  call.has_size = bytes.has_value();
  call.bytes = bytes.value_or(0);
  // NCCL knows no size of ncclUint8's name, and multiplies the count by -1
  // (ncclDatatypeToString, inspectorStringToDatatype).
  call.has_wrapped_size = call.bytes > uint64_t{1} << 63;
  if (call.has_wrapped_size) call.bytes = uint64_t{0} - call.bytes;
  for (const char* key : {"peer", "p2p_peer", "peer_rank"}) {
    if (const auto peer = perf->UnsignedOf(key); peer && *peer < kTraceRanksMax) {
      call.peer = static_cast<uint32_t>(*peer);
    }
  }
  call.algorithm = Named(perf->TextOf("coll_algo"), FindAlgorithm, AlgorithmName);
  call.protocol = Named(perf->TextOf("coll_proto"), FindProtocol, ProtocolName);
  const std::string time_key = prefix + "_exec_time_us";
  const auto measured_us = perf->UnsignedOf(time_key);
  call.duration_is_none =
      measured_us ? *measured_us >= kMeasuredUsMax : perf->Find(time_key) != nullptr;
  if (measured_us && !call.duration_is_none) {
    call.measured_ps = static_cast<int64_t>(*measured_us) * kPsPerUs;
  }
  call.start_us = StartOf(*perf, prefix);
  return call;
}

std::optional<InspectorDropCounts> ParseInspectorDropCounts(const Value& line) {
  const Value* const stats = line.Find("dump_stats");
  if (stats == nullptr) return std::nullopt;
  const auto count = [&](const char* key) {
    return std::min(stats->UnsignedOf(key).value_or(0), uint64_t{1} << 48);
  };
  return InspectorDropCounts{
      .records = count("coll_records") + count("p2p_records"),
      .dropped = count("coll_dropped_since_last_dump") + count("p2p_dropped_since_last_dump")};
}

}  // namespace railyard
