// SPDX-License-Identifier: GPL-2.0-only
// Defines the size of a message on the wire and the part of it that is the collective's data.
// NCCL's protocols LL and LL128 send lines in which flags follow the data.
#pragma once

#include <cstdint>

namespace railyard {

struct MessageSize {
  uint64_t bytes = 0;       // flags included; below 4 GiB
  uint64_t data_bytes = 0;  // at most as many

  static MessageSize OfData(uint64_t bytes) { return {bytes, bytes}; }
  bool has_flags() const { return data_bytes != bytes; }
  // Returns the size of the bytes from `begin` to `end`. The parts of a message together contain
  // all of its data.
  MessageSize Part(uint64_t begin, uint64_t end) const {
    return {end - begin, DataBefore(end) - DataBefore(begin)};
  }

 private:
  uint64_t DataBefore(uint64_t end) const { return has_flags() ? end * data_bytes / bytes : end; }
};

}  // namespace railyard
