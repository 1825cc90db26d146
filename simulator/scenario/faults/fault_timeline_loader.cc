// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/faults/fault_timeline_loader.h"

#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "simulator/diagnostics/checked_reading.h"
#include "simulator/faults/component_failures.h"
#include "simulator/scenario/schema/scenario.pb.h"

namespace railyard {
namespace {

int64_t LoadTime(const ProtoCursor& cursor, const char* field, int64_t default_ps,
                 Diagnostics& diagnostics) {
  const int errors_before = diagnostics.error_count();
  const int64_t time_ps = cursor.DurationPs(diagnostics, field, default_ps);
  const bool is_wrong = diagnostics.error_count() > errors_before;
  if (time_ps <= kFaultTimePsMax || !cursor.Has(field) || is_wrong) return time_ps;
  cursor.Error(
      diagnostics, field,
      fmt::format("{} is out of range (expected at most 90 days)", Quote(cursor.Text(field, ""))));
  return default_ps;
}

void CheckOrder(const ProtoCursor& fault, const FaultTimeline& timeline, Diagnostics& diagnostics) {
  if (timeline.until_ps > timeline.at_ps) return;
  fault.Error(diagnostics, "until",
              fmt::format("ends at {}, {} it begins at {} (expected a later time, or none for a "
                          "fault that stays)",
                          Quote(fault.Text("until", "")),
                          timeline.until_ps < timeline.at_ps ? "before" : "just when",
                          Quote(fault.Text("at", "0s"))));
}

void LoadRepetition(const ProtoCursor& fault, FaultTimeline& timeline, Diagnostics& diagnostics) {
  const ProtoCursor repeat = fault.Child("repeat");
  if (!repeat.Has("period")) {
    repeat.Missing(diagnostics, "period", kExpectedDuration);
    return;
  }
  const int errors_before = diagnostics.error_count();
  const auto& message = repeat.As<protos::FaultRepetition>();
  timeline.period_ps = LoadTime(repeat, "period", 0, diagnostics);
  timeline.jitter_ps = LoadTime(repeat, "jitter", 0, diagnostics);
  timeline.count = repeat.Number(diagnostics, "count", UINT64_MAX, 1, UINT64_MAX);
  if (repeat.Has("duty") == fault.Has("until")) {
    repeat.Error(diagnostics, "duty",
                 fault.Has("until") ? "stands beside the fault's until (expected one of them)"
                                    : "missing (expected the share of the period in which the "
                                      "fault holds, or the fault's until)");
    return;
  }
  if (repeat.Has("duty")) {
    if (!(message.duty() > 0 && message.duty() < 1)) {
      repeat.Error(
          diagnostics, "duty",
          fmt::format("{} is out of range (expected more than 0 and less than 1)", message.duty()));
      return;
    }
    timeline.until_ps =
        timeline.at_ps +
        static_cast<int64_t>(message.duty() * static_cast<double>(timeline.period_ps));
  }
  if (diagnostics.error_count() > errors_before) return;
  const int64_t held_ps = timeline.until_ps - timeline.at_ps;
  if (held_ps + timeline.training_ps + timeline.jitter_ps < timeline.period_ps) return;
  repeat.Error(
      diagnostics, "period",
      fmt::format("{} is too short for a fault of {}{}{} (expected more than these)",
                  Quote(repeat.Text("period", "")), FormatDuration(held_ps),
                  timeline.training_ps > 0
                      ? fmt::format(", training of {}", FormatDuration(timeline.training_ps))
                      : "",
                  timeline.jitter_ps > 0
                      ? fmt::format(", jitter of {}", FormatDuration(timeline.jitter_ps))
                      : ""));
}

// The class of components that by_chance names, if it is one that such a fault hits.
std::optional<ComponentClass> ComponentOf(const ProtoCursor& fault, Diagnostics& diagnostics) {
  const ProtoCursor chance = fault.Child("by_chance");
  const auto& message = chance.As<protos::FaultByChance>();
  const auto& of_fault = fault.As<protos::Fault>();
  struct Class {
    protos::FaultByChance::Component named;
    ComponentClass component;
    protos::Fault::Kind kind;
  };
  constexpr Class kClasses[] = {
      {protos::FaultByChance::NIC_TOR_LINK, ComponentClass::kNicTorLink, protos::Fault::LINK_DOWN},
      {protos::FaultByChance::TOR_SWITCH, ComponentClass::kTorSwitch, protos::Fault::SWITCH_REBOOT},
      {protos::FaultByChance::GPU, ComponentClass::kGpu, protos::Fault::STRAGGLER}};
  for (const Class& known : kClasses) {
    if (message.component() != known.named) continue;
    if (of_fault.kind() != known.kind && fault.Has("kind")) {
      chance.Error(diagnostics, "component",
                   fmt::format("{} does not fail by {} (expected {})",
                               protos::FaultByChance::Component_Name(known.named),
                               protos::Fault::Kind_Name(of_fault.kind()),
                               protos::Fault::Kind_Name(known.kind)));
    }
    return known.component;
  }
  return std::nullopt;
}

void LoadChance(const ProtoCursor& fault, FaultTimeline& timeline, Diagnostics& diagnostics) {
  const ProtoCursor chance = fault.Child("by_chance");
  const auto component = ComponentOf(fault, diagnostics);
  for (const char* field : {"mean_between", "mean_repair"}) {
    if (!chance.Has(field) && !component) chance.Missing(diagnostics, field, kExpectedDuration);
  }
  if (component && chance.Has("mean_between") && chance.Has("mean_repair")) {
    chance.Error(diagnostics, "component",
                 "has no effect beside both times (expected one of them, or none)");
  }
  const ComponentFailures published =
      component ? PublishedFailures(*component) : ComponentFailures{};
  const auto load = [&](const char* field, double published_s) {
    if (!chance.Has(field)) return published_s * static_cast<double>(kPsPerSecond);
    const int64_t mean_ps = chance.DurationPs(diagnostics, field, 1);
    if (mean_ps > 0) return static_cast<double>(mean_ps);
    chance.Error(diagnostics, field, "is no time at all (expected a longer one)");
    return 1.0;
  };
  timeline.mean_between_ps = load("mean_between", published.mean_between_s);
  timeline.mean_repair_ps = load("mean_repair", published.mean_repair_s);
}

}  // namespace

bool LoadTimeline(const ProtoCursor& fault, FaultTimeline& timeline, Diagnostics& diagnostics) {
  const int errors_before = diagnostics.error_count();
  const bool starts_by_itself = fault.Has("when") || fault.Has("by_chance") || fault.Has("log");
  if (!fault.Has("at") && !starts_by_itself) fault.Missing(diagnostics, "at", kExpectedDuration);
  timeline.at_ps = LoadTime(fault, "at", 0, diagnostics);
  timeline.until_ps = LoadTime(fault, "until", kNeverPs, diagnostics);
  timeline.training_ps = LoadTime(fault, "training", 0, diagnostics);
  if (diagnostics.error_count() > errors_before || fault.IsDoubtful("at") ||
      fault.IsDoubtful("until")) {
    return false;
  }
  CheckOrder(fault, timeline, diagnostics);
  for (const char* field : {"at", "until", "when", "repeat", "by_chance"}) {
    if (fault.Has("log") && fault.Has(field)) {
      fault.Error(diagnostics, field, "stands beside a log, which has all times (expected none)");
    }
  }
  for (const char* field : {"link", "device", "domain", "draw"}) {
    if (fault.Has("log") && fault.Has(field)) {
      fault.Error(diagnostics, field, "stands beside a log, which has all targets (expected none)");
    }
  }
  if (fault.Has("repeat") && fault.Has("by_chance")) {
    fault.Error(diagnostics, "repeat", "stands beside by_chance (expected one of them)");
  } else if (fault.Has("repeat")) {
    LoadRepetition(fault, timeline, diagnostics);
  } else if (fault.Has("by_chance")) {
    LoadChance(fault, timeline, diagnostics);
  } else if (fault.Has("training") && timeline.until_ps == kNeverPs && !fault.Has("log")) {
    fault.Error(diagnostics, "training", "has no effect without an end (expected until as well)");
  }
  return diagnostics.error_count() == errors_before;
}

std::map<std::string, std::vector<FaultInterval>> LoadFaultLog(const ProtoCursor& fault,
                                                               int64_t training_ps,
                                                               Diagnostics& diagnostics) {
  std::map<std::string, std::vector<FaultInterval>> intervals;
  const std::string path = fault.FilePath("log");
  if (const std::string why = WhyNotAFile(path); !why.empty()) {
    fault.Error(diagnostics, "log",
                fmt::format("{} cannot be read: {} (expected a CSV file with lines "
                            "\"1.5s,server1/nic3--leaf3,down\")",
                            Quote(path, kQuotedPathBytesMax), why));
    return {};
  }
  const int errors_before = diagnostics.error_count();
  std::ifstream file = OpenToRead(path);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line == "time,target,state") continue;
    const SourceLocation where = {.file = path, .line = number, .column = 1};
    const size_t first = line.find(',');
    const size_t last = line.rfind(',');
    const std::string state = last == std::string::npos ? "" : line.substr(last + 1);
    const auto time_ps =
        first == std::string::npos ? std::nullopt : ParseDurationPs(line.substr(0, first));
    if (!time_ps || first == last || (state != "down" && state != "up")) {
      diagnostics.Error(where, fault.Path("log"),
                        fmt::format("{} is no event (expected e.g. "
                                    "\"1.5s,server1/nic3--leaf3,down\")",
                                    Quote(line)));
      continue;
    }
    const std::string target = line.substr(first + 1, last - first - 1);
    std::vector<FaultInterval>& of_target = intervals[target];
    const bool is_down = !of_target.empty() && of_target.back().until_ps == kNeverPs;
    if (is_down == (state == "down")) {
      diagnostics.Error(where, fault.Path("log"),
                        fmt::format("{} goes {} but is so already (expected the two in turn)",
                                    Quote(target), state));
      continue;
    }
    const int64_t before_ps = of_target.empty() ? -1
                              : is_down         ? of_target.back().from_ps
                                                : of_target.back().until_ps + training_ps;
    if (*time_ps <= before_ps || *time_ps > kFaultTimePsMax) {
      diagnostics.Error(
          where, fault.Path("log"),
          fmt::format("{} does not follow what was before it on {}{} (expected ascending times of "
                      "at most 90 days)",
                      Quote(line.substr(0, first)), Quote(target),
                      training_ps > 0 && !is_down ? " and its training" : ""));
      continue;
    }
    if (is_down) {
      of_target.back().until_ps = *time_ps;
    } else {
      of_target.push_back({*time_ps, kNeverPs});
    }
  }
  CheckReading(file, path);
  if (diagnostics.error_count() > errors_before) return {};
  if (intervals.empty()) {
    fault.Error(diagnostics, "log",
                fmt::format("{} has no event (expected lines "
                            "\"1.5s,server1/nic3--leaf3,down\")",
                            Quote(path, kQuotedPathBytesMax)));
  }
  return intervals;
}

}  // namespace railyard
