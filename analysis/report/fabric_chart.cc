// SPDX-License-Identifier: GPL-2.0-only
// Draws the fabric in its tiers: devices in rows from GPUs up to the core, and each cable with its
// utilization.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "analysis/report/chart.h"
#include "analysis/tables/figure_text.h"
#include "simulator/diagnostics/natural_order.h"

namespace railyard {
namespace {

// Cables with all devices; beyond that, a server is one device.
constexpr size_t kCablesMax = 1'500;
constexpr size_t kCablesDrawnMax = 6'000;

// Rows of the picture, from below.
enum Row { kNvswitchRow, kGpuRow, kNicRow, kLeafRow, kSpineRow, kCoreRow };

struct Device {
  Row row = kGpuRow;
  double x = 0;  // 0 to 1
  double y = 0;
};

// Both directions of a cable.
struct Cable {
  std::string tier;
  double utilization = 0;  // of the busier direction
  int64_t bytes = 0;       // of both
  int64_t dropped_packets = 0;
  bool has_fault = false;
};

// The ends of a cable, the lesser name first. Parallel cables have numbers: "#2", none for the
// first.
struct Ends {
  std::string first;
  std::string second;
  std::string number{};
  auto operator<=>(const Ends&) const = default;
};

// Adds a stored number, which may be any, to a sum.
void AddStored(int64_t value, int64_t& sum) {
  if (__builtin_add_overflow(sum, value, &sum)) sum = std::numeric_limits<int64_t>::max();
}

// Divides "leaf0>spine1#2".
Ends EndsOf(const std::string& link) {
  const size_t arrow = link.find('>');
  if (arrow == std::string::npos) throw UnreadableResult{"a link's name has no >"};
  const size_t number = std::min(link.find('#', arrow), link.size());
  return {link.substr(0, arrow), link.substr(arrow + 1, number - arrow - 1), link.substr(number)};
}

// "server3" of "server3/nic1": devices of servers are named so.
std::string ServerOf(const std::string& device) { return device.substr(0, device.find('/')); }

class FabricPicture {
 public:
  explicit FabricPicture(const ResultStore& store) {
    ReadCables(store);
    ReadFaults(store);
    if (cables_.size() > kCablesMax) FoldServers();
    PlaceDevices();
  }

  Chart Take() {
    Chart chart{.id = "fabric",
                .title = "The fabric, and how much its links were used",
                .caption =
                    "Devices in rows by tier. A cable's colour is the share of the run in which "
                    "its busier direction was in use; a cross marks a fault on it."};
    ChartTable edges{.name = "fabric_cables",
                     .columns = {"from", "to", "tier", "x1", "y1", "x2", "y2", "utilization",
                                 "payload_and_header_bytes", "dropped_packets", "has_fault"}};
    std::vector<std::pair<const Ends*, const Cable*>> drawn;
    for (const auto& [ends, cable] : cables_) drawn.emplace_back(&ends, &cable);
    std::stable_sort(drawn.begin(), drawn.end(), [](const auto& a, const auto& b) {
      if (a.second->has_fault != b.second->has_fault) return b.second->has_fault;
      return a.second->utilization < b.second->utilization;  // hot ones are drawn last, on top
    });
    std::string note;
    if (is_folded_) note = "Servers are drawn as one device each.";
    if (drawn.size() > kCablesDrawnMax) {
      note += fmt::format(" The {} busiest of {} cables are drawn.", CountText(kCablesDrawnMax),
                          CountText(drawn.size()));
      drawn.erase(drawn.begin(), drawn.end() - kCablesDrawnMax);
    }
    chart.note = std::move(note);
    for (const auto& [ends, cable] : drawn) {
      const Device& from = devices_.at(ends->first);
      const Device& to = devices_.at(ends->second);
      edges.rows.push_back({ends->first, ends->second, cable->tier, from.x, from.y, to.x, to.y,
                            cable->utilization, cable->bytes, cable->dropped_packets,
                            int64_t{cable->has_fault}});
    }
    ChartTable nodes{.name = "fabric_devices", .columns = {"device", "row", "x", "y"}};
    static constexpr const char* kRowNames[] = {"NVSwitch", "GPU", "NIC", "leaf", "spine", "core"};
    for (const auto& [name, device] : devices_) {
      const char* row = kRowNames[device.row];
      if (is_folded_ && device.row == kGpuRow) row = "server";
      if (is_direct_ && device.row == kLeafRow) row = "router";
      nodes.rows.push_back({name, std::string(row), device.x, device.y});
    }
    chart.tables.push_back(std::move(edges));
    chart.tables.push_back(std::move(nodes));
    return chart;
  }

  bool IsEmpty() const { return cables_.empty(); }

 private:
  void ReadCables(const ResultStore& store) {
    const double time_ps =
        static_cast<double>(store.Count("SELECT value FROM run WHERE key = 'simulated_time_ps'"));
    StoredRows rows = store.Rows(
        "SELECT link, tier, rate_bps, payload_bytes + header_bytes + retransmitted_bytes, "
        "dropped_packets FROM links ORDER BY tier = 'NVLINK' DESC, tier = 'HOST' DESC, tier = "
        "'NIC_LEAF' DESC, tier = 'LEAF_SPINE' DESC");
    while (rows.Next()) {
      Ends ends = EndsOf(rows.Text(0));
      SetRows(ends, rows.Text(1));
      if (NaturalLess()(ends.second, ends.first)) std::swap(ends.first, ends.second);
      Cable& cable = cables_[std::move(ends)];
      cable.tier = rows.Text(1);
      const double rate_bps = rows.Real(2);
      if (rate_bps > 0 && time_ps > 0) {
        cable.utilization = std::max(cable.utilization, 8e12 * rows.Real(3) / rate_bps / time_ps);
      }
      AddStored(rows.Integer(3), cable.bytes);
      AddStored(rows.Integer(4), cable.dropped_packets);
    }
  }

  // The row of a device follows from the tiers of its links.
  void SetRows(const Ends& ends, const std::string& tier) {
    const bool is_nvlink = tier == "NVLINK";
    for (const std::string* name : {&ends.first, &ends.second}) {
      const auto [at, is_new] = devices_.try_emplace(*name);
      Device& device = at->second;
      const std::string leaf_name = name->substr(name->find_last_of('/') + 1);
      if (is_nvlink && leaf_name.starts_with("nvswitch")) device.row = kNvswitchRow;
      if (tier == "NIC_LEAF") {
        device.row = on_host_.contains(*name) || leaf_name.starts_with("nic") ? kNicRow : kLeafRow;
      }
      if (tier == "HOST") {
        on_host_.insert(*name);
        if (leaf_name.starts_with("nic")) device.row = kNicRow;
      }
      if (tier == "DIRECT" || tier == "LOCAL" || tier == "GLOBAL") {
        is_direct_ = true;
        if (device.row < kLeafRow && !on_host_.contains(*name)) device.row = kLeafRow;
      }
      if (tier == "LEAF_SPINE" && device.row != kLeafRow) device.row = kSpineRow;
      if (tier == "SPINE_CORE" && device.row != kSpineRow) device.row = kCoreRow;
    }
  }

  // Targets name a cable "A--B" or "A--B#2"; a fault on a device marks all its cables.
  void ReadFaults(const ResultStore& store) {
    std::set<std::string> targets;
    StoredRows rows = store.Rows("SELECT DISTINCT target FROM faults WHERE begins > 0");
    while (rows.Next()) targets.insert(rows.Text(0));
    for (auto& [ends, cable] : cables_) {
      cable.has_fault = targets.contains(ends.first + "--" + ends.second + ends.number) ||
                        targets.contains(ends.second + "--" + ends.first + ends.number) ||
                        targets.contains(ends.first) || targets.contains(ends.second);
    }
  }

  void FoldServers() {
    is_folded_ = true;
    std::map<Ends, Cable> folded;
    std::map<std::string, Device, NaturalLess> devices;
    const auto outer = [&](const std::string& device) {
      return devices_.at(device).row <= kNicRow ? ServerOf(device) : device;
    };
    for (const auto& [ends, cable] : cables_) {
      Ends between{outer(ends.first), outer(ends.second)};
      if (between.first == between.second) continue;
      Cable& into = folded[between];
      into.tier = cable.tier;
      into.utilization = std::max(into.utilization, cable.utilization);
      AddStored(cable.bytes, into.bytes);
      AddStored(cable.dropped_packets, into.dropped_packets);
      into.has_fault = into.has_fault || cable.has_fault;
      for (const auto& [inner, name] :
           {std::pair(&ends.first, &between.first), std::pair(&ends.second, &between.second)}) {
        Device device = devices_.at(*inner);
        if (device.row <= kNicRow) device.row = kGpuRow;
        devices.emplace(*name, device);
      }
    }
    cables_ = std::move(folded);
    devices_ = std::move(devices);
  }

  void PlaceDevices() {
    std::map<Row, std::vector<Device*>> rows;
    for (auto& [name, device] : devices_) rows[device.row].push_back(&device);
    int at = 0;
    for (auto& [row, devices] : rows) {
      const double y = static_cast<double>(at++);
      for (size_t i = 0; i < devices.size(); ++i) {
        devices[i]->x = (static_cast<double>(i) + 0.5) / static_cast<double>(devices.size());
        // Routers that are cabled to each other stand in an arc, so that cables between neighbours
        // do not hide one another.
        const double from_middle = 2 * devices[i]->x - 1;
        devices[i]->y =
            is_direct_ && row == kLeafRow ? y + 1.6 * (1 - from_middle * from_middle) : y;
      }
    }
  }

  std::map<Ends, Cable> cables_;
  std::map<std::string, Device, NaturalLess> devices_;
  std::set<std::string> on_host_;  // devices with a HOST link
  bool is_folded_ = false;
  bool is_direct_ = false;
};

}  // namespace

void AppendFabricChart(const ResultStore& store, std::vector<Chart>& charts) {
  FabricPicture picture(store);
  if (!picture.IsEmpty()) charts.push_back(picture.Take());
}

}  // namespace railyard
