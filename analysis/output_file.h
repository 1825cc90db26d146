// SPDX-License-Identifier: GPL-2.0-only
// A buffered file on its way to disk. Every failure, a full disk included, is an EnvironmentError
// that names the file.
#pragma once

#include <string>
#include <string_view>

namespace railyard {

class OutputFile {
 public:
  // Creates or empties the file.
  explicit OutputFile(std::string path);
  // Without Close() the file is left incomplete.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(std::string_view text);
  // Writes what is buffered and forces it to disk.
  void Close();

 private:
  void Flush();

  std::string path_;
  std::string buffer_;
  int descriptor_ = -1;
};

// "cannot WHAT PATH: REASON", the reason from errno.
[[noreturn]] void ThrowErrno(std::string_view what, const std::string& path);

// Forces an existing file or directory to disk.
void SyncPath(const std::string& path);

}  // namespace railyard
