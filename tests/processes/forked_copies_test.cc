// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/processes/forked_copies.h"

#include <csignal>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/processes/interruption.h"

namespace railyard {
namespace {

struct Outcome {
  int status = -1;
  std::string text;
};

std::vector<Outcome> OutcomesOf(size_t count, size_t at_once,
                                const std::function<void(size_t, Handover&)>& work) {
  std::vector<Outcome> outcomes(count);
  RunInCopies(count, at_once, work, [&outcomes](const EndedCopy& copy) {
    Outcome& outcome = outcomes[copy.index];
    outcome.status = copy.status;
    if (!copy.handover.Take(outcome.text)) outcome.text = "nothing";
  });
  return outcomes;
}

TEST(RunInCopiesTest, EachCopyHandsOverWhatItFound) {
  const std::string shared = "copy ";
  const auto outcomes = OutcomesOf(
      5, 2, [&shared](size_t index, Handover& to) { to.Put(shared + std::to_string(index)); });
  for (size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_EQ(outcomes[i].status, 0);
    EXPECT_EQ(outcomes[i].text, "copy " + std::to_string(i));
  }
}

TEST(RunInCopiesTest, AnExceptionAndASignalAreStatuses) {
  const auto outcomes = OutcomesOf(2, 2, [](size_t index, Handover& to) {
    if (index == 0) throw std::runtime_error("of the work");
    to.Put(std::string("before the signal"));
    raise(SIGKILL);
  });
  EXPECT_EQ(outcomes[0].status, 1);
  EXPECT_EQ(outcomes[0].text, "nothing");
  EXPECT_EQ(outcomes[1].status, 128 + SIGKILL);
  EXPECT_EQ(outcomes[1].text, "before the signal");
}

// With one copy at a time each has ended before the next begins.
TEST(RunInCopiesTest, NoMoreCopiesRunThanAllowed) {
  uint64_t ended = 0;
  std::vector<uint64_t> ended_before;
  RunInCopies(
      3, 1, [&ended](size_t /*index*/, Handover& to) { to.Put(ended); },
      [&](const EndedCopy& copy) {
        EXPECT_TRUE(copy.handover.Take(ended_before.emplace_back()));
        ++ended;
      });
  EXPECT_THAT(ended_before, ::testing::ElementsAre(0, 1, 2));
}

TEST(RunInCopiesTest, ASignalEndsAllCopies) {
  const Interruptible interruptible;
  raise(SIGTERM);
  EXPECT_THROW(OutcomesOf(2, 2, [](size_t, Handover&) { pause(); }), Interrupted);
}

TEST(RunInCopiesTest, NoWorkIsNoCopy) {
  EXPECT_TRUE(OutcomesOf(0, 1, [](size_t, Handover&) {}).empty());
}

}  // namespace
}  // namespace railyard
