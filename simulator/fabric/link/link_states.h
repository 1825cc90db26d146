// SPDX-License-Identifier: GPL-2.0-only
// Keeps the states of links that fail and recover, change their rate, or lose packets. Only these
// links have a history, from which it follows whether a packet was on the wire during a failure and
// at which rate it was sent.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/fabric/tables/fabric_tables.h"
#include "simulator/state/field_table.h"

namespace railyard {

using LossFilter = std::function<bool(const Packet&)>;

class LinkStates {
 public:
  // `tables` must outlive this.
  explicit LinkStates(FabricTables& tables) : tables_(tables) {}

  // Sets every link of the tables to up.
  void ResetUp() { is_up_.assign(tables_.links.size(), true); }
  bool IsUp(LinkId link) const { return is_up_[link]; }
  // Sets the link's state now. Returns false if nothing changed.
  bool SetUp(LinkId link, bool up);
  // Makes the link lose each packet for which `is_lost` returns true when its last bit arrives.
  void SetLossFilter(LinkId link, LossFilter is_lost);
  // Sets the rate of packets that start from now on, in the tables as well; packets that are timed
  // or in service keep theirs. Precondition: the port is in the general form.
  void SetRate(LinkId link, uint64_t rate_bps);

  // Returns why the link loses a packet whose last bit arrives now, if it does.
  std::optional<DropReason> LossOf(const Packet& packet) const;

  void CountDropped(LinkId link) { ++histories_[link].dropped_packets; }
  void CountRetransmitted(LinkId link, uint32_t bytes) {
    histories_[link].retransmitted_bytes += bytes;
  }
  uint64_t DroppedPackets(LinkId link) const;
  uint64_t RetransmittedBytes(LinkId link) const;

  // Visits the link's history. A link with a loss filter is not quiescent, and the number of
  // packets that a link has lost is unrepeatable.
  void Visit(LinkId link, StateArchive& archive);

 private:
  struct Downtime {
    int64_t from_ps;
    int64_t until_ps;
  };
  struct RateChange {
    int64_t departure_ps;  // of the last packet at the old rate
    uint64_t rate_before_bps;
  };
  struct History {
    std::vector<Downtime> downtimes;
    std::vector<RateChange> rate_changes;
    LossFilter is_lost;
    uint64_t retransmitted_bytes = 0;
    uint64_t dropped_packets = 0;

    static constexpr auto Fields() {
      constexpr std::string_view kPast = "it concerns packets on the wire, and there are none";
      return FieldTable("history of a link",
                        field::NoState("downtimes", &History::downtimes, kPast),
                        field::NoState("rate_changes", &History::rate_changes, kPast),
                        field::QuiescentIf("is_lost", &History::is_lost,
                                           [](const LossFilter& filter) { return !filter; }),
                        field::NoState("retransmitted_bytes", &History::retransmitted_bytes,
                                       "it changes with losses alone, which are unrepeatable"),
                        field::Unrepeatable("dropped_packets", &History::dropped_packets));
    }
  };

  void ForgetPast(LinkId link, History& history) const;
  bool WasDown(const Packet& packet, const History& history) const;

  FabricTables& tables_;
  std::vector<bool> is_up_;
  std::unordered_map<LinkId, History> histories_;
};

}  // namespace railyard
