// SPDX-License-Identifier: GPL-2.0-only
#include "traces/trace/trace.h"

#include <gtest/gtest.h>

namespace railyard {
namespace {

uint64_t Bytes(CollectiveKind kind, uint64_t count, Datatype type, uint32_t ranks) {
  TraceOperation operation;
  operation.kind = kind;
  operation.count = count;
  operation.datatype = type;
  return OperationBytes(operation, ranks);
}

TEST(TraceTest, SizeOfWholeVectorCollectivesIsCountTimesTypeSize) {
  EXPECT_EQ(Bytes(CollectiveKind::kAllReduce, 100, Datatype::kFloat32, 16), 400u);
  EXPECT_EQ(Bytes(CollectiveKind::kBroadcast, 100, Datatype::kBfloat16, 16), 200u);
  EXPECT_EQ(Bytes(CollectiveKind::kReduce, 100, Datatype::kInt64, 16), 800u);
  EXPECT_EQ(Bytes(CollectiveKind::kSend, 100, Datatype::kInt8, 16), 100u);
  EXPECT_EQ(Bytes(CollectiveKind::kRecv, 100, Datatype::kUint8, 16), 100u);
}

TEST(TraceTest, SizeOfCollectivesWithPerRankCountsIsTheTotalOverRanks) {
  EXPECT_EQ(Bytes(CollectiveKind::kAllGather, 100, Datatype::kFloat16, 16), 3200u);
  EXPECT_EQ(Bytes(CollectiveKind::kReduceScatter, 100, Datatype::kFloat64, 16), 12800u);
  EXPECT_EQ(Bytes(CollectiveKind::kAllToAll, 100, Datatype::kFloat8E4M3, 16), 1600u);
  EXPECT_EQ(Bytes(CollectiveKind::kGather, 100, Datatype::kInt32, 16), 6400u);
  EXPECT_EQ(Bytes(CollectiveKind::kScatter, 100, Datatype::kUint32, 16), 6400u);
}

// ncclTypeSize, by NCCL's datatype number.
TEST(TraceTest, DatatypesHaveNcclsNumbersAndSizes) {
  constexpr uint32_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  for (uint32_t number = 0; number < 12; ++number) {
    EXPECT_EQ(DatatypeBytes(static_cast<Datatype>(number)), kSizes[number]) << number;
  }
  EXPECT_EQ(DatatypeName(static_cast<Datatype>(7)), "float32");
  EXPECT_EQ(DatatypeName(static_cast<Datatype>(9)), "bfloat16");
  EXPECT_EQ(DatatypeName(static_cast<Datatype>(11)), "float8e5m2");
}

TEST(TraceTest, NamesAreThoseNcclPrints) {
  EXPECT_EQ(CollectiveKindName(CollectiveKind::kAllReduce), "AllReduce");
  EXPECT_EQ(CollectiveKindName(CollectiveKind::kAllToAll), "AlltoAll");
  EXPECT_EQ(AlgorithmName(Algorithm::kNvlsTree), "NVLS_TREE");
  EXPECT_EQ(AlgorithmName(Algorithm::kCollnetDirect), "COLLNET_DIRECT");
  EXPECT_EQ(AlgorithmName(Algorithm::kUnstated), "-");
  EXPECT_EQ(ProtocolName(Protocol::kLl128), "LL128");
  EXPECT_EQ(ProtocolName(Protocol::kUnstated), "-");
}

TEST(TraceTest, NamesAreFoundInAnyCaseWithOrWithoutUnderscores) {
  for (int number = 1; number <= static_cast<int>(Algorithm::kPat); ++number) {
    const auto algorithm = static_cast<Algorithm>(number);
    EXPECT_EQ(FindAlgorithm(AlgorithmName(algorithm)), algorithm);
  }
  EXPECT_EQ(FindAlgorithm("CollNetDirect"), Algorithm::kCollnetDirect);
  EXPECT_EQ(FindAlgorithm("nvlstree"), Algorithm::kNvlsTree);
  EXPECT_EQ(FindAlgorithm("nvls_tree"), Algorithm::kNvlsTree);
  EXPECT_EQ(FindProtocol("Simple"), Protocol::kSimple);
  EXPECT_EQ(FindProtocol("ll"), Protocol::kLl);
  EXPECT_EQ(FindProtocol("LL_128"), Protocol::kLl128);
}

TEST(TraceTest, OnlyWholeNamesOfNcclsAreFound) {
  for (const char* name : {"", "_", "-", "?", "RIN", "RINGS", " RING", "DIRECT", "HALVING_DOUBLING",
                           "EXPLICIT", "SIMPLE"}) {
    EXPECT_EQ(FindAlgorithm(name), std::nullopt) << name;
  }
  for (const char* name : {"", "-", "L", "LL1", "RING"}) {
    EXPECT_EQ(FindProtocol(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace railyard
