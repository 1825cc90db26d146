// SPDX-License-Identifier: GPL-2.0-only
#include "traces/reading/input_files.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/natural_order.h"
#include "traces/reading/tar_archive.h"

namespace railyard {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDirectoryFilesMax = 1'000'000;
constexpr const char* kEndsEarly = "ends without tar's end mark: files may be missing";
constexpr size_t kRefusalBytes = 4096;  // that tell what a file is

// Adds what is no file, and therefore left out, to `passed_over`.
std::vector<std::string> FilesBelow(const std::string& directory,
                                    std::map<std::string, std::string>& passed_over) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator it(directory, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const bool is_hidden = it->path().filename().string().starts_with('.');
    std::error_code unknown;
    if (it->is_directory(unknown)) {
      if (is_hidden) it.disable_recursion_pending();
      continue;
    }
    if (is_hidden) continue;
    if (it->is_regular_file(unknown)) {
      files.push_back(it->path().string());
    } else {
      passed_over[it->path().string()] =
          it->is_symlink(unknown) ? "is a symbolic link to no file" : "is no regular file";
    }
    if (files.size() > kDirectoryFilesMax) {
      throw EnvironmentError(
          fmt::format("{} holds more than {} files", directory, kDirectoryFilesMax));
    }
  }
  if (error) throw EnvironmentError(fmt::format("cannot read {}: {}", directory, error.message()));
  std::sort(files.begin(), files.end(), NaturalLess());
  return files;
}

}  // namespace

InputFiles::InputFiles(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      paths_.push_back(path);
      continue;
    }
    for (std::string& file : FilesBelow(path, passed_over_)) paths_.push_back(std::move(file));
  }
}

bool InputFiles::Visit(InputStream& stream, const std::function<bool(InputStream&)>& visit,
                       Diagnostics& diagnostics) const {
  if (left_out_.contains(stream.name())) return true;
  if (refusal_) {
    const std::string why = refusal_(stream.Peek(kRefusalBytes));
    if (stream.failure().empty() && !why.empty()) {
      diagnostics.Error({stream.name()}, "", why);
      return true;
    }
  }
  const bool goes_on = visit(stream);
  if (!stream.failure().empty()) diagnostics.Error({stream.name()}, "", stream.failure());
  return goes_on;
}

void InputFiles::ForEach(const std::function<bool(InputStream&)>& visit,
                         Diagnostics& diagnostics) const {
  for (const std::string& path : paths_) {
    InputStream file(path, OpenFile(path));
    if (!IsTarArchive(file.Peek(kTarBlockBytes))) {
      if (!Visit(file, visit, diagnostics)) return;
      continue;
    }
    bool goes_on = true;
    const int errors_before = diagnostics.error_count();
    try {
      const bool is_complete = ForEachTarEntry(
          file,
          [&](const std::string& name, std::unique_ptr<ByteSource> entry) {
            InputStream stream(fmt::format("{}/{}", path, name), std::move(entry));
            return goes_on = Visit(stream, visit, diagnostics);
          },
          [&](const std::string& name, const std::string& reason) {
            passed_over_[fmt::format("{}/{}", path, name)] = reason;
          });
      if (!is_complete && passed_over_.try_emplace(path, kEndsEarly).second) {
        diagnostics.Warning({path}, "", kEndsEarly);
      }
    } catch (const DamagedInput& damaged) {
      // The file that it ends in may have said so.
      if (diagnostics.error_count() == errors_before) {
        diagnostics.Error({path}, "", damaged.what());
      }
    }
    if (!goes_on) return;
  }
}

}  // namespace railyard
