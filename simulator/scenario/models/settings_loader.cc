// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/settings_loader.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "simulator/scenario/check/field_ranges.h"
#include "simulator/scenario/models/choice_loader.h"
#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/units/units.h"
#include "topologies/platforms/platform.h"
#include "traces/trace/nccl_version.h"
#include "workloads/nccl/aws_libfabric.h"
#include "workloads/nccl/nccl_versions.h"

namespace railyard {

namespace {

// InfiniBand Architecture Specification 1.7, 9.7.5.1.3: five bits of time-out, of which 0 switches
// the timer off, and three of retries.
constexpr uint32_t kIbTimeoutMax = 31;
constexpr uint32_t kIbRetryCntMax = 7;
// MAXCHANNELS in src/include/device.h of NCCL.
constexpr uint32_t kNcclChannelsMax = 64;
constexpr uint64_t kBuffsizeBytesMin = 64u << 10;
constexpr uint64_t kBuffsizeBytesMax = 1u << 30;
// NCCL_PXN_DISABLE came with PXN itself.
constexpr uint32_t kFirstPxnVersion = 21200;
// First versions that have NCCL_P2P_NET_CHUNKSIZE, NCCL_P2P_NVL_CHUNKSIZE and _PCI_,
// NCCL_NVLSTREE_MAX_CHUNKSIZE.
constexpr uint32_t kFirstP2pNetVersion = 21400;
constexpr uint32_t kFirstP2pNvlVersion = 21600;
constexpr uint32_t kFirstNvlsTreeChunkVersion = 22000;
// Parts of Send and Recv are multiples of 4 KiB (addP2pToPlan, src/enqueue.cc).
constexpr uint64_t kP2pChunkBytesMin = 4096;
constexpr uint64_t kP2pLlThresholdBytesMax = 1ULL << 30;
constexpr uint64_t kNvlsChunkBytesMin = 16u << 10;
constexpr double kNetLatencyUsMax = 1e6;

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

// NCCL's variables that are modelled with one value only; any other would change what a run does.
void RefuseUnmodelled(const ProtoCursor& nccl, Diagnostics& diagnostics) {
  struct Variable {
    const char* name;
    uint64_t modelled;
    const char* as;
  };
  static constexpr std::array kVariables = {
      Variable{"NTHREADS", 512, "rates and latencies are those of full CTAs"},
  };
  for (const Variable& variable : kVariables) {
    const uint64_t stated =
        nccl.Number(diagnostics, variable.name, variable.modelled, 0, UINT32_MAX);
    if (stated == variable.modelled) continue;
    nccl.Error(diagnostics, variable.name,
               fmt::format("{} is not modelled: {} (expected {}, or none)", stated, variable.as,
                           variable.modelled));
  }
}

// ncclGetLevel (src/graph/paths.cc): P2P_DISABLE comes before P2P_LEVEL.
void LoadP2pLevel(const ProtoCursor& nccl, NcclSettings& planner, Diagnostics& diagnostics) {
  static constexpr std::array<std::string_view, 6> kLevels = {"LOC", "NVL", "PIX",
                                                              "PXB", "PHB", "SYS"};
  if (nccl.Has("P2P_LEVEL")) {
    const std::string text = nccl.Text("P2P_LEVEL", "");
    const auto found = std::find(kLevels.begin(), kLevels.end(), text);
    if (found == kLevels.end()) {
      nccl.Error(
          diagnostics, "P2P_LEVEL",
          fmt::format("{} is no distance (expected LOC, NVL, PIX, PXB, PHB or SYS)", Quote(text)));
      return;
    }
    planner.p2p_level = static_cast<PathType>(found - kLevels.begin());
  }
  if (!nccl.Flag("P2P_DISABLE", false)) return;
  if (nccl.Has("P2P_LEVEL")) {
    nccl.Error(diagnostics, "P2P_LEVEL",
               "has no effect with P2P_DISABLE: true (expected one of the two)");
  }
  planner.p2p_level = PathType::kLoc;
}

// ncclTopoPostset (src/graph/connect.cc): of NCHANNELS and CTAS the larger minimum and the smaller
// maximum hold.
void LoadChannelLimits(const ProtoCursor& nccl, NcclSettings& settings, Diagnostics& diagnostics) {
  const auto number = [&](const char* field) {
    return static_cast<uint32_t>(nccl.Number(diagnostics, field, 0, 1, kNcclChannelsMax));
  };
  const char* min_field = "MIN_NCHANNELS";
  const char* max_field = "MAX_NCHANNELS";
  settings.min_nchannels = number(min_field);
  settings.max_nchannels = number(max_field);
  if (const uint32_t ctas = number("MIN_CTAS"); ctas > settings.min_nchannels) {
    settings.min_nchannels = ctas;
    min_field = "MIN_CTAS";
  }
  const uint32_t ctas = number("MAX_CTAS");
  if (ctas != 0 && (settings.max_nchannels == 0 || ctas < settings.max_nchannels)) {
    settings.max_nchannels = ctas;
    max_field = "MAX_CTAS";
  }
  if (settings.max_nchannels == 0 || settings.min_nchannels <= settings.max_nchannels) return;
  nccl.Error(diagnostics, min_field,
             fmt::format("{} is more than {}, {}", settings.min_nchannels, max_field,
                         settings.max_nchannels));
}

// A size between `min_bytes` and the buffer's.
void LoadChunkSize(const ProtoCursor& nccl, const char* field, uint64_t min_bytes,
                   uint64_t max_bytes, uint64_t& bytes, Diagnostics& diagnostics) {
  if (!nccl.Has(field)) return;
  const uint64_t stated = nccl.Bytes(diagnostics, field, bytes);
  if (stated >= min_bytes && stated <= max_bytes) {
    bytes = stated;
    return;
  }
  nccl.Error(diagnostics, field,
             fmt::format("{} is out of range (expected {} to {})", FormatBytes(stated),
                         FormatBytes(min_bytes), FormatBytes(max_bytes)));
}

// A connection's buffer, and chunks, which have an eighth of it at most.
void LoadBufferSizes(const ProtoCursor& nccl, NcclSettings& settings, Diagnostics& diagnostics) {
  const uint64_t buffsize_bytes = nccl.Bytes(diagnostics, "BUFFSIZE", settings.buffsize_bytes);
  if (buffsize_bytes < kBuffsizeBytesMin || buffsize_bytes > kBuffsizeBytesMax) {
    nccl.Error(diagnostics, "BUFFSIZE",
               fmt::format("{} is out of range (expected {} to {})", FormatBytes(buffsize_bytes),
                           FormatBytes(kBuffsizeBytesMin), FormatBytes(kBuffsizeBytesMax)));
  } else {
    settings.buffsize_bytes = buffsize_bytes;
  }
  const auto chunk_size = [&](const char* field, uint64_t min_bytes, uint64_t& bytes) {
    LoadChunkSize(nccl, field, min_bytes, settings.buffsize_bytes / 8, bytes, diagnostics);
  };
  chunk_size("P2P_NET_CHUNKSIZE", kP2pChunkBytesMin, settings.p2p_net_chunksize_bytes);
  chunk_size("P2P_NVL_CHUNKSIZE", kP2pChunkBytesMin, settings.p2p_nvl_chunksize_bytes);
  chunk_size("P2P_PCI_CHUNKSIZE", kP2pChunkBytesMin, settings.p2p_pci_chunksize_bytes);
  chunk_size("NVLS_CHUNKSIZE", kNvlsChunkBytesMin, settings.nvls_chunksize_bytes);
  if (!nccl.Has("NVLSTREE_MAX_CHUNKSIZE")) return;
  uint64_t bytes = settings.nvls_chunksize_bytes;
  chunk_size("NVLSTREE_MAX_CHUNKSIZE", kNvlsChunkBytesMin, bytes);
  settings.nvlstree_max_chunksize_bytes = bytes;
}

void LoadOfiNetLatency(const ProtoCursor& nccl, NcclSettings& settings, Diagnostics& diagnostics) {
  static constexpr const char* kField = "OFI_NCCL_NET_LATENCY";
  if (!nccl.Has(kField)) return;
  const double us = nccl.As<protos::Nccl>().ofi_nccl_net_latency();
  if (us >= 0 && us <= kNetLatencyUsMax) {
    settings.ofi_net_latency_us = us;
  } else {
    nccl.Error(diagnostics, kField,
               fmt::format("{} is out of range (expected 0 to {:.0f} us)", us, kNetLatencyUsMax));
  }
}

// A variable that the job's version does not have yet.
void RefuseBefore(const ProtoCursor& nccl, const char* field, uint32_t first_version,
                  uint32_t version, const std::string& version_text, Diagnostics& diagnostics) {
  if (!nccl.Has(field) || version >= first_version || nccl.IsDoubtful("version")) return;
  nccl.Error(diagnostics, field,
             fmt::format("NCCL has it from 2.{} on, the job's is {}", first_version / 100 % 100,
                         version_text));
}

}  // namespace

// src/transport/net_ib.cc (2.28: net_ib/connect.cc), NCCL_PARAM(IbTimeout, "IB_TIMEOUT", …).
uint32_t LoadIbTimeout(const ProtoCursor& block, uint32_t default_value, Diagnostics& diagnostics) {
  const google::protobuf::Message& message = block.message();
  const auto* const field = message.GetDescriptor()->FindFieldByName("IB_TIMEOUT");
  if (!block.Has("IB_TIMEOUT") || message.GetReflection()->GetUInt32(message, field) > 0) {
    return static_cast<uint32_t>(
        block.Number(diagnostics, "IB_TIMEOUT", default_value, 1, kIbTimeoutMax));
  }
  block.Error(diagnostics, "IB_TIMEOUT",
              fmt::format("0 is no time-out at all, a lost packet would be waited for without end "
                          "(expected 1 to {}: 4.096 us x 2^N)",
                          kIbTimeoutMax));
  return default_value;
}

uint32_t LoadIbRetryCount(const ProtoCursor& block, uint32_t default_value,
                          Diagnostics& diagnostics) {
  return static_cast<uint32_t>(
      block.Number(diagnostics, "IB_RETRY_CNT", default_value, 0, kIbRetryCntMax));
}

uint32_t DefaultIbTimeout(uint32_t nccl_version) {
  return nccl_version < 21400 ? 14 : nccl_version < 22300 ? 18 : 20;
}

NcclBlock LoadNccl(const ProtoCursor& scenario, NetPlugin net, const std::string& trace_version,
                   Diagnostics& diagnostics) {
  NcclBlock block;
  NcclSettings& planner = block.planner;
  planner.net = net;
  std::optional<ProtoCursor> nccl;
  if (scenario.Has("nccl")) nccl = scenario.Child("nccl");
  planner.version =
      LoadVersion(nccl ? &*nccl : nullptr, trace_version, planner.version, diagnostics);
  if (net == NetPlugin::kAwsLibfabric) ApplyAwsLibfabric(planner);
  block.ib_timeout = DefaultIbTimeout(planner.version);
  block.ib_retry_cnt = 7;  // NCCL_PARAM(IbRetryCnt, "IB_RETRY_CNT", 7)
  if (!nccl) return block;

  const auto number = [&](const char* field, uint32_t default_value, uint32_t min, uint32_t max) {
    return static_cast<uint32_t>(nccl->Number(diagnostics, field, default_value, min, max));
  };
  block.ib_timeout = LoadIbTimeout(*nccl, block.ib_timeout, diagnostics);
  block.ib_retry_cnt = LoadIbRetryCount(*nccl, block.ib_retry_cnt, diagnostics);
  planner.cross_nic = number("CROSS_NIC", planner.cross_nic, 0, 2);
  LoadChannelLimits(*nccl, planner, diagnostics);
  LoadBufferSizes(*nccl, planner, diagnostics);
  const uint64_t ll_threshold_bytes =
      nccl->Bytes(diagnostics, "P2P_LL_THRESHOLD", planner.p2p_ll_threshold_bytes);
  if (ll_threshold_bytes > kP2pLlThresholdBytesMax) {
    nccl->Error(diagnostics, "P2P_LL_THRESHOLD",
                fmt::format("{} is out of range (expected 0 to {})",
                            FormatBytes(ll_threshold_bytes), FormatBytes(kP2pLlThresholdBytesMax)));
  } else {
    planner.p2p_ll_threshold_bytes = ll_threshold_bytes;
  }
  LoadP2pLevel(*nccl, planner, diagnostics);
  planner.shm_disable = nccl->Flag("SHM_DISABLE", planner.shm_disable);
  LoadOfiNetLatency(*nccl, planner, diagnostics);
  planner.nvls_enable = nccl->Flag("NVLS_ENABLE", planner.nvls_enable);
  planner.pat_enable = number("PAT_ENABLE", planner.pat_enable, 0, 2);
  planner.collnet_enable = number("COLLNET_ENABLE", 0, 0, 1) == 1;
  planner.nchannels_per_net_peer =
      number("NCHANNELS_PER_NET_PEER", planner.nchannels_per_net_peer, 1, kNcclChannelsMax);
  RefuseUnmodelled(*nccl, diagnostics);
  LoadChoices(*nccl, nccl->Text("version", trace_version), planner, diagnostics);
  planner.pxn_disable = nccl->Flag("PXN_DISABLE", planner.pxn_disable);
  const auto refuse_before = [&](const char* field, uint32_t first_version) {
    RefuseBefore(*nccl, field, first_version, planner.version, nccl->Text("version", trace_version),
                 diagnostics);
  };
  refuse_before("NVLS_ENABLE", kFirstNvlsVersion);
  refuse_before("PXN_DISABLE", kFirstPxnVersion);
  refuse_before("P2P_NET_CHUNKSIZE", kFirstP2pNetVersion);
  refuse_before("P2P_NVL_CHUNKSIZE", kFirstP2pNvlVersion);
  refuse_before("P2P_PCI_CHUNKSIZE", kFirstP2pNvlVersion);
  refuse_before("NVLSTREE_MAX_CHUNKSIZE", kFirstNvlsTreeChunkVersion);
  refuse_before("PAT_ENABLE", kFirstPatVersion);
  return block;
}

GpuCosts LoadGpu(const ProtoCursor& scenario, Diagnostics& diagnostics) {
  GpuCosts costs;
  if (!scenario.Has("gpu")) return costs;
  const ProtoCursor gpu = scenario.Child("gpu");
  const auto delay = [&](const char* field, std::optional<int64_t>& stated_ps) {
    if (gpu.Has(field)) stated_ps = LoadDelay(gpu, field, 0, diagnostics);
  };
  delay("launch_latency", costs.launch_latency_ps);
  delay("nvlink_step_latency", costs.nvlink_step_latency_ps);
  delay("network_step_latency", costs.network_step_latency_ps);
  delay("proxy_post_latency", costs.proxy_post_latency_ps);
  delay("proxy_arrival_latency", costs.proxy_arrival_latency_ps);
  if (gpu.Has("channel_rate")) {
    costs.channel_rate_bps = gpu.RateBps(diagnostics, "channel_rate", 0);
  }
  const auto& message = gpu.As<protos::Gpu>();
  const auto scale = [&](const char* field, double value, double& cost) {
    if (!gpu.Has(field)) return;
    if (!IsCostScale(value)) {
      gpu.Error(diagnostics, field, fmt::format("{} is out of range (expected 0.1 to 10)", value));
      return;
    }
    cost = value;
  };
  scale("launch_latency_scale", message.launch_latency_scale(), costs.launch_latency_scale);
  scale("step_latency_scale", message.step_latency_scale(), costs.step_latency_scale);
  scale("channel_rate_scale", message.channel_rate_scale(), costs.channel_rate_scale);
  if (message.generation() != protos::Gpu::GENERATION_UNSPECIFIED) {
    costs.generation = static_cast<GpuGeneration>(message.generation() - protos::Gpu::VOLTA);
  }
  return costs;
}

WatchdogSettings LoadWatchdog(const ProtoCursor& scenario, Diagnostics& diagnostics) {
  // PyTorch's process groups over NCCL give up a collective after 10 minutes
  // (torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp, kProcessGroupNCCLDefaultTimeout).
  constexpr int64_t kDefaultPs = 600 * kPsPerSecond;
  // It looks several times within the limit, however long ranks compute.
  constexpr int64_t kMinPs = kPsPerSecond / 1000;
  constexpr int64_t kMaxPs = 90LL * 24 * 3600 * kPsPerSecond;
  // Without faults a run always ends, so it needs no watchdog.
  WatchdogSettings settings;
  if (scenario.Size("faults") > 0) settings.no_progress_ps = kDefaultPs;
  if (!scenario.Has("watchdog")) return settings;
  const ProtoCursor cursor = scenario.Child("watchdog");
  settings.no_progress_ps = cursor.DurationPs(diagnostics, "no_progress", kDefaultPs);
  settings.no_progress_real_ps = cursor.DurationPs(diagnostics, "no_progress_real", kNeverPs);
  if (cursor.As<protos::Watchdog>().detection() == protos::Restart::WATCHDOG) {
    settings.detection = RestartSettings::Detection::kWatchdog;
  }
  if (cursor.Has("detection") && scenario.Has("restart")) {
    cursor.Error(diagnostics, "detection",
                 "has no effect on a job that begins again (expected restart.detection)");
  }
  for (const char* field : {"no_progress", "no_progress_real"}) {
    if (!cursor.Has(field)) continue;
    const int64_t limit_ps = cursor.DurationPs(diagnostics, field, 1);
    if (limit_ps >= kMinPs && limit_ps <= kMaxPs) continue;
    cursor.Error(diagnostics, field,
                 fmt::format("{} is out of range (expected 1 ms to 90 days)",
                             Quote(cursor.Text(field, ""))));
  }
  return settings;
}

}  // namespace railyard
