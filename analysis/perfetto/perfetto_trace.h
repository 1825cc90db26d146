// SPDX-License-Identifier: GPL-2.0-only
// Writes a trace that the Perfetto UI and trace_processor open: processes with tracks, slices,
// instants and counters. Packets are written in the order of calls, with times in any order;
// readers sort them. Times are in picoseconds and are rounded down to nanoseconds, the format's
// unit.
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

// Names the flows that a slice begins and ends. An arrow leads from the slice that begins a flow to
// the slice that ends it.
struct PerfettoFlows {
  std::vector<uint64_t> begins{};
  std::vector<uint64_t> ends{};
};

class PerfettoTrace {
 public:
  using Track = uint64_t;  // 0 for no track
  using Argument = std::pair<const char*, std::variant<bool, uint64_t, int64_t, std::string_view>>;
  using Arguments = std::vector<Argument>;
  // Creates the file. This and all functions below throw EnvironmentError if it cannot be written.
  explicit PerfettoTrace(const std::string& path);
  PerfettoTrace(const PerfettoTrace&) = delete;
  PerfettoTrace& operator=(const PerfettoTrace&) = delete;
  ~PerfettoTrace();

  // Adds a process and returns its track. Precondition: the number is positive.
  Track AddProcess(int32_t number, const std::string& name);
  Track AddTrack(Track parent, const std::string& name);
  Track AddCounter(Track parent, const std::string& name, const char* unit);

  // Adds a slice. Slices of one track must be nested or disjoint.
  void AddSlice(Track track, int64_t begin_ps, int64_t end_ps, std::string_view name,
                const Arguments& arguments = {}, const PerfettoFlows& flows = {});
  // Adds a slice without an end.
  void AddOpenSlice(Track track, int64_t begin_ps, std::string_view name,
                    const Arguments& arguments = {});
  void AddInstant(Track track, int64_t time_ps, std::string_view name,
                  const Arguments& arguments = {});
  void AddValue(Track counter, int64_t time_ps, double value);

  uint64_t bytes() const { return bytes_; }
  // Completes the file.
  void Close();

 private:
  void Write();
  // Begins the packet of an event.
  void Begin(Track track, int64_t time_ps, int type);
  void Annotate(std::string_view name, const Arguments& arguments);

  OutputFile file_;
  std::unique_ptr<perfetto::TracePacket> packet_;  // current
  std::string buffer_;
  Track last_track_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace railyard
