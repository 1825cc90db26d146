// SPDX-License-Identifier: GPL-2.0-only
// A file that appears complete or not at all: written beside its final place, forced to disk, then
// renamed over it.
#pragma once

#include <string>
#include <string_view>

namespace railyard {

class CompleteFile {
 public:
  // Opens a temporary file in `path`'s directory. All members throw EnvironmentError on failure.
  explicit CompleteFile(std::string path);
  // Removes the temporary file unless it was committed.
  ~CompleteFile();
  CompleteFile(const CompleteFile&) = delete;
  CompleteFile& operator=(const CompleteFile&) = delete;

  void Write(std::string_view bytes);
  void Commit();

 private:
  [[noreturn]] void Fail(std::string_view doing) const;

  std::string path_;
  std::string temporary_path_;
  int descriptor_ = -1;
};

}  // namespace railyard
