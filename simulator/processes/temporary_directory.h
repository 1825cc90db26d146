// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>

#include "simulator/processes/interruption.h"

namespace railyard {

// Makes a new directory and removes it with its contents, even if a signal interrupts the program.
// Throws EnvironmentError if it cannot be made.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  Interruptible interruptible_;
  std::string path_;
};

}  // namespace railyard
