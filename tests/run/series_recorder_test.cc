// SPDX-License-Identifier: GPL-2.0-only
// The recorder of time series is tested in small runs, and on a network whose counters the test
// raises by hand while the replay has not started.
#include "simulator/run/series_recorder.h"

#include <cstdint>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/replay/replay_fixture.h"

namespace railyard::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kBin = TimeSeries::kFirstBinPs;

class SeriesRecorderTest : public ReplayFixture, public PacketSink {
 protected:
  static constexpr uint64_t kFloats = 1 << 20;

  SeriesRecorderTest() : ReplayFixture(2) {}

  SeriesRecorder& Record(Job job, ReplayCacheMode cache = ReplayCacheMode::kOff) {
    Build(std::move(job), cache);
    recorder_.emplace(engine(), *network_, *replay_, graph_.link_count());
    recorder_->Start();
    return *recorder_;
  }
  static Job TwoRanks(const std::vector<TraceOperation>& program) {
    Programs programs(16);
    programs[0] = programs[8] = program;
    return JobOf({{0, 8}}, programs);
  }
  // So many bytes have crossed the link.
  void Count(LinkId link, uint64_t bytes) { network_->flows().CountOnLink(link, bytes, bytes); }
  static LinkBin RowOf(const TimeBin& bin, LinkId link) {
    for (const LinkBin& row : bin.links) {
      if (row.link == link) return row;
    }
    return {};
  }
  static std::vector<uint64_t> PayloadOf(const TimeSeries& series, LinkId link) {
    std::vector<uint64_t> bytes;
    for (const TimeBin& bin : series.bins()) bytes.push_back(RowOf(bin, link).payload_bytes);
    return bytes;
  }
  // The figures of each link add up to its counters, and bins follow one another until the end.
  void ExpectComplete(const TimeSeries& series, int64_t end_ps) const {
    int64_t until_ps = 0;
    for (const TimeBin& bin : series.bins()) {
      EXPECT_EQ(bin.begin_ps, until_ps);
      until_ps = bin.end_ps;
    }
    EXPECT_EQ(until_ps, end_ps);
    for (LinkId link{0}; link < graph_.link_count(); ++link) {
      LinkBin sum;
      for (const TimeBin& bin : series.bins()) sum.Add(RowOf(bin, link));
      const LinkCounters counters = network_->CountersOfLink(link);
      EXPECT_EQ(sum.payload_bytes, counters.payload_bytes);
      EXPECT_EQ(sum.wire_bytes,
                counters.payload_bytes + counters.header_bytes + counters.retransmitted_bytes);
      EXPECT_EQ(sum.packets, counters.packets);
    }
  }

  void OnPacketAtNic(PacketId packet) override { network_->Deliver(packet); }
  void OnPacketInMemory(PacketId packet) override { network_->Deliver(packet); }
  void OnPacketDropped(PacketId /*packet*/, DropReason /*reason*/, LinkId /*link*/) override {}

  std::optional<SeriesRecorder> recorder_;
};

TEST_F(SeriesRecorderTest, BinsOfARunAddUpToItsCountersAndNoLinkIsFasterThanItIs) {
  SeriesRecorder& recorder = Record(TwoRanks({AllReduce(kFloats), AllReduce(kFloats, kPsPerMs)}));
  Run();
  const TimeSeries series = recorder.Finish(replay_->end_ps());
  ExpectComplete(series, replay_->end_ps());
  for (const TimeBin& bin : series.bins()) {
    for (const LinkBin& row : bin.links) {
      // A packet that was mostly sent before may arrive in a bin.
      const auto capacity_bytes = static_cast<double>(graph_.link(LinkId{row.link}).rate_bps) / 8 *
                                  static_cast<double>(bin.end_ps - bin.begin_ps) / 1e12;
      EXPECT_LE(static_cast<double>(row.wire_bytes), capacity_bytes + 5'000);
    }
  }
}

// Two calls are 5 ms apart.
TEST_F(SeriesRecorderTest, ASilenceIsOneBinWithoutTraffic) {
  SeriesRecorder& recorder =
      Record(TwoRanks({AllReduce(kFloats), AllReduce(kFloats, 5 * kPsPerMs)}));
  Run();
  const TimeSeries series = recorder.Finish(replay_->end_ps());
  std::vector<TimeBin> silent;
  for (const TimeBin& bin : series.bins()) {
    if (bin.begin_ps >= TimesOf(0).last_end_ps && bin.end_ps < TimesOf(1).first_start_ps) {
      silent.push_back(bin);
    }
  }
  ASSERT_THAT(silent, SizeIs(1));
  EXPECT_GT(silent[0].end_ps - silent[0].begin_ps, 4 * kPsPerMs);
  EXPECT_THAT(silent[0].links, IsEmpty());
}

TEST_F(SeriesRecorderTest, ReplayedCallsCountInTheSeriesToo) {
  SeriesRecorder& recorder =
      Record(TwoRanks(std::vector<TraceOperation>(12, AllReduce(kFloats, kPsPerMs))),
             ReplayCacheMode::kOn);
  Run();
  ASSERT_GT(replay_->ledger().collectives_replayed(), 0u);
  const TimeSeries series = recorder.Finish(replay_->end_ps());
  ExpectComplete(series, replay_->end_ps());
  int64_t replayed_ps = 0;
  for (const TimeBin& bin : series.bins()) {
    EXPECT_LE(bin.replayed_ps, bin.end_ps - bin.begin_ps);
    replayed_ps += bin.replayed_ps;
  }
  EXPECT_GT(replayed_ps, 0);
}

// 4,000 B are replayed in four bins, after 100 B that were simulated at time 0.
TEST_F(SeriesRecorderTest, WhatIsReplayedIsSpreadOverItsTimeAndNothingElseIs) {
  SeriesRecorder& recorder = Record(TwoRanks({AllReduce(kFloats)}));
  const LinkId link{3};
  Count(link, 100);
  recorder.CountSpan(kBin, 5 * kBin, [&] { Count(link, 4'000); });
  const TimeSeries series = recorder.Finish(5 * kBin);
  EXPECT_THAT(PayloadOf(series, link), ElementsAre(100, 1'000, 1'000, 1'000, 1'000));
  EXPECT_EQ(series.bins()[0].replayed_ps, 0);
  EXPECT_EQ(series.bins()[1].replayed_ps, kBin);
}

TEST_F(SeriesRecorderTest, AReplayWithinTheBinAtHandCountsThere) {
  SeriesRecorder& recorder = Record(TwoRanks({AllReduce(kFloats)}));
  const LinkId link{3};
  recorder.CountSpan(kBin / 4, kBin / 2, [&] { Count(link, 700); });
  Count(link, 7);
  const TimeSeries series = recorder.Finish(kBin);
  EXPECT_THAT(PayloadOf(series, link), ElementsAre(707));
  EXPECT_EQ(series.bins()[0].replayed_ps, kBin / 4);
}

TEST_F(SeriesRecorderTest, AStoppedRecorderLetsOthersCount) {
  SeriesRecorder& recorder = Record(TwoRanks({AllReduce(kFloats)}));
  recorder.Stop();
  recorder.CountSpan(kBin, 5 * kBin, [&] { Count(LinkId{3}, 4'000); });
  EXPECT_EQ(network_->CountersOfLink(LinkId{3}).payload_bytes, 4'000u);
  EXPECT_EQ(recorder.SoFar().bins().size(), 1u);
  EXPECT_THAT(recorder.SoFar().bins()[0].links, IsEmpty());
}

// A packet of 4,000 B takes 32 us at 1 Gb/s. After half a bin, 3,937.5 B are still to be sent.
TEST_F(SeriesRecorderTest, AQueueIsWhatIsLeftToSendWhenABinEnds) {
  SeriesRecorder& recorder = Record(TwoRanks({AllReduce(kFloats)}));
  network_->SetSink(*this);
  const LinkId up = graph_.WiresOfNic(graph_.NicOfGpu(graph_.gpus()[0]).value()).front();
  const LinkId down =
      graph_.ReverseLink(graph_.WiresOfNic(graph_.NicOfGpu(graph_.gpus()[8]).value()).front());
  network_->SetLinkRate(up, 1'000'000'000);
  At(kBin / 2, [&] {
    const PathRef path = network_->AddPath({up, down});
    const PacketId index = network_->AllocatePacket();
    network_->packet(index) = {.path = path.first,
                               .wire_bytes = 4'000,
                               .payload_bytes = 3'900,
                               .kind = PacketKind::kNetworkData,
                               .hop_count = path.hop_count};
    network_->Inject(index);
  });
  ns3::Simulator::Run();
  const TimeSeries series = recorder.Finish(engine().NowPs());
  EXPECT_EQ(series.bins()[0].samples, 1u);
  EXPECT_EQ(RowOf(series.bins()[0], up).queue_max_bytes, 3'937u);
  EXPECT_EQ(RowOf(series.bins()[0], up).queue_sum_bytes, 3'937u);
  EXPECT_EQ(RowOf(series.bins()[0], up).wire_bytes, 0u);
  uint64_t wire_bytes = 0;
  for (const TimeBin& bin : series.bins()) wire_bytes += RowOf(bin, up).wire_bytes;
  EXPECT_EQ(wire_bytes, 4'000u);
}

}  // namespace
}  // namespace railyard::testing
