// SPDX-License-Identifier: GPL-2.0-only
#include "traces/pytorch/message_batches.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(MessageBatchesTest, MessagesWithoutMarksOrSequencesAreByThemselves) {
  MessageBatches batches;
  EXPECT_THAT(batches.Numbers(), IsEmpty());
  batches.AddMessage("0", std::nullopt);
  batches.AddMessage("0", std::nullopt);
  EXPECT_THAT(batches.Numbers(), ElementsAre(1, 2));
}

// A middle stage of a pipeline: a batch of a Recv, one of a Send and a Recv, and a Send by itself.
TEST(MessageBatchesTest, MarksEndBatches) {
  MessageBatches batches;
  batches.AddMessage("0", std::nullopt);
  batches.AddMark("nccl:coalesced");
  batches.AddMessage("0", std::nullopt);
  batches.AddMark("nccl:all_reduce");
  batches.AddMessage("0", std::nullopt);
  batches.AddMark("nccl:coalesced");
  batches.AddMessage("0", std::nullopt);
  batches.AddMark("nccl:send 1->2");
  batches.AddMessage("0", std::nullopt);
  EXPECT_THAT(batches.Numbers(), ElementsAre(1, 2, 2, 3, 4));
}

TEST(MessageBatchesTest, BatchesOfTwoGroupsAreTwo) {
  MessageBatches batches;
  for (const char* group : {"0", "1", "0", "1"}) batches.AddMessage(group, std::nullopt);
  batches.AddMark("nccl:coalesced");
  EXPECT_THAT(batches.Numbers(), ElementsAre(1, 2, 1, 2));
}

TEST(MessageBatchesTest, MessagesOfABatchShareASequenceNumberOfTheirGroup) {
  MessageBatches batches;
  batches.AddMessage("0", 1);
  batches.AddMessage("0", 2);
  batches.AddMessage("0", 2);
  batches.AddMessage("1", 2);
  EXPECT_THAT(batches.Numbers(), ElementsAre(1, 2, 2, 3));
}

// Before PyTorch 2.5 the numbers were those of collectives, which messages do not change.
TEST(MessageBatchesTest, MarksCountMoreThanSequenceNumbers) {
  MessageBatches batches;
  batches.AddMessage("0", 7);
  batches.AddMark("nccl:send 0->1");
  batches.AddMessage("0", 7);
  batches.AddMark("nccl:coalesced");
  EXPECT_THAT(batches.Numbers(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace railyard
