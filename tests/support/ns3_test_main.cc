// SPDX-License-Identifier: GPL-2.0-only
#include <gmock/gmock.h>

#include "simulator/engine/virtual_time.h"

int main(int argc, char** argv) {
  railyard::InitVirtualTime();
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
