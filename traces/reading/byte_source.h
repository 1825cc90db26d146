// SPDX-License-Identifier: GPL-2.0-only
// Bytes of an input file, one after the other: as they lie on disk, or decompressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace railyard {

// The bytes are damaged (a truncated or corrupt compressed file, an archive that is none). Caught
// by InputStream, which ends there and says why.
class DamagedInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Up to `bytes` of what follows; 0 at the end. DamagedInput or EnvironmentError.
  virtual size_t Read(char* to, size_t bytes) = 0;
};

// The bytes of `path`. EnvironmentError if it cannot be opened or, later, read.
std::unique_ptr<ByteSource> OpenFile(const std::string& path);

enum class Compression : uint8_t { kGzip, kZstd };

// What `compressed`, which must outlive it, is when it is decompressed. DamagedInput where the data
// are corrupt or truncated, and where they expand beyond kExpansionMax: nothing that a profiler
// writes does, so that is an attack or a mistake.
std::unique_ptr<ByteSource> Decompress(Compression compression, ByteSource& compressed);

inline constexpr uint64_t kExpansionMax = 250;  // bytes for each compressed one; JSON has 10 to 40
inline constexpr uint64_t kExpansionFreeBytes = uint64_t{64} << 20;  // whatever they come from

}  // namespace railyard
