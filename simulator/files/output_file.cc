// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/files/output_file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/files/hidden_name.h"

namespace railyard {

namespace fs = std::filesystem;

namespace {

constexpr size_t kBufferBytes = size_t{256} * 1024;

// Returns the descriptor of standard output or standard error if that is the file; else -1.
int StandardDescriptorOf(const struct stat& file) {
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat open_file = {};
    if (fstat(descriptor, &open_file) == 0 && open_file.st_dev == file.st_dev &&
        open_file.st_ino == file.st_ino) {
      return descriptor;
    }
  }
  return -1;
}

// Opens what is no regular file. A pipe that nobody reads is waited for, which a signal ends.
int OpenInPlace(const std::string& path, bool is_pipe) {
  constexpr useconds_t kPollUs = 20'000;
  const Interruptible interruptible;
  int descriptor = -1;
  while ((descriptor = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0) {
    // A socket gives ENXIO, too.
    if (errno != EINTR && !(is_pipe && errno == ENXIO)) ThrowErrno("write", path);
    if (NotedInterruption() != 0) {
      throw EnvironmentError(fmt::format("cannot write {}: nobody reads it", path));
    }
    usleep(kPollUs);
  }
  if (fcntl(descriptor, F_SETFL, O_WRONLY) != 0) {
    close(descriptor);
    ThrowErrno("write", path);
  }
  return descriptor;
}

// Opens a file without a name in a directory, of which nothing is left when the process ends.
// Returns -1 where the file system has none, or where it could not be named later.
int OpenNameless(const std::string& directory) {
  if (access("/proc/self/fd", X_OK) != 0) return -1;
  return open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
}

}  // namespace

void ThrowErrno(std::string_view what, const std::string& path) {
  throw EnvironmentError(fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
}

OutputFile::OutputFile(std::string path, Sync sync) : path_(std::move(path)), sync_(sync) {
  buffer_.reserve(kBufferBytes);
  struct stat file = {};
  const bool exists = path_ != "-" && stat(path_.c_str(), &file) == 0;
  const int standard = path_ == "-" ? STDOUT_FILENO : exists ? StandardDescriptorOf(file) : -1;
  if (standard >= 0) {
    std::fflush(nullptr);
    descriptor_ = fcntl(standard, F_DUPFD_CLOEXEC, 0);
    if (descriptor_ < 0) ThrowErrno("write", path_ == "-" ? "standard output" : path_);
  } else if (!exists || S_ISREG(file.st_mode)) {
    OpenUnfinished();
  } else {
    descriptor_ = OpenInPlace(path_, S_ISFIFO(file.st_mode));
  }
}

void OutputFile::OpenUnfinished() {
  std::error_code error;
  fs::path target = fs::absolute(path_, error);
  for (int links = 0; fs::is_symlink(target, error); ++links) {
    if (links == 40) {
      errno = ELOOP;
      ThrowErrno("create", path_);
    }
    target = target.parent_path() / fs::read_symlink(target, error);
  }
  target_ = target.string();
  interruptible_.emplace();
  descriptor_ = OpenNameless(target.parent_path().string());
  if (descriptor_ < 0) {
    std::string pattern = (target.parent_path() / fmt::format("{}XXXXXX", kHiddenPrefix)).string();
    descriptor_ = mkostemp(pattern.data(), O_CLOEXEC);
    if (descriptor_ < 0) ThrowErrno("create", path_);
    unfinished_ = std::move(pattern);
  }
  // The name may be too long, or that of a directory.
  struct stat ignored = {};
  if (path_.ends_with('/')) errno = EISDIR;
  if (path_.ends_with('/') || (lstat(target_.c_str(), &ignored) != 0 && errno != ENOENT)) {
    const int why = errno;
    if (!unfinished_.empty()) unlink(unfinished_.c_str());
    close(std::exchange(descriptor_, -1));
    errno = why;
    ThrowErrno("create", path_);
  }
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  if (!unfinished_.empty()) unlink(unfinished_.c_str());
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
    if (written < 0) ThrowErrno("write", path_ == "-" ? "standard output" : path_);
    rest.remove_prefix(static_cast<size_t>(written));
  }
  buffer_.clear();
}

void OutputFile::Close() {
  Flush();
  if (target_.empty()) {
    if (close(std::exchange(descriptor_, -1)) != 0) ThrowErrno("write", path_);
    return;
  }
  // The unfinished file is private; the finished one is as readable as any other new file.
  const mode_t mask = umask(0);
  umask(mask);
  if (fchmod(descriptor_, 0666 & ~mask) != 0 ||
      (sync_ == Sync::kAtOnce && fsync(descriptor_) != 0)) {
    ThrowErrno("write", path_);
  }
  TakeName();
  if (close(std::exchange(descriptor_, -1)) != 0) ThrowErrno("write", path_);
  if (sync_ == Sync::kAtOnce) SyncPath(fs::path(target_).parent_path().string());
}

void OutputFile::TakeName() {
  const std::string own = fmt::format("/proc/self/fd/{}", descriptor_);
  const auto has_named = [&own](const std::string& name) {
    return linkat(AT_FDCWD, own.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (unfinished_.empty() && has_named(target_)) return;
  // Only a file with a name can be put in the place of another.
  while (unfinished_.empty()) {
    if (errno != EEXIST) ThrowErrno("create", path_);
    const std::string name = NewHiddenName(fs::path(target_).parent_path()).string();
    if (has_named(name)) unfinished_ = name;
  }
  if (rename(unfinished_.c_str(), target_.c_str()) != 0) ThrowErrno("create", path_);
}

void WriteOutput(const std::string& path, std::string_view text, Sync sync) {
  OutputFile file(path, sync);
  file.Write(text);
  file.Close();
}

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat file_a = {};
  struct stat file_b = {};
  const bool exists_a = stat(a.c_str(), &file_a) == 0;
  if (exists_a && !S_ISREG(file_a.st_mode)) return false;
  if (exists_a && stat(b.c_str(), &file_b) == 0) {
    return file_a.st_dev == file_b.st_dev && file_a.st_ino == file_b.st_ino;
  }
  std::error_code error;
  const fs::path canonical_a = fs::weakly_canonical(a, error);
  if (error) return a == b;
  const fs::path canonical_b = fs::weakly_canonical(b, error);
  return error ? a == b : canonical_a == canonical_b;
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
