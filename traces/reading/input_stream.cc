// SPDX-License-Identifier: GPL-2.0-only
#include "traces/reading/input_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace railyard {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;
constexpr std::string_view kGzipMagic("\x1f\x8b", 2);
constexpr std::string_view kZstdMagic("\x28\xb5\x2f\xfd", 4);
constexpr std::string_view kByteOrderMark("\xef\xbb\xbf", 3);

// A source whose first bytes have been read already.
class Unread : public ByteSource {
 public:
  Unread(std::string first, std::unique_ptr<ByteSource> rest)
      : first_(std::move(first)), rest_(std::move(rest)) {}

  size_t Read(char* to, size_t bytes) override {
    if (given_ == first_.size()) return rest_->Read(to, bytes);
    const size_t count = std::min(bytes, first_.size() - given_);
    std::memcpy(to, first_.data() + given_, count);
    given_ += count;
    return count;
  }

 private:
  std::string first_;
  size_t given_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

std::string ReadMagic(ByteSource& source) {
  std::string magic(kZstdMagic.size(), '\0');
  size_t size = 0;
  while (size < magic.size()) {
    const size_t got = source.Read(magic.data() + size, magic.size() - size);
    if (got == 0) break;
    size += got;
  }
  magic.resize(size);
  return magic;
}

}  // namespace

InputStream::InputStream(std::string name, std::unique_ptr<ByteSource> source)
    : name_(std::move(name)), buffer_(kBufferBytes + 1) {
  std::string magic;
  try {
    magic = ReadMagic(*source);
  } catch (const DamagedInput& damaged) {
    failure_ = damaged.what();
    at_end_ = true;
  }
  const bool is_gzip = magic.starts_with(kGzipMagic);
  const bool is_zstd = magic == kZstdMagic;
  source_ = std::make_unique<Unread>(std::move(magic), std::move(source));
  if (is_gzip || is_zstd) {
    decompressed_ = Decompress(is_gzip ? Compression::kGzip : Compression::kZstd, *source_);
  }
  if (Peek(kByteOrderMark.size()).starts_with(kByteOrderMark)) Skip(kByteOrderMark.size());
}

size_t InputStream::ReadSource(char* to, size_t bytes) {
  if (at_end_) return 0;
  try {
    ByteSource& source = decompressed_ ? *decompressed_ : *source_;
    const size_t got = source.Read(to, bytes);
    at_end_ = got == 0;
    bytes_filled_ += got;
    return got;
  } catch (const DamagedInput& damaged) {
    failure_ = damaged.what();
    at_end_ = true;
    return 0;
  }
}

void InputStream::Fill(size_t bytes) {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  while (end_ < bytes) {
    const size_t got = ReadSource(buffer_.data() + end_, kBufferBytes - end_);
    if (got == 0) break;
    end_ += got;
  }
  buffer_[end_] = '\0';
}

size_t InputStream::Read(char* to, size_t bytes) {
  size_t copied = 0;
  while (copied < bytes) {
    const std::string_view next = Peek();
    if (next.empty()) break;
    const size_t count = std::min(bytes - copied, next.size());
    std::memcpy(to + copied, next.data(), count);
    Skip(count);
    copied += count;
  }
  return copied;
}

}  // namespace railyard
