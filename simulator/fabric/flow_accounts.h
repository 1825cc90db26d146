// SPDX-License-Identifier: GPL-2.0-only
// Counts messages that cross the fabric as flows instead of packets, in the counters that packets
// have.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "simulator/fabric/tables/fabric_tables.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Holds the functions with which the owner of flows (FlowNetwork) takes part in counting and in
// changes of rates.
struct FlowLedger {
  std::function<void()> settle{};  // called before counters of links are read
  std::function<void(LinkId, uint64_t rate_bps)> set_rate{};  // called when a rate has changed
};

class FlowAccounts {
 public:
  // `tables` must outlive this.
  explicit FlowAccounts(FabricTables& tables) : tables_(tables) {}

  void SetLedger(FlowLedger ledger) { ledger_ = std::move(ledger); }
  // Makes the counters of links include what flows have carried up to now.
  void Settle() const {
    if (ledger_.settle) ledger_.settle();
  }
  // Must be called when the rate of a link has changed.
  void OnRateChanged(LinkId link, uint64_t rate_bps) const {
    if (ledger_.set_rate) ledger_.set_rate(link, rate_bps);
  }

  void CountOnLink(LinkId link, uint64_t payload_bytes, uint64_t wire_bytes) {
    tables_.links[link].payload_bytes += payload_bytes;
    tables_.links[link].wire_bytes += wire_bytes;
  }
  // These functions count payload in the counters of the same names (NetworkCounters).
  void CountInjected(uint64_t bytes) {
    tables_.counters.injected_bytes += bytes;
    bytes_in_flight_ += bytes;
  }
  void CountReplicated(uint64_t bytes) {
    tables_.counters.replicated_bytes += bytes;
    bytes_in_flight_ += bytes;
  }
  void CountReduced(uint64_t bytes) {
    tables_.counters.reduced_bytes += bytes;
    bytes_in_flight_ -= bytes;
  }
  void CountDelivered(uint64_t bytes) {
    tables_.counters.delivered_bytes += bytes;
    bytes_in_flight_ -= bytes;
  }
  uint64_t bytes_in_flight() const { return bytes_in_flight_; }

 private:
  FabricTables& tables_;
  FlowLedger ledger_;
  uint64_t bytes_in_flight_ = 0;
};

}  // namespace railyard
