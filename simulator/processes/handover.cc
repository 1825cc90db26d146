// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/processes/handover.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

Handover::Handover() : file_(memfd_create("railyard", MFD_CLOEXEC)) {
  if (file_ < 0) {
    throw EnvironmentError(fmt::format("no memory to share with a run: {}", std::strerror(errno)));
  }
}

Handover::~Handover() { close(file_); }

void Handover::Put(const std::string& text) {
  Put(uint64_t{text.size()});
  Write(text.data(), text.size());
}

bool Handover::Take(std::string& text) {
  uint64_t bytes = 0;
  struct stat status = {};
  if (!Take(bytes) || fstat(file_, &status) != 0) return false;
  if (bytes > static_cast<uint64_t>(status.st_size) - position_) return false;
  text.resize(bytes);
  return Read(text.data(), bytes);
}

void Handover::Write(const void* data, size_t bytes) {
  const char* const from = static_cast<const char*>(data);
  for (size_t written = 0; written < bytes;) {
    const ssize_t count =
        pwrite(file_, from + written, bytes - written, static_cast<off_t>(position_ + written));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      throw EnvironmentError(
          fmt::format("a run's outcome cannot be handed over: {}", std::strerror(errno)));
    }
    written += static_cast<size_t>(count);
  }
  position_ += bytes;
}

bool Handover::Read(void* data, size_t bytes) {
  char* const to = static_cast<char*>(data);
  for (size_t read = 0; read < bytes;) {
    const ssize_t count =
        pread(file_, to + read, bytes - read, static_cast<off_t>(position_ + read));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    read += static_cast<size_t>(count);
  }
  position_ += bytes;
  return true;
}

}  // namespace railyard
