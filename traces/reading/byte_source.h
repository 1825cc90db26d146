// SPDX-License-Identifier: GPL-2.0-only
// Reads the bytes of an input file, as they are on disk or decompressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace railyard {

// Is thrown for damaged bytes (a truncated or corrupt compressed file, an invalid archive).
// InputStream catches it, ends there and reports the reason.
class DamagedInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Reads up to `bytes` of the following bytes; returns 0 at the end. Throws DamagedInput or
  // EnvironmentError.
  virtual size_t Read(char* to, size_t bytes) = 0;
};

// Opens `path`. Throws EnvironmentError if it cannot be opened or, later, read.
std::unique_ptr<ByteSource> OpenFile(const std::string& path);

enum class Compression : uint8_t { kGzip, kZstd };

// Decompresses `compressed`, which must outlive the result. Throws DamagedInput if the data are
// corrupt or truncated, or expand by more than kExpansionMax: no profiler's output does, so it must
// be an attack or a mistake.
std::unique_ptr<ByteSource> Decompress(Compression compression, ByteSource& compressed);

inline constexpr uint64_t kExpansionMax = 250;  // bytes per compressed byte; JSON has 10 to 40
inline constexpr uint64_t kExpansionFreeBytes = uint64_t{64} << 20;  // allowed for any input

}  // namespace railyard
