// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/tables/packet_pool.h"

#include <cstdint>
#include <set>

#include <gtest/gtest.h>

namespace railyard {
namespace {

PacketId AllocateData(PacketPool& pool, uint16_t payload_bytes) {
  const PacketId index = pool.Allocate();
  pool[index].kind = PacketKind::kNetworkData;
  pool[index].payload_bytes = payload_bytes;
  return index;
}

TEST(PacketPool, ARecordThatIsAllocatedAgainHasDefaultValues) {
  PacketPool pool;
  const PacketId first = AllocateData(pool, 900);
  pool[first].flags = Packet::kLastOfMessage;
  pool.Free(first);
  const PacketId second = pool.Allocate();
  EXPECT_EQ(second, first) << "the record that is most likely in the cache";
  EXPECT_EQ(pool[second].payload_bytes, 0);
  EXPECT_EQ(pool[second].flags, 0);
  EXPECT_EQ(pool[second].ingress, VirtualChannelId::kNone);
}

TEST(PacketPool, PacketsKeepTheirNumbersAsItGrows) {
  PacketPool pool;
  std::set<uint32_t> seen;
  const PacketId first = AllocateData(pool, 77);
  const size_t size = pool.size();
  const char* const base = *pool.base();
  while (pool.size() == size) seen.insert(uint32_t{pool.Allocate()});
  EXPECT_EQ(seen.size(), size) << "each is another one";
  EXPECT_FALSE(seen.contains(uint32_t{first}));
  EXPECT_EQ(pool.live_count(), size + 1);
  EXPECT_EQ(pool[first].payload_bytes, 77);
  EXPECT_NE(*pool.base(), base);
  EXPECT_EQ(*pool.base(), reinterpret_cast<const char*>(&pool[PacketId{0}]));
}

TEST(PacketPool, APacketThatMovesAwayLeavesATombstone) {
  PacketPool pool;
  const PacketId before = AllocateData(pool, 900);
  const PacketId after = pool.MoveAway(before);
  EXPECT_NE(after, before);
  EXPECT_EQ(pool[after].payload_bytes, 900);
  EXPECT_EQ(pool[after].flags, 0);
  EXPECT_EQ(pool[before].flags, Packet::kTombstone);
  EXPECT_EQ(pool.live_count(), 1u);
  EXPECT_EQ(pool.PayloadBytes(), 900u) << "counted once";
  EXPECT_NE(pool.Allocate(), before) << "an event still refers to it";
  pool.FreeTombstone(before);
  EXPECT_EQ(pool.live_count(), 2u);
  EXPECT_EQ(pool.Allocate(), before);
}

TEST(PacketPool, PayloadIsThatOfDataWithoutFlags) {
  PacketPool pool;
  EXPECT_EQ(pool.PayloadBytes(), 0u);
  const PacketId data = AllocateData(pool, 900);
  pool[data].echo = 100;
  const PacketId acknowledgement = AllocateData(pool, 50);
  pool[acknowledgement].kind = PacketKind::kAck;
  const PacketId freed = AllocateData(pool, 1'000);
  pool.Free(freed);
  EXPECT_EQ(pool.PayloadBytes(), 800u);
}

}  // namespace
}  // namespace railyard
