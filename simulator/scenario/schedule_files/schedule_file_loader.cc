// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/schedule_files/schedule_file_loader.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/checked_reading.h"
#include "simulator/scenario/schedule_files/msccl_loader.h"
#include "simulator/scenario/schedule_files/mscclpp_plan.h"
#include "simulator/scenario/schedule_files/mscclpp_runner.h"
#include "simulator/text_proto/text_proto.h"
#include "workloads/collectives/explicit_check.h"
#include "workloads/collectives/schedule.pb.h"

namespace railyard {
namespace {

CollectiveKind KindOf(protos::Schedule::Collective collective) {
  switch (collective) {
    case protos::Schedule::ALL_GATHER:
      return CollectiveKind::kAllGather;
    case protos::Schedule::REDUCE_SCATTER:
      return CollectiveKind::kReduceScatter;
    case protos::Schedule::BROADCAST:
      return CollectiveKind::kBroadcast;
    case protos::Schedule::REDUCE:
      return CollectiveKind::kReduce;
    case protos::Schedule::ALL_TO_ALL:
      return CollectiveKind::kAllToAll;
    default:
      return CollectiveKind::kAllReduce;
  }
}

Protocol ProtocolOf(protos::Schedule::Protocol protocol) {
  switch (protocol) {
    case protos::Schedule::LL:
      return Protocol::kLl;
    case protos::Schedule::LL128:
      return Protocol::kLl128;
    default:
      return Protocol::kSimple;
  }
}

// Loads XML of MSCCL, or JSON of MSCCL++.
std::shared_ptr<const ExplicitAlgorithm> LoadOther(const std::string& path, const std::string& text,
                                                   Diagnostics& diagnostics) {
  if (text[text.find_first_not_of(" \t\n\v\f\r")] == '<') {
    return LoadMsccl(path, text, diagnostics);
  }
  auto plan = ParseMscclppPlan(path, text, diagnostics);
  return plan ? RunMscclppPlan(path, *std::move(plan), diagnostics) : nullptr;
}

// Returns the whole file if it begins as XML or JSON does, perhaps behind a byte order mark and
// blanks; else an empty text.
std::string TextOfMsccl(const std::string& path) {
  constexpr size_t kTextBytesMax = size_t{256} << 20;
  std::ifstream file = OpenToRead(path);
  std::string text;
  for (char mark : {'\xef', '\xbb', '\xbf'}) {
    if (file.peek() == static_cast<unsigned char>(mark)) file.get();
  }
  while (std::isspace(file.peek()) != 0) text.push_back(static_cast<char>(file.get()));
  if (file.peek() != '<' && file.peek() != '{') return {};
  std::vector<char> buffer(size_t{1} << 20);
  while (text.size() < kTextBytesMax && file.read(buffer.data(), std::ssize(buffer))) {
    text.append(buffer.data(), buffer.size());
  }
  CheckReading(file, path);
  text.append(buffer.data(), static_cast<size_t>(file.gcount()));
  return text;
}

class ScheduleFileLoader {
 public:
  ScheduleFileLoader(const ProtoCursor& cursor, Diagnostics& diagnostics)
      : cursor_(cursor), diagnostics_(diagnostics) {}

  std::shared_ptr<const ExplicitAlgorithm> Load() {
    const int errors_before = diagnostics_.error_count();
    LoadHead();
    if (diagnostics_.error_count() > errors_before) return nullptr;
    for (int i = 0; i < cursor_.Size("lanes"); ++i) LoadLane(i);
    if (cursor_.Size("lanes") == 0) cursor_.Missing(diagnostics_, "lanes", "those of every rank");
    if (diagnostics_.error_count() > errors_before || cursor_.IsDoubtfulSelf()) return nullptr;
    CheckMeaning();
    return diagnostics_.error_count() > errors_before ? nullptr : algorithm_;
  }

 private:
  uint32_t Number(const ProtoCursor& cursor, const char* field, uint32_t default_value,
                  uint32_t min, uint32_t max) {
    return static_cast<uint32_t>(cursor.Number(diagnostics_, field, default_value, min, max));
  }

  void LoadHead() {
    const auto& message = cursor_.As<protos::Schedule>();
    if (message.collective() == protos::Schedule::COLLECTIVE_UNSPECIFIED) {
      cursor_.Missing(diagnostics_, "collective",
                      "ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST or REDUCE");
    }
    if (!cursor_.Has("ranks")) cursor_.Missing(diagnostics_, "ranks", "how many take part");
    algorithm_->kind = KindOf(message.collective());
    algorithm_->protocol = ProtocolOf(message.protocol());
    algorithm_->rank_count = Number(cursor_, "ranks", 2, 2, kAlgorithmRanksMax);
    algorithm_->chunk_count = Number(cursor_, "chunks", 1, 1, kAlgorithmChunksMax);
    algorithm_->root = RankIndex{Number(cursor_, "root", 0, 0, algorithm_->rank_count - 1)};
    const bool has_root = algorithm_->kind == CollectiveKind::kBroadcast ||
                          algorithm_->kind == CollectiveKind::kReduce;
    if (cursor_.Has("root") && !has_root) {
      cursor_.Error(diagnostics_, "root",
                    fmt::format("{} has none (expected no root, or BROADCAST or REDUCE)",
                                CollectiveKindName(algorithm_->kind)));
    }
  }

  void LoadLane(int index) {
    const ProtoCursor lane = cursor_.Child("lanes", index);
    if (!lane.Has("rank")) lane.Missing(diagnostics_, "rank", "whose steps these are");
    if (lane.Size("steps") == 0) lane.Missing(diagnostics_, "steps", "one or more");
    const RankIndex rank{Number(lane, "rank", 0, 0, algorithm_->rank_count - 1)};
    const uint32_t channel = Number(lane, "channel", 0, 0, kAlgorithmChannelsMax - 1);
    algorithm_->channel_count = std::max(algorithm_->channel_count, channel + 1);
    std::vector<ExplicitStep> steps;
    for (int i = 0; i < lane.Size("steps"); ++i) steps.push_back(LoadStep(lane.Child("steps", i)));
    ClaimPeers(lane, rank, channel, index);
    algorithm_->lanes[{rank, channel}].push_back(std::move(steps));
    index_of_[{rank, channel}].push_back(index);
  }

  ExplicitStep LoadStep(const ProtoCursor& cursor) {
    const uint64_t chunks = algorithm_->BlockCount() * algorithm_->chunk_count;
    ExplicitStep loaded;
    loaded.chunk = Number(cursor, "chunk", 0, 0,
                          static_cast<uint32_t>(std::min<uint64_t>(chunks - 1, UINT32_MAX)));
    const auto peer = [&](const char* field) {
      if (!cursor.Has(field)) return kNoPeer;
      return static_cast<int32_t>(Number(cursor, field, 0, 0, algorithm_->rank_count - 1));
    };
    loaded.step.recv_from = peer("recv_from");
    loaded.step.send_to = peer("send_to");
    loaded.step.load_local = cursor.Flag("load_local", false);
    loaded.step.load_kept = cursor.Flag("load_kept", false);
    loaded.step.reduce = cursor.Flag("reduce", false);
    loaded.step.keep = cursor.Flag("keep", false);
    loaded.step.store = cursor.Flag("store", false);
    return loaded;
  }

  // No other lane of the rank and channel may use a connection.
  void ClaimPeers(const ProtoCursor& lane, RankIndex rank, uint32_t channel, int index) {
    for (const char* field : {"recv_from", "send_to"}) {
      for (int i = 0; i < lane.Size("steps"); ++i) {
        const ProtoCursor step = lane.Child("steps", i);
        if (!step.Has(field)) continue;
        const RankIndex peer{Number(step, field, 0, 0, algorithm_->rank_count - 1)};
        const auto [at, is_new] = owner_of_.try_emplace({field, rank, channel, peer}, index);
        if (is_new || at->second == index) continue;
        step.Error(diagnostics_, field,
                   fmt::format("lanes[{}] does so too: which of them gets a message is open "
                               "(expected one lane, or another channel)",
                               at->second));
        return;
      }
    }
  }

  void CheckMeaning() {
    SchedulePlace place;
    const std::string wrong = WhatIsWrong(algorithm_, place);
    if (!wrong.empty()) Report(place, wrong);
  }

  void Report(const SchedulePlace& place, const std::string& what) {
    const auto lanes = index_of_.lower_bound({place.lane.rank, place.lane.channel});
    if (lanes == index_of_.end() || lanes->first.first != place.lane.rank) {
      cursor_.Error(diagnostics_, "ranks", what);
    } else if (place.step) {
      const ProtoCursor lane = cursor_.Child("lanes", lanes->second[place.lane.lane]);
      lane.Error(diagnostics_, "steps", what, static_cast<int>(*place.step));
    } else {
      cursor_.Error(diagnostics_, "lanes", what, lanes->second.front());
    }
  }

  const ProtoCursor cursor_;
  Diagnostics& diagnostics_;
  std::shared_ptr<ExplicitAlgorithm> algorithm_ = std::make_shared<ExplicitAlgorithm>();
  // Lanes by their numbers in the file.
  std::map<std::pair<RankIndex, uint32_t>, std::vector<int>> index_of_;
  std::map<std::tuple<std::string, RankIndex, uint32_t, RankIndex>, int> owner_of_;
};

}  // namespace

std::shared_ptr<const ExplicitAlgorithm> LoadScheduleFile(const std::string& path,
                                                          Diagnostics& diagnostics) {
  if (const std::string why = WhyNotAFile(path); !why.empty()) {
    diagnostics.Error({.file = path}, "",
                      why + (why.ends_with(')') ? "" : " (expected a schedule)"));
    return nullptr;
  }
  if (const std::string text = TextOfMsccl(path); !text.empty()) {
    return LoadOther(path, text, diagnostics);
  }
  const auto file = LoadTextProto(path, protos::Schedule(), {}, diagnostics);
  if (!file || !file->mistakes.empty()) return nullptr;
  return ScheduleFileLoader(ProtoCursor(*file), diagnostics).Load();
}

}  // namespace railyard
