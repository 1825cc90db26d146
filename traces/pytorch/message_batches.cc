// SPDX-License-Identifier: GPL-2.0-only
#include "traces/pytorch/message_batches.h"

#include <map>
#include <utility>

namespace railyard {

void MessageBatches::AddMessage(std::string_view group, std::optional<uint64_t> sequence) {
  messages_.push_back(
      {.group = std::string(group), .sequence = sequence, .first = messages_.size()});
}

void MessageBatches::AddMark(std::string_view title) {
  const bool ends_batch = title == "nccl:coalesced";
  if (!ends_batch && !title.starts_with("nccl:send ") && !title.starts_with("nccl:recv ")) return;
  has_marks_ = true;
  if (ends_batch) {
    std::map<std::string_view, size_t> first_of_group;
    for (size_t i = marked_; i < messages_.size(); ++i) {
      messages_[i].first = first_of_group.try_emplace(messages_[i].group, i).first->second;
    }
  }
  marked_ = messages_.size();
}

std::vector<uint32_t> MessageBatches::Numbers() const {
  std::vector<uint32_t> numbers;
  std::map<std::pair<std::string_view, uint64_t>, size_t> first_of_sequence;
  uint32_t batches = 0;
  for (size_t i = 0; i < messages_.size(); ++i) {
    const Message& message = messages_[i];
    size_t first = message.first;
    if (!has_marks_ && message.sequence) {
      first = first_of_sequence.try_emplace({message.group, *message.sequence}, i).first->second;
    }
    numbers.push_back(first == i ? ++batches : numbers[first]);
  }
  return numbers;
}

}  // namespace railyard
