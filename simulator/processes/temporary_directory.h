// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>

#include "simulator/processes/interruption.h"

namespace railyard {

// Makes a new directory in TMPDIR or in `parent` and removes it with its contents, even if a signal
// interrupts the program. Throws EnvironmentError if it cannot be made.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  explicit TemporaryDirectory(const std::string& parent);
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  void Make(std::string pattern);

  Interruptible interruptible_;
  std::string path_;
};

}  // namespace railyard
