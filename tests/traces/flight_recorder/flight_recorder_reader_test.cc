// SPDX-License-Identifier: GPL-2.0-only
#include "traces/flight_recorder/flight_recorder_reader.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/diagnostics/diagnostics.h"
#include "tests/traces/flight_recorder/flight_recorder_text.h"
#include "traces/import/import.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

// Pickles as torch::jit::Pickler writes them: protocol 2, everything in the memo.
class Pickle {
 public:
  static std::string Text(const std::string& text) {
    return "X" + Bytes(text.size(), 4) + text + Memo();
  }
  static std::string Number(uint32_t number) { return "J" + Bytes(number, 4); }
  static std::string List(const std::vector<std::string>& items) {
    return "]" + Memo() + "(" + Joined(items) + "e";
  }
  static std::string Tuple(const std::vector<std::string>& items) {
    return "(" + Joined(items) + "t" + Memo();
  }
  static std::string Dictionary(const std::vector<std::string>& keys_and_values) {
    return "}" + Memo() + "(" + Joined(keys_and_values) + "u";
  }
  static std::string File(const std::string& object) { return "\x80\x02" + object + "."; }

 private:
  static std::string Bytes(uint64_t number, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xff);
    return text;
  }
  static std::string Memo() {
    static uint32_t next = 0;
    return "r" + Bytes(next++, 4);
  }
  static std::string Joined(const std::vector<std::string>& items) {
    std::string text;
    for (const std::string& item : items) text += item;
    return text;
  }
};

std::string PickledDump() {
  using P = Pickle;
  const std::string sizes = P::List({P::List({P::Number(3), P::Number(4)})});
  const std::string entry = P::Dictionary({P::Text("record_id"),
                                           P::Number(0),
                                           P::Text("process_group"),
                                           P::Tuple({P::Text("0"), P::Text("default_pg")}),
                                           P::Text("collective_seq_id"),
                                           P::Number(1),
                                           P::Text("profiling_name"),
                                           P::Text("nccl:all_reduce"),
                                           P::Text("input_sizes"),
                                           sizes,
                                           P::Text("input_dtypes"),
                                           P::List({P::Text("Float")}),
                                           P::Text("output_sizes"),
                                           sizes,
                                           P::Text("state"),
                                           P::Text("completed"),
                                           P::Text("time_discovered_started_ns"),
                                           "N",
                                           P::Text("retired"),
                                           "\x88"});
  return P::File(P::Dictionary(
      {P::Text("version"), P::Text("2.5"), P::Text("pg_config"),
       P::Dictionary({P::Text("0"), P::Dictionary({P::Text("ranks"), P::Text("[0, 1]")})}),
       P::Text("entries"), P::List({entry})}));
}

TEST(FlightRecorderReaderTest, JsonAndPicklesSayTheSame) {
  for (const std::string& dump : {Dump(Entry(0, 1, "completed")), PickledDump()}) {
    const Imported imported = Import({dump});
    ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
    EXPECT_EQ(imported.import.report.format, "flight-recorder");
    EXPECT_EQ(imported.import.trace->rank_count, 2u);
    const ImportedKind& kind =
        imported.import.report.by_kind[static_cast<size_t>(CollectiveKind::kAllReduce)];
    EXPECT_EQ(kind.calls, 1u);
    EXPECT_EQ(kind.bytes, 48u);
    EXPECT_EQ(imported.import.trace->operations[GlobalRank{0}][0].count, 12u);
  }
}

TEST(FlightRecorderReaderTest, CallsAreMatchedByTheirSequenceNumbers) {
  const Imported imported =
      Import({Dump(Entry(0, 4, "completed") + "," + Entry(1, 5, "completed")),
              Dump(Entry(0, 5, "completed") + "," + Entry(1, 6, "completed"))});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.report.calls_imported(), 2u);
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kIncompleteOnRank).count, 2u);
}

// Rank 0 sends 12 elements and receives 4: parts of 6 and 6 cannot be. Calls after it are kept.
TEST(FlightRecorderReaderTest, ExchangesOfUnequalPartsAreDroppedAlone) {
  const auto exchange = [](int in, int out) {
    return fmt::format(
        R"j({{"record_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 1,
"profiling_name": "nccl:all_to_all", "input_sizes": [[{}, 4]], "input_dtypes": ["Float"],
"output_sizes": [[{}, 4]], "output_dtypes": ["Float"], "state": "completed", "is_p2p": false}})j",
        in, out);
  };
  const Imported imported = Import({Dump(exchange(12, 4) + "," + Entry(1, 2, "completed")),
                                    Dump(exchange(8, 16) + "," + Entry(1, 2, "completed"))});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.report.calls_imported(), 2u);
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kSizesNotRecorded).count, 2u);
  // Each has as many as it gives, but not as many as the other: their parts are not equal either.
  const Imported uneven = Import({Dump(exchange(12, 12) + "," + Entry(1, 2, "completed")),
                                  Dump(exchange(8, 8) + "," + Entry(1, 2, "completed"))});
  ASSERT_TRUE(uneven.import.trace) << uneven.diagnostics.ToString();
  EXPECT_EQ(uneven.import.report.calls_imported(), 2u);
  EXPECT_EQ(uneven.import.report.DroppedFor(CallDropReason::kSizesNotRecorded).count, 2u);
}

// Rank 0's ring has lost the first of three Sends, and its last one has not ended.
TEST(FlightRecorderReaderTest, MessagesOfARingAreMatchedFromItsEnd) {
  const auto message = [](int record, const char* name, int width, const char* state) {
    const std::string size = fmt::format("[[3, {}]]", width);
    return Replaced(Replaced(Message(record, name, state), "[[3, 4]]", size), "[[3, 4]]", size);
  };
  const Imported imported = Import(
      {Dump(message(5, "send 0->1", 2, "completed") + "," +
            message(6, "send 0->1", 3, "completed") + "," + message(7, "send 0->1", 5, "started")),
       Dump(message(0, "recv 1<-0", 1, "completed") + "," +
            message(1, "recv 1<-0", 2, "completed") + "," +
            message(2, "recv 1<-0", 3, "completed"))});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  const Trace& trace = *imported.import.trace;
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    ASSERT_EQ(trace.operations[GlobalRank{rank}].size(), 2u);
    EXPECT_EQ(trace.operations[GlobalRank{rank}][0].count, 6u);
    EXPECT_EQ(trace.operations[GlobalRank{rank}][1].count, 9u);
  }
  EXPECT_THAT(imported.import.report.ToString(), HasSubstr("the capture of its peer begins after"));
}

// batch_isend_irecv: its Sends and Recvs and the "coalesced" entry behind them have one p2p_seq_id.
TEST(FlightRecorderReaderTest, MessagesOfABatchAreAGroup) {
  const auto message = [](int record, const std::string& name, int number) {
    return Replaced(Message(record, name, "completed"), "\"is_p2p\": true",
                    fmt::format("\"is_p2p\": true, \"p2p_seq_id\": {}", number));
  };
  const auto rank = [&](int self, int other) {
    const std::string recv = fmt::format("recv {}<-{}", self, other);
    const std::string send = fmt::format("send {}->{}", self, other);
    return Dump(message(0, recv, 1) + "," + message(1, send, 1) + "," + message(2, "coalesced", 1) +
                "," + message(3, self == 0 ? send : recv, 2) + "," + message(4, recv, 3) + "," +
                message(5, send, 3) + "," + message(6, "coalesced", 3));
  };
  const Imported imported = Import({rank(0, 1), rank(1, 0)});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  for (uint32_t r = 0; r < 2; ++r) {
    std::vector<uint32_t> groups;
    for (const TraceOperation& operation : imported.import.trace->operations[GlobalRank{r}]) {
      groups.push_back(operation.group);
    }
    EXPECT_EQ(groups, (std::vector<uint32_t>{1, 1, 0, 2, 2}));
  }
}

// The entries of a batch have no events of their own and stay "scheduled" (PyTorch issue 137969):
// the "coalesced" entry knows. Rank 0's ring has lost its first batch.
TEST(FlightRecorderReaderTest, ABatchHasTheStateOfItsEnd) {
  const auto rank = [&](int first, const std::string& last, int self, int other) {
    std::string entries;
    for (int batch = first; batch < 4; ++batch) {
      const std::string state = batch == 3 ? last : "completed";
      entries +=
          Numbered(3 * batch, fmt::format("recv {}<-{}", self, other), batch, "scheduled") + "," +
          Numbered(3 * batch + 1, fmt::format("send {}->{}", self, other), batch, "scheduled") +
          "," + Numbered(3 * batch + 2, "coalesced", batch, state) + (batch < 3 ? "," : "");
    }
    return Dump(entries);
  };
  const Imported done = Import({rank(1, "completed", 0, 1), rank(0, "completed", 1, 0)});
  ASSERT_TRUE(done.import.trace) << done.diagnostics.ToString();
  EXPECT_EQ(done.import.report.calls_imported(), 12u);
  EXPECT_EQ(done.import.report.DroppedFor(CallDropReason::kIncompleteOnRank).count, 2u);
  const Imported hung = Import({rank(1, "started", 0, 1), rank(0, "completed", 1, 0)});
  EXPECT_FALSE(hung.diagnostics.HasErrors()) << hung.diagnostics.ToString();
}

// So do collectives that are coalesced. The AllReduce behind them is what the job hangs in.
TEST(FlightRecorderReaderTest, CoalescedCollectivesHaveTheStateOfTheirEnd) {
  const std::string coalesced = Entry(0, 1, "scheduled") + "," + Entry(1, 1, "scheduled") + "," +
                                Replaced(Entry(2, 1, "completed"), "all_reduce", "coalesced");
  const Imported imported = Import(
      {Dump(coalesced + "," + Entry(3, 2, "started")), Dump(coalesced)}, {.hang_trace_path = "t"});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_THAT(imported.import.hang_scenario, HasSubstr("rank 0 waits for rank 1"));
  EXPECT_EQ(imported.import.report.calls_seen(), 5u);
}

// Before PyTorch 2.7 they are not recorded by themselves.
TEST(FlightRecorderReaderTest, AGroupWithoutItsCollectivesIsCounted) {
  const std::string before = Entry(0, 1, "completed");
  const std::string group = Replaced(Entry(1, 2, "started"), "all_reduce", "coalesced");
  const Imported imported =
      Import({Dump(before + "," + group), Dump(before)}, {.hang_trace_path = "t"});
  EXPECT_EQ(imported.import.report.calls_seen(), 3u);
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kSizesNotRecorded).count, 1u);
  EXPECT_THAT(imported.diagnostics.ToString(), HasSubstr("its calls are not recorded"));
}

// all_to_all of lists: 4 elements to rank 0 and 8 to rank 1; rank 1 gives 8 and 16.
TEST(FlightRecorderReaderTest, ListsOfTensorsAreParts) {
  const auto exchange = [](const char* inputs, const char* outputs) {
    return DumpOf("nccl:all_to_all", inputs, outputs);
  };
  const Imported imported =
      Import({exchange("[[4], [8]]", "[[4], [8]]"), exchange("[[8], [16]]", "[[8], [16]]")});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  uint64_t sent = 0;
  for (const TraceOperation& operation : imported.import.trace->operations[GlobalRank{1}]) {
    if (operation.kind == CollectiveKind::kSend) sent += operation.count;
  }
  EXPECT_EQ(sent, 24u);
}

// scatter()'s inputs are the part of each rank, its outputs all parts at the root and none
// elsewhere; other captures have it the other way round.
TEST(FlightRecorderReaderTest, AScatterIsOfOnePart) {
  const auto scatter = [](const char* inputs, const char* outputs) {
    return DumpOf("nccl:scatter", inputs, outputs);
  };
  for (const bool is_reversed : {false, true}) {
    const char* const root = "[[100], [100]]";
    const Imported imported = is_reversed
                                  ? Import({scatter(root, "[[100]]"), scatter("[[0]]", "[[100]]")})
                                  : Import({scatter("[[100]]", root), scatter("[[100]]", "[[0]]")});
    ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
    EXPECT_EQ(imported.import.trace->operations[GlobalRank{1}][0].count, 100u);
    EXPECT_EQ(imported.import.trace->operations[GlobalRank{0}][0].kind, CollectiveKind::kScatter);
  }
}

// A "coalesced" entry then does not say which of the messages before it were in its batch.
TEST(FlightRecorderReaderTest, MessagesWithoutNumbersAreNoGroup) {
  const Imported imported = Import(
      {Dump(Message(0, "send 0->1", "completed") + "," + Message(1, "send 0->1", "completed") +
            "," + Message(2, "coalesced", "completed")),
       Dump(Message(0, "recv 1<-0", "completed") + "," + Message(1, "recv 1<-0", "completed") +
            "," + Message(2, "coalesced", "completed"))});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_EQ(imported.import.trace->operations[GlobalRank{r}].size(), 2u);
    for (const TraceOperation& operation : imported.import.trace->operations[GlobalRank{r}]) {
      EXPECT_EQ(operation.group, 0u);
    }
  }
}

TEST(FlightRecorderReaderTest, RootsThatAreAssumedAreReported) {
  const std::string broadcast = DumpOf("nccl:broadcast", "[[100]]", "[[100]]");
  const Imported imported = Import({broadcast, broadcast});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_THAT(imported.import.report.ToString(), HasSubstr("roots are rank 0 of their groups"));
}

// Only the root has a tensor for each rank.
TEST(FlightRecorderReaderTest, TheRootOfAGatherOrScatterIsTheRankWithAllParts) {
  const auto gather = [](const char* outputs) { return DumpOf("nccl:gather", "[[100]]", outputs); };
  const auto scatter = [](const char* inputs) { return DumpOf("nccl:scatter", inputs, "[[100]]"); };
  const char* const all = "[[100], [100]]";
  for (const auto& dumps :
       {std::vector{gather("[]"), gather(all)}, std::vector{scatter("[]"), scatter(all)}}) {
    const Imported imported = Import(dumps);
    ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
    for (GlobalRank rank{0}; rank < 2; ++rank) {
      EXPECT_EQ(imported.import.trace->operations[GlobalRank{rank}][0].root, 1u);
      EXPECT_EQ(imported.import.trace->operations[GlobalRank{rank}][0].count, 100u);
    }
    EXPECT_THAT(imported.import.report.ToString(),
                ::testing::Not(HasSubstr("roots are rank 0 of their groups")));
  }
}

TEST(FlightRecorderReaderTest, ASecondDumpOfARankIsAnError) {
  const std::string directory = ::testing::TempDir() + "flight_recorder_second_dump";
  for (const char* part : {"a", "b"}) {
    std::filesystem::create_directories(directory + "/" + part);
    std::ofstream(directory + "/" + part + "/nccl_trace_rank_0") << Dump(Entry(0, 1, "completed"));
  }
  Diagnostics diagnostics;
  EXPECT_FALSE(ImportFiles({directory}, kAutoFormat, {}, diagnostics).trace);
  std::filesystem::remove_all(directory);
  EXPECT_THAT(diagnostics.ToString(),
              HasSubstr("b/nccl_trace_rank_0: error: is a second dump of rank 0 (expected one"));
}

TEST(FlightRecorderReaderTest, PicklesThatDoMoreThanHoldDataAreErrors) {
  using P = Pickle;
  const std::string proto = "\x80\x02";
  std::string doubling = proto + "]r" + std::string("\0\0\0\0", 4);
  for (int i = 0; i < 60; ++i) {
    // Each list holds the one before twice.
    const std::string before = "j" + std::string(1, static_cast<char>(i)) + std::string(3, '\0');
    const std::string after = "r" + std::string(1, static_cast<char>(i + 1)) + std::string(3, '\0');
    doubling += fmt::format("]({0}{0}e{1}", before, after);
  }
  const std::string laughs = proto + "}" + P::Text("version") + doubling.substr(2) + "0" +
                             std::string("j\x28\0\0\0", 5) + "s.";
  struct Case {
    std::string pickle;
    std::string finding;
  };
  const std::vector<Case> cases = {
      {proto + "cos\nsystem\n(X\x04" + std::string(3, '\0') + "truetR.", "imports code"},
      {proto + "c__main__\nX\n.", "imports code"},
      {proto + "}(R.", "calls code"},
      {proto + "}\x81.", "calls code"},
      {proto + "Q.", "opcode 0x51"},
      {proto + "}", "ends early"},
      {proto + "X\xff\xff\xff\x7fzzz", "more than"},
      {proto + "X\xff\xff\xff\x01zzz", "ends early"},
      {proto + "e.", "no mark"},
      {proto + "0.", "empty stack"},
      {proto + "h\x05.", "unknown"},
      {proto + "].", "no dictionary"},
      {"\x80\x02" + std::string(200, ']') + ".", "other than one object"},
      {PickledDump().substr(0, 200), "ends early"},
  };
  for (const Case& c : cases) {
    const Imported imported = Import({c.pickle});
    EXPECT_FALSE(imported.import.trace) << c.finding;
    EXPECT_THAT(imported.diagnostics.ToString(), HasSubstr(c.finding));
    EXPECT_THAT(imported.diagnostics.ToString(), HasSubstr("error: byte ")) << c.finding;
  }
  EXPECT_FALSE(Import({laughs}).import.trace);
}

TEST(FlightRecorderReaderTest, HostileJsonIsFindingsOrCountedDrops) {
  const std::string entry = Entry(0, 1, "completed");
  std::string huge = entry;
  huge.replace(huge.find("[[3, 4]]"), 8, "[[4294967296, 4294967296]]");
  std::string nameless = entry;
  nameless.replace(nameless.find("profiling_name"), 14, "profiling_gnome");
  struct Case {
    std::string text;
    std::string finding;
  };
  const std::vector<Case> cases = {{Dump(entry).substr(0, 250), "the file ends early"},
                                   {Dump(std::string(1000, '[')), "nested too deeply"},
                                   {Dump(huge), "out of range"},
                                   {Dump(nameless), "malformed record"},
                                   {Dump(""), "holds no collective call"}};
  for (const Case& c : cases) {
    ImportOptions options;
    Imported imported;
    imported.import = Import({c.text}).import;
    EXPECT_FALSE(imported.import.trace) << c.finding;
    EXPECT_THAT(Import({c.text}).diagnostics.ToString(), HasSubstr(c.finding));
  }
  const Imported twice = Import({Dump(entry + "," + entry)});
  ASSERT_TRUE(twice.import.trace);
  EXPECT_EQ(twice.import.report.DroppedFor(CallDropReason::kRecordedTwice).count, 1u);
}

TEST(FlightRecorderReaderTest, NumbersThatCannotBeAreCounted) {
  const std::string entry = Entry(0, 1, "completed");
  const Imported duration =
      Import({Dump(Replaced(entry, "\"state\"", "\"duration_ms\": NaN, \"state\""))});
  ASSERT_TRUE(duration.import.trace) << duration.diagnostics.ToString();
  EXPECT_THAT(duration.import.report.ToString(),
              HasSubstr("1 calls state a duration that is none"));
  for (const auto& [sizes, reason] :
       {std::pair("[[10000000000000000000000000]]", CallDropReason::kOutOfRange),
        std::pair("[[3, -4]]", CallDropReason::kMalformedRecord),
        std::pair("[[1.5]]", CallDropReason::kMalformedRecord)}) {
    const Imported imported = Import({Dump(Replaced(entry, "[[3, 4]]", sizes))});
    EXPECT_FALSE(imported.import.trace) << sizes;
    EXPECT_EQ(imported.import.report.DroppedFor(reason).count, 1u) << sizes;
  }
}

}  // namespace
}  // namespace railyard
