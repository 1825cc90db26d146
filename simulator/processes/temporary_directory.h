// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>

#include "simulator/processes/interruption.h"

namespace railyard {

// A directory of its own; removed with all that is in it, also where a signal interrupts the
// program. EnvironmentError where it cannot be made.
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
