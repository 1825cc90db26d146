// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/files/file_sync.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/files/output_file.h"

namespace railyard {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> FilesIn(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_regular_file(error)) files.push_back(entry->path().string());
  }
  if (error) throw EnvironmentError(fmt::format("cannot read {}: {}", directory, error.message()));
  return files;
}

// Only a request: whoever waits for the file later learns of errors.
void BeginToWrite(const std::string& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
  close(descriptor);
}

}  // namespace

// All are on their way before the first is waited for, which then waits for most of the others.
void SyncFilesIn(const std::string& directory) {
  const std::vector<std::string> files = FilesIn(directory);
  for (const std::string& file : files) BeginToWrite(file);
  for (const std::string& file : files) SyncPath(file);
  SyncPath(directory);
}

FileSystemSync::FileSystemSync(std::string path)
    : path_(std::move(path)), descriptor_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) ThrowErrno("open", path_);
}

FileSystemSync::~FileSystemSync() { close(descriptor_); }

void FileSystemSync::Commit() const {
  if (syncfs(descriptor_) != 0) ThrowErrno("write", path_);
}

}  // namespace railyard
