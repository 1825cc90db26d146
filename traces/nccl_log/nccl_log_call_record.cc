// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_call_record.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "traces/nccl_log/log_field_reader.h"

namespace railyard {
namespace {

struct NamedKind {
  std::string_view name;
  std::optional<CollectiveKind> kind;  // nullopt: a one-sided operation, which moves no trace data
};
// Names that calls have beside those of CollectiveKindName.
constexpr std::array<NamedKind, 6> kOtherNames = {{
    {"AllToAll", CollectiveKind::kAllToAll},       // RCCL up to 2.27
    {"AllToAllPivot", CollectiveKind::kAllToAll},  // RCCL, in its own way
    {"AlltoAllPivot", CollectiveKind::kAllToAll},
    {"PutSignal", std::nullopt},
    {"WaitSignal", std::nullopt},
    {"Signal", std::nullopt},
}};

// ncclFuncToString and the API's names; longer names before those they end with.
const std::vector<NamedKind>& CallNames() {
  static const std::vector<NamedKind> kNames = [] {
    std::vector<NamedKind> names;
    for (int number = 0; number < kCollectiveKindCount; ++number) {
      const auto kind = static_cast<CollectiveKind>(number);
      if (kind != CollectiveKind::kCompute) names.push_back({CollectiveKindName(kind), kind});
    }
    names.insert(names.end(), kOtherNames.begin(), kOtherNames.end());
    std::ranges::stable_sort(names, std::ranges::greater(),
                             [](const NamedKind& named) { return named.name.size(); });
    return names;
  }();
  return kNames;
}

constexpr std::string_view kOpCount = "opCount";

// The end of `opCount HEX sendbuff` at `position`, or npos.
size_t EndOfOpCountAndBuffer(std::string_view text, size_t position) {
  constexpr std::string_view kSendBuffer = " sendbuff";
  size_t end = position + kOpCount.size();
  if (end >= text.size() || text[end] != ' ') return std::string_view::npos;
  const size_t digits = ++end;
  while (end < text.size() && end - digits < 16 && IsHexDigit(text[end])) ++end;
  if (end == digits || text.substr(end, kSendBuffer.size()) != kSendBuffer) {
    return std::string_view::npos;
  }
  return end + kSendBuffer.size();
}

// A name of NCCL's before `: opCount` suffices; any other name must be followed by the text of a
// call.
std::optional<CallMark> MarkAt(std::string_view text, size_t op_count) {
  CallMark mark{.begin = op_count, .op_count = op_count, .end = 0, .name = {}, .kind = {}};
  bool is_named = false;
  if (op_count >= 2 && text.substr(op_count - 2, 2) == ": ") {
    const size_t name_end = op_count - 2;
    size_t name_begin = name_end;
    while (name_begin > 0 && name_end - name_begin < 24 && IsNameCharacter(text[name_begin - 1])) {
      --name_begin;
    }
    mark.name = text.substr(name_begin, name_end - name_begin);
    for (const NamedKind& candidate : CallNames()) {
      if (!mark.name.ends_with(candidate.name)) continue;
      is_named = true;
      mark.kind = candidate.kind;
      mark.name.remove_prefix(mark.name.size() - candidate.name.size());
      break;
    }
    mark.begin = name_end - mark.name.size();
  }
  mark.end = is_named ? op_count + kOpCount.size() : EndOfOpCountAndBuffer(text, op_count);
  if (mark.end == std::string_view::npos) return std::nullopt;
  return mark;
}

// Fills the fields after `opCount`; what is missing or malformed, or empty.
std::string ParseCallFields(LogFieldReader& fields, LogCall& call) {
  uint64_t ignored = 0;
  uint64_t send_buffer = 0;
  uint64_t receive_buffer = 0;
  int64_t ignored_signed = 0;
  uint32_t datatype = 0;
  if (!fields.Word("opCount") || !fields.Number(call.op_count, 16)) return "opCount";
  if (!fields.Word("sendbuff") || !fields.Pointer(send_buffer)) return "sendbuff";
  if (!fields.Word("recvbuff") || !fields.Pointer(receive_buffer)) return "recvbuff";
  call.same_buffers = send_buffer == receive_buffer;
  if (fields.Word("acc") && !fields.Pointer(ignored)) return "acc";  // RCCL
  if (!fields.Word("count") || !fields.Number(call.count)) return "count";
  if (fields.Word("size") && !fields.Number(ignored)) return "size";  // NCCL up to 2.3.5
  if (!fields.Word("datatype") || !fields.Number(datatype)) return "datatype";
  if (!fields.Word("op") || !fields.Number(ignored_signed)) return "op";
  if (fields.Word("root") && !fields.Number(call.root)) return "root";
  if (!fields.Word("comm") || !fields.Pointer(call.communicator)) return "comm";
  fields.SkipBlanks();
  LogFieldReader in_brackets(fields.rest().substr(0, fields.rest().find(']')));
  if (!in_brackets.Literal("[nranks=") || !in_brackets.Number(call.rank_count) ||
      !fields.Literal(fields.rest().substr(0, in_brackets.position())) || !fields.Literal("]")) {
    return "[nranks=]";
  }
  if (!fields.Word("stream") || !fields.Pointer(call.stream, /*may_be_glued=*/true)) {
    return "stream";
  }
  uint32_t rank = 0;
  if (fields.Word("task")) {  // RCCL
    if (!fields.Number(ignored)) return "task";
    if (!fields.Word("globalrank") || !fields.Number(rank)) return "globalrank";
    call.rank = rank;
  }
  if (datatype > static_cast<uint32_t>(Datatype::kFloat8E5M2)) {
    call.defect = CallDefect::kUnknownDatatype;
    call.defect_detail = fmt::format("datatype {}", datatype);
  } else {
    call.datatype = static_cast<Datatype>(datatype);
  }
  return {};
}

// Returns whether the text ends within the field that is missing, so that more of it may follow.
bool MayGoOn(LogFieldReader fields, std::string_view missing) {
  constexpr std::string_view kRankCount = "[nranks=";
  fields.SkipBlanks();
  const std::string_view rest = fields.rest();
  if (missing.starts_with(kRankCount)) {
    return kRankCount.starts_with(rest) ||
           (rest.starts_with(kRankCount) &&
            rest.substr(kRankCount.size()).find_first_not_of("0123456789") ==
                std::string_view::npos);
  }
  // Fields that not every version prints stand before the one that is missed.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kMayStandBefore = {
      {{"count", "acc"}, {"datatype", "size"}, {"comm", "root"}}};
  for (const auto& [field, before] : kMayStandBefore) {
    if (missing == field && before.starts_with(rest)) return true;
  }
  return missing.starts_with(rest) || rest == "0";
}

}  // namespace

CallMarks FindCallMarks(std::string_view text) {
  CallMarks marks;
  for (size_t at = text.find(kOpCount); at != std::string_view::npos;
       at = text.find(kOpCount, at + kOpCount.size())) {
    if (const auto mark = MarkAt(text, at)) marks.push_back(*mark);
  }
  return marks;
}

bool EndsWithinCallMark(std::string_view text) {
  constexpr std::string_view kInfo = "INFO ";
  const size_t info = text.rfind(kInfo);
  if (info == std::string_view::npos) return false;
  const std::string_view message = text.substr(info + kInfo.size());
  if (message.empty() || message.size() > kNcclCallMarkBytesMax) return false;
  for (const NamedKind& named : CallNames()) {
    const std::string_view name = message.substr(0, named.name.size());
    if (!named.name.starts_with(name)) continue;
    std::string_view rest = message.substr(name.size());
    if (rest.empty()) return true;
    if (rest == ":") return true;
    if (!rest.starts_with(": ")) continue;
    rest.remove_prefix(2);
    if (kOpCount.starts_with(rest)) return true;
  }
  return false;
}

uint64_t CountNcclCalls(std::string_view text, size_t from) {
  uint64_t count = 0;
  for (const CallMark& mark : FindCallMarks(text)) count += mark.end > from ? 1 : 0;
  return count;
}

LogCall ParseCallRecord(std::string_view text, const CallMark& mark, size_t& end) {
  LogCall call;
  call.name = mark.name;
  LogFieldReader fields(text.substr(mark.op_count));
  const std::string missing = ParseCallFields(fields, call);
  end = mark.op_count + fields.position();
  if (!mark.kind) {
    call.defect = mark.name.empty() ? CallDefect::kUnnamed : CallDefect::kUnsupportedKind;
    call.defect_detail = std::string(mark.name);
    return call;
  }
  call.kind = *mark.kind;
  if (!missing.empty()) {
    call.defect = CallDefect::kTruncated;
    call.defect_detail = fmt::format("no \"{}\"", missing);
    call.ends_with_text = MayGoOn(fields, missing);
  }
  return call;
}

}  // namespace railyard
