// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/result_publisher.h"

#include <csignal>
#include <filesystem>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/processes/signals_blocked.h"
#include "simulator/processes/start_thread.h"
#include "simulator/study/study_directory.h"

namespace railyard {
namespace {

namespace fs = std::filesystem;

}  // namespace

ResultPublisher::ResultPublisher(std::string directory)
    : directory_(std::move(directory)), sync_(directory_ + "/runs") {}

ResultPublisher::~ResultPublisher() {
  if (thread_.valid()) thread_.wait();
}

std::string ResultPublisher::UnpublishedPath(size_t run) const {
  return fmt::format("{}/runs/{}{:06}", directory_, kUnpublishedRun, run);
}

// The names follow to disk with the next results. Until then a power cut makes them absent.
void ResultPublisher::Publish() const {
  sync_.Commit();
  for (const size_t run : publishing_) {
    const std::string from = UnpublishedPath(run);
    std::error_code error;
    if (!fs::exists(from, error)) continue;
    const std::string to = RunPath(directory_, run);
    fs::remove_all(to, error);  // what a run that was ended early has left
    fs::rename(from, to, error);
    if (error) throw EnvironmentError(fmt::format("cannot write {}: {}", to, error.message()));
  }
}

void ResultPublisher::Start() {
  if (thread_.valid() || waiting_.empty()) return;
  publishing_ = std::exchange(waiting_, {});
  has_ended_ = false;
  const SignalsBlocked blocked;  // they are for the thread that waits for processes
  const auto publish = [this] {
    struct WakeUp {
      std::atomic<bool>& has_ended;
      ~WakeUp() {
        has_ended = true;
        kill(getpid(), SIGCHLD);
      }
    } wake_up{has_ended_};
    Publish();
  };
  thread_ = StartThread([&publish] { return std::async(std::launch::async, publish); });
}

std::vector<size_t> ResultPublisher::Take() {
  if (!thread_.valid() || !has_ended_) return {};
  thread_.get();
  return std::exchange(publishing_, {});
}

std::vector<size_t> ResultPublisher::FinishAll() {
  std::vector<size_t> published;
  while (thread_.valid() || !waiting_.empty()) {
    Start();
    thread_.get();
    published.insert(published.end(), publishing_.begin(), publishing_.end());
    publishing_.clear();
  }
  sync_.Commit();
  return published;
}

void ResultPublisher::RemoveRest() const {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_ + "/runs", error)) {
    if (!entry.path().filename().string().starts_with(kUnpublishedRun)) continue;
    fs::remove_all(entry.path(), error);
  }
}

}  // namespace railyard
