// SPDX-License-Identifier: GPL-2.0-only
#include "tests/support/run_tests.h"

int main(int argc, char** argv) { return railyard::testing::RunTests(argc, argv); }
