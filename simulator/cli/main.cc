// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/cli.h"
#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/engine/huge_pages.h"

int main(int argc, char** argv) {
  railyard::PreferHugePages();
  railyard::InitVirtualTime();
  return railyard::RunCli(argc, argv);
}
