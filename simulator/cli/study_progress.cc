// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/study_progress.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>

#include "analysis/tables/figure_text.h"

namespace railyard {

int64_t InPicoseconds(double seconds) {
  constexpr double kMost = 9e6;  // what fits: 104 days
  return static_cast<int64_t>(std::min(seconds, kMost) * 1e12);
}

std::string StudyProgressText(const StudyProgress& progress, double seconds) {
  const size_t ended = progress.kept + progress.done;
  std::string text = fmt::format("{} of {} runs done", ended, progress.runs);
  if (progress.kept > 0) text += fmt::format(" ({} of them before)", progress.kept);
  if (progress.failed > 0) text += fmt::format(", {} failed", progress.failed);
  if (progress.done > 0 && ended < progress.runs) {
    const auto left = static_cast<double>(progress.runs - ended);
    text += fmt::format(
        ", about {} left",
        DurationText(InPicoseconds(seconds * left / static_cast<double>(progress.done))));
  }
  return text;
}

StudyProgressLine::StudyProgressLine()
    : is_terminal_(::isatty(STDERR_FILENO) != 0), begin_(Clock::now()), shown_(begin_) {}

void StudyProgressLine::Show(const StudyProgress& progress) {
  const Clock::time_point now = Clock::now();
  const std::string text =
      StudyProgressText(progress, std::chrono::duration<double>(now - begin_).count());
  if (is_terminal_) {
    fmt::print(stderr, "\r{}\x1b[K", text);  // to the end of the line nothing
    is_shown_ = true;
  } else if (now - shown_ >= std::chrono::seconds(10)) {
    fmt::print(stderr, "railyard: {}\n", text);
    shown_ = now;
  }
  std::fflush(stderr);
}

void StudyProgressLine::Clear() {
  if (!is_shown_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  is_shown_ = false;
}

}  // namespace railyard
