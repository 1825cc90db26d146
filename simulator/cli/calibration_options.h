// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/cli/command.h"

namespace railyard {

// What `railyard fidelity --calibrate` takes besides: which machine the tables are of.
class CalibrationOptions {
 public:
  void AddOptions(CLI::App* parser);
  // An option that was given; empty: none.
  std::string Given() const;
  // Fits to the tables of `files`, up to `bytes_max`, and writes the platform to `output`, which
  // must not be there yet.
  ExitStatus Run(const std::vector<std::string>& files, uint64_t bytes_max,
                 const std::string& output) const;

 private:
  std::string collective_;
  std::string fabric_;
  uint32_t nodes_ = 0;  // 0: not given
};

}  // namespace railyard
