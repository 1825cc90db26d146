// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/output_options.h"

#include <filesystem>

#include <fmt/format.h>

#include "simulator/files/output_file.h"

namespace railyard {
namespace {

// Returns true for files that opening alone would affect.
bool IsSpecial(const std::string& path) {
  std::error_code error;
  return path == "-" ||
         (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error) &&
          !std::filesystem::is_directory(path, error));
}

}  // namespace

std::string CheckPath(const std::string& path) { return path.empty() ? "the path is empty" : ""; }

void CheckOutputs(const std::vector<OutputOption>& outputs, const std::vector<std::string>& inputs,
                  Diagnostics& diagnostics) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputOption& output = outputs[i];
    if (output.path.empty()) continue;
    const int errors_before = diagnostics.error_count();
    for (const std::string& input : inputs) {
      if (input.empty() || !std::filesystem::exists(input) || !IsSameFile(input, output.path)) {
        continue;
      }
      diagnostics.Error(
          {.file = output.name}, "",
          fmt::format("{} is read by this command (expected another file)", Quote(output.path)));
      break;
    }
    for (size_t other = 0; other < i; ++other) {
      if (outputs[other].path.empty() || !IsSameFile(outputs[other].path, output.path)) continue;
      diagnostics.Error({.file = output.name}, "",
                        fmt::format("{} is what {} writes (expected another file)",
                                    Quote(output.path), outputs[other].name));
      break;
    }
    if (diagnostics.error_count() > errors_before || IsSpecial(output.path)) continue;
    const OutputFile trial(output.path);  // nothing is left of it
  }
}

}  // namespace railyard
