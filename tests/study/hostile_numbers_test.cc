// SPDX-License-Identifier: GPL-2.0-only
// Every number and quantity that a file may state, with values that no field of its type holds and
// with the largest and smallest that it does: the loader refuses them at their place or takes them.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/scenario/load/scenario_loader.h"
#include "simulator/scenario/schedule_files/schedule_file_loader.h"
#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/study/study.h"
#include "simulator/study/study.pb.h"
#include "simulator/text_proto/text_proto.h"
#include "tests/text_proto/text_file.h"
#include "topologies/formats/fabric_argument_loader.h"
#include "topologies/formats/topology.pb.h"
#include "topologies/formats/topology_file_loader.h"
#include "topologies/platforms/platform.pb.h"
#include "topologies/prices/prices.h"
#include "topologies/prices/prices.pb.h"
#include "workloads/collectives/schedule.pb.h"
#include "workloads/plans/synthesis/plan_loader.h"
#include "workloads/plans/workload.pb.h"

namespace railyard {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

struct Value {
  const char* text;
  bool fits;  // the type, if not the field
};

// Returns values for a field's type; empty for types that are not numbers.
std::vector<Value> ValuesFor(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return {{"nan", false},   {"-nan", false},   {"inf", false},     {"-inf", false},
              {"1e309", false}, {"-1e309", false}, {"1.79e308", true}, {"-1.79e308", true},
              {"5e-324", true}, {"1e-400", true},  {"0", true},        {"-1", true}};
    case FieldDescriptor::CPPTYPE_UINT32:
      return {{"-1", false},  {"4294967296", false}, {"1e400", false},
              {"nan", false}, {"0", true},           {"4294967295", true}};
    case FieldDescriptor::CPPTYPE_UINT64:
      return {{"-1", false}, {"18446744073709551616", false}, {"1e400", false}, {"nan", false},
              {"0", true},   {"18446744073709551615", true}};
    case FieldDescriptor::CPPTYPE_INT32:
      return {{"2147483648", false},
              {"-2147483649", false},
              {"nan", false},
              {"2147483647", true},
              {"-2147483648", true}};
    case FieldDescriptor::CPPTYPE_INT64:
      return {{"9223372036854775808", false},
              {"-9223372036854775809", false},
              {"nan", false},
              {"9223372036854775807", true},
              {"-9223372036854775808", true}};
    case FieldDescriptor::CPPTYPE_STRING:
      // Durations, rates and sizes; of other texts, names that nothing has.
      return {{"\"nan\"", true},
              {"\"-1s\"", true},
              {"\"1e309s\"", true},
              {"\"9223372s\"", true},
              {"\"1e-30s\"", true},
              {"\"9223373s\"", true},
              {"\"0bps\"", true},
              {"\"18446744073.7Gbps\"", true},
              {"\"18446744074Gbps\"", true},
              {"\"0B\"", true},
              {"\"17179869183GiB\"", true},
              {"\"17179869184GiB\"", true}};
    default:
      return {};
  }
}

// Stands for the value in the text that protobuf prints.
constexpr uint32_t kMark = 1234567891;
std::string PutMark(Message& message, const FieldDescriptor& field) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const auto put = [&](auto set, auto add, auto value) {
    if (field.is_repeated()) {
      reflection.ClearField(&message, &field);
      (reflection.*add)(&message, &field, value);
    } else {
      (reflection.*set)(&message, &field, value);
    }
  };
  using Reflection = google::protobuf::Reflection;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      put(&Reflection::SetDouble, &Reflection::AddDouble, double{kMark});
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      put(&Reflection::SetUInt32, &Reflection::AddUInt32, kMark);
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      put(&Reflection::SetUInt64, &Reflection::AddUInt64, uint64_t{kMark});
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      put(&Reflection::SetInt32, &Reflection::AddInt32, static_cast<int32_t>(kMark));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      put(&Reflection::SetInt64, &Reflection::AddInt64, int64_t{kMark});
      break;
    default:
      put(&Reflection::SetString, &Reflection::AddString, std::to_string(kMark));
      return "\"" + std::to_string(kMark) + "\"";
  }
  return std::to_string(kMark);
}

using Load = std::function<bool(const std::string& path, Diagnostics& diagnostics)>;

class HostileNumbersTest : public ::testing::Test {
 protected:
  std::vector<std::string> left_alone_;  // messages
  std::string only_;                     // the message that is looked at; empty: all

  // Every field of every message that `base` has, and of those that it might have.
  void Try(const Message& base, const Load& load) {
    load_ = load;
    root_.reset(base.New());
    root_->CopyFrom(base);
    ASSERT_TRUE(Loads(Printed(), "")) << findings_ << Printed();
    Walk(*root_, base.GetDescriptor()->name(), 0);
    EXPECT_GT(fields_, 0u);
  }

 private:
  static constexpr int kDepthMax = 6;

  bool IsLeftAlone(const std::string& path) const {
    for (const std::string& left : left_alone_) {
      if (path == left) return true;
    }
    // Paths that lead to `only_` or lie below it are tried.
    const size_t common = std::min(path.size(), only_.size());
    return path.compare(0, common, only_, 0, common) != 0;
  }

  std::string Printed() const {
    std::string text;
    google::protobuf::TextFormat::PrintToString(*root_, &text);
    return text;
  }

  bool Loads(const std::string& text, const std::string& mark) {
    const TextFile file(text);
    Diagnostics diagnostics;
    const bool is_loaded = load_(file.path(), diagnostics);
    findings_ = diagnostics.ToString();
    EXPECT_EQ(is_loaded, !diagnostics.HasErrors()) << mark << "\n" << findings_ << text;
    return is_loaded;
  }

  void Walk(Message& message, const std::string& path, int depth) {
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *message.GetDescriptor()->field(i);
      const std::string at = path + "." + field.name();
      if (IsLeftAlone(at)) continue;
      // Another alternative in place of this one.
      const std::unique_ptr<Message> before(message.New());
      before->CopyFrom(message);
      if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
        if (!ValuesFor(field).empty()) TryField(message, field, at);
      } else if (depth < kDepthMax) {
        if (!field.is_repeated()) {
          Walk(*reflection.MutableMessage(&message, &field), at, depth + 1);
        } else if (reflection.FieldSize(message, &field) > 0) {
          for (int n = 0; n < reflection.FieldSize(message, &field); ++n) {
            Walk(*reflection.MutableRepeatedMessage(&message, &field, n), at, depth + 1);
          }
        } else {
          Walk(*reflection.AddMessage(&message, &field), at, depth + 1);
        }
      }
      message.CopyFrom(*before);
    }
  }

  [[noreturn]] void TryValues(const FieldDescriptor& field, const std::string& at,
                              const std::string& text, size_t begin, size_t size) {
    const rlimit memory = {uint64_t{4} << 30, uint64_t{4} << 30};
    setrlimit(RLIMIT_AS, &memory);
    alarm(20);
    for (const Value& value : ValuesFor(field)) {
      std::string stated = text;
      stated.replace(begin, size, value.text);
      std::fprintf(stderr, "\n%s: %s\n", at.c_str(), value.text);
      if (Loads(stated, at) && !value.fits) std::_Exit(1);
    }
    std::_Exit(HasFailure() ? 1 : 0);
  }

  // In a process of its own: a signal names the field, and no field takes all memory or time.
  void TryField(Message& message, const FieldDescriptor& field, const std::string& at) {
    ++fields_;
    const std::string mark = PutMark(message, field);
    const std::string text = Printed();
    ASSERT_NE(text.find(mark), std::string::npos) << at;
    EXPECT_EXIT(TryValues(field, at, text, text.find(mark), mark.size()),
                ::testing::ExitedWithCode(0), "")
        << at;
  }

  Load load_;
  std::unique_ptr<Message> root_;
  std::string findings_;
  size_t fields_ = 0;
};

template <typename Proto>
Proto Parsed(const std::string& text) {
  Proto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
  return proto;
}

constexpr const char* kSmall = "fabric { rail_optimized { servers: 2 gpus_per_server: 2 } }\n";
constexpr const char* kOne =
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"64KiB\" } } algorithm: RING }\n";

bool LoadsScenario(const std::string& path, Diagnostics& diagnostics) {
  return LoadScenario(path, {}, diagnostics) != nullptr;
}

// Covers the scenario's own fields and blocks; fabric and workload have tests of their own.
TEST_F(HostileNumbersTest, Settings) {
  left_alone_ = {"Scenario.fabric", "Scenario.workload", "Scenario.jobs", "Scenario.faults"};
  Try(Parsed<protos::Scenario>(std::string(kSmall) + kOne), LoadsScenario);
}

TEST_F(HostileNumbersTest, Programs) {
  left_alone_ = {"Scenario.workload.inline_plan"};
  only_ = "Scenario.workload";
  Try(Parsed<protos::Scenario>(
          std::string(kSmall) +
          "workload { program { collectives { kind: ALL_TO_ALL bytes: \"64KiB\" } } }\n"),
      LoadsScenario);
}

TEST_F(HostileNumbersTest, Jobs) {
  left_alone_ = {"Scenario.jobs.workload.inline_plan"};
  only_ = "Scenario.jobs";
  Try(Parsed<protos::Scenario>(
          std::string(kSmall) +
          "jobs { workload { program { ranks: 2 collectives { kind: ALL_REDUCE "
          "bytes: \"64KiB\" } } } }\n"),
      LoadsScenario);
}

class HostileFaultsTest : public HostileNumbersTest,
                          public ::testing::WithParamInterface<const char*> {};

TEST_P(HostileFaultsTest, AreRefusedOrTaken) {
  only_ = "Scenario.faults";
  Try(Parsed<protos::Scenario>(std::string(kSmall) + kOne + "faults { name: \"x\" " + GetParam() +
                               " }\n"),
      LoadsScenario);
}

constexpr const char* kFaults[] = {
    "kind: LINK_DOWN link: \"server1/nic1--leaf1\" at: \"1us\" until: \"2us\" "
    "repeat { period: \"5us\" count: 3 }",
    "kind: LINK_DOWN link: \"server1/nic1--leaf1\" at: \"1us\" until: \"1s\" "
    "by_chance { mean_between: \"1ms\" mean_repair: \"1us\" }",
    "kind: DEGRADE link: \"server1/nic1--leaf1\" at: \"1us\" rate_share: 0.5",
    "kind: LOSS link: \"server1/nic1--leaf1\" at: \"1us\" loss { probability: 0.01 }",
    "kind: DELAY link: \"server1/nic1--leaf1\" at: \"1us\" delay: \"1us\"",
    "kind: STRAGGLER device: \"server1/gpu1\" at: \"1us\" speed: 0.5",
    "kind: LINK_DOWN link: \"server1/nic1--leaf1\" until: \"20us\" "
    "when { number: 1 kind: ALL_REDUCE progress: 0.5 }",
    "kind: LINK_DOWN link: \"server*/nic*--leaf*\" draw { count: 1 } at: \"1us\" until: \"2us\"",
    "kind: SWITCH_REBOOT device: \"leaf1\" at: \"1us\" until: \"1ms\" training: \"100us\"",
    "kind: DEGRADE link: \"server0/gpu1--server0/nvswitch0\" lanes: 2 at: \"1us\"",
    "kind: LOSS link: \"server1/nic1--leaf1\" loss { bit_error_ratio: 3e-8 } at: \"1us\"",
    "kind: LOSS link: \"server1/nic1--leaf1\" at: \"1us\" "
    "loss { gilbert_elliott { to_bad: 0.001 to_good: 0.2 } }",
    "kind: LOSS link: \"server1/nic1--leaf1\" direction: FORWARD at: \"1us\" "
    "loss { packets { kind: DATA number: 100 } }",
    "kind: PAUSE_STORM device: \"server1/nic1\" at: \"1us\" until: \"2us\"",
    "kind: BACKGROUND_LOAD at: \"1us\" until: \"2us\" "
    "load { from: \"server0/gpu*\" to: \"server1/gpu0\" rate: \"50Gbps\" message: \"256KiB\" }",
};
INSTANTIATE_TEST_SUITE_P(Kinds, HostileFaultsTest, ::testing::ValuesIn(kFaults));

class HostileFabricsTest : public HostileNumbersTest,
                           public ::testing::WithParamInterface<const char*> {};

TEST_P(HostileFabricsTest, AreRefusedOrTaken) {
  only_ = std::string("Scenario.fabric.") +
          std::string(GetParam()).substr(0, std::string_view(GetParam()).find(' '));
  Try(Parsed<protos::Scenario>("fabric { " + std::string(GetParam()) + " }\n" + kOne),
      LoadsScenario);
}

constexpr const char* kFabrics[] = {
    "rail_optimized { servers: 2 gpus_per_server: 2 }",
    "fat_tree { servers { count: 2 } }",
    "leaf_spine { servers { count: 2 } }",
    "torus { servers { count: 2 gpus: 2 } dimensions: [2, 2] }",
    "hyperx { servers { count: 2 } dimensions: [2, 2] }",
    "jellyfish { servers { count: 2 } }",
    "dual_tor { servers { count: 2 gpus: 2 } }",
    "dragonfly { servers { count: 2 gpus: 2 } }",
    "slim_fly { servers { count: 2 gpus: 2 } }",
    ("direct_connect { servers { count: 4 gpus: 2 } degree: 2 "
     "demands { from: 0 to: 1 bytes: \"1MiB\" } }"),
    "optical { servers { count: 6 gpus: 1 } nics_per_switch: 1 }",
};
TEST(HostileFabricFamilies, AreAllTried) {
  const auto& fabric = *protos::Fabric::descriptor();
  int families = 0;
  for (int i = 0; i < fabric.field_count(); ++i) {
    if (fabric.field(i)->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) ++families;
  }
  EXPECT_EQ(static_cast<size_t>(families), std::size(kFabrics));
}
INSTANTIATE_TEST_SUITE_P(Families, HostileFabricsTest, ::testing::ValuesIn(kFabrics));

bool LoadsPlan(const std::string& path, Diagnostics& diagnostics) {
  return LoadPlanFile(path, {}, diagnostics).has_value();
}

TEST_F(HostileNumbersTest, Plans) {
  Try(Parsed<protos::Plan>("model { preset: \"gpt-2\" }\n"
                           "parallelism { tensor: 2 data: 2 }\n"
                           "compute { accelerator: \"h100-sxm\" utilisation: 0.4 "
                           "memory_utilisation: 0.8 }\n"
                           "training { sequence: 128 micro_batch: 1 micro_batches: 1 }\n"),
      LoadsPlan);
}

TEST_F(HostileNumbersTest, PlansOfInference) {
  Try(Parsed<protos::Plan>("model { preset: \"gpt-2\" }\n"
                           "parallelism { tensor: 2 }\n"
                           "compute { accelerator: \"h100-sxm\" utilisation: 0.4 "
                           "memory_utilisation: 0.8 }\n"
                           "inference { queries: 4 batch: 2 prompt_tokens: 16 output_tokens: 2 "
                           "arrivals { queries_per_second: 100 } }\n"),
      LoadsPlan);
}

// A model stated field by field, with experts, and times that are given.
TEST_F(HostileNumbersTest, PlansOfExperts) {
  Try(Parsed<protos::Plan>(
          "model { layers: 2 hidden: 64 heads: 4 vocabulary: 128\n"
          "  experts { count: 4 per_token: 2 feed_forward: 64 } }\n"
          "parallelism { data: 4 expert: 4 }\n"
          "compute { given { attention: \"1us\" feed_forward: \"1us\" embedding: \"1us\"\n"
          "  output_layer: \"1us\" backward_ratio: 2 optimizer: \"1us\" } }\n"
          "training { sequence: 64 micro_batch: 1 micro_batches: 1 }\n"
          "expert_routing { gate: ZIPF }\n"),
      LoadsPlan);
}

template <typename Proto>
Proto ParsedFile(const std::string& path) {
  std::ifstream file(std::string(RAILYARD_SOURCE_DIR) + path);
  return Parsed<Proto>({std::istreambuf_iterator<char>(file), {}});
}

class HostilePlatformsTest : public HostileNumbersTest,
                             public ::testing::WithParamInterface<const char*> {};

// Loaded, and two servers of it built.
TEST_P(HostilePlatformsTest, AreRefusedOrTaken) {
  Try(ParsedFile<protos::Platform>(std::string("/topologies/platforms/") + GetParam() +
                                   ".textproto"),
      [](const std::string& path, Diagnostics& diagnostics) {
        return LoadFabricArgument(path, diagnostics, 2).has_value();
      });
}
INSTANTIATE_TEST_SUITE_P(Shipped, HostilePlatformsTest,
                         ::testing::Values("dgx-h100", "dgx-1-v100", "pcie-8x3090"));

TEST_F(HostileNumbersTest, Prices) {
  Try(ParsedFile<protos::Prices>("/topologies/prices/public-2024.textproto"),
      [](const std::string& path, Diagnostics& diagnostics) {
        return LoadPrices(path, diagnostics).has_value();
      });
}

TEST_F(HostileNumbersTest, Algorithms) {
  Try(Parsed<protos::Schedule>(
          "collective: ALL_REDUCE ranks: 2 chunks: 2\n"
          "lanes { rank: 0\n"
          "  steps { chunk: 1 send_to: 1 load_local: true }\n"
          "  steps { chunk: 0 recv_from: 1 load_local: true reduce: true keep: true store: true }\n"
          "  steps { chunk: 0 send_to: 1 load_kept: true }\n"
          "  steps { chunk: 1 recv_from: 1 store: true } }\n"
          "lanes { rank: 1\n"
          "  steps { chunk: 0 send_to: 0 load_local: true }\n"
          "  steps { chunk: 1 recv_from: 0 load_local: true reduce: true keep: true store: true }\n"
          "  steps { chunk: 1 send_to: 0 load_kept: true }\n"
          "  steps { chunk: 0 recv_from: 0 store: true } }\n"),
      [](const std::string& path, Diagnostics& diagnostics) {
        return LoadScheduleFile(path, diagnostics) != nullptr;
      });
}

TEST_F(HostileNumbersTest, Studies) {
  Try(Parsed<protos::Study>("scenario: \"s.textproto\"\n"
                            "axes { name: \"t\" fields: \"nccl.IB_TIMEOUT\" values: \"18\" }\n"
                            "figures: \"collectives.stretch.max\"\n"),
      [](const std::string& path, Diagnostics& diagnostics) {
        return LoadStudy(path, diagnostics).has_value();
      });
}

TEST_F(HostileNumbersTest, Topologies) {
  Try(Parsed<protos::Topology>(
          "devices { name: \"s0/gpu0\" kind: GPU server: 0 local_index: 0 }\n"
          "devices { name: \"s0/gpu1\" kind: GPU server: 0 local_index: 1 }\n"
          "links { from: \"s0/gpu0\" to: \"s0/gpu1\" tier: NVLINK rate: \"100Gbps\" }\n"),
      [](const std::string& path, Diagnostics& diagnostics) {
        const auto file = LoadTextProto(path, protos::Topology(), {}, diagnostics);
        return file && LoadTopology(ProtoCursor(*file), diagnostics).has_value();
      });
}

}  // namespace
}  // namespace railyard
