// SPDX-License-Identifier: GPL-2.0-only
// How long a message is, and how much of it is the collective's data: NCCL's protocols LL and LL128
// send lines in which flags follow the data.
#pragma once

#include <cstdint>

namespace railyard {

struct MessageSize {
  uint64_t bytes = 0;       // flags included; below 4 GiB
  uint64_t data_bytes = 0;  // at most as many

  static MessageSize OfData(uint64_t bytes) { return {bytes, bytes}; }
  bool has_flags() const { return data_bytes != bytes; }
  // The bytes from `begin` to `end`. Parts that make up the whole have all of its data.
  MessageSize Part(uint64_t begin, uint64_t end) const {
    return {end - begin, DataBefore(end) - DataBefore(begin)};
  }

 private:
  uint64_t DataBefore(uint64_t end) const { return has_flags() ? end * data_bytes / bytes : end; }
};

}  // namespace railyard
