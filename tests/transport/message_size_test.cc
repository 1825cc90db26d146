// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/contract/message_size.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(MessageSizeTest, PartsOfDataAreData) {
  const MessageSize part = MessageSize::OfData(10'000).Part(4'096, 8'192);
  EXPECT_EQ(part.bytes, 4'096u);
  EXPECT_EQ(part.data_bytes, 4'096u);
  EXPECT_FALSE(part.has_flags());
}

// LL128: 120 of every 128 B are data, and of the last line as many as are left.
TEST(MessageSizeTest, PartsHaveAllOfTheDataTogether) {
  const MessageSize whole = {.bytes = uint64_t{1'000} * 128, .data_bytes = uint64_t{999} * 120 + 7};
  uint64_t data = 0;
  for (uint64_t begin = 0; begin < whole.bytes; begin += 4'096) {
    const MessageSize part = whole.Part(begin, std::min<uint64_t>(begin + 4'096, whole.bytes));
    EXPECT_LE(part.data_bytes, part.bytes);
    data += part.data_bytes;
  }
  EXPECT_EQ(data, whole.data_bytes);
}

}  // namespace
}  // namespace railyard
