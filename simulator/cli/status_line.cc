// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/status_line.h"

#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace railyard {
namespace {

constexpr size_t kUsualColumns = 80;

// Asks each time, because the terminal may be resized.
size_t TerminalColumns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return size.ws_col;
}

}  // namespace

std::string FitParts(const std::vector<std::string>& parts, size_t columns) {
  std::string text;
  for (const std::string& part : parts) {
    if (text.size() + part.size() <= columns) {
      text += part;
    } else if (text.empty()) {
      text = part.substr(0, columns);
    }
  }
  return text;
}

StatusLine::StatusLine(bool in_place) : is_in_place_(in_place && ::isatty(STDERR_FILENO) != 0) {}

void StatusLine::Show(const std::vector<std::string>& parts) {
  if (is_in_place_) {
    // The last column stays empty: some terminals wrap when it is filled. \x1b[K clears the rest.
    fmt::print(stderr, "\r{}\x1b[K", FitParts(parts, TerminalColumns() - 1));
  } else {
    fmt::print(stderr, "railyard: {}\n", fmt::join(parts, ""));
  }
  is_shown_ = is_in_place_;
  std::fflush(stderr);
}

void StatusLine::Clear() {
  if (!is_shown_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  is_shown_ = false;
}

}  // namespace railyard
