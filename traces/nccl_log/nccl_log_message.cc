// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_message.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "simulator/units/number.h"
#include "traces/nccl_log/log_field_reader.h"
#include "traces/trace/trace.h"

namespace railyard {
namespace {

// Parses the fields between `comm` and the phase. Words without a meaning here are skipped one by
// one, since not each is a key with a value: RCCL prints "localSize 1 used 27440 bytes on core 3".
bool ParseInitFields(LogFieldReader fields, LogInit& init) {
  bool has_rank = false;
  bool has_rank_count = false;
  for (std::string_view key = fields.Token(); !key.empty(); key = fields.Token()) {
    uint64_t pointer = 0;
    uint32_t number = 0;
    int64_t signed_number = 0;
    if (key == "rank") {
      if (!ParseNumber(fields.Token(), init.rank)) return false;
      has_rank = true;
    } else if (key == "nranks" || key == "nRanks") {
      if (!ParseNumber(fields.Token(), init.rank_count)) return false;
      has_rank_count = true;
    } else if (key == "cudaDev") {
      if (!ParseNumber(fields.Token(), number)) return false;
      init.cuda_device = number;
    } else if (key == "busId") {
      init.bus_id = fields.Token();
    } else if (key == "commId") {
      init.comm_id = fields.Token();
    } else if (key == "parent") {
      if (!LogFieldReader(fields.Token()).Pointer(pointer)) return false;
      init.parent = pointer;
    } else if (key == "splitCount" || key == "childCount") {
      if (!ParseNumber(fields.Token(), pointer)) return false;
      init.split_count = pointer;
    } else if (key == "color") {
      if (!ParseNumber(fields.Token(), signed_number)) return false;
      init.color = signed_number;
    }
  }
  return has_rank && has_rank_count;
}

// `[[Rank I] ][ncclCommXxx ]comm PTR rank I … - Init COMPLETE` and its kin.
bool ParseCommunicatorMessage(const LogPrefix& prefix, std::string_view message,
                              std::vector<LogRecord>& records) {
  LogFieldReader fields(message);
  if (fields.rest().starts_with("[Rank ")) {
    const size_t bracket = message.find(']');
    if (bracket == std::string_view::npos) return false;
    fields = LogFieldReader(message.substr(bracket + 1));
  }
  fields.SkipBlanks();
  if (fields.rest().starts_with("ncclComm")) fields.Token();
  LogInit init;
  init.prefix = prefix;
  const bool destroyed = fields.Word("Destroyed");  // 2.3
  if (!fields.Word("comm") || !fields.Pointer(init.communicator) || init.communicator == 0) {
    return false;
  }
  if (destroyed) {
    records.emplace_back(LogDestroy{.prefix = prefix, .communicator = init.communicator});
    return true;
  }
  // The phase stands behind a dash, before which 2.23 to 2.28 print no blank after the key of a
  // split.
  const std::string_view rest = fields.rest();
  size_t dash = rest.find("- ");
  if (dash == std::string_view::npos && rest.ends_with('-')) dash = rest.size() - 1;
  if (!ParseInitFields(LogFieldReader(rest.substr(0, dash)), init)) return false;
  if (dash != std::string_view::npos) {
    LogFieldReader after_dash(rest.substr(dash + 1));
    after_dash.SkipBlanks();
    const std::string_view phase = after_dash.rest();
    if (phase.starts_with("Init START")) {
      init.phase = LogInit::Phase::kStart;
    } else if (phase.starts_with("Init COMPLETE") || phase.starts_with("COMPLETE")) {
      init.phase = LogInit::Phase::kComplete;
    } else if (phase.starts_with("Destroy COMPLETE") || phase.starts_with("Abort COMPLETE")) {
      records.emplace_back(LogDestroy{.prefix = prefix, .communicator = init.communicator});
      return true;
    } else {
      return false;
    }
  }
  records.emplace_back(init);
  return true;
}

bool ParseInitTimings(const LogPrefix& prefix, std::string_view message,
                      std::vector<LogRecord>& records) {
  if (!message.starts_with("Init timings")) return false;
  const size_t colon = message.find(':');
  if (colon == std::string_view::npos) return false;
  LogFieldReader fields(message.substr(colon + 1));
  LogInitTimings timings{.prefix = prefix};
  if (!fields.Word("rank") || !fields.Number(timings.rank) || !fields.Word("nranks") ||
      !fields.Number(timings.rank_count)) {
    return false;
  }
  records.emplace_back(timings);
  return true;
}

// A number as printed up to 2.23, or a name.
template <typename Enum>
std::optional<Enum> ParseNumberOrName(std::string_view text, Enum last,
                                      std::string_view (*name_of)(Enum)) {
  uint32_t number = 0;
  // NCCL counts from 0, we from 1.
  if (ParseNumber(text, number)) {
    if (number >= static_cast<uint32_t>(last)) return std::nullopt;
    return static_cast<Enum>(number + 1);
  }
  for (uint32_t i = 1; i <= static_cast<uint32_t>(last); ++i) {
    if (text == name_of(static_cast<Enum>(i))) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

std::optional<CollectiveKind> KindNamed(std::string_view name) {
  for (uint32_t i = 0; i < static_cast<uint32_t>(CollectiveKind::kCompute); ++i) {
    const auto kind = static_cast<CollectiveKind>(i);
    if (name == CollectiveKindName(kind)) return kind;
  }
  return std::nullopt;
}

// `AllReduce [Symmetric]: 1048576 Bytes -> Kernel …` and `AllGather [Copy Engine]: … ->
// cudaMemcpy…`, since 2.27: calls for which no algorithm is chosen
// (src/scheduler/symmetric_sched.cc).
bool ParseWithoutAlgorithm(const LogPrefix& prefix, std::string_view message,
                           std::vector<LogRecord>& records) {
  const size_t bracket = message.find(" [");
  const size_t colon = message.find("]: ");
  if (bracket == std::string_view::npos || colon == std::string_view::npos || bracket > colon) {
    return false;
  }
  const std::string_view by = message.substr(bracket + 2, colon - bracket - 2);
  if (by != "Symmetric" && by != "Copy Engine" && by != "Hierarchical CE") return false;
  LogTuning tuning;
  tuning.prefix = prefix;
  tuning.bytes_are_per_rank = true;
  tuning.kind = KindNamed(message.substr(0, bracket));
  LogFieldReader fields(message.substr(colon + 3));
  if (!tuning.kind || !fields.Number(tuning.bytes) || !fields.Word("Bytes") || !fields.Word("->")) {
    return false;
  }
  records.emplace_back(tuning);
  return true;
}

bool ParseTuning(const LogPrefix& prefix, std::string_view message,
                 std::vector<LogRecord>& records) {
  const size_t arrow = message.find(" Bytes -> Algo ");
  if (arrow == std::string_view::npos) return ParseWithoutAlgorithm(prefix, message, records);
  LogTuning tuning;
  tuning.prefix = prefix;
  LogFieldReader fields(message);
  if (const size_t colon = message.find(": "); colon != std::string_view::npos && colon < arrow) {
    tuning.kind = KindNamed(message.substr(0, colon));
    if (!tuning.kind) return false;
    fields = LogFieldReader(message.substr(colon + 2));
  }
  if (!fields.Number(tuning.bytes) || !fields.Word("Bytes") || !fields.Word("->") ||
      !fields.Word("Algo")) {
    return false;
  }
  const std::string_view algorithm = fields.Token();
  if (!fields.Word("proto")) return false;
  const std::string_view protocol = fields.Token();
  const auto algorithm_or_none = ParseNumberOrName(algorithm, Algorithm::kPat, AlgorithmName);
  const auto protocol_or_none = ParseNumberOrName(protocol, Protocol::kSimple, ProtocolName);
  if (!algorithm_or_none || !protocol_or_none) return false;
  tuning.algorithm = *algorithm_or_none;
  tuning.protocol = *protocol_or_none;
  tuning.bytes_are_per_rank = !IsDigit(algorithm.front());
  records.emplace_back(tuning);
  return true;
}

bool ParseRing(const LogPrefix& prefix, std::string_view message, std::vector<LogRecord>& records) {
  LogFieldReader fields(message);
  LogRing ring{.prefix = prefix};
  uint32_t previous = 0;
  if (!fields.Word("Ring") || !fields.Number(ring.channel) || !fields.Word(":") ||
      !fields.Number(previous) || !fields.Word("->") || !fields.Number(ring.rank) ||
      !fields.Word("->") || !fields.Number(ring.next)) {
    return false;
  }
  records.emplace_back(ring);
  return true;
}

// Lines of connections begin alike: `Channel 00/0 : 1[1] -> 2[2] via …`.
bool ParseWholeRing(const LogPrefix& prefix, std::string_view message,
                    std::vector<LogRecord>& records) {
  LogFieldReader fields(message);
  if (!fields.Word("Channel")) return false;
  const std::string_view number = fields.Token();
  const size_t slash = number.find('/');
  LogWholeRing ring;
  ring.prefix = prefix;
  if (slash == std::string_view::npos || !ParseNumber(number.substr(0, slash), ring.channel) ||
      !ParseNumber(number.substr(slash + 1), ring.channel_count) || !fields.Word(":")) {
    return false;
  }
  for (std::string_view token = fields.Token(); !token.empty(); token = fields.Token()) {
    if (!ParseNumber(token, ring.ranks.emplace_back())) return false;
  }
  records.emplace_back(std::move(ring));
  return true;
}

bool ParseTrees(const LogPrefix& prefix, std::string_view message,
                std::vector<LogRecord>& records) {
  // The text behind `Trees` is cut there; the last of its numbers may lack digits.
  constexpr size_t kCutBytes = 1'023;
  LogFieldReader fields(message);
  if (!fields.Word("Trees")) return false;
  const bool is_cut = message.size() >= kCutBytes;
  for (std::string_view token = fields.Token(); !token.empty(); token = fields.Token()) {
    LogTreePlace place{.prefix = prefix};
    if (!token.starts_with('[') || !token.ends_with(']') ||
        !ParseNumber(token.substr(1, token.size() - 2), place.channel)) {
      break;
    }
    token = fields.Token();
    const size_t up = token.rfind("->");
    const size_t rank = token.find("->");
    if (up == std::string_view::npos || up == rank ||
        !ParseNumber(token.substr(rank + 2, up - rank - 2), place.rank) ||
        !ParseNumber(token.substr(up + 2), place.parent)) {
      break;
    }
    fields.SkipBlanks();
    if (!is_cut || !fields.rest().empty()) records.emplace_back(place);
  }
  return true;
}

}  // namespace

void ParseLogMessage(const LogPrefix& prefix, std::string_view message,
                     std::vector<LogRecord>& records) {
  ParseCommunicatorMessage(prefix, message, records) ||
      ParseInitTimings(prefix, message, records) || ParseTuning(prefix, message, records) ||
      ParseRing(prefix, message, records) || ParseWholeRing(prefix, message, records) ||
      ParseTrees(prefix, message, records);
}

}  // namespace railyard
