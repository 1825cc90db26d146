// SPDX-License-Identifier: GPL-2.0-only
// Collects the findings of one file by line and stops after kErrorsMax errors.
#pragma once

#include <string>
#include <utility>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

class LineFindings {
 public:
  // Both arguments must outlive this object.
  LineFindings(const std::string& path, Diagnostics& diagnostics)
      : path_(path), diagnostics_(diagnostics) {}

  void Error(int line, std::string what) { Error(line, 0, std::move(what)); }
  void Error(int line, int column, std::string what) {
    if (++errors_ <= kErrorsMax) {
      diagnostics_.Error({.file = path_, .line = line, .column = column}, "", std::move(what));
    }
  }
  void Warning(int line, std::string what) { Warning(line, 0, std::move(what)); }
  void Warning(int line, int column, std::string what) {
    diagnostics_.Warning({.file = path_, .line = line, .column = column}, "", std::move(what));
  }
  bool HasErrors() const { return errors_ > 0; }
  // Returns true once kErrorsMax errors are reported; the caller stops reading then.
  bool IsFull() const { return errors_ >= kErrorsMax; }

 private:
  static constexpr int kErrorsMax = 100;

  const std::string& path_;
  Diagnostics& diagnostics_;
  int errors_ = 0;
};

}  // namespace railyard
