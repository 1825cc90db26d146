// SPDX-License-Identifier: GPL-2.0-only
// Lists the files of an import: files named individually, all files of a directory, or members of
// tar archives.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/reading/input_stream.h"

namespace railyard {

class InputFiles {
 public:
  // Takes files in the order given. A directory stands for all files in and below it except hidden
  // ones, sorted by name with numbers by value ("rank2" before "rank10").
  explicit InputFiles(const std::vector<std::string>& paths);

  // Returns the paths of the files on disk.
  const std::vector<std::string>& paths() const { return paths_; }

  // Passes each file, or each member of an archive, decompressed to `visit` until that returns
  // false. A file whose data end early is an error in `diagnostics`. Throws EnvironmentError if a
  // file cannot be read. May be called again.
  void ForEach(const std::function<bool(InputStream&)>& visit, Diagnostics& diagnostics) const;

  // Makes ForEach skip the file of this name from now on.
  void LeaveOut(const std::string& name) { left_out_.insert(name); }

 private:
  // Returns false to stop.
  bool Visit(InputStream& stream, const std::function<bool(InputStream&)>& visit,
             Diagnostics& diagnostics) const;

  std::vector<std::string> paths_;
  std::set<std::string> left_out_;  // names
};

}  // namespace railyard
