// SPDX-License-Identifier: GPL-2.0-only
// The accounts of all virtual channels and the pools of all buffers, which every hop touches. An
// account has the bytes that lie in the buffer its channel ends in, or that were sent and whose
// credit is not back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/fabric/buffer/shared_buffer.h"
#include "simulator/fabric/packet.h"

namespace railyard {

class ChannelAccounts {
 public:
  // All accounts are empty and end in no buffer; the one pool there is has no limit.
  void Reset(uint32_t channel_count) {
    accounts_.assign(channel_count, {});
    pools_.assign(1, {});
  }
  void AddPool(const Pool& pool) { pools_.push_back(pool); }

  size_t size() const { return accounts_.size(); }
  IngressAccount& operator[](VirtualChannelId channel) { return accounts_[channel]; }
  const IngressAccount& operator[](VirtualChannelId channel) const { return accounts_[channel]; }
  size_t pool_count() const { return pools_.size(); }
  Pool& pool(uint32_t buffer) { return pools_[buffer]; }
  const Pool& pool(uint32_t buffer) const { return pools_[buffer]; }

  // --- Buffers
  // A data packet waits in the device it has come to. Returns true when nothing has to be decided
  // about it.
  bool Enter(const Packet& packet) {
    if (packet.ingress == Packet::kNone) return true;
    IngressAccount& account = accounts_[packet.ingress];
    if (account.has_credits) return true;
    account.bytes += packet.wire_bytes;
    Pool& pool = pools_[account.buffer()];
    pool.bytes += packet.wire_bytes;
    return pool.bytes <= pool.calm_bytes;
  }
  // The packet has left that device, and nothing was in headroom. Precondition: no credits.
  void Leave(IngressAccount& account, uint32_t wire_bytes) {
    account.bytes -= wire_bytes;
    pools_[account.buffer()].bytes -= wire_bytes;
  }

  // --- Credits
  // A packet larger than the limit may go alone.
  bool HasCredit(VirtualChannelId channel, uint32_t wire_bytes) const {
    const uint32_t used = accounts_[channel].bytes;
    return used == 0 || used + wire_bytes <= accounts_[channel].credit_limit();
  }
  // Returns false if there is none.
  bool TakeCredit(VirtualChannelId channel, uint32_t wire_bytes) {
    if (!HasCredit(channel, wire_bytes)) return false;
    accounts_[channel].bytes += wire_bytes;
    return true;
  }
  // The same for a packet that is timed behind others: all of them count as sent, so if that leaves
  // room there is room when it is this one's turn.
  bool TakeCreditAhead(VirtualChannelId channel, uint32_t wire_bytes) {
    IngressAccount& account = accounts_[channel];
    const uint32_t bytes = account.bytes + wire_bytes;
    if (bytes > account.credit_limit()) [[unlikely]]
      return false;
    account.bytes = bytes;
    return true;
  }
  // Returns whether a port waits for credit of this channel.
  bool GiveBackCredit(VirtualChannelId channel, uint32_t wire_bytes) {
    accounts_[channel].bytes -= wire_bytes;
    return accounts_[channel].is_waited_for != 0;
  }
  // The credit that a packet holds of the link it is on or waits for.
  uint32_t CreditBytesOf(const Packet& packet) const {
    const bool has =
        accounts_[packet.link].has_credits && ClassOf(packet.kind) == TrafficClass::kData;
    return has ? packet.wire_bytes : 0;
  }

 private:
  std::vector<IngressAccount> accounts_;
  std::vector<Pool> pools_;  // by buffer; kNoBuffer: of the links that end in none
};

}  // namespace railyard
