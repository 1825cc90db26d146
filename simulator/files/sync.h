// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// States when a regular file is forced to disk.
enum class Sync : uint8_t {
  kAtOnce,
  kLater,  // by the caller (file_sync.h), before anybody looks at the file
};

}  // namespace railyard
