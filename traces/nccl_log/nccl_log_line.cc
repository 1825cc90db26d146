// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_line.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "simulator/units/number.h"
#include "traces/nccl_log/log_field_reader.h"
#include "traces/nccl_log/nccl_log_call_record.h"
#include "traces/nccl_log/nccl_log_message.h"

namespace railyard {
namespace {

bool IsHostCharacter(char c) { return IsNameCharacter(c) || c == '-' || c == '.'; }

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

// Parses the text [begin, end) of `line` between calls.
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
    const std::string_view message = text.substr(message_begin, message_end - message_begin);
    // Between its prefix and a call there is none.
    const auto prefix =
        message.empty() ? std::nullopt : PrefixOfMessageAt(text, begin, message_begin);
    if (prefix) {
      ParseLogMessage(*prefix, message, records);
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
    LogCall call = ParseCallRecord(line, mark, end);
    call.prefix = PrefixOfMessageAt(line, floor, mark.begin);
    if (call.prefix) {
      const std::string_view before = line.substr(floor, HostBegin(line, *call.prefix) - floor);
      call.time = TimeAtEndOf(before);
      call.has_other_time = !call.time && HasTimeOfDayNearEnd(before);
    }
    floor = std::max(floor, end);
    records.emplace_back(std::move(call));
  }
  ParseOtherMessages(line, floor, line.size(), records);
  return records;
}

}  // namespace railyard
