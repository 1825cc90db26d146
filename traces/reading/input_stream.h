// SPDX-License-Identifier: GPL-2.0-only
// Presents one file of an import to its reader: named, buffered, decompressed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "traces/reading/byte_source.h"

namespace railyard {

class InputStream {
 public:
  // `name` is used in findings and reports; a member of an archive is "dumps.tgz/rank0.json". Data
  // that begin with the magic number of gzip or zstd are decompressed. A byte order mark of UTF-8
  // is skipped.
  InputStream(std::string name, std::unique_ptr<ByteSource> source);
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  const std::string& name() const { return name_; }
  bool is_compressed() const { return decompressed_ != nullptr; }

  // Returns the next buffered bytes, at least `bytes` (up to kPeekBytesMax) unless the data end
  // before. They are valid until the next call of Peek or Read, and a '\0' follows them.
  std::string_view Peek(size_t bytes = 1) {
    if (end_ - begin_ < bytes) Fill(bytes);
    return {buffer_.data() + begin_, end_ - begin_};
  }
  // Skips the next `bytes`, which Peek has returned.
  void Skip(size_t bytes) { begin_ += bytes; }
  // Copies `bytes` bytes, fewer only at the end.
  size_t Read(char* to, size_t bytes);

  // Returns the number of decompressed bytes consumed so far.
  uint64_t bytes_read() const { return bytes_filled_ - (end_ - begin_); }
  // Returns why the data end early, for a finding; empty if they do not.
  const std::string& failure() const { return failure_; }

  static constexpr size_t kPeekBytesMax = size_t{64} << 10;

 private:
  void Fill(size_t bytes);
  size_t ReadSource(char* to, size_t bytes);

  std::string name_;
  std::unique_ptr<ByteSource> source_;        // as on disk
  std::unique_ptr<ByteSource> decompressed_;  // of source_, if that is compressed
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t bytes_filled_ = 0;
  bool at_end_ = false;
  std::string failure_;
};

}  // namespace railyard
