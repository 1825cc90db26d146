// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/wrapped_call.h"

#include <optional>
#include <tuple>
#include <utility>

#include "traces/nccl_log/nccl_log_call_record.h"
#include "traces/nccl_log/nccl_log_line.h"
#include "traces/nccl_log/nccl_log_reader.h"

namespace railyard {
namespace {

// The call that ends `text` and begins before `begin_max`, if it is whole or may go on; its views
// point into `text`.
std::optional<LogCall> UsableLastCall(std::string_view text, size_t begin_max) {
  const CallMarks marks = FindCallMarks(text);
  if (marks.empty() || marks.back().begin >= begin_max) return std::nullopt;
  const std::vector<LogRecord> records = ParseNcclLogLine(text);
  if (records.empty()) return std::nullopt;
  const auto* const call = std::get_if<LogCall>(&records.back());
  if (call == nullptr) return std::nullopt;
  const bool is_whole = call->defect == CallDefect::kNone;
  return is_whole || call->ends_with_text ? std::optional(*call) : std::nullopt;
}

bool SayTheSame(const LogCall& a, const LogCall& b) {
  const auto fields = [](const LogCall& call) {
    return std::tuple(call.defect, call.defect_detail, call.kind, call.op_count, call.count,
                      call.datatype, call.root, call.communicator, call.rank_count, call.stream,
                      call.same_buffers, call.rank);
  };
  return fields(a) == fields(b);
}

}  // namespace

bool WrappedCall::MayBeginIn(std::string_view line, const std::vector<LogRecord>& records) {
  if (records.empty()) return EndsWithinCallMark(line);
  const auto* const call = std::get_if<LogCall>(&records.back());
  return call != nullptr && call->ends_with_text;
}

void WrappedCall::Begin(const std::string& line) {
  text_ = line;
  lines_ = 1;
}

WrappedCall::Appended WrappedCall::Append(std::string_view line) {
  if (line.empty() || lines_ == kLinesMax || text_.size() + line.size() >= kNcclLogLineBytesMax ||
      line.find("INFO ") != std::string_view::npos) {
    return Appended::kNothing;
  }
  // The rest of a name that was broken may look like a name: "A", "llReduce: opCount". Then the
  // call must begin before the break.
  const bool breaks_name = ParseNcclLogLine(text_).empty();
  if (!breaks_name && !ParseNcclLogLine(line).empty()) return Appended::kNothing;
  const size_t begin_max = breaks_name ? text_.size() : std::string_view::npos;
  std::string glued = text_ + std::string(line);
  std::string spaced = text_ + " " + std::string(line);
  const auto glued_call = UsableLastCall(glued, begin_max);
  const auto spaced_call = UsableLastCall(spaced, begin_max);
  if (!glued_call && !spaced_call) return Appended::kNothing;
  if (glued_call && spaced_call && !SayTheSame(*glued_call, *spaced_call))
    return Appended::kNothing;
  const bool is_whole = (glued_call ? glued_call : spaced_call)->defect == CallDefect::kNone;
  text_ = std::move(glued_call ? glued : spaced);
  ++lines_;
  return is_whole ? Appended::kCallIsWhole : Appended::kCallGoesOn;
}

}  // namespace railyard
