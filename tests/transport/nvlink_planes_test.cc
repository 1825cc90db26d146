// SPDX-License-Identifier: GPL-2.0-only
// Planes of NVSwitches: three GPUs at switches 0 and 1, a fourth at switch 1 alone.
#include "simulator/transport/load_store/nvlink_planes.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;

class NvlinkPlanesTest : public ::testing::Test {
 protected:
  NvlinkPlanesTest() {
    std::vector<DeviceId> gpus;
    for (int32_t i = 0; i < 4; ++i) gpus.push_back(Add(DeviceKind::kGpu, i));
    for (int32_t i = 0; i < 2; ++i) switches_.push_back(Add(DeviceKind::kNvSwitch, i));
    for (uint32_t i = 0; i < 4; ++i) {
      for (const DeviceId nvswitch : switches_) {
        if (i == 3 && nvswitch == switches_[0]) continue;
        graph_.AddCable(gpus[i], nvswitch, {Tier::kNvlink, 200'000'000'000, 0, 1});
      }
    }
  }
  DeviceId Add(DeviceKind kind, int32_t index) {
    Device device;
    device.name =
        (kind == DeviceKind::kGpu ? "server0/gpu" : "server0/nvswitch") + std::to_string(index);
    device.kind = kind;
    device.server = ServerIndex{0};
    device.local_index = index;
    return graph_.AddDevice(device);
  }
  std::vector<FabricGraph::NvlinkPath> PathsBetween(uint32_t from, uint32_t to) const {
    return graph_.NvlinkRoutes(graph_.gpus()[from], graph_.gpus()[to]);
  }

  FabricGraph graph_;
  std::vector<DeviceId> switches_;
};

TEST_F(NvlinkPlanesTest, PlacesAreInTheOrderOfSwitches) {
  const NvlinkPlanes planes(graph_);
  for (GpuIndex gpu{0}; gpu < 3; ++gpu) {
    for (uint32_t plane = 0; plane < 2; ++plane) {
      const uint32_t place = planes.FirstPlaceOf(gpu) + plane;
      EXPECT_EQ(graph_.link_source(planes.Up(place)), graph_.gpus()[gpu]);
      EXPECT_EQ(graph_.link_target(planes.Up(place)), switches_[plane]);
      EXPECT_EQ(planes.Down(place), graph_.ReverseLink(planes.Up(place)));
    }
  }
  // The fourth GPU has one plane.
  const uint32_t fourth = planes.FirstPlaceOf(GpuIndex{3});
  EXPECT_EQ(graph_.link_target(planes.Up(fourth)), switches_[1]);
  EXPECT_EQ(planes.Up(fourth + 1), LinkId::kNone);
}

TEST_F(NvlinkPlanesTest, OnlyLikeGpusUseAllTheirPlanes) {
  const NvlinkPlanes planes(graph_);
  EXPECT_TRUE(planes.AreAll(GpuIndex{0}, GpuIndex{2}, PathsBetween(0, 2)));
  EXPECT_FALSE(planes.AreAll(GpuIndex{0}, GpuIndex{3}, PathsBetween(0, 3)));
  EXPECT_FALSE(planes.AreAll(GpuIndex{3}, GpuIndex{0}, PathsBetween(3, 0)));
  EXPECT_FALSE(planes.AreAll(GpuIndex{0}, GpuIndex{1}, PathsBetween(0, 2)));  // another pair's
}

// A round has as many packets of a plane as its weight says, and no plane is ever a packet ahead of
// or behind its share.
TEST_F(NvlinkPlanesTest, PlanesTakeTurnsByTheirWeights) {
  NvlinkPlanes planes(graph_);
  const std::vector<uint32_t> weights = {5, 4, 4, 5};
  const uint16_t number = planes.InterleaveOf(weights);
  EXPECT_EQ(planes.InterleaveOf(weights), number);
  EXPECT_NE(planes.InterleaveOf({1, 1}), number);
  EXPECT_THAT(planes.interleave(number).weights, ElementsAre(5, 4, 4, 5));
  const std::vector<uint8_t>& order = planes.interleave(number).plane_of_position;
  ASSERT_EQ(order.size(), 18u);
  for (size_t plane = 0; plane < weights.size(); ++plane) {
    uint32_t sent = 0;
    for (size_t position = 0; position < order.size(); ++position) {
      if (order[position] == plane) ++sent;
      const double share = weights[plane] * static_cast<double>(position + 1) / 18.0;
      EXPECT_LT(sent, share + 1) << "plane " << plane << " after packet " << position;
      EXPECT_GT(sent, share - 1) << "plane " << plane << " after packet " << position;
    }
    EXPECT_EQ(sent, weights[plane]);
  }
}

}  // namespace
}  // namespace railyard
