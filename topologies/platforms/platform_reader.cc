// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/platforms/platform_reader.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "simulator/units/units.h"
#include "topologies/graph/spec_check.h"
#include "topologies/platforms/cpu_vendor_reader.h"
#include "topologies/platforms/platform.pb.h"

namespace railyard {
namespace {

// NVLinks of a GPU to one NVSwitch, and NVSwitches; far more than any server has.
constexpr uint32_t kMaxLanes = 64;
constexpr int kMaxNvSwitches = 64;
constexpr uint32_t kMaxComputeCapability = 1'000;

class PlatformReader {
 public:
  PlatformReader(std::string name, Diagnostics& diagnostics) : diagnostics_(diagnostics) {
    platform_.name = std::move(name);
  }

  Platform Read(const ProtoCursor& cursor) && {
    platform_.description = cursor.Text("description", "");
    ServerSpec& server = platform_.server;
    if (IsGiven(cursor, "gpus", "gpus")) {
      server.gpus = Count(cursor.Child("gpus"), server.gpus);
    }
    if (cursor.Has("nics")) server.nics = Count(cursor.Child("nics"), 1);
    Rate(cursor, "nic_rate", "nic_rate", server.nic_rate_bps);
    Rate(cursor, "host_rate", "host_rate", server.host_rate_bps);
    Delay(cursor, "host_delay", "host_delay", server.host_delay_ps);
    if (cursor.Has("nvlink")) {
      Nvlink(cursor.Child("nvlink"));
    } else {
      server.nvlink_lanes.clear();
    }
    server.compute_capability = 0;
    if (cursor.Has("compute_capability")) {
      server.compute_capability =
          Count(cursor.Child("compute_capability"), 0, kMaxComputeCapability);
    }
    server.cpu = CpuVendor::kUnknown;
    if (cursor.Has("cpu")) Cpu(cursor.Child("cpu"));
    if (cursor.Has("pcie")) Pcie(cursor.Child("pcie"));
    if (cursor.Has("calibration")) Calibration(cursor.Child("calibration"));
    return std::move(platform_);
  }

 private:
  void Cpu(const ProtoCursor& cursor) {
    CheckSource(cursor);
    if (!cursor.Has("value")) {
      cursor.Missing(diagnostics_, "value", kExpectedCpuVendor);
    }
    ReadCpuVendor(cursor, "value", platform_.server.cpu, diagnostics_);
  }

  void Pcie(const ProtoCursor& cursor) {
    ServerSpec& server = platform_.server;
    server.pcie = ServerSpec::PcieTree{};
    ServerSpec::PcieTree& tree = *server.pcie;
    if (cursor.Has("sockets")) {
      tree.sockets = Count(cursor.Child("sockets"), 1);
    } else {
      cursor.Missing(diagnostics_, "sockets", "a number of host bridges");
    }
    if (cursor.Has("switches_per_socket")) {
      tree.switches_per_socket = Count(cursor.Child("switches_per_socket"), 1);
    }
    const auto is_used = [&](const char* field, bool is_there, const char* without) {
      if (is_there && !cursor.Has(field)) cursor.Missing(diagnostics_, field, "a value");
      if (is_there || !cursor.Has(field)) return is_there;
      cursor.Error(diagnostics_, field, fmt::format("has no effect {}", without));
      return false;
    };
    if (is_used("switch_latency", tree.switches_per_socket > 0, "without switches_per_socket")) {
      ReadDelay(cursor, "switch_latency", server.pcie_switch_latency_ps);
    }
    if (is_used("bridge_latency", true, "")) {
      ReadDelay(cursor, "bridge_latency", server.host_bridge_latency_ps);
    }
    if (is_used("socket_rate", tree.sockets > 1, "with one socket")) {
      ReadRate(cursor, "socket_rate", tree.socket_rate_bps);
    }
    if (is_used("socket_delay", tree.sockets > 1, "with one socket")) {
      ReadDelay(cursor, "socket_delay", tree.socket_delay_ps);
    }
    if (!cursor.Has("peer_access")) return;
    const ProtoCursor flag = cursor.Child("peer_access");
    CheckSource(flag);
    if (!flag.Has("value")) flag.Missing(diagnostics_, "value", "true or false");
    server.peer_access = flag.Flag("value", true);
  }

  void Nvlink(const ProtoCursor& cursor) {
    ServerSpec& server = platform_.server;
    if (cursor.Has("mesh")) {
      server.nvlink_lanes.clear();
      for (const char* field : {"nvswitch_lanes", "nvswitch_latency"}) {
        if (!cursor.Has(field)) continue;
        cursor.Error(diagnostics_, field, "has no effect beside mesh (expected one of the two)");
      }
      Mesh(cursor.Child("mesh"));
    } else if (cursor.Has("nvswitch_lanes")) {
      Lanes(cursor.Child("nvswitch_lanes"));
    } else {
      cursor.Missing(diagnostics_, "nvswitch_lanes",
                     "a GPU's NVLinks to each NVSwitch, e.g. { values: [5, 4, 4, 5] }, or mesh");
    }
    Rate(cursor, "lane_rate", "nvlink_rate", server.nvlink_lane_rate_bps);
    Delay(cursor, "delay", "nvlink_delay", server.nvlink_delay_ps);
    if (cursor.Has("mesh")) return;
    Delay(cursor, "nvswitch_latency", "nvswitch_latency", server.nvswitch_latency_ps);
  }

  void Mesh(const ProtoCursor& cursor) {
    CheckSource(cursor);
    ServerSpec& server = platform_.server;
    if (cursor.Size("bundles") == 0) {
      cursor.Missing(diagnostics_, "bundles",
                     "NVLinks of two GPUs, e.g. { gpu: 0 peer: 1 lanes: 2 }");
    }
    std::set<std::pair<uint32_t, uint32_t>> joined;
    for (int i = 0; i < cursor.Size("bundles"); ++i) {
      const ProtoCursor bundle = cursor.Child("bundles", i);
      const auto gpu =
          static_cast<uint32_t>(bundle.Number(diagnostics_, "gpu", 0, 0, server.gpus - 1));
      const auto peer = static_cast<uint32_t>(
          bundle.Number(diagnostics_, "peer", server.gpus - 1, 0, server.gpus - 1));
      const auto lanes =
          static_cast<uint32_t>(bundle.Number(diagnostics_, "lanes", 1, 1, kMaxLanes));
      for (const char* field : {"gpu", "peer", "lanes"}) {
        if (!bundle.Has(field)) bundle.Missing(diagnostics_, field, "a number");
      }
      if (bundle.Has("gpu") && bundle.Has("peer") && gpu >= peer) {
        bundle.Error(diagnostics_, "peer",
                     fmt::format("{} is not above gpu, {} (expected each pair once, the lower "
                                 "first)",
                                 peer, gpu));
      } else if (!joined.emplace(gpu, peer).second) {
        bundle.Error(
            diagnostics_, "peer",
            fmt::format("{} and {} are joined above (expected each pair once)", gpu, peer));
      }
      server.nvlink_mesh.push_back({.gpu = gpu, .is_to_gpu = true, .peer = peer, .lanes = lanes});
    }
    std::sort(server.nvlink_mesh.begin(), server.nvlink_mesh.end(),
              [](const auto& a, const auto& b) {
                return std::tie(a.peer, a.gpu) < std::tie(b.peer, b.gpu);
              });
  }

  void Lanes(const ProtoCursor& cursor) {
    const auto& proto = cursor.As<protos::SourcedNumbers>();
    CheckSource(cursor);
    if (proto.values_size() == 0 || proto.values_size() > kMaxNvSwitches) {
      cursor.Error(diagnostics_, "values",
                   fmt::format("{} NVSwitches are out of range (expected 1 to {})",
                               proto.values_size(), kMaxNvSwitches));
      return;
    }
    platform_.server.nvlink_lanes.assign(proto.values().begin(), proto.values().end());
    for (int i = 0; i < proto.values_size(); ++i) {
      if (proto.values(i) >= 1 && proto.values(i) <= kMaxLanes) continue;
      cursor.Error(diagnostics_, "values",
                   fmt::format("{} is out of range (expected 1 to {})", proto.values(i), kMaxLanes),
                   i);
    }
  }

  void Calibration(const ProtoCursor& cursor) {
    CheckSource(cursor);
    const auto& proto = cursor.As<protos::Calibration>();
    platform_.calibration = {
        .launch_latency_scale = Scale(cursor, "launch_latency_scale", proto.launch_latency_scale()),
        .step_latency_scale = Scale(cursor, "step_latency_scale", proto.step_latency_scale()),
        .channel_rate_scale = Scale(cursor, "channel_rate_scale", proto.channel_rate_scale()),
        .source = proto.source()};
  }

  double Scale(const ProtoCursor& cursor, const char* field, double value) {
    if (!cursor.Has(field)) {
      cursor.Missing(diagnostics_, field, "a factor");
      return 1;
    }
    if (!IsCostScale(value)) {
      cursor.Error(diagnostics_, field,
                   fmt::format("{} is out of range (expected 0.1 to 10)", value));
    }
    return value;
  }

  uint32_t Count(const ProtoCursor& cursor, uint32_t default_value,
                 uint32_t max = kMaxGpusPerServer) {
    CheckSource(cursor);
    if (!cursor.Has("value")) cursor.Missing(diagnostics_, "value", "a number");
    return static_cast<uint32_t>(cursor.Number(diagnostics_, "value", default_value, 1, max));
  }

  void Rate(const ProtoCursor& parent, const char* field, const char* in_servers,
            uint64_t& rate_bps) {
    if (IsGiven(parent, field, in_servers)) ReadRate(parent, field, rate_bps);
  }

  void ReadRate(const ProtoCursor& parent, const char* field, uint64_t& rate_bps) {
    if (!parent.Has(field)) return;
    const ProtoCursor cursor = parent.Child(field);
    CheckSource(cursor);
    if (!cursor.Has("value")) cursor.Missing(diagnostics_, "value", kExpectedRate);
    rate_bps = cursor.RateBps(diagnostics_, "value", rate_bps);
    CheckProblems(cursor, [&](SpecChecker& check) { check.Rate("value", rate_bps); });
  }

  void Delay(const ProtoCursor& parent, const char* field, const char* in_servers,
             int64_t& delay_ps) {
    if (IsGiven(parent, field, in_servers)) ReadDelay(parent, field, delay_ps);
  }

  void ReadDelay(const ProtoCursor& parent, const char* field, int64_t& delay_ps) {
    if (!parent.Has(field)) return;
    const ProtoCursor cursor = parent.Child(field);
    CheckSource(cursor);
    if (!cursor.Has("value")) cursor.Missing(diagnostics_, "value", kExpectedDuration);
    delay_ps = cursor.DurationPs(diagnostics_, "value", delay_ps);
    CheckProblems(cursor, [&](SpecChecker& check) { check.Delay("value", delay_ps); });
  }

  // A field that is not given is open.
  bool IsGiven(const ProtoCursor& parent, const char* field, const char* in_servers) {
    if (parent.Has(field)) return true;
    platform_.open_fields.emplace_back(in_servers);
    return false;
  }

  void CheckSource(const ProtoCursor& cursor) {
    if (!cursor.Text("source", "").empty()) return;
    cursor.Missing(diagnostics_, "source", "where the number is from");
  }

  template <typename Check>
  void CheckProblems(const ProtoCursor& cursor, Check&& run) {
    SpecChecker check;
    run(check);
    for (const SpecProblem& problem : check.Take()) {
      cursor.Error(diagnostics_, problem.field.c_str(), problem.what);
    }
  }

  Diagnostics& diagnostics_;
  Platform platform_;
};

}  // namespace

Platform ReadPlatform(const ProtoCursor& cursor, std::string name, Diagnostics& diagnostics) {
  return PlatformReader(std::move(name), diagnostics).Read(cursor);
}

}  // namespace railyard
