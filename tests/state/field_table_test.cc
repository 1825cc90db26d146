// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/state/field_table.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/state/state_difference.h"
#include "simulator/state/state_registry.h"

namespace railyard {
namespace {

struct Progress {
  uint32_t expected = 0;
  uint32_t total = 0;

  static constexpr auto Fields() {
    return FieldTable("progress", field::Value("expected", &Progress::expected),
                      field::Count("total", &Progress::total));
  }
};

struct Sender {
  uint32_t next = 0;
  uint32_t end = 0;
  uint8_t retries = 0;
  bool is_up = true;
  double speed = 1;
  int64_t free_ps = 0;
  std::deque<int> turns{};
  uint64_t losses = 0;
  Progress progress{};
  std::string name{};

  static constexpr auto Fields() {
    return FieldTable(
        "sender", field::Follows("next", &Sender::next, &Sender::end),
        field::Count("end", &Sender::end), field::Value("retries", &Sender::retries),
        field::Quiescent("is_up", &Sender::is_up, true), field::Constant("speed", &Sender::speed),
        field::Instant("free_ps", &Sender::free_ps), field::Quiescent("turns", &Sender::turns),
        field::Unrepeatable("losses", &Sender::losses),
        field::Nested("progress", &Sender::progress),
        field::NoState("name", &Sender::name, "it is printed and nothing else"));
  }
};

struct Senders final : StateOwner {
  std::vector<Sender> senders{3};
  std::string state_name() const override { return "senders"; }
  void Visit(StateArchive& archive) override {
    archive.Named("how many").Constant(senders.size());
    archive.Section();
    VisitFields(senders, archive);
  }
};

struct Taken {
  StateSnapshot state;
  CountSnapshot counts;
  bool is_quiescent = false;
  uint64_t unrepeatable = 0;
};
Taken Take(StateOwner& owner, int64_t now_ps = 0) {
  StateArchive archive(now_ps);
  owner.Visit(archive);
  return {archive.TakeState(), archive.TakeCounts(), archive.is_quiescent(),
          archive.unrepeatable()};
}

// Kinds of members that counting must not stumble over.
struct Assorted {
  std::optional<Progress> optional;
  std::vector<uint32_t> vector;
  std::array<uint32_t, 3> array{};
  std::function<void()> function;
  std::string text;
  bool bit : 1 = false;
  uint8_t bits : 6 = 0;
  Progress nested;
  const uint32_t* pointer = nullptr;
};
struct alignas(64) Aligned {
  uint8_t one = 0;
  uint32_t two = 0;
};

TEST(FieldTableTest, CountsTheMembersOfAggregates) {
  EXPECT_EQ(CountMembers<Progress>(), 2u);
  EXPECT_EQ(CountMembers<Sender>(), 10u);
  EXPECT_EQ(CountMembers<Assorted>(), 9u);
  EXPECT_EQ(CountMembers<Aligned>(), 2u);
}

TEST(FieldTableTest, TakesAndPutsBack) {
  Senders owner;
  Sender& sender = owner.senders[1];
  sender.retries = 3;
  sender.free_ps = 1'500;
  sender.progress.expected = 7;
  sender.progress.total = 40;
  sender.name = "before";
  Taken taken = Take(owner, 1'000);
  EXPECT_TRUE(taken.is_quiescent);
  EXPECT_EQ(taken.state.instants_ahead_ps, 500);

  sender = {
      .retries = 9, .free_ps = 9'999, .progress = {.expected = 1, .total = 2}, .name = "after"};
  StateArchive put(taken.state, 20'000);
  owner.Visit(put);
  EXPECT_EQ(sender.retries, 3);
  EXPECT_EQ(sender.free_ps, 20'500);
  EXPECT_EQ(sender.progress.expected, 7u);
  EXPECT_EQ(sender.progress.total, 2u);  // counts are added to, not put back
  EXPECT_EQ(sender.name, "after");
}

TEST(FieldTableTest, CountsAreAddedToAndFollowed) {
  Senders owner;
  const Taken before = Take(owner);
  owner.senders[2] = {.next = 6, .end = 6, .progress = {.total = 2}};
  const CountChanges changes = ChangesBetween(before.counts, Take(owner).counts);
  owner.senders[2] = {.next = 10, .end = 10, .progress = {.total = 20}};
  StateArchive add(changes);
  owner.Visit(add);
  EXPECT_EQ(owner.senders[2].end, 16u);
  EXPECT_EQ(owner.senders[2].next, 16u);
  EXPECT_EQ(owner.senders[2].progress.total, 22u);
  EXPECT_EQ(owner.senders[0].end, 0u);
}

TEST(FieldTableTest, KnowsWhenThereIsNoRest) {
  const auto is_quiescent = [](const Sender& sender) {
    Senders owner;
    owner.senders[0] = sender;
    return Take(owner).is_quiescent;
  };
  EXPECT_TRUE(is_quiescent({.next = 5, .end = 5}));
  EXPECT_FALSE(is_quiescent({.next = 4, .end = 5}));
  EXPECT_FALSE(is_quiescent({.is_up = false}));
  EXPECT_FALSE(is_quiescent({.turns = {1}}));
  Senders owner;
  owner.senders[1].losses = 4;
  EXPECT_EQ(Take(owner).unrepeatable, 4u);
  EXPECT_TRUE(Take(owner).is_quiescent);
}

// Bit fields cannot be pointed to.
struct Packed {
  bool is_active : 1 = false;
  uint8_t sink : 7 = 0;

  static constexpr auto Fields() {
    return FieldTable(
        "packed", field::Bits<Packed>("is_active", [](const Packed& of) { return !of.is_active; }),
        field::Bits<Packed>("sink", [](const Packed&) { return true; }));
  }
};

TEST(FieldTableTest, LooksAtBits) {
  for (const bool is_active : {false, true}) {
    Packed packed{.is_active = is_active};
    StateArchive archive(0);
    VisitFields(packed, archive);
    EXPECT_EQ(archive.is_quiescent(), !is_active);
  }
}

// --- Members that are in no snapshot -------------------------------------------------------------

struct Ends {
  const int* source = nullptr;
  std::optional<uint16_t> port{};
  std::vector<bool> is_down{};
};
struct Wire {
  Ends ends{};
  double speed = 1;
  std::deque<int> turns{};
  int64_t event_ps = -1;
  uint32_t sent = 0;
  uint32_t done = 0;
  uint8_t kind : 3 = 0;
  uint32_t users = 0;

  static constexpr auto Fields() {
    return FieldTable(
        "wire", field::Fixed("ends", &Wire::ends), field::Fixed("speed", &Wire::speed),
        field::Idle("turns", &Wire::turns), field::Idle("event_ps", &Wire::event_ps, -1),
        field::NoState("sent", &Wire::sent, "it counts on from there"),
        field::IdleIf("done", &Wire::done, [](const Wire& wire) { return wire.done == wire.sent; }),
        field::FixedBits<Wire>("kind", [](const Wire& wire) { return wire.kind; }),
        field::Quiescent("users", &Wire::users));
  }
};

struct Wires final : StateOwner {
  std::vector<Wire> wires{3};
  std::string state_name() const override { return "wires"; }
  void Visit(StateArchive& archive) override { CheckFields(wires, archive); }
};

class FieldCheckTest : public ::testing::Test {
 protected:
  FieldCheckTest() {
    registry_.Add(senders_);
    registry_.Add(owner_);
  }
  FixedMembers Now() {
    FieldCheck check;
    StateArchive archive(check);
    registry_.Visit(archive);
    return check.TakeFixed();
  }
  std::string ChangedSince(const FixedMembers& before) {
    FieldCheck check(before);
    StateArchive archive(check);
    registry_.Visit(archive);
    return check.DescribeChanged();
  }
  std::string Busy() {
    FieldCheck check;
    StateArchive archive(check);
    registry_.Visit(archive);
    return check.DescribeBusy();
  }

  Wires owner_;
  Senders senders_;
  StateRegistry registry_;
};

TEST_F(FieldCheckTest, AFixedMemberThatChangesIsNamed) {
  const int source = 0;
  const std::vector<std::pair<std::string, std::function<void(Wire&)>>> changes = {
      {"ends", [&](Wire& wire) { wire.ends.source = &source; }},
      {"ends", [](Wire& wire) { wire.ends.port = 0; }},
      {"ends", [](Wire& wire) { wire.ends.is_down = {false}; }},
      {"speed", [](Wire& wire) { wire.speed = 2; }},
      {"kind", [](Wire& wire) { wire.kind = 5; }}};
  for (const auto& [field, change] : changes) {
    owner_.wires = std::vector<Wire>(3);
    const FixedMembers before = Now();
    EXPECT_EQ(ChangedSince(before), "");
    change(owner_.wires[1]);
    EXPECT_EQ(ChangedSince(before), "wires.wire[1]." + field + " has changed");
  }
}

TEST_F(FieldCheckTest, TheFirstFewAreNamed) {
  const FixedMembers before = Now();
  for (Wire& wire : owner_.wires) wire.speed = wire.kind = 2;
  EXPECT_EQ(ChangedSince(before),
            "wires.wire[0].speed has changed; wires.wire[0].kind has changed; "
            "wires.wire[1].speed has changed; wires.wire[1].kind has changed; and 2 more");
}

// Numbers of records may have another meaning then.
TEST_F(FieldCheckTest, AnOwnerThatHasOpenedARecordIsNotCompared) {
  const FixedMembers before = Now();
  owner_.wires.insert(owner_.wires.begin(), Wire{.speed = 7});
  EXPECT_EQ(ChangedSince(before), "");
}

TEST_F(FieldCheckTest, AMemberThatIsNotIdleIsNamed) {
  EXPECT_EQ(Busy(), "");
  owner_.wires[0].sent = owner_.wires[0].done = 9;
  EXPECT_EQ(Busy(), "");
  owner_.wires[0].turns = {1};
  owner_.wires[1].event_ps = 0;
  owner_.wires[2].done = 1;
  EXPECT_EQ(Busy(),
            "wires.wire[0].turns is not as at rest; wires.wire[1].event_ps is not as at rest; "
            "wires.wire[2].done is not as at rest");
}

TEST_F(FieldCheckTest, AConditionOfSnapshotsIsCheckedAsWell) {
  owner_.wires[2].users = 1;
  senders_.senders[1].next = 4;
  EXPECT_EQ(Busy(),
            "senders.sender[1].next is not as at rest; wires.wire[2].users is not as at rest");
}

// Snapshots have neither kind, even if they visit the record.
TEST_F(FieldCheckTest, SnapshotsAreAsWithoutThem) {
  Wire wire;
  const auto take = [&] {
    StateArchive archive(0);
    VisitFields(wire, archive);
    EXPECT_TRUE(archive.is_quiescent());
    return archive.TakeState();
  };
  const StateSnapshot before = take();
  wire = {.speed = 2, .turns = {1}, .event_ps = 5, .done = 3, .kind = 1};
  EXPECT_EQ(take(), before);
  EXPECT_THAT(before.values, ::testing::IsEmpty());
  StateArchive put(before, 0);
  VisitFields(wire, put);
  EXPECT_EQ(wire.speed, 2);
  EXPECT_EQ(wire.event_ps, 5);
}

struct NamesOneTwice {
  uint32_t first = 0;
  uint32_t second = 0;

  static constexpr auto Fields() {
    return FieldTable("record", field::Value("first", &NamesOneTwice::first),
                      field::Value("second", &NamesOneTwice::first));
  }
};
static_assert(NamesEveryMember<Sender>() && !NamesEveryMember<NamesOneTwice>());

TEST(StateDifferenceTest, NamesOwnersRecordsAndFields) {
  Senders owner;
  StateRegistry registry;
  registry.Add(owner);
  const StateWalk walk = [&](StateArchive& archive) { registry.Visit(archive); };
  const Taken before = Take(owner);
  owner.senders[1].retries = 2;
  owner.senders[2].progress.expected = 5;
  owner.senders[2].free_ps = 70;
  const Taken after = Take(owner);
  EXPECT_EQ(DescribeDifference(walk, after.state, before.state),
            "senders.sender[1].retries is 2, not 0; senders.sender[2].free_ps is 70, not 0; "
            "senders.sender[2].progress.expected is 5, not 0");
  EXPECT_EQ(DescribeDifference(walk, before.state, before.state), "");
  owner.senders.resize(2);
  EXPECT_THAT(DescribeDifference(walk, Take(owner).state, before.state),
              ::testing::StartsWith("senders.how many is 2, not 3; senders.sender[1].retries"));
}

TEST(StateDifferenceTest, NamesCountsWhateverTheirWidth) {
  Senders owner;
  const StateWalk walk = [&](StateArchive& archive) { owner.Visit(archive); };
  const Taken before = Take(owner);
  for (Sender& sender : owner.senders) sender.end = sender.next = sender.progress.total = 12;
  const CountChanges changes = ChangesBetween(before.counts, Take(owner).counts);
  CountChanges others = changes;
  others.erase(others.begin());
  EXPECT_EQ(DescribeDifference(walk, changes, others), "sender[0].end grew by 12, not by 0");
  EXPECT_EQ(DescribeDifference(walk, changes, {}),
            "sender[0].end grew by 12, not by 0; sender[0].progress.total grew by 12, not by 0; "
            "sender[1].end grew by 12, not by 0; sender[1].progress.total grew by 12, not by 0; "
            "and 2 more");
}

// A place of a section that is gone is called by its number.
TEST(StateDifferenceTest, NumbersWhatHasNoName) {
  Senders owner;
  const StateWalk walk = [&](StateArchive& archive) { owner.Visit(archive); };
  StateSnapshot state = Take(owner).state;
  const StateSnapshot before = state;
  state.values.emplace_back(4u << kSectionShift | 9, 3);
  EXPECT_EQ(DescribeDifference(walk, state, before), "number 9 of section 4 is 3, not 0");
}

// Returns what the compiler prints, and its status.
struct Compilation {
  bool succeeds = false;
  std::string output;
};
Compilation Compile(const std::string& flags) {
  const std::string command = std::string(RAILYARD_CXX_COMPILER) + " -std=c++20 -fsyntax-only -I" +
                              RAILYARD_SOURCE_DIR + ' ' + flags + ' ' + RAILYARD_SOURCE_DIR +
                              "/tests/state/grown_record.cc 2>&1";
  Compilation compilation;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {false, "popen failed"};
  std::array<char, 4096> buffer{};
  while (const size_t read = fread(buffer.data(), 1, buffer.size(), pipe)) {
    compilation.output.append(buffer.data(), read);
  }
  compilation.succeeds = pclose(pipe) == 0;
  return compilation;
}

TEST(FieldTableTest, ARecordThatGrowsWithoutItsTableDoesNotCompile) {
  const Compilation complete = Compile("");
  EXPECT_TRUE(complete.succeeds) << complete.output;
  const Compilation grown = Compile("-DGROWN");
  EXPECT_FALSE(grown.succeeds);
  EXPECT_NE(grown.output.find("does not name every member"), std::string::npos) << grown.output;
}

}  // namespace
}  // namespace railyard
