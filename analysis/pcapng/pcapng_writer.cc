// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/pcapng/pcapng_writer.h"

#include <bit>
#include <filesystem>
#include <fstream>

namespace railyard {
namespace {

// Blocks are in the writer's byte order, which the first one tells.
static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kSectionHeader = 0x0A0D0D0A;
constexpr uint32_t kByteOrderMagic = 0x1A2B3C4D;
constexpr uint32_t kInterfaceDescription = 1;
constexpr uint32_t kEnhancedPacket = 6;
constexpr uint16_t kOptionEnd = 0;
constexpr uint16_t kOptionComment = 1;
constexpr uint16_t kOptionName = 2;         // of an interface
constexpr uint16_t kOptionApplication = 4;  // of a section
constexpr uint16_t kOptionResolution = 9;   // of an interface's times
constexpr char kNanoseconds = 9;            // 10^-9 s

template <typename Value>
void Append(std::string& text, Value value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void PadToWords(std::string& text) { text.append((4 - text.size() % 4) % 4, '\0'); }

void AppendOption(std::string& body, uint16_t code, std::string_view value) {
  Append<uint16_t>(body, code);
  Append<uint16_t>(body, static_cast<uint16_t>(value.size()));
  body.append(value);
  PadToWords(body);
}

std::string BlockOf(uint32_t type, std::string_view body) {
  std::string block;
  const auto size = static_cast<uint32_t>(body.size() + 12);
  Append<uint32_t>(block, type);
  Append<uint32_t>(block, size);
  block.append(body);
  Append<uint32_t>(block, size);
  return block;
}

std::string SectionHeader(const std::string& path) {
  std::string body;
  Append<uint32_t>(body, kByteOrderMagic);
  Append<uint16_t>(body, 1);  // version 1.0
  Append<uint16_t>(body, 0);
  Append<int64_t>(body, -1);  // the section's length is not stated
  AppendOption(body, kOptionComment,
               "written as " + std::filesystem::path(path).filename().string());
  AppendOption(body, kOptionApplication, "railyard");
  AppendOption(body, kOptionEnd, "");
  return BlockOf(kSectionHeader, body);
}

}  // namespace

bool PcapngWriter::IsOurs(const std::string& path) {
  const std::string ours = SectionHeader(path);
  std::string begin(ours.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return file.good() && begin == ours;
}

PcapngWriter::PcapngWriter(const std::string& path) : file_(path) {
  const std::string header = SectionHeader(path);
  file_.Write(header);
  bytes_ = header.size();
}

uint32_t PcapngWriter::AddInterface(LinkType type, std::string_view name, uint32_t snap_bytes) {
  std::string body;
  Append<uint16_t>(body, static_cast<uint16_t>(type));
  Append<uint16_t>(body, 0);
  Append<uint32_t>(body, snap_bytes);
  AppendOption(body, kOptionName, name);
  AppendOption(body, kOptionResolution, std::string(1, kNanoseconds));
  AppendOption(body, kOptionEnd, "");
  WriteBlock(kInterfaceDescription, body);
  return interfaces_++;
}

void PcapngWriter::AddFrame(uint32_t interface, const Frame& frame) {
  std::string body;
  Append<uint32_t>(body, interface);
  Append<uint32_t>(body, static_cast<uint32_t>(static_cast<uint64_t>(frame.time_ns) >> 32));
  Append<uint32_t>(body, static_cast<uint32_t>(frame.time_ns));
  Append<uint32_t>(body, static_cast<uint32_t>(frame.bytes.size()));
  Append<uint32_t>(body, frame.length_bytes);
  body.append(frame.bytes);
  PadToWords(body);
  if (!frame.comment.empty()) {
    AppendOption(body, kOptionComment, frame.comment);
    AppendOption(body, kOptionEnd, "");
  }
  WriteBlock(kEnhancedPacket, body);
}

void PcapngWriter::WriteBlock(uint32_t type, std::string_view body) {
  const std::string block = BlockOf(type, body);
  file_.Write(block);
  bytes_ += block.size();
}

}  // namespace railyard
