// SPDX-License-Identifier: GPL-2.0-only
// Writes captured frames as pcapng (draft-ietf-opsawg-pcapng), which tshark and Wireshark read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "simulator/files/output_file.h"

namespace railyard {

class PcapngWriter {
 public:
  // Lists numbers of the registry of link types (tcpdump.org/linktypes.html). InfiniBand's packets
  // are written as records of Endace's Extensible Record Format, because tshark 4.0 does not know
  // InfiniBand's number.
  enum class LinkType : uint16_t { kEthernet = 1, kErf = 197 };

  struct Frame {
    int64_t time_ns = 0;
    uint32_t length_bytes = 0;      // on the link, without preamble and frame check sequence
    std::string_view bytes{};       // the first ones, up to the interface's snap length
    std::string_view comment = {};  // shown with the frame; may be empty
  };

  // Returns whether this writer made the file at its present path, as noted in the file. A copied
  // file does not count. Returns false if the file cannot be read.
  static bool IsOurs(const std::string& path);

  // Creates the file. This and all functions below throw EnvironmentError if it cannot be written.
  explicit PcapngWriter(const std::string& path);

  // Returns the interface's number.
  uint32_t AddInterface(LinkType type, std::string_view name, uint32_t snap_bytes);
  void AddFrame(uint32_t interface, const Frame& frame);
  uint64_t bytes() const { return bytes_; }
  void Close() { file_.Close(); }

 private:
  void WriteBlock(uint32_t type, std::string_view body);

  OutputFile file_;
  uint32_t interfaces_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace railyard
