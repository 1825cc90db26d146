// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/cli.h"
#include "simulator/engine/fabric_simulator_impl.h"

int main(int argc, char** argv) {
  railyard::InitVirtualTime();
  return railyard::RunCli(argc, argv);
}
