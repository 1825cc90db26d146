// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/progress_line.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr std::chrono::seconds kOnTerminal{1};
constexpr std::chrono::seconds kInFile{10};

std::string Seconds(double seconds) {
  return FormatDuration(static_cast<int64_t>(std::min(seconds, 1e6) * 1e3) * 1'000'000'000);
}

// "8.12 M ", before the name of the rate.
std::string Rate(double per_second) {
  if (per_second >= 1e6) return fmt::format("{:.3g} M ", per_second / 1e6);
  return per_second >= 1e3 ? fmt::format("{:.3g} k ", per_second / 1e3)
                           : fmt::format("{:.3g} ", per_second);
}

}  // namespace

std::vector<std::string> ProgressParts(const RunProgress& progress, const RunProgress& last) {
  std::vector<std::string> parts = {
      fmt::format("simulated {} in {}", FormatDuration(progress.simulated_time_ps),
                  Seconds(progress.wall_seconds)),
      fmt::format(", {:.1f} % done", 100 * progress.share_done)};
  double least_done = progress.share_done;
  for (const RunProgress::Paired& paired : progress.paired) {
    least_done = std::min(least_done, paired.share_done);
  }
  if (least_done > 0 && least_done < 1) {
    parts.push_back(fmt::format(", about {} left",
                                Seconds(progress.wall_seconds * (1 - least_done) / least_done)));
  }
  for (const RunProgress::Paired& paired : progress.paired) {
    parts.push_back(fmt::format("; {}: {}, {:.1f} % done", paired.name,
                                FormatDuration(paired.simulated_time_ps), 100 * paired.share_done));
  }
  const double seconds = std::max(1e-3, progress.wall_seconds - last.wall_seconds);
  const auto rate = [seconds](uint64_t now, uint64_t then) {
    return Rate(static_cast<double>(now - std::min(now, then)) / seconds);
  };
  parts.push_back(fmt::format("; {}hops/s", rate(progress.hops, last.hops)));
  parts.push_back(fmt::format(", {}collectives/s", rate(progress.collectives, last.collectives)));
  if (progress.replayed > 0) {
    parts.push_back(fmt::format(
        ", {:.1f} % replayed",
        100 * static_cast<double>(progress.replayed) / static_cast<double>(progress.collectives)));
  }
  parts.push_back(fmt::format(", {}", FormatBytes(progress.rss_bytes)));
  return parts;
}

ProgressLine::ProgressLine(bool is_quiet) : is_quiet_(is_quiet), line_(!is_quiet) {}

ProgressOptions ProgressLine::Options() {
  ProgressOptions options{.show = [this](const RunProgress& progress) { Show(progress); }};
  if (!is_quiet_) options.interval = line_.is_in_place() ? kOnTerminal : kInFile;
  return options;
}

void ProgressLine::Show(const RunProgress& progress) {
  line_.Show(ProgressParts(progress, last_));
  last_ = progress;
}

}  // namespace railyard
