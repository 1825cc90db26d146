// SPDX-License-Identifier: GPL-2.0-only
#include "traces/complete_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

CompleteFile::CompleteFile(std::string path)
    : path_(std::move(path)), temporary_path_(path_ + ".XXXXXX") {
  descriptor_ = mkstemp(temporary_path_.data());
  if (descriptor_ < 0) Fail("create");
}

CompleteFile::~CompleteFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(temporary_path_.c_str());
}

void CompleteFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) Fail("write");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void CompleteFile::Commit() {
  // mkstemp makes files private; results are as readable as any other new file.
  const mode_t mask = umask(0);
  umask(mask);
  if (fchmod(descriptor_, 0666 & ~mask) != 0) Fail("set the mode of");
  if (fsync(descriptor_) != 0) Fail("sync");
  if (rename(temporary_path_.c_str(), path_.c_str()) != 0) Fail("rename");
  close(std::exchange(descriptor_, -1));
  // The new name must survive a crash as well; file systems that cannot sync a directory keep it.
  const std::string parent = std::filesystem::path(path_).parent_path().string();
  const int directory = open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY);
  if (directory >= 0) {
    fsync(directory);
    close(directory);
  }
}

void CompleteFile::Fail(std::string_view doing) const {
  throw EnvironmentError(fmt::format("cannot {} {}: {}", doing, path_, std::strerror(errno)));
}

}  // namespace railyard
