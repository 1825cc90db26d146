// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_profiler/nccl_profiler_event.h"

#include <cmath>
#include <cstddef>

#include "simulator/units/number.h"
#include "simulator/units/units.h"

namespace railyard {

std::string_view NcclProfilerField(std::string_view fields, std::string_view name) {
  for (size_t at = fields.find(name); at != std::string_view::npos;
       at = fields.find(name, at + name.size())) {
    const size_t end = at + name.size();
    if (at == 0 || fields[at - 1] != '"' || end >= fields.size() || fields[end] != '"') continue;
    std::string_view value = fields.substr(end + 1);
    while (!value.empty() && (value.front() == ':' || value.front() == ' ')) value.remove_prefix(1);
    if (value.starts_with('"')) {
      value.remove_prefix(1);
      const size_t quote = value.find('"');
      return quote == std::string_view::npos ? std::string_view() : value.substr(0, quote);
    }
    const size_t stop = value.find_first_of(",} ");
    return stop == std::string_view::npos ? std::string_view() : value.substr(0, stop);
  }
  return {};
}

std::optional<NcclProfilerEvent> ParseNcclProfilerLine(std::string_view line) {
  constexpr double kTimeUsMax = 1e12;  // 12 days
  while (!line.empty() && (line.back() == ',' || line.back() == ' ' || line.back() == '\r')) {
    line.remove_suffix(1);
  }
  while (!line.empty() && (line.front() == ' ' || line.front() == '[')) line.remove_prefix(1);
  if (line.size() < 2 || line.front() != '{' || line.back() != '}') return std::nullopt;
  const size_t arguments = line.find("\"args\"");
  const std::string_view head = line.substr(0, arguments);
  NcclProfilerEvent event;
  event.name = NcclProfilerField(head, "name");
  event.category = NcclProfilerField(head, "cat");
  const std::string_view phase = NcclProfilerField(head, "ph");
  if (event.category.empty() || (phase != "b" && phase != "e")) return std::nullopt;
  event.is_begin = phase == "b";
  event.process = NumberOf<uint64_t>(NcclProfilerField(head, "pid")).value_or(0);
  const std::string_view time = arguments == std::string_view::npos ? NcclProfilerField(line, "ts")
                                                                    : NcclProfilerField(head, "ts");
  double time_us = 0;
  if (ParseNumber(time, time_us) && time_us >= 0 && time_us < kTimeUsMax) {
    event.time_ps = std::llround(time_us * static_cast<double>(kPsPerUs));
  }
  if (arguments != std::string_view::npos) event.fields = line.substr(arguments);
  return event;
}

}  // namespace railyard
