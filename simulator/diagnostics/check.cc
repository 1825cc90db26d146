// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/check.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace railyard {
namespace {

CheckContext& Context() {
  static CheckContext context;
  return context;
}

}  // namespace

void SetCheckContext(CheckContext context) { Context() = std::move(context); }

void CheckFailed(const char* file, int line, const char* condition, const std::string& detail) {
  std::fprintf(stderr, "%s:%d: check failed: %s: %s\n", file, line, condition, detail.c_str());
  const CheckContext& context = Context();
  if (context.virtual_time_ps) {
    std::fprintf(stderr, "at virtual time %lld ps\n",
                 static_cast<long long>(context.virtual_time_ps()));
  }
  if (!context.replay_command.empty()) {
    std::fprintf(stderr, "again with: %s\n", context.replay_command.c_str());
  }
  std::fflush(stderr);
  std::abort();
}

}  // namespace railyard
