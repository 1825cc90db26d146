// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/output_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

namespace {
constexpr size_t kBufferBytes = size_t{256} * 1024;
}  // namespace

void ThrowErrno(std::string_view what, const std::string& path) {
  throw EnvironmentError(fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
}

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) ThrowErrno("create", path_);
  buffer_.reserve(kBufferBytes);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void OutputFile::Write(std::string_view text) {
  buffer_.append(text);
  if (buffer_.size() >= kBufferBytes) Flush();
}

void OutputFile::Flush() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) ThrowErrno("write", path_);
    rest.remove_prefix(static_cast<size_t>(written));
  }
  buffer_.clear();
}

void OutputFile::Close() {
  Flush();
  if (fsync(descriptor_) != 0) ThrowErrno("write", path_);
  if (close(std::exchange(descriptor_, -1)) != 0) ThrowErrno("write", path_);
}

void SyncPath(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) ThrowErrno("open", path);
  const int synced = fsync(descriptor);
  const int error = errno;
  close(descriptor);
  // Some file systems cannot sync a directory (EINVAL); they order its entries themselves.
  if (synced != 0 && error != EINVAL) {
    errno = error;
    ThrowErrno("write", path);
  }
}

}  // namespace railyard
