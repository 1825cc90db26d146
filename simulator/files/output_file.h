// SPDX-License-Identifier: GPL-2.0-only
// The one way in which files are written. Every failure, a full disk included, is an
// EnvironmentError that names the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "simulator/processes/interruption.h"

namespace railyard {

// Buffered. A regular file appears complete or not at all: it is written under another name beside
// its final place (that of its target for a symbolic link), forced to disk, then renamed over it.
// "-" is standard output; what is no regular file, a device or a pipe, is written to and never
// replaced, and so are the files behind standard output and standard error (/dev/stdout). A signal
// that interrupts the program while a regular file is unfinished has its effect when the file is
// gone.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  // Without Close() nothing is left of a regular file, and an earlier one stays.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(std::string_view text);
  // Writes what is buffered, forces it to disk and gives the file its name.
  void Close();

 private:
  void OpenUnfinished();
  void Flush();

  std::optional<Interruptible> interruptible_;  // of a regular file; ends after all else
  std::string path_;
  std::string target_;      // where a regular file goes
  std::string unfinished_;  // its name until Close(); empty: it is no regular file
  std::string buffer_;
  int descriptor_ = -1;
};

// All of it at once.
void WriteOutput(const std::string& path, std::string_view text);

// Whether two paths mean one regular file, existing or not.
bool IsSameFile(const std::string& a, const std::string& b);

// "cannot WHAT PATH: REASON", the reason from errno.
[[noreturn]] void ThrowErrno(std::string_view what, const std::string& path);

// Forces an existing file or directory to disk.
void SyncPath(const std::string& path);

}  // namespace railyard
