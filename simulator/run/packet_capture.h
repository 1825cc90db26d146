// SPDX-License-Identifier: GPL-2.0-only
// Captures packets that cross a link between servers, as pcapng with the headers that they would
// have. A packet is captured when its arrival is processed, even if the link loses it, and is
// stamped with the time of its last bit. The size of the file is limited; further packets are only
// counted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/pcapng/pcapng_writer.h"
#include "analysis/result/run_result.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/run/frames.h"
#include "simulator/run/run_options.h"
#include "simulator/transport/nic/queue_transport.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Returns the links to which a name refers: "server1/nic3>leaf3" for one direction of a cable,
// "server1/nic3--leaf3" for both. Throws std::invalid_argument, which describes the mistake and the
// right form, if there are none or they are inside a server.
std::vector<LinkId> FindCapturedLinks(const FabricGraph& graph, const std::string& name);

// Returns a file name for each of these names of links or cables, in order: e.g.
// "server1_nic3--leaf3.pcapng". All are different.
std::vector<std::string> CaptureFileNames(const std::vector<std::string>& links);

class PacketCapture {
 public:
  // Taps the links, which FindCapturedLinks() has. All references must outlive this; `settings` are
  // those of the NICs. Must be constructed after the network has been configured, and before the
  // first message is posted.
  PacketCapture(const LinkCapture& capture, const FabricGraph& graph, FabricNetwork& network,
                const QueueTransport& queue_pairs, const NicSettings& settings);
  PacketCapture(const PacketCapture&) = delete;
  PacketCapture& operator=(const PacketCapture&) = delete;

  // Ends the capture in a forked child, because the file is the parent's.
  void Stop() { is_running_ = false; }
  // Completes the file. Adds notes to the result about packets that are not in it.
  void Finish(RunResult& result);

 private:
  struct Waiting {
    uint32_t interface = 0;
    Frame frame;
    std::string comment;
  };
  // Describes the part of a queue's stream that precedes a packet.
  struct Position {
    uint64_t messages = 0;  // complete ones
    uint64_t bytes = 0;
  };

  void OnPacket(uint32_t interface, const Packet& packet, std::optional<DropReason> loss);
  // Writes the frames up to a time, in the order of their times.
  void WriteUntil(int64_t time_ps);
  // Returns nullopt if the packet cannot be shown.
  std::optional<Frame> FrameOf(const Packet& packet) const;
  FrameEnds EndsOf(const Packet& packet) const;
  std::optional<Frame> RdmaFrameOf(const Packet& packet) const;
  std::optional<RdmaHeaders> WriteHeaders(const Packet& packet) const;
  Frame AnswerFrameOf(const Packet& packet) const;
  Frame RdmaFrame(const Packet& packet, RdmaHeaders headers) const;
  std::optional<Frame> TcpFrameOf(const Packet& packet) const;
  Position PositionBefore(QueueId queue, uint32_t sequence) const;

  const FabricGraph& graph_;
  const FabricNetwork& network_;
  const QueueTransport& queue_pairs_;
  const NicSettings settings_;
  const std::string name_;
  const uint32_t snap_bytes_;
  const uint64_t bytes_max_;
  PcapngWriter file_;
  // The largest time by which a frame of one link may be captured after a later frame of another
  // link: the difference of the forwarding latencies of the devices at their ends.
  int64_t order_lag_ps_ = 0;
  std::multimap<int64_t, Waiting> waiting_;  // by the time of the last bit
  bool is_running_ = true;
  uint64_t captured_ = 0;
  uint64_t left_out_ = 0;
  uint64_t aggregates_ = 0;
  uint64_t unknown_ = 0;
};

}  // namespace railyard
