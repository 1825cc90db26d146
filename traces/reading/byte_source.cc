// SPDX-License-Identifier: GPL-2.0-only
#include "traces/reading/byte_source.h"

#include <cerrno>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <ios>
#include <memory>
#include <new>
#include <unistd.h>
#include <utility>
#include <vector>
#include <zstd.h>

#include <boost/iostreams/categories.hpp>
#include <boost/iostreams/close.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_streambuf.hpp>
#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {
namespace {

constexpr std::streamsize kDecompressionBufferBytes = 256 << 10;

class FileBytes : public ByteSource {
 public:
  explicit FileBytes(const std::string& path)
      : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) Fail();
  }
  ~FileBytes() override { close(descriptor_); }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  size_t Read(char* to, size_t bytes) override {
    ssize_t got = 0;
    do {
      got = read(descriptor_, to, bytes);
    } while (got < 0 && errno == EINTR);
    if (got < 0) Fail();
    return static_cast<size_t>(got);
  }

 private:
  [[noreturn]] void Fail() const {
    throw EnvironmentError(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
  }

  std::string path_;
  int descriptor_;
};

[[noreturn]] void ThrowDamaged() {
  throw DamagedInput("its compressed data are truncated or corrupt (expected a whole file)");
}

// Counts what is read of a source.
class CountedBytes : public ByteSource {
 public:
  explicit CountedBytes(ByteSource& source) : source_(source) {}

  size_t Read(char* to, size_t bytes) override {
    const size_t got = source_.Read(to, bytes);
    count_ += got;
    return got;
  }
  uint64_t count() const { return count_; }

 private:
  ByteSource& source_;
  uint64_t count_ = 0;
};

// Is the base of what decompresses: it ends with the data or with the first failure, and refuses
// data that expand beyond reason.
class DecompressedBytes : public ByteSource {
 public:
  explicit DecompressedBytes(ByteSource& compressed) : compressed_(compressed) {}

  size_t Read(char* to, size_t bytes) final {
    if (std::exchange(at_end_, true)) return 0;
    const size_t got = Decompress(to, bytes);
    if (got == 0) return 0;
    bytes_ += got;
    if (bytes_ > kExpansionFreeBytes && bytes_ / kExpansionMax > compressed_.count()) {
      throw DamagedInput(
          fmt::format("{} compressed bytes expand to more than {} (expected at most {} times as "
                      "many)",
                      compressed_.count(), bytes_, kExpansionMax));
    }
    at_end_ = false;
    return got;
  }

 protected:
  // Returns up to `bytes` of the following bytes; 0 at the end of complete data.
  virtual size_t Decompress(char* to, size_t bytes) = 0;
  ByteSource& compressed() { return compressed_; }

 private:
  CountedBytes compressed_;
  uint64_t bytes_ = 0;
  bool at_end_ = false;
};

// Holds what Boost.Iostreams' copies of a device have in common. The source's exceptions are kept,
// for a chain of filters turns some exceptions into the end of the data.
struct KeptSource {
  ByteSource* source = nullptr;
  std::exception_ptr failure;
};

class SourceDevice {
 public:
  // Boost.Iostreams asks for these names. NOLINTNEXTLINE(readability-identifier-naming)
  using char_type = char;
  // NOLINTNEXTLINE(readability-identifier-naming)
  using category = boost::iostreams::source_tag;

  explicit SourceDevice(KeptSource& kept) : kept_(&kept) {}

  std::streamsize read(char* to, std::streamsize bytes) {
    try {
      const size_t got = kept_->source->Read(to, static_cast<size_t>(bytes));
      return got == 0 ? -1 : static_cast<std::streamsize>(got);
    } catch (...) {
      kept_->failure = std::current_exception();
      return -1;
    }
  }

 private:
  KeptSource* kept_;
};

class GzipBytes final : public DecompressedBytes {
 public:
  explicit GzipBytes(ByteSource& source) : DecompressedBytes(source) {
    kept_.source = &compressed();
    chain_.push(boost::iostreams::gzip_decompressor(boost::iostreams::gzip::default_window_bits,
                                                    kDecompressionBufferBytes));
    chain_.push(SourceDevice(kept_), kDecompressionBufferBytes);
  }
  // The chain was closed at the end of the data, or what it says then is of no interest.
  ~GzipBytes() override {
    try {
      chain_.reset();
    } catch (...) {
    }
  }
  GzipBytes(const GzipBytes&) = delete;
  GzipBytes& operator=(const GzipBytes&) = delete;

 private:
  size_t Decompress(char* to, size_t bytes) override {
    std::streamsize got = 0;
    try {
      got = chain_.sgetn(to, static_cast<std::streamsize>(bytes));
      if (got <= 0) {
        // Only then is it checked that the last member was complete.
        chain_.strict_sync();
        boost::iostreams::close(chain_, std::ios_base::in);
      }
    } catch (const std::exception&) {
      if (kept_.failure) std::rethrow_exception(kept_.failure);
      ThrowDamaged();
    }
    if (kept_.failure) std::rethrow_exception(kept_.failure);
    return got <= 0 ? 0 : static_cast<size_t>(got);
  }

  KeptSource kept_;
  boost::iostreams::filtering_streambuf<boost::iostreams::input> chain_;
};

class ZstdBytes final : public DecompressedBytes {
 public:
  explicit ZstdBytes(ByteSource& source)
      : DecompressedBytes(source), context_(ZSTD_createDCtx()), buffer_(ZSTD_DStreamInSize()) {
    if (context_ == nullptr) throw std::bad_alloc();
  }

 private:
  struct Freed {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  // One frame may follow another.
  size_t Decompress(char* to, size_t bytes) override {
    ZSTD_outBuffer out = {to, bytes, 0};
    while (out.pos == 0) {
      // While it has more output than it had room for, it needs no input.
      if (in_.pos == in_.size && !has_more_) {
        in_ = {buffer_.data(), compressed().Read(buffer_.data(), buffer_.size()), 0};
        if (in_.size == 0 && is_in_frame_) ThrowDamaged();
        if (in_.size == 0) return 0;
      }
      const size_t left = ZSTD_decompressStream(context_.get(), &out, &in_);
      if (ZSTD_isError(left) != 0) ThrowDamaged();
      is_in_frame_ = left != 0;
      has_more_ = is_in_frame_ && out.pos == out.size;
    }
    return out.pos;
  }

  const std::unique_ptr<ZSTD_DCtx, Freed> context_;
  std::vector<char> buffer_;
  ZSTD_inBuffer in_{};
  bool is_in_frame_ = false;
  bool has_more_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> OpenFile(const std::string& path) {
  return std::make_unique<FileBytes>(path);
}

std::unique_ptr<ByteSource> Decompress(Compression compression, ByteSource& compressed) {
  if (compression == Compression::kGzip) return std::make_unique<GzipBytes>(compressed);
  return std::make_unique<ZstdBytes>(compressed);
}

}  // namespace railyard
