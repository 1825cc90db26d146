// SPDX-License-Identifier: GPL-2.0-only
// Lists the files of an import: files named individually, all files of a directory, or members of
// tar archives.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
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

  // Makes ForEach report a file as an error, and skip it, if `why` returns a text for its first
  // bytes.
  void Refuse(std::function<std::string(std::string_view head)> why) { refusal_ = std::move(why); }

  // Makes ForEach skip the file of this name from now on, and lists it as passed over.
  void LeaveOut(const std::string& name, const std::string& reason) {
    left_out_.insert(name);
    passed_over_[name] = reason;
  }

  // Returns the files that are no part of the import, by name, with the reason ("is a symbolic
  // link"): those left out, and members of archives that ForEach could not pass.
  const std::map<std::string, std::string>& passed_over() const { return passed_over_; }

 private:
  // Returns false to stop.
  bool Visit(InputStream& stream, const std::function<bool(InputStream&)>& visit,
             Diagnostics& diagnostics) const;

  std::vector<std::string> paths_;
  std::set<std::string> left_out_;                          // names
  mutable std::map<std::string, std::string> passed_over_;  // ForEach finds the same ones each time
  std::function<std::string(std::string_view head)> refusal_;
};

}  // namespace railyard
