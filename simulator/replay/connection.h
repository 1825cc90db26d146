// SPDX-License-Identifier: GPL-2.0-only
// One direction between two ranks on one channel of a communicator: a FIFO of messages with NCCL's
// slots as credits. Plain state; LaneExecutor moves it.
#pragma once

#include <array>
#include <cstdint>

namespace railyard {

// Message counters run freely in 32 bits; differences of at most kSlots are what is looked at.
struct Connection {
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kSlots = 8;  // NCCL_STEPS

  bool network = false;  // RDMA; else NVLink
  // PXN: messages first cross NVLink to the GPU whose NIC injects them.
  bool is_relayed = false;
  uint32_t flow = 0;        // queue pair, or NVLink flow
  uint32_t relay_flow = 0;  // NVLink flow to the relaying GPU
  uint32_t from_gpu = 0;
  uint32_t to_gpu = 0;
  uint32_t injecting_gpu = 0;  // whose NIC and proxy send; from_gpu where nothing is relayed

  // Sender.
  uint32_t posted = 0;                   // messages whose slice a channel has begun to write
  uint32_t completed = 0;                // RDMA: acknowledged
  uint32_t clear_to_send = 0;            // RDMA: elements received
  uint32_t sender = kNone;               // lane that owns the sending side
  bool sender_waits = false;             // for a credit
  uint32_t relayed = 0;                  // PXN: arrived at the relaying GPU
  uint32_t staged = 0;                   // RDMA: the proxy has seen them
  uint32_t queued = 0;                   // RDMA: staged and granted, the proxy will post them
  uint32_t sent = 0;                     // RDMA: the proxy has posted them
  uint64_t tie = 0;                      // orders its events; a function of what it connects
  int64_t flag_latency_ps = 0;           // NVLink: a flag's way, there or back
  int64_t seen_ps = 0;                   // NVLink: when the last arrival is seen
  std::array<uint32_t, kSlots> bytes{};  // by message number
  // Receiver.
  uint32_t delivered = 0;
  uint32_t consumed = 0;
  uint32_t granted = 0;         // RDMA: clear-to-send elements posted
  uint32_t receiver = kNone;    // lane that owns the receiving side
  bool receiver_waits = false;  // for a message
  // By message number: before this the message is not complete (the sender's copy), and after its
  // arrival the receiver sees it from then on.
  std::array<int64_t, kSlots> ready_ps{};
  // NVLink: by message number, when the sender sees its slot free again.
  std::array<int64_t, kSlots> free_ps{};

  uint32_t collective = kNone;  // that used either side last
  uint64_t payload_bytes = 0;   // consumed by the receiver
};

}  // namespace railyard
