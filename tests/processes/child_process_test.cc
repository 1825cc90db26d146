// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/processes/child_process.h"

#include <csignal>
#include <filesystem>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

#include "simulator/processes/interruption.h"
#include "simulator/processes/temporary_directory.h"

namespace railyard {
namespace {

TEST(OutputOfTest, HasStatusAndOutputErrorsIncluded) {
  const ProgramEnd end = OutputOf({"sh", "-c", "echo a; echo 'b c' >&2; exit 3"});
  EXPECT_EQ(end.status, 3);
  EXPECT_EQ(end.output, "a\nb c\n");
  EXPECT_EQ(end.OneLine(), "a;b c");
}

TEST(OutputOfTest, WordsAreNotReadByAShell) {
  EXPECT_EQ(OutputOf({"printf", "%s", "$HOME 'a'  *"}).output, "$HOME 'a'  *");
}

TEST(OutputOfTest, OutputMayExceedAPipe) {
  const ProgramEnd end = OutputOf({"head", "-c", "1000000", "/dev/zero"});
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.output.size(), 1'000'000u);
}

TEST(OutputOfTest, ThereIsNothingToRead) { EXPECT_EQ(OutputOf({"cat"}).output, ""); }

TEST(OutputOfTest, RunsInADirectory) {
  const TemporaryDirectory directory;
  EXPECT_EQ(OutputOf({"sh", "-c", "echo text > file"}, directory.File("")).status, 0);
  EXPECT_TRUE(std::filesystem::exists(directory.File("file")));
}

TEST(OutputOfTest, SaysIfItCannotBeStarted) {
  const ProgramEnd no_program = OutputOf({"no-such-program"});
  EXPECT_EQ(no_program.status, kNotStarted);
  EXPECT_EQ(no_program.output, "cannot be started: No such file or directory");
  EXPECT_EQ(OutputOf({"true"}, "/no/such/directory").status, kNotStarted);
}

TEST(OutputOfTest, ASignalIsTheStatusOfAShell) {
  EXPECT_EQ(OutputOf({"sh", "-c", "kill -KILL $$"}).status, 128 + SIGKILL);
}

// Jobs of Slurm must be cancelled although a signal has been noted.
TEST(OutputOfTest, WaitsWhateverSignalIsNoted) {
  const Interruptible interruptible;
  raise(SIGTERM);
  EXPECT_EQ(OutputOf({"sh", "-c", "sleep 0.1; echo done"}).output, "done\n");
  EXPECT_EQ(TakeInterruption(), SIGTERM);
}

TEST(ChildProcessTest, AForkedCopyEndsWithItsStatus) {
  ChildProcess copy;
  if (copy.Fork("a copy")) _exit(7);
  EXPECT_EQ(copy.Wait(), 7);
  EXPECT_FALSE(copy.is_running());
}

}  // namespace
}  // namespace railyard
