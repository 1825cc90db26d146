// SPDX-License-Identifier: GPL-2.0-only
// Keeps the accounts of all virtual channels and the pools of all buffers, which every hop
// accesses. An account counts the bytes in the buffer at its channel's end, or, with credits, the
// bytes that were sent and whose credit has not returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/fabric/buffer/shared_buffer.h"
#include "simulator/fabric/tables/packet.h"

namespace railyard {

class ChannelAccounts {
 public:
  // Resets all accounts to empty ones that belong to no buffer. The only pool then has no limit.
  void Reset(uint32_t channel_count) {
    accounts_.assign(channel_count, {});
    pools_.assign(1, {});
  }
  void AddPool(const Pool& pool) { pools_.push_back(pool); }

  size_t size() const { return accounts_.size(); }
  IngressAccount& operator[](VirtualChannelId channel) { return accounts_[channel]; }
  const IngressAccount& operator[](VirtualChannelId channel) const { return accounts_[channel]; }
  size_t pool_count() const { return pools_.size(); }
  Pool& pool(BufferId buffer) { return pools_[buffer]; }
  const Pool& pool(BufferId buffer) const { return pools_[buffer]; }

  // --- Buffers -----------------------------------------------------------------------------------
  // Counts a data packet that waits in the device at which it has arrived. Returns true if no
  // decision is needed.
  [[gnu::always_inline]] bool Enter(const Packet& packet) {
    if (packet.ingress == VirtualChannelId::kNone) return true;
    IngressAccount& account = accounts_[packet.ingress];
    if (account.has_credits) return true;
    account.bytes += packet.wire_bytes;
    Pool& pool = pools_[account.buffer()];
    pool.bytes += packet.wire_bytes;
    return pool.bytes <= pool.calm_bytes;
  }
  // Subtracts a packet that has left the device. Preconditions: no bytes were in headroom, and the
  // network has no credits.
  void Leave(IngressAccount& account, uint32_t wire_bytes) {
    account.bytes -= wire_bytes;
    pools_[account.buffer()].bytes -= wire_bytes;
  }

  // --- Credits -----------------------------------------------------------------------------------
  // A packet larger than the limit may be sent if no other is outstanding.
  bool HasCredit(VirtualChannelId channel, uint32_t wire_bytes) const {
    const uint32_t used = accounts_[channel].bytes;
    return used == 0 || used + wire_bytes <= accounts_[channel].credit_limit();
  }
  // Takes credit for a packet. Returns false, and takes nothing, if there is not enough.
  bool TakeCredit(VirtualChannelId channel, uint32_t wire_bytes) {
    if (!HasCredit(channel, wire_bytes)) return false;
    accounts_[channel].bytes += wire_bytes;
    return true;
  }
  // Takes credit for a packet that is timed behind others, or returns false if there is none. The
  // packets before it already count as sent, so if there is room now, there is also room at the
  // packet's turn.
  bool TakeCreditAhead(VirtualChannelId channel, uint32_t wire_bytes) {
    IngressAccount& account = accounts_[channel];
    const uint32_t bytes = account.bytes + wire_bytes;
    if (bytes > account.credit_limit()) [[unlikely]]
      return false;
    account.bytes = bytes;
    return true;
  }
  // Returns credit to the channel's sender. Returns whether its port waits for credit.
  bool GiveBackCredit(VirtualChannelId channel, uint32_t wire_bytes) {
    accounts_[channel].bytes -= wire_bytes;
    return accounts_[channel].is_waited_for != 0;
  }
  // Returns the bytes of credit that a packet holds on the link that it is on or waits for.
  uint32_t CreditBytesOf(const Packet& packet) const {
    const bool has = accounts_[FirstChannelOf(packet.link)].has_credits &&
                     ClassOf(packet.kind) == TrafficClass::kData;
    return has ? packet.wire_bytes : 0;
  }

 private:
  std::vector<IngressAccount> accounts_;
  std::vector<Pool> pools_;  // by buffer; kNoBuffer: links that end in no buffer
};

}  // namespace railyard
