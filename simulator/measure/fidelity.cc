// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/fidelity.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "simulator/measure/platform_scenario.h"
#include "simulator/units/divide_up.h"
#include "traces/trace/nccl_version.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](unsigned char a, unsigned char b) {
                       return std::tolower(a) == std::tolower(b);
                     }) != text.end();
}

struct GpuRow {
  std::string_view gpu;  // part of the column's text; before those that are a part of it
  std::string_view platform;
};
constexpr std::array kGpus = {
    GpuRow{"GB300", "gb300-nvl72"}, GpuRow{"GB200", "gb200-nvl72"}, GpuRow{"GH200", "gh200"},
    GpuRow{"B300", "dgx-b300"},     GpuRow{"B200", "dgx-b200"},     GpuRow{"H200", "dgx-h200"},
    GpuRow{"MI300X", "mi300x"},     GpuRow{"H100", "dgx-h100"},     GpuRow{"H20", "h20"},
    GpuRow{"A100", "dgx-a100"},
};

// Racks whose GPUs are one NVLink island: one node to NCCL, whatever the number of hosts.
constexpr uint32_t kGpusOfRack = 72;
bool IsRack(std::string_view platform) { return platform.ends_with("-nvl72"); }
uint32_t GpusOfHost(std::string_view platform) {
  return IsRack(platform) || platform == "gh200" ? 4 : 8;
}

// A column that names several has the first.
std::optional<std::string> PlatformOf(const std::string& gpu) {
  const std::string first = gpu.substr(0, gpu.find(" or "));
  for (const GpuRow& row : kGpus) {
    if (Contains(first, row.gpu)) return std::string(row.platform);
  }
  return std::nullopt;
}

// EFA is Amazon's network: its P4 instances have Xeon Scalable of the second generation, its P5
// instances with H100 EPYC of the third (Amazon EC2 accelerated computing instances).
std::string CpuOfAmazon(std::string_view platform) {
  if (platform == "dgx-a100") return "INTEL";
  return platform == "dgx-h100" ? "AMD" : "";
}

// "8x400 IB": the number of NICs of a node, and their rate in Gb/s.
struct Nics {
  uint32_t count = 0;
  uint32_t gbps = 0;
};
std::optional<Nics> ParseNics(const std::string& text) {
  Nics nics;
  if (std::sscanf(text.c_str(), "%ux%u", &nics.count, &nics.gbps) != 2) return std::nullopt;
  if (nics.count == 0 || nics.count > 1024 || nics.gbps == 0 || nics.gbps > 100'000) {
    return std::nullopt;
  }
  return nics;
}

// nccl-tests enqueues calls one after the other: a launch is hidden behind the call before. What
// calls one by one from PyTorch and waits for each measures the launch too: some 20 us from the
// beginning of the launch to that of the kernel (on a V100; NVIDIA, "Understanding the
// Visualization of Overhead and Latency in NVIDIA Nsight Systems", 2020, figure 1).
constexpr int64_t kOpenLaunchPs = 20 * kPsPerUs;

// Settings that a hint forces: "Ring forced; NCCL_MIN_CTAS=24; 2 QPs per connection".
struct Hint {
  std::string forced;         // the algorithm's name as the table has it; empty: NCCL's choice
  std::string algorithm;      // Workload.algorithm of a scenario; empty: `forced` is not known
  uint32_t channels_min = 0;  // 0: NCCL's, as below
  uint32_t queue_pairs = 0;   // per connection
  bool has_gib = false;       // Google's plug-in for its RoCE NICs
};
Hint ParseHint(const std::string& text) {
  Hint hint;
  if (const size_t end = text.find(" forced"); end != std::string::npos) {
    const size_t before = text.find_last_of(" ;,(", end - 1);
    const size_t begin = end == 0 || before == std::string::npos ? 0 : before + 1;
    hint.forced = text.substr(begin, end - begin);
    if (const auto algorithm = FindAlgorithm(hint.forced)) {
      hint.algorithm = AlgorithmName(*algorithm);
    }
  }
  const size_t at = text.find("NCCL_MIN_CTAS=");
  uint32_t channels = 0;
  if (at != std::string::npos &&
      std::sscanf(text.c_str() + at, "NCCL_MIN_CTAS=%u", &channels) == 1 && channels >= 1 &&
      channels <= 64) {
    hint.channels_min = channels;
  }
  hint.has_gib = Contains(text, "gIB");
  const size_t unit = text.find(" QPs per connection");
  const size_t number = unit == std::string::npos ? unit : text.rfind(' ', unit - 1) + 1;
  if (number < unit) std::sscanf(text.c_str() + number, "%u", &hint.queue_pairs);
  return hint;
}

// Google's A3 Mega machines, whose plug-in is named FasTrak in its variables.
bool HasTcpxo(const MeasuredRow& row) {
  const auto says = [&](std::string_view name) {
    return Contains(row.algorithm_hint, name) || Contains(row.nics, name) ||
           Contains(row.notes, name);
  };
  return says("TCPXO") || says("FasTrak");
}

// Returns the NCCL version that the row states. Where it states only EFA's installer, returns the
// version of the build that Amazon's nccl-tests example lists with that installer
// (aws-samples/awsome-distributed-training, the README of micro-benchmarks/nccl-tests and its
// history).
// Empty if neither is known.
std::string NcclVersionOf(const MeasuredRow& row) {
  struct Build {
    std::string_view installer;
    std::string_view nccl;
  };
  constexpr std::array<Build, 3> kBuilds = {{{"EFA installer 1.28.0", "2.18.5"},
                                             {"EFA installer 1.31.0", "2.20.3"},
                                             {"EFA installer 1.43.2", "2.27.7"}}};
  if (ParseNcclVersion(row.nccl_version)) return row.nccl_version;
  for (const Build& build : kBuilds) {
    if (Contains(row.notes, build.installer)) return std::string(build.nccl);
  }
  return {};
}

// Sets what a row's columns say of NCCL.
void SetNccl(const MeasuredRow& row, NetworkKind network, bool has_sharp,
             ScenarioBuilder& scenario) {
  const Hint hint = ParseHint(row.algorithm_hint);
  if (!hint.algorithm.empty()) scenario.Set("workload.algorithm", hint.algorithm);
  // The plug-in sets these variables (/usr/local/gib/scripts/set_nccl_env.sh; Google Cloud, "Deploy
  // an A4 or A3 Ultra cluster").
  if (hint.has_gib) {
    scenario.Set("nccl.CROSS_NIC", 0)
        .Set("nccl.IB_QPS_PER_CONNECTION", 4)
        .Set("nccl.NVLS_CHUNKSIZE", "512KiB");
  }
  // Google's recipes for A3 Mega set these (GoogleCloudPlatform/cluster-toolkit,
  // examples/machine-learning/a3-megagpu-8g).
  if (HasTcpxo(row)) {
    scenario.Set("nccl.CROSS_NIC", 0)
        .Set("nccl.ALGO", "Ring,Tree")
        .Set("nccl.PROTO", "Simple")
        .Set("nccl.MIN_NCHANNELS", 4)
        .Set("nccl.P2P_NET_CHUNKSIZE", "512KiB")
        .Set("nccl.P2P_NVL_CHUNKSIZE", "1MiB")
        .Set("nccl.BUFFSIZE", "8MiB")
        .Set("nccl.NVLS_ENABLE", 0);
  }
  if (hint.channels_min != 0) scenario.Set("nccl.MIN_NCHANNELS", hint.channels_min);
  if (hint.queue_pairs != 0) scenario.Set("nccl.IB_QPS_PER_CONNECTION", hint.queue_pairs);
  if (network == NetworkKind::kEfa) scenario.Set("nccl.NET", "AWS Libfabric");
  if (has_sharp) scenario.Set("nccl.COLLNET_ENABLE", 1);
  const std::string version = NcclVersionOf(row);
  if (!version.empty()) scenario.Set("nccl.version", version);
}

// Returns why a row's notes or its hint leave it out; empty if they do not.
std::string WhyNotModelled(const MeasuredRow& row) {
  if (Contains(row.notes, "degraded") || Contains(row.source_id, "degraded")) {
    return "a machine said to be degraded";
  }
  const Hint hint = ParseHint(row.algorithm_hint);
  if (hint.forced.empty() || !hint.algorithm.empty()) return {};
  return fmt::format("no algorithm {} of NCCL", Quote(hint.forced));
}

// Gives the fabric the NICs of a row, whose column describes a whole server, of which the row may
// use some GPUs. Several NICs of a GPU are the ports of one to Amazon's plug-in; elsewhere they
// count as one with their total rate (NCCL merges the ports of a NIC, and stripes over them).
// Returns false if GPUs do not share the NICs evenly.
bool SetNics(const Nics& nics, bool efa, uint32_t server_gpus, PlatformFabric& fabric) {
  const uint64_t rate_bps = uint64_t{nics.gbps} * 1'000'000'000;
  fabric.nic_rate_bps = rate_bps;
  if (nics.count < server_gpus) {
    if (server_gpus % nics.count != 0) return false;
    fabric.nics_per_node =
        static_cast<uint32_t>(DivideUp(fabric.gpus_per_node, server_gpus / nics.count));
  } else if (efa && nics.count % server_gpus == 0) {
    fabric.nic_ports = nics.count / server_gpus;
  } else {
    fabric.nic_rate_bps = nics.count * rate_bps / server_gpus;
  }
  return true;
}

}  // namespace

FidelityPoint PointOf(const MeasuredRow& row) {
  FidelityPoint result;
  const auto refuse = [&](std::string reason) {
    result.reason = std::move(reason);
    return result;
  };
  const auto collective = FindPerfCollective(row.collective);
  if (!collective) return refuse(fmt::format("no collective {}", Quote(row.collective)));
  const auto platform = PlatformOf(row.gpu);
  if (!platform) return refuse(fmt::format("no platform with {}", Quote(row.gpu)));
  if (std::string why = WhyNotModelled(row); !why.empty()) return refuse(std::move(why));

  PlatformFabric fabric;
  fabric.platform = *platform;
  fabric.nodes = row.nodes;
  fabric.gpus_per_node = row.gpus_per_node;
  std::string network = "NVLink only";
  if (IsRack(*platform)) {
    const uint64_t gpus = uint64_t{row.nodes} * row.gpus_per_node;
    const uint64_t racks = std::max<uint64_t>(1, DivideUp(gpus, kGpusOfRack));
    if (gpus % racks != 0) return refuse("racks of NVL72 that are not filled equally");
    fabric.nodes = static_cast<uint32_t>(racks);
    fabric.gpus_per_node = static_cast<uint32_t>(gpus / racks);
  }
  if (fabric.nodes > 1) {
    const auto nics = ParseNics(row.nics);
    const bool efa = Contains(row.nics, "EFA") || Contains(row.notes, "EFA");
    if (nics && !SetNics(*nics, efa, GpusOfHost(*platform), fabric)) {
      return refuse("NICs that GPUs do not share evenly");
    }
    const bool infiniband = Contains(row.nics, "IB") || Contains(row.nics, "InfiniBand");
    fabric.network = infiniband ? NetworkKind::kInfiniBand
                     : efa      ? NetworkKind::kEfa
                                : NetworkKind::kRoce;
    if (efa) fabric.cpu = CpuOfAmazon(*platform);
    network = infiniband ? "InfiniBand" : efa ? "EFA" : "RoCE";
    if (!nics) network += ", NICs not stated: the platform's";
  }
  if (fabric.nodes > 1 && Contains(row.algorithm_hint, "gIB")) {
    network += " with gIB, latencies assumed";  // InfiniBand's; Google's are not public
  }
  if (fabric.nodes > 1 && HasTcpxo(row)) {
    network += " for GPUDirect-TCPXO, transport and latencies assumed";  // they are not public
  }
  const bool has_sharp = Contains(row.algorithm_hint, "SHARP") && fabric.nodes > 1;
  if (has_sharp && fabric.network != NetworkKind::kInfiniBand) {
    return refuse("SHARP over a network that is not InfiniBand");
  }
  if (has_sharp) network += " with SHARP";
  result.point = {
      .collective = *collective,
      .bytes = row.bytes,
      .in_place = CopiesWithinRank(KindOf(*collective)) && Contains(row.notes, "in-place"),
      .scenario = ScenarioOf(fabric)};
  SetNccl(row, fabric.network, has_sharp, result.point.scenario);
  const bool launch_is_open = Contains(row.notes, "torch.distributed");
  if (launch_is_open) result.harness_ps = kOpenLaunchPs;
  result.modelled_as =
      fmt::format("{}, {} x {} GPUs, {}{}", *platform, fabric.nodes, fabric.gpus_per_node, network,
                  launch_is_open ? ", launches not hidden" : "");
  return result;
}

FidelityResult RunFidelity(const std::vector<MeasuredRow>& rows, uint64_t bytes_max,
                           const std::function<void(size_t, size_t)>& progress) {
  FidelityResult result;
  std::vector<PerfPoint> points;
  std::map<std::string, size_t> known;  // by all that a point is
  struct Use {
    const MeasuredRow* row = nullptr;
    size_t point = 0;
    int64_t harness_ps = 0;
  };
  std::vector<Use> uses;
  for (const MeasuredRow& row : rows) {
    FidelityPoint mapped = PointOf(row);
    if (!mapped.reason.empty()) {
      result.skipped.push_back({row, std::move(mapped.reason)});
    } else if (row.bytes > bytes_max) {
      result.not_run.push_back(row);
    } else {
      const PerfPoint& point = mapped.point;
      const auto [at, is_new] =
          known.try_emplace(fmt::format("{} {} {}\n{}", PerfCollectiveName(point.collective),
                                        point.bytes, point.in_place, point.scenario.ToText()),
                            points.size());
      if (is_new) points.push_back(point);
      uses.push_back({&row, at->second, mapped.harness_ps});
    }
  }
  // The longest first, so that none is left for the end.
  std::vector<size_t> order(points.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return points[a].bytes > points[b].bytes; });
  std::vector<PerfPoint> sorted;
  std::vector<size_t> place(points.size());
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(points[order[i]]);
  }
  size_t ended = 0;
  const std::vector<TimedRun> outcomes =
      RunPoints(sorted, [&](size_t, const TimedRun&) { progress(++ended, sorted.size()); });
  for (const Use& use : uses) {
    const TimedRun& outcome = outcomes[place[use.point]];
    if (!outcome.error.empty()) {
      result.skipped.push_back({*use.row, outcome.error});
      continue;
    }
    result.rows.push_back(
        {.measured = *use.row,
         .input = static_cast<size_t>(use.row - rows.data()),
         .simulated_us = static_cast<double>(outcome.time_ps + use.harness_ps) * 1e-6,
         .packet_hops = outcome.packet_hops,
         .replayed = outcome.replayed});
  }
  return result;
}

double ErrorQuantile(const std::vector<double>& errors, double quantile) {
  std::vector<double> sorted;
  for (const double error : errors) sorted.push_back(std::abs(error));
  std::sort(sorted.begin(), sorted.end());
  const auto index = static_cast<size_t>(quantile * static_cast<double>(sorted.size()));
  return sorted[std::min(index, sorted.size() - 1)];
}

}  // namespace railyard
