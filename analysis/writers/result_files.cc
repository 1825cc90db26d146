// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/writers/result_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/istreamwrapper.h>

#include "analysis/pcapng/pcapng_writer.h"
#include "analysis/writers/csv_writer.h"
#include "analysis/writers/result_tables.h"
#include "analysis/writers/sqlite_writer.h"
#include "analysis/writers/summary.h"
#include "simulator/diagnostics/check.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/files/file_sync.h"
#include "simulator/files/hidden_name.h"
#include "simulator/files/output_file.h"

namespace railyard {

namespace fs = std::filesystem;

namespace {

// All files that a result directory may have. Any other file belongs to the user and is not
// deleted.
constexpr std::array<std::string_view, 16> kResultFileNames = {
    "summary.json",        "results.sqlite",    "collectives.csv",  "pairs.csv",
    "in_network.csv",      "links.csv",         "traffic.csv",      "breakdown.csv",
    "iteration_pairs.csv", "import_report.txt", "report.html",      "trace.perfetto-trace",
    "series.csv",          "link_series.csv",   "queue_series.csv", "transfers.csv"};

// Captures are named by links.
bool IsCaptureName(std::string_view name) { return name.ends_with(".pcapng"); }

// Names of the directory's entries, sorted.
std::vector<std::string> EntryNames(const fs::path& directory) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) {
    throw EnvironmentError(fmt::format("cannot read {}: {}", directory.string(), error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool IsOurSummary(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  rapidjson::IStreamWrapper stream(file);
  rapidjson::Document summary;
  summary.ParseStream<rapidjson::kParseIterativeFlag>(stream);
  if (summary.HasParseError() || !summary.IsObject()) return false;
  return summary.HasMember("schema_version") && summary["schema_version"].IsUint() &&
         summary.HasMember("scenario") && summary.HasMember("fingerprint");
}

// Without "." and ".." and with symbolic links resolved, so that its parent is where it really
// lies. Another run that replaces the directory may take it away between two looks at it; it is
// looked for again then.
fs::path Resolve(const std::string& directory) {
  constexpr int kLooks = 100;
  std::error_code error;
  fs::path resolved;
  for (int look = 0; look < kLooks; ++look) {
    resolved = fs::weakly_canonical(fs::absolute(directory), error);
    if (error != std::errc::no_such_file_or_directory) break;
  }
  if (error) {
    throw EnvironmentError(fmt::format("cannot write {}: {}", directory, error.message()));
  }
  if (!resolved.has_filename()) resolved = resolved.parent_path();  // "out/" is "out"
  return resolved;
}

// A rename cannot replace the root of a mounted file system.
bool IsMountPoint(const fs::path& directory) {
  struct stat own = {};
  struct stat parent = {};
  return stat(directory.c_str(), &own) == 0 &&
         stat(directory.parent_path().c_str(), &parent) == 0 &&
         (own.st_dev != parent.st_dev || own.st_ino == parent.st_ino);
}

std::optional<std::string> WhyRefused(const fs::path& directory) {
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (status.type() == fs::file_type::not_found) {
    if (!fs::is_symlink(fs::symlink_status(directory, error))) return std::nullopt;
    return "it is a symbolic link to nothing";
  }
  if (!fs::is_directory(status)) return "it is not a directory";
  const std::vector<std::string> names = EntryNames(directory);
  const auto foreign = std::ranges::find_if(names, [&](const std::string& name) {
    if (!IsResultFileName(name)) return true;
    return IsCaptureName(name) && !PcapngWriter::IsOurs((directory / name).string());
  });
  if (foreign != names.end()) {
    return fmt::format("it holds {}, which is not a result of railyard", *foreign);
  }
  if (!names.empty() && !IsOurSummary(directory / "summary.json")) {
    return "it is not empty and holds no complete result of railyard";
  }
  // A result takes the place of the directory, in which a shell would go on in vain.
  if (fs::equivalent(directory, ".", error)) {
    return "it is the working directory; name a directory below it";
  }
  if (IsMountPoint(directory)) return "it is a mount point; name a directory below it";
  return std::nullopt;
}

std::string RefusalText(const std::string& directory, const std::string& why) {
  return fmt::format("refusing to replace {}: {}", directory, why);
}

constexpr int kRemovalAttempts = 100;  // of a directory that others may be removing

// Locks a directory while the descriptor that it returns is open, so until the process ends at the
// latest. Returns -1, with errno, if another has locked or removed it, or if there are no locks on
// its file system.
int LockDirectory(const fs::path& directory) {
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return -1;
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
    struct stat locked = {};
    struct stat named = {};
    if (fstat(descriptor, &locked) == 0 && lstat(directory.c_str(), &named) == 0 &&
        locked.st_dev == named.st_dev && locked.st_ino == named.st_ino) {
      return descriptor;
    }
    errno = ENOENT;
  }
  const int error = errno;
  close(descriptor);
  errno = error;
  return -1;
}

// Directories made on the way, removed again unless kept.
class Attempt {
 public:
  ~Attempt() {
    // Listing a directory takes memory and a descriptor, of which none may be left.
    reserve_.reset();
    if (lock_ >= 0) close(lock_);
    RemoveUnlessKept();
  }
  void MakeParentsOf(const fs::path& directory) {
    const fs::path parent = directory.parent_path();
    std::error_code error;
    if (fs::is_directory(parent, error)) return;
    if (parent.has_relative_path()) MakeParentsOf(parent);
    if (mkdir(parent.c_str(), 0777) != 0) {
      if (errno != EEXIST) ThrowErrno("create", parent.string());
      if (fs::is_directory(parent, error)) return;  // made by another run
      errno = ENOTDIR;
      ThrowErrno("create", directory.string());
    }
    parents_.push_back(parent);
  }

  // A new directory beside `directory`, hidden, and locked as long as the attempt lasts: another
  // run does not take it for one that a killed run has left. Its name was never another's, for the
  // run that removes that one would remove files of this one.
  fs::path MakeStaging(const fs::path& directory) {
    for (;;) {
      const fs::path staging = NewHiddenName(directory.parent_path());
      if (mkdir(staging.c_str(), 0777) == 0) {
        lock_ = LockDirectory(staging);
        // Another run that locked it first removes it.
        if (lock_ < 0 && (errno == EWOULDBLOCK || errno == ENOENT)) continue;
        return staging_ = staging;
      }
      if (errno != EEXIST) ThrowErrno("create", directory.string());
    }
  }

  // Checks that the file system takes the name of `directory`, inside the hidden directory, where
  // no other run sees it.
  void TryNameOf(const fs::path& directory) const {
    const fs::path tried = staging_ / directory.filename();
    if (mkdir(tried.c_str(), 0777) != 0) ThrowErrno("create", directory.string());
  }

  void Keep() { kept_ = true; }

 private:
  void RemoveUnlessKept() const {
    if (kept_) return;
    std::error_code ignored;
    if (!staging_.empty()) fs::remove_all(staging_, ignored);
    for (auto made = parents_.rbegin(); made != parents_.rend(); ++made) fs::remove(*made, ignored);
  }

  static constexpr size_t kReserveBytes = 256 << 10;

  std::unique_ptr<char[]> reserve_ = std::make_unique_for_overwrite<char[]>(kReserveBytes);
  int lock_ = -1;
  fs::path staging_;
  std::vector<fs::path> parents_;
  bool kept_ = false;
};

// Files of a result are forced to disk together.
void WriteText(const fs::path& path, std::string_view text) {
  WriteOutput(path.string(), text, Sync::kLater);
}

// In parts, for it may be large.
void CopyFile(const std::string& from, const fs::path& to) {
  std::ifstream source(from, std::ios::binary);
  if (!source) ThrowErrno("read", from);
  OutputFile file(to.string(), Sync::kLater);
  std::array<char, 1 << 16> part;
  while (source) {
    source.read(part.data(), part.size());
    file.Write({part.data(), static_cast<size_t>(source.gcount())});
  }
  if (source.bad()) ThrowErrno("read", from);
  file.Close();
}

void WriteCsvFile(const fs::path& path, const ResultTable& table) {
  OutputFile file(path.string(), Sync::kLater);
  WriteCsv(table, file);
  file.Close();
}

void WriteFiles(const fs::path& directory, const RunResult& result,
                const std::vector<ExtraFile>& extra_files) {
  WriteText(directory / "summary.json", SummaryJson(result));
  WriteCsvFile(directory / "collectives.csv", CollectivesTable(result));
  WriteCsvFile(directory / "pairs.csv", PairsTable(result));
  WriteCsvFile(directory / "in_network.csv", InNetworkTable(result));
  WriteCsvFile(directory / "links.csv", LinksTable(result));
  WriteCsvFile(directory / "traffic.csv", TrafficTable(result));
  WriteCsvFile(directory / "breakdown.csv", BreakdownTable(result));
  WriteCsvFile(directory / "iteration_pairs.csv", IterationPairsTable(result));
  WriteCsvFile(directory / "series.csv", SeriesTable(result));
  WriteCsvFile(directory / "link_series.csv", LinkSeriesTable(result));
  WriteCsvFile(directory / "queue_series.csv", QueueSeriesTable(result));
  WriteCsvFile(directory / "transfers.csv", TransfersTable(result));
  WriteDatabase((directory / "results.sqlite").string(),
                {RunFiguresTable(result), JobsTable(result), CollectivesTable(result),
                 PairsTable(result), InNetworkTable(result), LinksTable(result),
                 TrafficTable(result), SeriesTable(result), LinkSeriesTable(result),
                 QueueSeriesTable(result), TransfersTable(result), MessageSizesTable(result),
                 IterationsTable(result), IterationPairsTable(result), BreakdownTable(result),
                 DropsTable(result), FaultsTable(result), WaitsTable(result), NotesTable(result)});
  for (const ExtraFile& extra : extra_files) {
    SIM_CHECK(IsResultFileName(extra.name), "not a file of a result: " + extra.name);
    if (!extra.copied_from.empty()) {
      CopyFile(extra.copied_from, directory / extra.name);
    } else {
      WriteText(directory / extra.name,
                extra.make ? extra.make(directory.string()) : extra.content);
    }
  }
}

// Puts `staging` in the place of `directory`. Where the kernel or the file system cannot exchange
// two names in one step, the earlier result is out of the way for an instant.
void Publish(const fs::path& staging, const fs::path& directory) {
  std::error_code ignored;
  if (rename(staging.c_str(), directory.c_str()) == 0) return;  // absent or empty
  if (errno != EEXIST && errno != ENOTEMPTY) ThrowErrno("replace", directory.string());
  if (renameat2(AT_FDCWD, staging.c_str(), AT_FDCWD, directory.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(staging, ignored);
    return;
  }
  if (errno != EINVAL && errno != ENOSYS) ThrowErrno("replace", directory.string());
  const fs::path earlier = staging.string() + ".earlier";
  if (rename(directory.c_str(), earlier.c_str()) != 0) ThrowErrno("replace", directory.string());
  if (rename(staging.c_str(), directory.c_str()) != 0) {
    const int error = errno;
    rename(earlier.c_str(), directory.c_str());
    errno = error;
    ThrowErrno("replace", directory.string());
  }
  fs::remove_all(earlier, ignored);
}

}  // namespace

bool IsResultFileName(std::string_view name) {
  return IsCaptureName(name) || std::ranges::find(kResultFileNames, name) != kResultFileNames.end();
}

std::optional<std::string> PrepareResultDirectory(const std::string& directory) {
  const fs::path resolved = Resolve(directory);
  if (const auto why = WhyRefused(resolved)) return RefusalText(directory, *why);
  // Nobody knows better than the file system what it will take, and nothing is left of it.
  Attempt attempt;
  attempt.MakeParentsOf(resolved);
  attempt.MakeStaging(resolved);
  attempt.TryNameOf(resolved);
  return std::nullopt;
}

void WriteResults(const std::string& directory, const RunResult& result,
                  const std::vector<ExtraFile>& extra_files, Sync sync) {
  const fs::path resolved = Resolve(directory);
  if (const auto why = WhyRefused(resolved)) throw EnvironmentError(RefusalText(directory, *why));
  Attempt attempt;
  attempt.MakeParentsOf(resolved);
  const fs::path staging = attempt.MakeStaging(resolved);
  WriteFiles(staging, result, extra_files);
  if (sync == Sync::kAtOnce) SyncFilesIn(staging.string());
  Publish(staging, resolved);
  attempt.Keep();
  if (sync == Sync::kAtOnce) SyncPath(resolved.parent_path().string());
}

std::vector<std::string> RemoveLeftovers(const std::string& directory) {
  const fs::path parent = Resolve(directory).parent_path();
  std::vector<std::string> failures;
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& left = entry->path();
    struct stat status = {};
    if (!IsHiddenName(left.filename().string()) || lstat(left.c_str(), &status) != 0 ||
        !S_ISDIR(status.st_mode) || status.st_uid != geteuid()) {
      continue;
    }
    const int lock = LockDirectory(left);
    if (lock < 0) continue;
    // The run that put its result in the place of this one may be removing it, too: what one of
    // them has just listed the other has removed, and a list made meanwhile may lack an entry.
    std::error_code failure;
    for (int attempt = 0; attempt < kRemovalAttempts; ++attempt) {
      fs::remove_all(left, failure);
      if (failure != std::errc::no_such_file_or_directory &&
          failure != std::errc::directory_not_empty) {
        break;
      }
    }
    close(lock);
    if (failure && lstat(left.c_str(), &status) == 0) {
      failures.push_back(fmt::format("cannot remove {}, which a run that was killed has left: {}",
                                     left.string(), failure.message()));
    }
  }
  return failures;
}

void RemoveResults(const std::string& directory) {
  const fs::path resolved = Resolve(directory);
  if (!fs::is_directory(resolved) || WhyRefused(resolved)) return;
  std::error_code error;
  fs::remove_all(resolved, error);
  if (error) {
    throw EnvironmentError(fmt::format("cannot remove {}: {}", directory, error.message()));
  }
}

}  // namespace railyard
