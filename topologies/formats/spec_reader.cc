// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/spec_reader.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "simulator/diagnostics/names.h"
#include "topologies/formats/nccl_topology_loader.h"
#include "topologies/formats/traffic_loader.h"
#include "topologies/platforms/cpu_vendor_reader.h"

namespace railyard {
namespace {

uint32_t ReadNumber(const ProtoCursor& cursor, const char* field, Diagnostics& diagnostics) {
  return static_cast<uint32_t>(cursor.Number(diagnostics, field, 0, 0, UINT32_MAX));
}

}  // namespace

SpecReader::SpecReader(ProtoCursor cursor, Diagnostics& diagnostics)
    : cursor_(std::move(cursor)),
      diagnostics_(diagnostics),
      errors_before_(diagnostics.error_count()) {}

void SpecReader::Number(const char* field, uint32_t& value) {
  if (cursor_.Has(field)) value = ReadNumber(cursor_, field, diagnostics_);
}

void SpecReader::Number(const char* field, std::optional<uint32_t>& value) {
  if (cursor_.Has(field)) value = ReadNumber(cursor_, field, diagnostics_);
}

void SpecReader::Seed(const char* field, uint64_t& value) {
  value = cursor_.Number(diagnostics_, field, value, 0, UINT64_MAX);
}

void SpecReader::Flag(const char* field, bool& value) {
  if (!cursor_.Has(field)) return;
  const google::protobuf::Message& message = cursor_.message();
  value =
      message.GetReflection()->GetBool(message, message.GetDescriptor()->FindFieldByName(field));
}

void SpecReader::Rate(const char* field, uint64_t& value_bps) {
  value_bps = cursor_.RateBps(diagnostics_, field, value_bps);
}

void SpecReader::Delay(const char* field, int64_t& value_ps) {
  value_ps = cursor_.DurationPs(diagnostics_, field, value_ps);
}

void SpecReader::Links(const char* field, LinkSpec& links) {
  if (!cursor_.Has(field)) return;
  const ProtoCursor child = cursor_.Child(field);
  links.rate_bps = child.RateBps(diagnostics_, "rate", links.rate_bps);
  links.delay_ps = child.DurationPs(diagnostics_, "delay", links.delay_ps);
  if (child.Has("count")) links.count = ReadNumber(child, "count", diagnostics_);
}

void SpecReader::Demands(const NetworkSpec& network, std::vector<ServerDemand>& demands) {
  for (int i = 0; i < cursor_.Size("demands"); ++i) {
    const ProtoCursor child = cursor_.Child("demands", i);
    ServerDemand demand;
    for (const auto& [field, value] : {std::pair("from", &demand.from), {"to", &demand.to}}) {
      if (child.Has(field)) {
        *value = ReadNumber(child, field, diagnostics_);
      } else {
        child.Missing(diagnostics_, field, "a server's number");
      }
    }
    demand.bytes = child.Bytes(diagnostics_, "bytes", 1);
    demands.push_back(demand);
  }
  if (!cursor_.Has("traffic")) {
    if (demands.empty()) cursor_.Missing(diagnostics_, "traffic", "a pairs.csv, or demands { }");
    return;
  }
  if (!demands.empty()) {
    cursor_.Error(diagnostics_, "traffic", "stands beside demands (expected one of the two)");
    return;
  }
  const std::string path = cursor_.FilePath("traffic");
  if (const std::string why = WhyNotAFile(path); !why.empty()) {
    cursor_.Error(diagnostics_, "traffic", fmt::format("{}: {}", Quote(path), why));
    return;
  }
  std::vector<uint32_t> server_of_gpu;
  uint32_t server = 0;
  for (const ServerSpec& kind : network.servers) {
    for (uint32_t i = 0; i < kind.count && server_of_gpu.size() < kMaxFabricGpus; ++i, ++server) {
      server_of_gpu.insert(server_of_gpu.end(), std::min(kind.gpus, kMaxFabricGpus), server);
    }
  }
  if (server_of_gpu.empty()) return;  // which is said elsewhere
  const auto traffic = LoadTraffic(path, server_of_gpu.size(), diagnostics_);
  if (!traffic) return;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> sums;
  for (const GpuTraffic& row : *traffic) {
    const uint32_t from = server_of_gpu[row.source];
    const uint32_t to = server_of_gpu[row.destination];
    if (from != to) sums[{from, to}] += row.bytes;
  }
  for (const auto& [ends, bytes] : sums) {
    if (bytes > 0) demands.push_back({.from = ends.first, .to = ends.second, .bytes = bytes});
  }
  if (demands.empty()) {
    cursor_.Error(diagnostics_, "traffic",
                  fmt::format("nothing goes from server to server in {} (expected traffic that "
                              "needs cables)",
                              Quote(path)));
  }
}

void SpecReader::Dimensions(const char* field, std::vector<uint32_t>& dimensions) {
  const google::protobuf::Message& message = cursor_.message();
  const auto* descriptor = message.GetDescriptor()->FindFieldByName(field);
  for (int i = 0; i < cursor_.Size(field); ++i) {
    dimensions.push_back(message.GetReflection()->GetRepeatedUInt32(message, descriptor, i));
  }
}

void SpecReader::Servers(const char* field, std::vector<ServerSpec>& servers) {
  if (cursor_.Size(field) == 0) return;
  servers.clear();
  for (int i = 0; i < cursor_.Size(field); ++i) {
    servers.push_back(ReadServers(cursor_.Child(field, i)));
  }
}

ServerSpec SpecReader::ReadServers(const ProtoCursor& cursor) {
  const Platform platform = ReadPlatform(cursor);
  ServerSpec spec = cursor.Has("nccl_topology") ? ReadNcclTopology(cursor) : platform.server;
  if (cursor.Has("count")) {
    spec.count = ReadNumber(cursor, "count", diagnostics_);
  } else {
    cursor.Missing(diagnostics_, "count", "a number of servers, e.g. 4");
  }
  for (const std::string& field : platform.open_fields) {
    if (cursor.Has(field.c_str())) continue;
    cursor.Missing(diagnostics_, field.c_str(),
                   fmt::format("a value: platform {} leaves it to its user", Quote(platform.name)));
  }
  if (cursor.Has("gpus")) spec.gpus = ReadNumber(cursor, "gpus", diagnostics_);
  if (cursor.Has("nics")) spec.nics = ReadNumber(cursor, "nics", diagnostics_);
  spec.nic_rate_bps = cursor.RateBps(diagnostics_, "nic_rate", spec.nic_rate_bps);
  if (cursor.Has("nic_ports")) spec.nic_ports = ReadNumber(cursor, "nic_ports", diagnostics_);
  if (cursor.Has("compute_capability")) {
    spec.compute_capability = ReadNumber(cursor, "compute_capability", diagnostics_);
  }
  ReadCpuVendor(cursor, "cpu", spec.cpu, diagnostics_);
  spec.host_rate_bps = cursor.RateBps(diagnostics_, "host_rate", spec.host_rate_bps);
  spec.host_delay_ps = cursor.DurationPs(diagnostics_, "host_delay", spec.host_delay_ps);
  ReadNvlink(cursor, spec);
  return spec;
}

Platform SpecReader::ReadPlatform(const ProtoCursor& cursor) {
  const std::string name = cursor.Text("platform", "dgx-h100");
  if (const Platform* const platform = FindPlatform(name)) return *platform;
  if (!IsPlatformFile(name)) {
    cursor.Error(diagnostics_, "platform", UnknownName("platform", name, PlatformNames()));
    return {};
  }
  const std::string path = cursor.FilePath("platform");
  if (const std::string why = WhyNotAFile(path); !why.empty()) {
    cursor.Error(diagnostics_, "platform", fmt::format("{}: {}", Quote(path), why));
    return {};
  }
  return LoadPlatform(path, diagnostics_).value_or(Platform{});
}

void SpecReader::ReadNvlink(const ProtoCursor& cursor, ServerSpec& spec) {
  const uint64_t lanes = spec.LanesOfGpu();
  const auto refuse = [&](const char* field, const char* without) {
    if (!cursor.Has(field)) return;
    cursor.Error(
        diagnostics_, field,
        fmt::format("has no effect on a platform without {} (expected another platform)", without));
  };
  if (lanes == 0) {
    for (const char* field : {"nvlink_rate", "nvlink_delay", "nvswitch_latency"}) {
      refuse(field, "NVLink");
    }
    return;
  }
  if (!spec.nvlink_mesh.empty()) {
    refuse("nvswitch_latency", "NVSwitches");
    // Its last bundle leads to its last GPU.
    if (cursor.Has("gpus") && spec.gpus > spec.nvlink_mesh.back().peer + 1) {
      cursor.Error(diagnostics_, "gpus",
                   fmt::format("{} are more than the platform's NVLinks join (expected at most {})",
                               spec.gpus, spec.nvlink_mesh.back().peer + 1));
    }
  }
  if (cursor.Has("nvlink_rate")) {
    spec.nvlink_lane_rate_bps =
        cursor.RateBps(diagnostics_, "nvlink_rate", lanes * spec.nvlink_lane_rate_bps) / lanes;
  }
  spec.nvlink_delay_ps = cursor.DurationPs(diagnostics_, "nvlink_delay", spec.nvlink_delay_ps);
  spec.nvswitch_latency_ps =
      cursor.DurationPs(diagnostics_, "nvswitch_latency", spec.nvswitch_latency_ps);
}

ServerSpec SpecReader::ReadNcclTopology(const ProtoCursor& cursor) {
  for (const char* field :
       {"platform", "gpus", "nics", "nic_ports", "nic_rate", "host_rate", "host_delay",
        "nvlink_rate", "nvlink_delay", "nvswitch_latency", "compute_capability", "cpu"}) {
    if (!cursor.Has(field)) continue;
    cursor.Error(diagnostics_, field,
                 "has no effect beside nccl_topology (expected one of the two)");
  }
  const std::string path = cursor.FilePath("nccl_topology");
  if (const std::string why = WhyNotAFile(path); !why.empty()) {
    cursor.Error(diagnostics_, "nccl_topology", fmt::format("{}: {}", Quote(path), why));
    return {};
  }
  auto layout = LoadNcclTopology(path, diagnostics_);
  if (!layout) return {};
  if (layout->nic_rates_bps.empty()) {
    cursor.Error(diagnostics_, "nccl_topology",
                 fmt::format("{} has no NIC (expected at least one)", Quote(path)));
    return {};
  }
  return ServerOf(std::move(*layout));
}

void SpecReader::Network(NetworkSpec& network) {
  if (cursor_.Size("servers") == 0) {
    cursor_.Missing(diagnostics_, "servers", "at least one, e.g. servers { count: 4 }");
    // One NIC, which fits every fabric.
    network.servers = {{.gpus = 1}};
  }
  Servers("servers", network.servers);
  Delay("nic_delay", network.nic_delay_ps);
  Delay("switch_latency", network.switch_latency_ps);
  Delay("delay_spread", network.delay_spread_ps);
}

void SpecReader::Missing(const char* field, std::string_view expected) {
  cursor_.Missing(diagnostics_, field, expected);
}

bool SpecReader::Accept(const std::vector<SpecProblem>& problems) {
  // A field that could not be read has its default, which has no problem.
  for (const SpecProblem& problem : problems) ReportAt(cursor_, problem.field, problem.what);
  return diagnostics_.error_count() == errors_before_ && !cursor_.IsDoubtfulSelf();
}

void SpecReader::Error(const char* field, std::string what) {
  cursor_.Error(diagnostics_, field, std::move(what));
}

// Follows "servers[1].gpus" and "leaf_spine.rate" as far as the message goes.
void SpecReader::ReportAt(const ProtoCursor& cursor, std::string_view field,
                          const std::string& what) {
  const size_t dot = field.find('.');
  std::string_view head = field.substr(0, dot);
  int index = -1;
  if (const size_t bracket = head.find('['); bracket != std::string_view::npos) {
    std::from_chars(head.data() + bracket + 1, head.data() + head.size(), index);
    head = head.substr(0, bracket);
  }
  const std::string name(head);
  // Only messages have further fields, and only what is there has a place of its own.
  const auto is_there = [&] {
    return index < 0 ? cursor.Has(name.c_str()) : index < cursor.Size(name.c_str());
  };
  if (dot == std::string_view::npos) {
    cursor.Error(diagnostics_, name.c_str(), what, index);
  } else if (is_there()) {
    ReportAt(cursor.Child(name.c_str(), index), field.substr(dot + 1), what);
  } else {
    cursor.Error(diagnostics_, name.c_str(), what);
  }
}

}  // namespace railyard
