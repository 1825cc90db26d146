// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/progress_line.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>

#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr std::chrono::seconds kOnTerminal{1};
constexpr std::chrono::seconds kInFile{10};

std::string Seconds(double seconds) {
  return FormatDuration(static_cast<int64_t>(std::min(seconds, 1e6) * 1e3) * 1'000'000'000);
}

// "8.12 M ", before what it is a rate of.
std::string Rate(double per_second) {
  if (per_second >= 1e6) return fmt::format("{:.3g} M ", per_second / 1e6);
  return per_second >= 1e3 ? fmt::format("{:.3g} k ", per_second / 1e3)
                           : fmt::format("{:.3g} ", per_second);
}

}  // namespace

std::string ProgressText(const RunProgress& progress, const RunProgress& last) {
  std::string text =
      fmt::format("simulated {} in {}, {:.1f} % done", FormatDuration(progress.simulated_time_ps),
                  Seconds(progress.wall_seconds), 100 * progress.share_done);
  if (progress.share_done > 0 && progress.share_done < 1) {
    const double left = progress.wall_seconds * (1 - progress.share_done) / progress.share_done;
    text += fmt::format(", about {} left", Seconds(left));
  }
  const double seconds = std::max(1e-3, progress.wall_seconds - last.wall_seconds);
  const auto rate = [seconds](uint64_t now, uint64_t then) {
    return Rate(static_cast<double>(now - std::min(now, then)) / seconds);
  };
  text += fmt::format("; {}collectives/s, {}hops/s", rate(progress.collectives, last.collectives),
                      rate(progress.hops, last.hops));
  if (progress.replayed > 0) {
    text += fmt::format(", {:.1f} % replayed", 100 * static_cast<double>(progress.replayed) /
                                                   static_cast<double>(progress.collectives));
  }
  text += fmt::format(", {}", FormatBytes(progress.rss_bytes));
  for (const RunProgress::Paired& paired : progress.paired) {
    text += fmt::format("; {}: {}, {:.1f} % done", paired.name,
                        FormatDuration(paired.simulated_time_ps), 100 * paired.share_done);
  }
  return text;
}

ProgressLine::ProgressLine(bool is_quiet)
    : is_quiet_(is_quiet), is_terminal_(::isatty(STDERR_FILENO) != 0) {}

ProgressOptions ProgressLine::Options() {
  ProgressOptions options{.show = [this](const RunProgress& progress) { Show(progress); }};
  if (!is_quiet_) options.interval = is_terminal_ ? kOnTerminal : kInFile;
  return options;
}

void ProgressLine::Show(const RunProgress& progress) {
  const std::string text = ProgressText(progress, last_);
  last_ = progress;
  is_shown_ = is_terminal_ && !is_quiet_;
  if (is_shown_) {
    fmt::print(stderr, "\r{}\x1b[K", text);  // to the end of the line nothing
  } else {
    fmt::print(stderr, "railyard: {}\n", text);
  }
  std::fflush(stderr);
}

void ProgressLine::Clear() {
  if (!is_shown_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  is_shown_ = false;
}

}  // namespace railyard
