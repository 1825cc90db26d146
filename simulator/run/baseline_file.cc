// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/baseline_file.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <xxhash.h>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/files/output_file.h"

namespace railyard {
namespace {

namespace fs = std::filesystem;

constexpr std::array<char, 8> kMagic = {'R', 'Y', 'B', 'A', 'S', 'E', ' ', '1'};

// Before the times of collectives and those of jobs, all as in memory: the key, which includes this
// program's digest, keeps other programs' layouts apart.
struct BaselineHeader {
  std::array<char, 8> magic = kMagic;
  XXH128_hash_t key{};
  uint64_t checksum = 0;  // of all that follows
  uint64_t collectives = 0;
  uint64_t jobs = 0;
  int64_t simulated_time_ps = 0;
};
constexpr size_t kChecksumEnd =
    offsetof(BaselineHeader, checksum) + sizeof(BaselineHeader::checksum);
static_assert(std::is_trivially_copyable_v<BaselineHeader>);
static_assert(std::is_trivially_copyable_v<CollectiveOutcome>);

uint64_t ChecksumOf(std::string_view bytes) {
  return XXH3_64bits(bytes.data() + kChecksumEnd, bytes.size() - kChecksumEnd);
}

XXH128_hash_t HashOf(const std::string& key) { return XXH3_128bits(key.data(), key.size()); }

template <typename Value>
void Append(const Value* values, size_t count, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(values), count * sizeof(Value));
}

template <typename Value>
void Take(const char*& at, std::vector<Value>& values) {
  std::memcpy(values.data(), at, values.size() * sizeof(Value));
  at += values.size() * sizeof(Value);
}

// Also of a file that is shorter.
bool HasMagic(std::string_view bytes) {
  return std::string_view(kMagic.data(), kMagic.size()).starts_with(bytes.substr(0, kMagic.size()));
}

}  // namespace

bool IsForeignFile(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return false;
  if (!fs::is_regular_file(status)) return true;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) ThrowErrno("read", path);
  std::string bytes(kMagic.size(), '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (stream.bad()) ThrowErrno("read", path);
  bytes.resize(static_cast<size_t>(stream.gcount()));
  return !HasMagic(bytes);
}

std::optional<Baseline::Outcome> ReadBaselineFile(const BaselineFile& file, size_t collectives,
                                                  size_t jobs) {
  std::error_code error;
  const fs::file_status status = fs::status(file.path, error);
  if (status.type() == fs::file_type::not_found) {
    const fs::path parent = fs::absolute(file.path).parent_path();
    if (fs::is_directory(parent, error)) return std::nullopt;
    throw EnvironmentError(
        fmt::format("{} cannot be written: there is no directory {}", file.path, parent.string()));
  }
  const auto foreign = [&file] {
    return EnvironmentError(
        fmt::format("{} is no file of fault-free runs (expected one, or a new name)", file.path));
  };
  if (!fs::is_regular_file(status)) throw foreign();
  std::ifstream stream(file.path, std::ios::binary);
  if (!stream) ThrowErrno("read", file.path);
  // One byte more than it should have, to see that there is no more.
  std::string bytes(
      sizeof(BaselineHeader) + collectives * sizeof(CollectiveOutcome) + jobs * sizeof(int64_t) + 1,
      '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (stream.bad()) ThrowErrno("read", file.path);
  const size_t expected = bytes.size() - 1;
  bytes.resize(static_cast<size_t>(stream.gcount()));
  if (!HasMagic(bytes)) throw foreign();
  if (bytes.size() != expected) return std::nullopt;
  BaselineHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (XXH128_isEqual(header.key, HashOf(file.key)) == 0 || header.checksum != ChecksumOf(bytes) ||
      header.collectives != collectives || header.jobs != jobs) {
    return std::nullopt;
  }
  Baseline::Outcome outcome;
  outcome.simulated_time_ps = header.simulated_time_ps;
  outcome.collectives.resize(collectives);
  outcome.job_end_ps.resize(jobs);
  const char* at = bytes.data() + sizeof(header);
  Take(at, outcome.collectives);
  Take(at, outcome.job_end_ps);
  return outcome;
}

void WriteBaselineFile(const BaselineFile& file, const Baseline::Outcome& outcome) {
  BaselineHeader header;
  header.key = HashOf(file.key);
  header.collectives = outcome.collectives.size();
  header.jobs = outcome.job_end_ps.size();
  header.simulated_time_ps = outcome.simulated_time_ps;
  std::string bytes;
  Append(&header, 1, bytes);
  Append(outcome.collectives.data(), outcome.collectives.size(), bytes);
  Append(outcome.job_end_ps.data(), outcome.job_end_ps.size(), bytes);
  header.checksum = ChecksumOf(bytes);
  std::memcpy(bytes.data(), &header, sizeof(header));
  // A checksum tells a file that a power cut has torn, and the file is made again.
  WriteOutput(file.path, bytes, Sync::kLater);
}

}  // namespace railyard
