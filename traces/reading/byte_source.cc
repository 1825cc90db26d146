// SPDX-License-Identifier: GPL-2.0-only
#include "traces/reading/byte_source.h"

#include <cerrno>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <ios>
#include <unistd.h>

#include <boost/iostreams/categories.hpp>
#include <boost/iostreams/close.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/zstd.hpp>
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

// Boost.Iostreams copies its devices, so that this one only points to the source. The
// source's exceptions are kept, for a chain of filters turns some exceptions into the end of the
// data.
struct CompressedBytes {
  ByteSource* source = nullptr;
  uint64_t bytes = 0;
  std::exception_ptr failure;
};

class CompressedDevice {
 public:
  // Boost.Iostreams asks for these names. NOLINTNEXTLINE(readability-identifier-naming)
  using char_type = char;
  // NOLINTNEXTLINE(readability-identifier-naming)
  using category = boost::iostreams::source_tag;

  explicit CompressedDevice(CompressedBytes& compressed) : compressed_(&compressed) {}

  std::streamsize read(char* to, std::streamsize bytes) {
    try {
      const size_t got = compressed_->source->Read(to, static_cast<size_t>(bytes));
      compressed_->bytes += got;
      return got == 0 ? -1 : static_cast<std::streamsize>(got);
    } catch (...) {
      compressed_->failure = std::current_exception();
      return -1;
    }
  }

 private:
  CompressedBytes* compressed_;
};

class DecompressedBytes : public ByteSource {
 public:
  DecompressedBytes(Compression compression, ByteSource& source) {
    compressed_.source = &source;
    if (compression == Compression::kGzip) {
      chain_.push(boost::iostreams::gzip_decompressor(boost::iostreams::gzip::default_window_bits,
                                                      kDecompressionBufferBytes));
    } else {
      chain_.push(boost::iostreams::zstd_decompressor(kDecompressionBufferBytes));
    }
    chain_.push(CompressedDevice(compressed_), kDecompressionBufferBytes);
  }
  // The chain was closed at the end of the data, or what it says then is of no interest.
  ~DecompressedBytes() override {
    try {
      chain_.reset();
    } catch (...) {
    }
  }
  DecompressedBytes(const DecompressedBytes&) = delete;
  DecompressedBytes& operator=(const DecompressedBytes&) = delete;

  size_t Read(char* to, size_t bytes) override {
    if (at_end_) return 0;
    std::streamsize got = 0;
    try {
      got = chain_.sgetn(to, static_cast<std::streamsize>(bytes));
      if (got <= 0) {
        at_end_ = true;
        // Only then is it checked that the last member was complete.
        chain_.strict_sync();
        boost::iostreams::close(chain_, std::ios_base::in);
      }
    } catch (const std::exception&) {
      if (compressed_.failure) std::rethrow_exception(compressed_.failure);
      at_end_ = true;
      throw DamagedInput("its compressed data are truncated or corrupt (expected a whole file)");
    }
    if (compressed_.failure) std::rethrow_exception(compressed_.failure);
    if (got <= 0) return 0;
    bytes_ += static_cast<uint64_t>(got);
    if (bytes_ > kExpansionFreeBytes && bytes_ / kExpansionMax > compressed_.bytes) {
      at_end_ = true;
      throw DamagedInput(
          fmt::format("{} compressed bytes expand to more than {} (expected at most {} times as "
                      "many)",
                      compressed_.bytes, bytes_, kExpansionMax));
    }
    return static_cast<size_t>(got);
  }

 private:
  CompressedBytes compressed_;
  boost::iostreams::filtering_streambuf<boost::iostreams::input> chain_;
  uint64_t bytes_ = 0;
  bool at_end_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> OpenFile(const std::string& path) {
  return std::make_unique<FileBytes>(path);
}

std::unique_ptr<ByteSource> Decompress(Compression compression, ByteSource& compressed) {
  return std::make_unique<DecompressedBytes>(compression, compressed);
}

}  // namespace railyard
