// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/cli/command.h"

namespace railyard {

// Holds the further options of `railyard fidelity --calibrate`, which describe the machine that the
// tables were measured on.
class CalibrationOptions {
 public:
  void AddOptions(CLI::App* parser);
  // Returns the name of an option that was given; empty if none was.
  std::string Given() const;
  // Fits to the tables of `files`, up to `bytes_max`, and writes the platform to `output`, which
  // must not exist yet.
  ExitStatus Run(const std::vector<std::string>& files, uint64_t bytes_max,
                 const std::string& output) const;

 private:
  std::string collective_;
  std::string fabric_;
  std::optional<uint32_t> nodes_;
};

}  // namespace railyard
