// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace railyard {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsNameCharacter(char c) { return IsLetter(c) || IsDigit(c) || c == '_'; }
bool IsHostCharacter(char c) { return IsNameCharacter(c) || c == '-' || c == '.'; }
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

template <typename Integer>
bool ParseNumber(std::string_view text, Integer& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

// ---- Call marks: where a call record begins. ----

struct NamedKind {
  std::string_view name;
  std::optional<CollectiveKind> kind;  // nullopt: a one-sided operation, which moves no trace data
};
// ncclFuncToString and the API's names; longer names before those they end with.
constexpr std::array<NamedKind, 13> kNames = {{
    {"AllReduce", CollectiveKind::kAllReduce},
    {"AllGather", CollectiveKind::kAllGather},
    {"ReduceScatter", CollectiveKind::kReduceScatter},
    {"Broadcast", CollectiveKind::kBroadcast},
    {"Reduce", CollectiveKind::kReduce},
    {"Send", CollectiveKind::kSend},
    {"Recv", CollectiveKind::kRecv},
    {"AlltoAll", CollectiveKind::kAllToAll},
    {"Gather", CollectiveKind::kGather},
    {"Scatter", CollectiveKind::kScatter},
    {"PutSignal", std::nullopt},
    {"WaitSignal", std::nullopt},
    {"Signal", std::nullopt},
}};

struct CallMark {
  size_t begin = 0;     // of the name, or of "opCount" without one
  size_t op_count = 0;  // of "opCount"
  size_t end = 0;       // of what identifies it as a call
  std::string_view name;
  const NamedKind* named = nullptr;  // nullptr: no name, or not one of NCCL's
};

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

// A name of NCCL's before `: opCount` is enough; anything else must go on as a call does.
std::optional<CallMark> MarkAt(std::string_view text, size_t op_count) {
  CallMark mark{.begin = op_count, .op_count = op_count, .end = 0, .name = {}, .named = nullptr};
  if (op_count >= 2 && text.substr(op_count - 2, 2) == ": ") {
    const size_t name_end = op_count - 2;
    size_t name_begin = name_end;
    while (name_begin > 0 && name_end - name_begin < 24 && IsNameCharacter(text[name_begin - 1])) {
      --name_begin;
    }
    mark.name = text.substr(name_begin, name_end - name_begin);
    for (const NamedKind& candidate : kNames) {
      if (!mark.name.ends_with(candidate.name)) continue;
      mark.named = &candidate;
      mark.name.remove_prefix(mark.name.size() - candidate.name.size());
      break;
    }
    mark.begin = name_end - mark.name.size();
  }
  mark.end =
      mark.named != nullptr ? op_count + kOpCount.size() : EndOfOpCountAndBuffer(text, op_count);
  if (mark.end == std::string_view::npos) return std::nullopt;
  return mark;
}

std::vector<CallMark> FindCallMarks(std::string_view text) {
  std::vector<CallMark> marks;
  for (size_t at = text.find(kOpCount); at != std::string_view::npos;
       at = text.find(kOpCount, at + kOpCount.size())) {
    if (const auto mark = MarkAt(text, at)) marks.push_back(*mark);
  }
  return marks;
}

// ---- Fields. ----

// Reads words and values one after the other; position() is where the first failure happened.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : text_(text) {}

  size_t position() const { return position_; }
  std::string_view rest() const { return text_.substr(position_); }

  void SkipBlanks() {
    while (position_ < text_.size() && IsBlank(text_[position_])) ++position_;
  }
  bool Literal(std::string_view literal) {
    if (!rest().starts_with(literal)) return false;
    position_ += literal.size();
    return true;
  }
  // `word` and the blanks around it.
  bool Word(std::string_view word) {
    const size_t before = position_;
    SkipBlanks();
    if (Literal(word) && (position_ == text_.size() || IsBlank(text_[position_]))) {
      SkipBlanks();
      return true;
    }
    position_ = before;
    return false;
  }
  std::string_view Token() {
    SkipBlanks();
    const size_t begin = position_;
    while (position_ < text_.size() && !IsBlank(text_[position_])) ++position_;
    return text_.substr(begin, position_ - begin);
  }
  template <typename Integer>
  bool Number(Integer& value, int base = 10) {
    size_t end = position_;
    if (std::is_signed_v<Integer> && end < text_.size() && text_[end] == '-') ++end;
    while (end < text_.size() && (base == 16 ? IsHexDigit(text_[end]) : IsDigit(text_[end]))) ++end;
    const bool valid = ParseNumber(text_.substr(position_, end - position_), value, base);
    position_ = end;
    return valid && AtEndOfValue();
  }
  // `0x…` or `(nil)`, as %p prints it. The last field of a line may run into the next line's first
  // character; user-space pointers have at most 12 digits.
  bool Pointer(uint64_t& value, bool may_be_glued = false) {
    if (Literal("(nil)")) {
      value = 0;
      return may_be_glued || AtEndOfValue();
    }
    if (!Literal("0x")) return false;
    size_t end = position_;
    while (end < text_.size() && end - position_ < 16 && IsHexDigit(text_[end])) ++end;
    const bool glued = end < text_.size() && !IsBlank(text_[end]);
    if (glued && end - position_ > 12) end = position_ + 12;
    const bool valid = ParseNumber(text_.substr(position_, end - position_), value, 16);
    position_ = end;
    return valid && (!glued || may_be_glued);
  }

 private:
  bool AtEndOfValue() const { return position_ == text_.size() || IsBlank(text_[position_]); }

  std::string_view text_;
  size_t position_ = 0;
};

// ---- Prefixes. ----

// The HOST:PID:TID [DEV] that ends at `end`; its host begins at or after `floor`.
std::optional<LogPrefix> PrefixEndingAt(std::string_view text, size_t floor, size_t end) {
  const auto skip_blanks = [&] {
    while (end > floor && IsBlank(text[end - 1])) --end;
  };
  const auto take_while = [&](auto accepts, size_t length_max) {
    const size_t last = end;
    while (end > floor && last - end < length_max && accepts(text[end - 1])) --end;
    return text.substr(end, last - end);
  };
  LogPrefix prefix;
  skip_blanks();
  if (end > floor && text[end - 1] == ']') {
    --end;
    uint32_t device = 0;
    const std::string_view digits = take_while(IsDigit, 9);
    if (ParseNumber(digits, device)) prefix.device = device;
    if (digits.empty() || end == floor) return std::nullopt;
    if (text[end - 1] == '-') {  // no current device
      prefix.device.reset();
      --end;
    }
    if (end == floor || text[end - 1] != '[') return std::nullopt;
    --end;
    skip_blanks();
  }
  if (!ParseNumber(take_while(IsDigit, 18), prefix.tid)) return std::nullopt;
  if (end == floor || text[--end] != ':') return std::nullopt;
  if (!ParseNumber(take_while(IsDigit, 18), prefix.pid)) return std::nullopt;
  if (end == floor || text[--end] != ':') return std::nullopt;
  const size_t host_end = end;
  prefix.host = take_while(IsHostCharacter, 255);
  if (prefix.host.empty()) return std::nullopt;
  while (end > 0 && host_end - end < 255 && IsHostCharacter(text[end - 1])) --end;
  prefix.glued_host = text.substr(end, host_end - end);
  return prefix;
}

size_t HostBegin(std::string_view text, const LogPrefix& prefix) {
  return static_cast<size_t>(prefix.host.data() - text.data());
}

// `… NCCL INFO ` before `end` and nothing between: the prefix of the message that begins at `end`.
// NCCL up to 2.2 printed `INFO` alone.
std::optional<LogPrefix> PrefixOfMessageAt(std::string_view text, size_t floor, size_t end) {
  while (end > floor && IsBlank(text[end - 1])) --end;
  for (const std::string_view word : {"INFO", "NCCL"}) {
    if (end - floor >= word.size() && text.substr(end - word.size(), word.size()) == word) {
      end -= word.size();
    } else if (word == "INFO") {
      return std::nullopt;
    }
    while (end > floor && IsBlank(text[end - 1])) --end;
  }
  return PrefixEndingAt(text, floor, end);
}

// ---- Calls. ----

// Fills the fields after `opCount`; what is missing or malformed, or empty.
std::string ParseCallFields(FieldReader& fields, LogCall& call) {
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
  FieldReader in_brackets(fields.rest().substr(0, fields.rest().find(']')));
  if (!in_brackets.Literal("[nranks=") || !in_brackets.Number(call.rank_count) ||
      !fields.Literal(fields.rest().substr(0, in_brackets.position())) || !fields.Literal("]")) {
    return "[nranks=]";
  }
  if (!fields.Word("stream") || !fields.Pointer(call.stream, /*may_be_glued=*/true)) {
    return "stream";
  }
  uint32_t global_rank = 0;
  if (fields.Word("task")) {  // RCCL
    if (!fields.Number(ignored)) return "task";
    if (!fields.Word("globalrank") || !fields.Number(global_rank)) return "globalrank";
    call.global_rank = global_rank;
  }
  if (datatype > static_cast<uint32_t>(Datatype::kFloat8E5M2)) {
    call.defect = CallDefect::kUnknownDatatype;
    call.defect_detail = fmt::format("datatype {}", datatype);
  } else {
    call.datatype = static_cast<Datatype>(datatype);
  }
  return {};
}

// The call at `mark`, with the nearest prefix at or after `floor`; `end` becomes where it stops.
LogCall ParseCall(std::string_view line, const CallMark& mark, size_t floor, size_t& end) {
  LogCall call;
  call.prefix = PrefixOfMessageAt(line, floor, mark.begin);
  call.name = mark.name;
  FieldReader fields(line.substr(mark.op_count));
  const std::string missing = ParseCallFields(fields, call);
  end = mark.op_count + fields.position();
  if (mark.named == nullptr) {
    call.defect = mark.name.empty() ? CallDefect::kUnnamed : CallDefect::kUnsupportedKind;
    call.defect_detail = std::string(mark.name);
  } else if (!mark.named->kind) {
    call.defect = CallDefect::kUnsupportedKind;
    call.defect_detail = std::string(mark.name);
  } else if (!missing.empty()) {
    call.defect = CallDefect::kTruncated;
    call.defect_detail = fmt::format("no \"{}\"", missing);
  }
  if (mark.named != nullptr && mark.named->kind) call.kind = *mark.named->kind;
  return call;
}

// ---- Other messages. ----

// The key-value list after `comm`, up to the dash before the phase.
bool ParseInitFields(FieldReader& fields, LogInit& init, bool& has_rank, bool& has_phase) {
  bool has_rank_count = false;
  for (;;) {
    const std::string_view key = fields.Token();
    if (key.empty()) break;
    if (key == "-") {
      has_phase = true;
      break;
    }
    std::string_view value = fields.Token();
    // 2.23 to 2.28 print no blank between the key of a split and the dash.
    const bool dash_follows = value.size() > 1 && value.ends_with('-');
    if (dash_follows) value.remove_suffix(1);
    uint64_t pointer = 0;
    uint32_t number = 0;
    int64_t signed_number = 0;
    if (key == "rank") {
      if (!ParseNumber(value, init.rank)) return false;
      has_rank = true;
    } else if (key == "nranks" || key == "nRanks") {
      if (!ParseNumber(value, init.rank_count)) return false;
      has_rank_count = true;
    } else if (key == "cudaDev") {
      if (!ParseNumber(value, number)) return false;
      init.cuda_device = number;
    } else if (key == "commId") {
      init.comm_id = value;
    } else if (key == "parent") {
      if (!FieldReader(value).Pointer(pointer)) return false;
      init.parent = pointer;
    } else if (key == "splitCount" || key == "childCount") {
      if (!ParseNumber(value, pointer)) return false;
      init.split_count = pointer;
    } else if (key == "color") {
      if (!ParseNumber(value, signed_number)) return false;
      init.color = signed_number;
    } else if (key != "nvmlDev" && key != "busId" && key != "key" && key != "nNodes" &&
               key != "localRanks" && key != "localRank" && key != "MNNVL") {
      return false;
    }
    if (dash_follows) {
      has_phase = true;
      break;
    }
  }
  return has_rank && has_rank_count;
}

// `[[Rank I] ][ncclCommXxx ]comm PTR rank I … - Init COMPLETE` and its kin.
bool ParseCommunicatorMessage(const LogPrefix& prefix, std::string_view message,
                              std::vector<LogRecord>& records) {
  FieldReader fields(message);
  if (fields.rest().starts_with("[Rank ")) {
    const size_t bracket = message.find(']');
    if (bracket == std::string_view::npos) return false;
    fields = FieldReader(message.substr(bracket + 1));
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
  bool has_rank = false;
  bool has_phase = false;
  if (!ParseInitFields(fields, init, has_rank, has_phase)) return false;
  if (has_phase) {
    fields.SkipBlanks();
    const std::string_view phase = fields.rest();
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
  FieldReader fields(message.substr(colon + 1));
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

bool ParseTuning(const LogPrefix& prefix, std::string_view message,
                 std::vector<LogRecord>& records) {
  const size_t arrow = message.find(" Bytes -> Algo ");
  if (arrow == std::string_view::npos) return false;
  LogTuning tuning;
  tuning.prefix = prefix;
  FieldReader fields(message);
  if (const size_t colon = message.find(": "); colon != std::string_view::npos && colon < arrow) {
    for (const NamedKind& candidate : kNames) {
      if (message.substr(0, colon) == candidate.name) tuning.kind = candidate.kind;
    }
    if (!tuning.kind) return false;
    fields = FieldReader(message.substr(colon + 2));
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
  FieldReader fields(message);
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
  FieldReader fields(message);
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
  FieldReader fields(message);
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

void ParseVersion(std::string_view text, std::vector<LogRecord>& records) {
  constexpr std::string_view kMark = "CCL version ";  // NCCL and RCCL
  const size_t at = text.find(kMark);
  if (at == std::string_view::npos) return;
  std::string_view version = text.substr(at + kMark.size());
  if (version.starts_with(": ")) version.remove_prefix(2);
  size_t length = 0;
  while (length < version.size() && (IsDigit(version[length]) || version[length] == '.')) ++length;
  version = version.substr(0, length);
  if (version.empty() || !IsDigit(version.front()) || !IsDigit(version.back())) return;
  records.emplace_back(LogVersion{.version = version});
}

// What stands between calls: [begin, end) of `line`.
void ParseOtherMessages(std::string_view line, size_t begin, size_t end,
                        std::vector<LogRecord>& records) {
  constexpr std::string_view kMark = "INFO ";
  const std::string_view text = line.substr(0, end);
  ParseVersion(text.substr(begin), records);
  size_t at = text.find(kMark, begin);
  while (at != std::string_view::npos) {
    const size_t message_begin = at + kMark.size();
    const size_t next = text.find(kMark, message_begin);
    size_t message_end = end;
    if (next != std::string_view::npos) {
      const auto next_prefix = PrefixOfMessageAt(text, message_begin, next + kMark.size());
      message_end = next_prefix ? HostBegin(text, *next_prefix) : next;
    }
    if (const auto prefix = PrefixOfMessageAt(text, begin, message_begin)) {
      const std::string_view message = text.substr(message_begin, message_end - message_begin);
      ParseCommunicatorMessage(*prefix, message, records) ||
          ParseInitTimings(*prefix, message, records) || ParseTuning(*prefix, message, records) ||
          ParseRing(*prefix, message, records) || ParseWholeRing(*prefix, message, records) ||
          ParseTrees(*prefix, message, records);
    }
    at = next;
  }
}

}  // namespace

std::vector<LogRecord> ParseNcclLogLine(std::string_view line) {
  std::vector<LogRecord> records;
  size_t floor = 0;
  for (const CallMark& mark : FindCallMarks(line)) {
    // A mark inside what was read as the previous record's last field cannot start a record of its
    // own before that field's end.
    const size_t begin = std::max(mark.begin, floor);
    ParseOtherMessages(line, floor, begin, records);
    size_t end = 0;
    LogCall call = ParseCall(line, mark, floor, end);
    floor = std::max(floor, end);
    records.emplace_back(std::move(call));
  }
  ParseOtherMessages(line, floor, line.size(), records);
  return records;
}

uint64_t CountNcclCalls(std::string_view text, size_t from) {
  uint64_t count = 0;
  for (const CallMark& mark : FindCallMarks(text)) count += mark.end > from ? 1 : 0;
  return count;
}

}  // namespace railyard
