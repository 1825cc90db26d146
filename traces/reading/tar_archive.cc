// SPDX-License-Identifier: GPL-2.0-only
#include "traces/reading/tar_archive.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"

namespace railyard {
namespace {

constexpr size_t kMetadataBytesMax = size_t{64} << 10;  // pax records, long names

std::string_view Field(std::string_view block, size_t offset, size_t size) {
  const std::string_view field = block.substr(offset, size);
  return field.substr(0, field.find('\0'));
}

// Octal digits with blanks around them, or GNU's binary form for what is larger.
std::optional<uint64_t> NumberOf(std::string_view field) {
  if (field.empty()) return std::nullopt;
  if (static_cast<unsigned char>(field[0]) == 0x80) {
    uint64_t value = 0;
    for (size_t i = 1; i < field.size(); ++i) {
      if (value >> 56 != 0) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(field[i]);
    }
    return value;
  }
  while (field.starts_with(' ')) field.remove_prefix(1);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value, 8);
  if (error != std::errc() || end == field.data()) return std::nullopt;
  return value;
}

constexpr size_t kSizeOffset = 124;
constexpr size_t kChecksumOffset = 148;
constexpr size_t kTypeOffset = 156;
constexpr size_t kPrefixOffset = 345;

struct TarHeader {
  std::string name;
  uint64_t size_bytes = 0;
  char type = '0';
  std::string link_target;
};

std::optional<TarHeader> ParseHeader(std::string_view block) {
  if (block.size() < kTarBlockBytes) return std::nullopt;
  const auto checksum = NumberOf(block.substr(kChecksumOffset, 8));
  uint64_t sum = 0;
  for (size_t i = 0; i < kTarBlockBytes; ++i) {
    const bool is_checksum = i >= kChecksumOffset && i < kChecksumOffset + 8;
    sum += is_checksum ? ' ' : static_cast<unsigned char>(block[i]);
  }
  const auto size = NumberOf(block.substr(kSizeOffset, 12));
  if (checksum != sum || !size) return std::nullopt;
  TarHeader header{.name = std::string(Field(block, 0, 100)),
                   .size_bytes = *size,
                   .type = block[kTypeOffset],
                   .link_target = std::string(Field(block, kTypeOffset + 1, 100))};
  const std::string_view prefix = Field(block, kPrefixOffset, 155);
  if (block.substr(257, 6) == std::string_view("ustar\0", 6) && !prefix.empty()) {
    header.name = std::string(prefix) + "/" + header.name;
  }
  return header;
}

// The contents of an entry, which end where the archive says. They must be read within visit().
class EntryBytes : public ByteSource {
 public:
  EntryBytes(InputStream& archive, uint64_t& left) : archive_(archive), left_(left) {}

  size_t Read(char* to, size_t bytes) override {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(bytes, left_));
    const size_t got = archive_.Read(to, wanted);
    left_ -= got;
    if (got < wanted) throw DamagedInput("the archive ends within this file");
    return got;
  }

 private:
  InputStream& archive_;
  uint64_t& left_;
};

void SkipBytes(InputStream& archive, uint64_t bytes) {
  while (bytes > 0) {
    const std::string_view next = archive.Peek();
    if (next.empty()) throw DamagedInput("the archive ends within a file");
    const size_t count = static_cast<size_t>(std::min<uint64_t>(bytes, next.size()));
    archive.Skip(count);
    bytes -= count;
  }
}

uint64_t Padding(uint64_t bytes) {
  return (kTarBlockBytes - bytes % kTarBlockBytes) % kTarBlockBytes;
}

std::string ReadMetadata(InputStream& archive, uint64_t bytes) {
  if (bytes > kMetadataBytesMax) throw DamagedInput("a name in the archive is too long");
  std::string text(static_cast<size_t>(bytes), '\0');
  if (archive.Read(text.data(), text.size()) < text.size()) {
    throw DamagedInput("the archive ends within a file's name");
  }
  SkipBytes(archive, Padding(bytes));
  return text;
}

// The value of a pax record, "LENGTH KEY=VALUE\n", the length that of all of it.
std::optional<std::string> PaxValue(std::string_view records, std::string_view key) {
  while (!records.empty()) {
    size_t length = 0;
    const char* const end = records.data() + records.size();
    const auto [digits_end, error] = std::from_chars(records.data(), end, length);
    const auto digits = static_cast<size_t>(digits_end - records.data());
    if (error != std::errc() || length <= digits + 1 || length > records.size()) break;
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    if (record.starts_with(key) && record.substr(key.size()).starts_with('=')) {
      return std::string(record.substr(key.size() + 1));
    }
    records.remove_prefix(length);
  }
  return std::nullopt;
}

[[noreturn]] void ThrowSparse(const std::string& name) {
  throw DamagedInput(
      fmt::format("{} is stored without its holes (expected an archive that was "
                  "made without tar's -S)",
                  Quote(name)));
}

// Contiguous files are stored as others are.
bool IsFile(const TarHeader& header) {
  return header.type == '0' || header.type == '\0' || header.type == '7';
}

// Returns why the entry is no file of its own; empty for directories and metadata. Throws
// DamagedInput for a file whose contents do not stand in the archive as they are.
std::string WhyPassedOver(const TarHeader& header, const std::string& name) {
  switch (header.type) {
    case '5':  // directories
    case 'D':
    case 'g':  // records for all files, links' long names, labels
    case 'K':
    case 'V':
      return "";
    case 'M':
      throw DamagedInput(
          fmt::format("{} goes on from another archive (expected whole files)", Quote(name)));
    case 'S':
      ThrowSparse(name);
    case '1':
      return "is a link to " + header.link_target;
    case '2':
      return "is a symbolic link to " + header.link_target;
    case '3':
    case '4':
    case '6':
      return "is no regular file";
    default:
      return fmt::format("is of a type of entry that is not known, {}",
                         Quote(std::string_view(&header.type, 1)));
  }
}

bool IsHidden(std::string_view name) {
  const size_t slash = name.rfind('/');
  return name.substr(slash == std::string_view::npos ? 0 : slash + 1).starts_with('.');
}

}  // namespace

bool IsTarArchive(std::string_view head) {
  return ParseHeader(head.substr(0, kTarBlockBytes)).has_value();
}

bool ForEachTarEntry(
    InputStream& archive,
    const std::function<bool(const std::string& name, std::unique_ptr<ByteSource>)>& visit,
    const std::function<void(const std::string& name, const std::string& reason)>& pass_over) {
  std::optional<std::string> long_name;
  bool has_long_size = false;
  bool is_sparse = false;
  bool has_end = false;
  uint64_t long_size = 0;
  for (;;) {
    std::string block(kTarBlockBytes, '\0');
    const size_t got = archive.Read(block.data(), block.size());
    if (got == 0) break;
    has_end = block.find_first_not_of('\0') == std::string::npos;
    if (has_end) break;
    if (got < block.size()) throw DamagedInput("the archive ends within a header");
    std::optional<TarHeader> header = ParseHeader(block);
    if (!header) throw DamagedInput("the archive is corrupt (a header's checksum is wrong)");
    if (header->type == 'L' || header->type == 'x') {
      const std::string text = ReadMetadata(archive, header->size_bytes);
      if (header->type == 'L') {
        long_name = text.substr(0, text.find('\0'));
        continue;
      }
      if (auto path = PaxValue(text, "path")) long_name = std::move(path);
      is_sparse = is_sparse || PaxValue(text, "GNU.sparse.major") ||
                  PaxValue(text, "GNU.sparse.map") || PaxValue(text, "GNU.sparse.size");
      if (const auto size = PaxValue(text, "size")) {
        const char* const end = size->data() + size->size();
        has_long_size = std::from_chars(size->data(), end, long_size).ptr == end;
      }
      continue;
    }
    uint64_t left = has_long_size ? long_size : header->size_bytes;
    const uint64_t padding = Padding(left);
    const std::string name = long_name.value_or(header->name);
    long_name.reset();
    has_long_size = false;
    if (std::exchange(is_sparse, false)) ThrowSparse(name);
    if (!IsFile(*header)) {
      const std::string why = WhyPassedOver(*header, name);
      if (!why.empty() && !IsHidden(name)) pass_over(name, why);
    } else if (!IsHidden(name) && !visit(name, std::make_unique<EntryBytes>(archive, left))) {
      return true;
    }
    SkipBytes(archive, left);
    SkipBytes(archive, padding);
  }
  if (!archive.failure().empty()) throw DamagedInput(archive.failure());
  return has_end;
}

}  // namespace railyard
