// SPDX-License-Identifier: GPL-2.0-only
// Writes files; all of Railyard's output goes through it. Every failure, a full disk included, is
// an EnvironmentError that names the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "simulator/files/sync.h"
#include "simulator/processes/interruption.h"

namespace railyard {

// Writes a buffered output. A regular file appears complete or not at all: it is written without a
// name in the file system of its final place (for a symbolic link, that of its target), or under
// another name where there are no files without one, forced to disk unless the caller does that,
// then given its final name. "-" is standard output. Devices and pipes are written to and never
// replaced, and so are the files behind standard output and standard error (/dev/stdout). A signal
// that interrupts the program while a regular file is unfinished takes effect after the file has
// been removed.
class OutputFile {
 public:
  explicit OutputFile(std::string path, Sync sync = Sync::kAtOnce);
  // Discards a regular file that was not closed with Close(), and keeps an earlier one.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(std::string_view text);
  // Writes buffered data, forces the file to disk if the caller does not, and gives it its final
  // name.
  void Close();

 private:
  void OpenUnfinished();
  void TakeName();
  void Flush();

  std::optional<Interruptible> interruptible_;  // of a regular file; destroyed last
  std::string path_;
  Sync sync_;
  std::string target_;      // final place of a regular file, else empty
  std::string unfinished_;  // its name until Close(), if it has one
  std::string buffer_;
  int descriptor_ = -1;
};

// Writes `text` as the whole file.
void WriteOutput(const std::string& path, std::string_view text, Sync sync = Sync::kAtOnce);

// Returns true if two paths refer to the same regular file, existing or not.
bool IsSameFile(const std::string& a, const std::string& b);

// Throws EnvironmentError "cannot WHAT PATH: REASON" with the reason from errno.
[[noreturn]] void ThrowErrno(std::string_view what, const std::string& path);

// Forces an existing file or directory to disk.
void SyncPath(const std::string& path);

}  // namespace railyard
