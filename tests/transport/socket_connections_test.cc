// SPDX-License-Identifier: GPL-2.0-only
// NCCL's sockets: what their threads carry, how messages are divided, who waits for whom.
#include "simulator/transport/connections/socket_connections.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/transport/tcp_fixture.h"

namespace railyard {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint32_t kConnection = 7;
constexpr uint64_t kMessage = uint64_t{1} << 20;

// Plays the lane executor to one connection.
class SocketConnectionsTest : public testing::TcpFixture {
 protected:
  void TearDown() override {
    sockets_.reset();
    TcpFixture::TearDown();
  }
  void Connect(NetSocketSettings settings) {
    settings.enabled = true;
    BuildTransports(TcpNic());
    sockets_.emplace(*tcp_, engine(), kSegment, settings, proxies_);
    connection_ = sockets_->Open({&sink_, kConnection}, GpuIndex{0}, GpuIndex{1}, 99);
  }
  void Post(uint64_t bytes, uint16_t label) {
    sockets_->Post(connection_, {.size = MessageSize::OfData(bytes), .label = label});
  }
  // Messages that are received as they come; bits per second of all but the first few.
  double Goodput(int messages) {
    for (int i = 0; i < messages; ++i) {
      sockets_->Grant(connection_, true);
      Post(kMessage, 0);
    }
    engine().Run();
    EXPECT_THAT(sink_.delivered, SizeIs(messages));
    const int first = messages / 4;
    const auto taken_ps =
        static_cast<double>(sink_.delivered.back() - sink_.delivered[static_cast<size_t>(first)]);
    return static_cast<double>(messages - 1 - first) * 8 * kMessage / taken_ps * 1e12;
  }

  struct ConnectionSink : MessageSink {
    void OnDelivered(uint32_t connection) override {
      EXPECT_EQ(connection, kConnection);
      delivered.push_back(test->engine().NowPs());
      labels.push_back(test->sockets_->LabelOfDelivered(test->connection_));
    }
    void OnCompleted(uint32_t connection) override {
      EXPECT_EQ(connection, kConnection);
      sent.push_back(test->engine().NowPs());
    }
    void OnPacketLost(uint32_t, const FlowLoss&) override {}
    void OnFailed(uint32_t, bool, const FlowError&) override {}

    SocketConnectionsTest* test = nullptr;
    std::vector<int64_t> delivered;
    std::vector<int64_t> sent;
    std::vector<uint16_t> labels;
  };
  void SetUp() override {
    TcpFixture::SetUp();
    sink_.test = this;
  }

  ConnectionSink sink_;
  std::optional<SocketConnections> sockets_;
  ProxyThreads proxies_{2};
  FlowId connection_;
};

// The proxy's thread copies all: 42 Gb/s, of a wire of 100.
TEST_F(SocketConnectionsTest, WithoutHelperThreadsTheProxyIsWhatLimits) {
  Connect({});
  EXPECT_NEAR(Goodput(64), 42e9, 0.01 * 42e9);
}

// Two threads carry 84 Gb/s; four, 168, of which the wire takes 1448/1538 of 100.
TEST_F(SocketConnectionsTest, HelperThreadsCarryMoreUntilTheWireLimits) {
  Connect({.nthreads = 2});
  EXPECT_NEAR(Goodput(64), 84e9, 0.02 * 84e9);
}

TEST_F(SocketConnectionsTest, FourThreadsFillTheWire) {
  Connect({.nthreads = 4});
  const double payload_share = 1'448.0 / 1'538;
  EXPECT_NEAR(Goodput(128), 100e9 * payload_share, 0.02 * 100e9);
}

// Sockets without threads of their own carry no more.
TEST_F(SocketConnectionsTest, MoreSocketsOfAThreadShareIt) {
  Connect({.nthreads = 1, .nsocks_per_thread = 8});
  EXPECT_NEAR(Goodput(64), 42e9, 0.02 * 42e9);
}

TEST_F(SocketConnectionsTest, TheRatesAreTheSettings) {
  Connect({.receive_rate_bps = 10'000'000'000});
  EXPECT_NEAR(Goodput(32), 10e9, 0.01 * 10e9);
}

// Tasks of 64 KiB at least: 100 KB are two of them, on the first two of eight sockets; the next
// message goes on with the third.
TEST_F(SocketConnectionsTest, TasksTakeTheSocketsInTurn) {
  Connect({.nthreads = 2, .nsocks_per_thread = 4});
  for (int i = 0; i < 2; ++i) {
    sockets_->Grant(connection_, true);
    Post(100'000, 0);
  }
  std::vector<bool> used;
  // Thread 0 has copied 64 KiB of either message by now, and nothing is acknowledged yet.
  At(kPsPerUs * 13, [&] {
    // Stream 0 is the control socket.
    for (FlowId stream{1}; stream <= 8; ++stream) {
      used.push_back(tcp_->StatusOf(stream).is_under_way);
    }
  });
  engine().Run();
  EXPECT_EQ(used, (std::vector<bool>{true, true, true, true, false, false, false, false}));
  EXPECT_THAT(sink_.delivered, SizeIs(2));
  // The 4 B before each are no data of theirs.
  EXPECT_EQ(network().counters().delivered_bytes, 200'000u);
}

// A send is done when the kernel has it, which is long before it is there; a receiver that is not
// ready leaves it in the kernel's buffers.
TEST_F(SocketConnectionsTest, KernelsHoldWhatNobodyReceives) {
  Connect({});
  for (uint16_t i = 0; i < 10; ++i) Post(kMessage, i);
  At(10 * kPsPerMs, [this] {
    EXPECT_THAT(sink_.delivered, IsEmpty());
    // 3 MiB of the 10 MiB are in the receive buffer and 4 MiB in the send buffer.
    EXPECT_THAT(sink_.sent, SizeIs(6));
    for (int i = 0; i < 10; ++i) sockets_->Grant(connection_, true);
  });
  engine().Run();
  EXPECT_THAT(sink_.sent, SizeIs(10));
  EXPECT_THAT(sink_.labels, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(sink_.delivered, Each(::testing::Gt(10 * kPsPerMs)));
}

TEST_F(SocketConnectionsTest, AMessageWithoutBytesIsItsSize) {
  Connect({.nthreads = 2});
  sockets_->Grant(connection_, true);
  Post(0, 5);
  engine().Run();
  EXPECT_THAT(sink_.labels, ::testing::ElementsAre(5));
  EXPECT_EQ(network().counters().packets, 1u);
  EXPECT_EQ(network().counters().delivered_bytes, 0u);
}

}  // namespace
}  // namespace railyard
