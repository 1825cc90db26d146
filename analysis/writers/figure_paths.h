// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>
#include <vector>

#include "analysis/writers/figure_sink.h"

namespace railyard {

// Base of sinks that name figures by their paths, with N for the index of an array's element:
// "collectives.stretch.max", "faults.N.time_to_recover_ps".
class FigurePaths : public FigureSink {
 public:
  void StartObject(const char* key) final { Open(key); }
  void EndObject() final { Close(); }
  void StartArray(const char* key) final {
    Open(key);
    ++open_arrays_;
  }
  void EndArray() final {
    --open_arrays_;
    Close();
  }

 protected:
  // Returns the path of a figure that the sink is given.
  std::string PathOf(const char* key) const {
    const std::string name = key == nullptr ? "N" : key;
    return path_.empty() ? name : path_ + "." + name;
  }
  bool IsInArray() const { return open_arrays_ > 0; }

 private:
  void Open(const char* key) {
    const size_t length = path_.size();
    if (!lengths_.empty()) path_ = PathOf(key);  // the outermost object has no name
    lengths_.push_back(length);
  }
  void Close() {
    path_.resize(lengths_.back());
    lengths_.pop_back();
  }

  std::string path_;             // of what is open
  std::vector<size_t> lengths_;  // of the paths of what encloses it
  int open_arrays_ = 0;
};

}  // namespace railyard
