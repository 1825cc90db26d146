// SPDX-License-Identifier: GPL-2.0-only
// The files of an import: named one by one, all of a directory, those within tar archives.
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
  // Files as given; in place of a directory all files in and below it, by name, numbers by their
  // value ("rank2" before "rank10"), but hidden ones.
  explicit InputFiles(const std::vector<std::string>& paths);

  // What lies on disk.
  const std::vector<std::string>& paths() const { return paths_; }

  // Shows each file, decompressed, to `visit` until it returns false; an archive file by file. A
  // file whose data end early is an error in `diagnostics`. EnvironmentError for one that cannot be
  // read. May be called again.
  void ForEach(const std::function<bool(InputStream&)>& visit, Diagnostics& diagnostics) const;

  // ForEach passes over the file of this name from now on.
  void LeaveOut(const std::string& name) { left_out_.insert(name); }

 private:
  // False to stop.
  bool Visit(InputStream& stream, const std::function<bool(InputStream&)>& visit,
             Diagnostics& diagnostics) const;

  std::vector<std::string> paths_;
  std::set<std::string> left_out_;  // names
};

}  // namespace railyard
