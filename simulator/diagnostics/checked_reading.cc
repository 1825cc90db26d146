// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/checked_reading.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {
namespace {

[[noreturn]] void ThrowUnreadable(const std::string& path) {
  throw EnvironmentError(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
}

}  // namespace

std::ifstream OpenToRead(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) ThrowUnreadable(path);
  return file;
}

void CheckReading(const std::istream& stream, const std::string& path) {
  if (stream.bad()) ThrowUnreadable(path);
}

}  // namespace railyard
