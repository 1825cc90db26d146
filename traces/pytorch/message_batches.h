// SPDX-License-Identifier: GPL-2.0-only
// Finds the batches of Sends and Recvs (batch_isend_irecv), each of which NCCL runs as one group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace railyard {

// Takes the messages of one process and PyTorch's marks between them in the order in which the
// process made them.
//
// PyTorch marks the end of a batch by "nccl:coalesced", and a message by itself by "nccl:send 0->1"
// or "nccl:recv 0<-1" (the titles that ProcessGroupNCCL.cpp gives its work in pointToPoint and
// endCoalescing). A capture without marks may state sequence numbers, which the messages of a batch
// share.
class MessageBatches {
 public:
  // Adds a Send or Recv on a process group. `sequence` counts the group's messages, and batches as
  // one; nullopt if it is not stated.
  void AddMessage(std::string_view group, std::optional<uint64_t> sequence);
  // Takes the title of any work; titles that are no marks have no effect.
  void AddMark(std::string_view title);

  // Returns for each message, in the order in which they were added, the number of the batch to
  // which it belongs, from 1 in order. A message by itself is a batch of one.
  std::vector<uint32_t> Numbers() const;

 private:
  struct Message {
    std::string group;
    std::optional<uint64_t> sequence;
    size_t first = 0;  // message of its batch, by the marks
  };

  std::vector<Message> messages_;
  size_t marked_ = 0;  // messages before the last mark
  bool has_marks_ = false;
};

}  // namespace railyard
