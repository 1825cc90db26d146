// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>

namespace railyard {

// Holds a value of an attribute of an ns-3 model, as a scenario states it.
struct ModelAttribute {
  std::string type;  // "railyard::Switch"
  std::string name;  // "BufferBytes"
  std::string value;
};

}  // namespace railyard
