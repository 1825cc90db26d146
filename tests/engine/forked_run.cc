// SPDX-License-Identifier: GPL-2.0-only
#include "tests/engine/forked_run.h"

#include <array>
#include <cstdio>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <ns3/global-value.h>
#include <ns3/simulator-impl.h>
#include <ns3/simulator.h>
#include <ns3/string.h>

#include "simulator/diagnostics/check.h"

namespace railyard {

std::string RunForked(Implementation implementation,
                      const std::function<void(std::string& trace)>& program) {
  std::FILE* const file = std::tmpfile();
  if (file == nullptr) {
    ADD_FAILURE() << "no temporary file";
    return "";
  }
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const std::string type = implementation == Implementation::kFabric
                                 ? "railyard::FabricSimulatorImpl"
                                 : "ns3::DefaultSimulatorImpl";
    ns3::Simulator::Destroy();
    ns3::GlobalValue::Bind("SimulatorImplementationType", ns3::StringValue(type));
    std::string trace;
    program(trace);
    SIM_CHECK(ns3::Simulator::GetImplementation()->GetInstanceTypeId().GetName() == type,
              "the child did not run on " + type);
    const bool written = std::fwrite(trace.data(), 1, trace.size(), file) == trace.size();
    _exit(written && std::fflush(file) == 0 ? 0 : 1);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
    ADD_FAILURE() << "the child process failed, wait status " << status;
  }
  std::string trace;
  std::array<char, 65536> buffer;
  std::rewind(file);
  while (const size_t count = std::fread(buffer.data(), 1, buffer.size(), file)) {
    trace.append(buffer.data(), count);
  }
  std::fclose(file);
  return trace;
}

std::string FirstDifference(const std::string& expected, const std::string& actual) {
  std::istringstream expected_lines(expected);
  std::istringstream actual_lines(actual);
  std::string expected_line;
  std::string actual_line;
  for (int line = 1;; ++line) {
    const bool more_expected = static_cast<bool>(std::getline(expected_lines, expected_line));
    const bool more_actual = static_cast<bool>(std::getline(actual_lines, actual_line));
    if (!more_expected && !more_actual) {
      return "";
    }
    if (more_expected != more_actual || expected_line != actual_line) {
      return "line " + std::to_string(line) +
             ": expected: " + (more_expected ? expected_line : "(end)") +
             ", actual: " + (more_actual ? actual_line : "(end)");
    }
  }
}

}  // namespace railyard
