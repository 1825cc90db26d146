// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/settings_loader.h"

#include <bit>
#include <optional>

#include <fmt/format.h>

#include "simulator/scenario/scenario.pb.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

// InfiniBand Architecture Specification 1.7, 9.7.5.1.3: five bits of time-out, of which 0 switches
// the timer off, and three of retries.
constexpr uint32_t kIbTimeoutMax = 31;
constexpr uint32_t kIbRetryCntMax = 7;
// NCCL's MAXCHANNELS (src/include/device.h).
constexpr uint32_t kChannelsMax = 64;
constexpr uint64_t kBuffsizeBytesMin = 64u << 10;
constexpr uint64_t kBuffsizeBytesMax = 1u << 30;
// NCCL_PXN_DISABLE came with PXN itself.
constexpr uint32_t kFirstPxnVersion = 21200;
// A queue pair's window: at most what its 24-bit packet sequence numbers can tell apart, halved.
constexpr uint64_t kWindowPacketsMax = 1u << 22;
constexpr int64_t kDelayPsMax = 1000 * kPsPerSecond;

uint32_t LoadVersion(const ProtoCursor* nccl, const std::string& trace_version,
                     uint32_t default_version, Diagnostics& diagnostics) {
  if (nccl != nullptr && nccl->Has("version")) {
    const std::string text = nccl->Text("version", "");
    if (const auto version = ParseNcclVersion(text)) return *version;
    nccl->Error(diagnostics, "version",
                fmt::format("{} is not a version of NCCL (expected e.g. \"2.27.5\")", Quote(text)));
    return default_version;
  }
  return ParseNcclVersion(trace_version).value_or(default_version);
}

uint32_t LoadIbTimeout(const ProtoCursor& nccl, uint32_t default_value, Diagnostics& diagnostics) {
  const auto& message = static_cast<const protos::Nccl&>(nccl.message());
  if (!nccl.Has("IB_TIMEOUT") || message.ib_timeout() > 0) {
    return static_cast<uint32_t>(
        nccl.Number(diagnostics, "IB_TIMEOUT", default_value, 1, kIbTimeoutMax));
  }
  nccl.Error(diagnostics, "IB_TIMEOUT",
             fmt::format("0 is no time-out at all, a lost packet would be waited for without end "
                         "(expected 1 to {}: 4.096 us x 2^N)",
                         kIbTimeoutMax));
  return default_value;
}

// A delay within what a run can be asked to wait.
int64_t LoadDelay(const ProtoCursor& block, const char* field, int64_t default_ps,
                  Diagnostics& diagnostics) {
  const int64_t delay_ps = block.DurationPs(diagnostics, field, default_ps);
  if (delay_ps <= kDelayPsMax) return delay_ps;
  block.Error(diagnostics, field,
              fmt::format("{} is out of range (expected 0s to {})", Quote(block.Text(field, "")),
                          FormatDuration(kDelayPsMax)));
  return default_ps;
}

}  // namespace

// src/transport/net_ib.cc (2.28: net_ib/connect.cc), NCCL_PARAM(IbTimeout, "IB_TIMEOUT", …).
uint32_t DefaultIbTimeout(uint32_t nccl_version) {
  return nccl_version < 21400 ? 14 : nccl_version < 22300 ? 18 : 20;
}

NcclBlock LoadNccl(const ProtoCursor& scenario, const std::string& trace_version,
                   Diagnostics& diagnostics) {
  NcclBlock block;
  NcclSettings& planner = block.planner;
  std::optional<ProtoCursor> nccl;
  if (scenario.Has("nccl")) nccl = scenario.Child("nccl");
  planner.version =
      LoadVersion(nccl ? &*nccl : nullptr, trace_version, planner.version, diagnostics);
  block.ib_timeout = DefaultIbTimeout(planner.version);
  block.ib_retry_cnt = 7;  // NCCL_PARAM(IbRetryCnt, "IB_RETRY_CNT", 7)
  if (!nccl) return block;

  const auto number = [&](const char* field, uint32_t default_value, uint32_t min, uint32_t max) {
    return static_cast<uint32_t>(nccl->Number(diagnostics, field, default_value, min, max));
  };
  block.ib_timeout = LoadIbTimeout(*nccl, block.ib_timeout, diagnostics);
  block.ib_retry_cnt = number("IB_RETRY_CNT", block.ib_retry_cnt, 0, kIbRetryCntMax);
  planner.cross_nic = number("CROSS_NIC", planner.cross_nic, 0, 2);
  planner.min_nchannels = number("MIN_NCHANNELS", planner.min_nchannels, 1, kChannelsMax);
  planner.max_nchannels = number("MAX_NCHANNELS", planner.max_nchannels, 1, kChannelsMax);
  if (planner.max_nchannels > 0 && planner.min_nchannels > planner.max_nchannels) {
    nccl->Error(diagnostics, "MIN_NCHANNELS",
                fmt::format("{} is more than MAX_NCHANNELS, {}", planner.min_nchannels,
                            planner.max_nchannels));
  }
  const uint64_t buffsize_bytes = nccl->Bytes(diagnostics, "BUFFSIZE", planner.buffsize_bytes);
  if (buffsize_bytes < kBuffsizeBytesMin || buffsize_bytes > kBuffsizeBytesMax) {
    nccl->Error(diagnostics, "BUFFSIZE",
                fmt::format("{} is out of range (expected {} to {})", FormatBytes(buffsize_bytes),
                            FormatBytes(kBuffsizeBytesMin), FormatBytes(kBuffsizeBytesMax)));
  } else {
    planner.buffsize_bytes = buffsize_bytes;
  }
  planner.pxn_disable = nccl->Flag("PXN_DISABLE", planner.pxn_disable);
  if (nccl->Has("PXN_DISABLE") && planner.version < kFirstPxnVersion &&
      !nccl->IsDoubtful("version")) {
    nccl->Error(diagnostics, "PXN_DISABLE",
                fmt::format("NCCL has it from 2.12 on, the job's is {}",
                            nccl->Text("version", trace_version)));
  }
  return block;
}

GpuCosts LoadGpu(const ProtoCursor& scenario, Diagnostics& diagnostics) {
  GpuCosts costs;
  if (!scenario.Has("gpu")) return costs;
  const ProtoCursor gpu = scenario.Child("gpu");
  const auto delay = [&](const char* field, int64_t default_ps) {
    return LoadDelay(gpu, field, default_ps, diagnostics);
  };
  costs.launch_latency_ps = delay("launch_latency", costs.launch_latency_ps);
  costs.nvlink_step_latency_ps = delay("nvlink_step_latency", costs.nvlink_step_latency_ps);
  costs.network_step_latency_ps = delay("network_step_latency", costs.network_step_latency_ps);
  costs.proxy_post_latency_ps = delay("proxy_post_latency", costs.proxy_post_latency_ps);
  costs.channel_rate_bps = gpu.RateBps(diagnostics, "channel_rate", costs.channel_rate_bps);
  return costs;
}

NicSettings LoadNic(const ProtoCursor& scenario, Diagnostics& diagnostics) {
  NicSettings settings;
  if (!scenario.Has("nic")) return settings;
  const ProtoCursor nic = scenario.Child("nic");
  const auto mtu_bytes =
      static_cast<uint32_t>(nic.Number(diagnostics, "mtu_bytes", settings.mtu_bytes, 256, 4096));
  if (std::has_single_bit(mtu_bytes)) {
    settings.mtu_bytes = mtu_bytes;
  } else {
    nic.Error(diagnostics, "mtu_bytes",
              fmt::format("{} is not an MTU of InfiniBand (expected 256, 512, 1024, 2048 or 4096)",
                          mtu_bytes));
  }
  const auto ack_every = static_cast<uint32_t>(
      nic.Number(diagnostics, "ack_every_packets", settings.ack_every_packets, 1, 65'536));
  const uint64_t window_bytes = nic.Bytes(diagnostics, "window", settings.window_bytes);
  const uint64_t window_bytes_max = kWindowPacketsMax * settings.mtu_bytes;
  // What the window is held against has to be known.
  if (nic.IsDoubtful("mtu_bytes") || nic.IsDoubtful("ack_every_packets")) return settings;
  if (window_bytes < settings.mtu_bytes || window_bytes > window_bytes_max) {
    nic.Error(diagnostics, "window",
              fmt::format("{} is out of range (expected {} to {})", FormatBytes(window_bytes),
                          FormatBytes(settings.mtu_bytes), FormatBytes(window_bytes_max)));
  } else if (window_bytes < uint64_t{ack_every} * settings.mtu_bytes) {
    nic.Error(diagnostics, nic.Has("ack_every_packets") ? "ack_every_packets" : "window",
              fmt::format("the window of {} is full before {} packets of {} earn an ACK",
                          FormatBytes(window_bytes), ack_every, FormatBytes(settings.mtu_bytes)));
  }
  settings.window_bytes = window_bytes;
  settings.ack_every_packets = ack_every;
  return settings;
}

RoutingDelays LoadRouting(const ProtoCursor& scenario, Diagnostics& diagnostics) {
  RoutingDelays delays;
  if (!scenario.Has("routing")) return delays;
  const ProtoCursor routing = scenario.Child("routing");
  delays.detection_ps = LoadDelay(routing, "detection_delay", delays.detection_ps, diagnostics);
  delays.convergence_ps =
      LoadDelay(routing, "convergence_delay", delays.convergence_ps, diagnostics);
  return delays;
}

}  // namespace railyard
