// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/engine/virtual_time.h"
#include "tests/support/run_tests.h"

int main(int argc, char** argv) {
  railyard::InitVirtualTime();
  return railyard::testing::RunTests(argc, argv);
}
