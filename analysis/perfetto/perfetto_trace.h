// SPDX-License-Identifier: GPL-2.0-only
// Writes a trace that the Perfetto UI and trace_processor open: processes with tracks, slices,
// instants and counters. Packets are written as they come, in any order of time; readers sort them.
// Times are picoseconds, which the format rounds down to nanoseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "simulator/files/output_file.h"

namespace railyard {

namespace perfetto {
class TracePacket;
}

// An arrow leads from the slice that begins a flow to the one that ends it.
struct PerfettoFlows {
  std::vector<uint64_t> begins{};
  std::vector<uint64_t> ends{};
};

class PerfettoTrace {
 public:
  using Track = uint64_t;  // 0: none
  using Argument = std::pair<const char*, std::variant<bool, uint64_t, int64_t, std::string_view>>;
  using Arguments = std::vector<Argument>;
  // EnvironmentError where the file cannot be written, here and in all that follows.
  explicit PerfettoTrace(const std::string& path);
  PerfettoTrace(const PerfettoTrace&) = delete;
  PerfettoTrace& operator=(const PerfettoTrace&) = delete;
  ~PerfettoTrace();

  // Process numbers are positive.
  Track AddProcess(int32_t number, const std::string& name);
  Track AddTrack(Track parent, const std::string& name);
  Track AddCounter(Track parent, const std::string& name, const char* unit);

  // Slices of one track nest, or follow one another.
  void AddSlice(Track track, int64_t begin_ps, int64_t end_ps, std::string_view name,
                const Arguments& arguments = {}, const PerfettoFlows& flows = {});
  // A slice that has no end.
  void AddOpenSlice(Track track, int64_t begin_ps, std::string_view name,
                    const Arguments& arguments = {});
  void AddInstant(Track track, int64_t time_ps, std::string_view name,
                  const Arguments& arguments = {});
  void AddValue(Track counter, int64_t time_ps, double value);

  uint64_t bytes() const { return bytes_; }
  // The file is complete.
  void Close();

 private:
  void Write();
  // Begins the packet of an event.
  void Begin(Track track, int64_t time_ps, int type);
  void Annotate(std::string_view name, const Arguments& arguments);

  OutputFile file_;
  std::unique_ptr<perfetto::TracePacket> packet_;  // at hand
  std::string buffer_;
  Track last_track_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace railyard
