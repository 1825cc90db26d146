// SPDX-License-Identifier: GPL-2.0-only
#include "traces/reading/lines.h"

#include <string>

#include <fmt/format.h>

namespace railyard {

bool ForEachLine(InputStream& stream, size_t bytes_max, ImportedFile& file,
                 const std::function<bool(std::string_view)>& visit, Diagnostics& diagnostics) {
  std::string line;
  for (std::string_view next = stream.Peek(); !next.empty(); next = stream.Peek()) {
    const size_t end = next.find('\n');
    line.append(next.substr(0, end));
    stream.Skip(end == std::string_view::npos ? next.size() : end + 1);
    if (line.size() > bytes_max) {
      diagnostics.Error({.file = stream.name(), .line = static_cast<int>(file.lines_read + 1)}, "",
                        fmt::format("the line is longer than {} bytes", bytes_max));
      return false;
    }
    if (end == std::string_view::npos) continue;
    ++file.lines_read;
    if (!visit(line)) return false;
    line.clear();
  }
  if (line.empty()) return true;
  ++file.lines_read;
  return visit(line);
}

}  // namespace railyard
