// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/study_progress.h"

#include <algorithm>

#include <fmt/format.h>

#include "analysis/tables/figure_text.h"

namespace railyard {

int64_t InPicoseconds(double seconds) {
  constexpr double kMost = 9e6;  // what fits: 104 days
  return static_cast<int64_t>(std::min(seconds, kMost) * 1e12);
}

std::vector<std::string> StudyProgressParts(const StudyProgress& progress, double seconds) {
  const size_t ended = progress.kept + progress.done;
  std::vector<std::string> parts = {fmt::format("{} of {} runs done", ended, progress.runs)};
  if (progress.kept > 0) parts.push_back(fmt::format(" ({} of them before)", progress.kept));
  if (progress.failed > 0) parts.push_back(fmt::format(", {} failed", progress.failed));
  if (progress.done > 0 && ended < progress.runs) {
    const auto left = static_cast<double>(progress.runs - ended);
    parts.push_back(fmt::format(
        ", about {} left",
        DurationText(InPicoseconds(seconds * left / static_cast<double>(progress.done)))));
  }
  return parts;
}

StudyProgressLine::StudyProgressLine() : begin_(Clock::now()), shown_(begin_) {}

void StudyProgressLine::Show(const StudyProgress& progress) {
  const Clock::time_point now = Clock::now();
  if (!line_.is_in_place() && now - shown_ < std::chrono::seconds(10)) return;
  line_.Show(StudyProgressParts(progress, std::chrono::duration<double>(now - begin_).count()));
  shown_ = now;
}

}  // namespace railyard
