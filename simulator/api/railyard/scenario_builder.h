// SPDX-License-Identifier: GPL-2.0-only
// Builds a scenario: fabric, job, settings and faults. A built scenario has passed the checks that
// a scenario's file passes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "railyard/field_value.h"
#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

class FabricGraph;
struct Scenario;  // one run, checked and complete
struct Trace;     // what a job's ranks call

// These types are the blocks of a scenario. An absent optional has the default of docs/scenario.md.
namespace scenario {

// Describes servers with one NVLink island each. NICs of equal index are cabled to the leaf of
// their rail.
struct RailOptimized {
  uint32_t servers = 1;
  std::optional<uint32_t> gpus_per_server{};
  std::optional<uint32_t> servers_per_leaf{};
  std::optional<uint32_t> spines{};
  std::optional<DataRate> nic_rate{};
  std::optional<DataRate> leaf_spine_rate{};
};

// Describes a number of equal servers of a platform (`railyard list platforms`), or of a platform's
// file.
struct Servers {
  std::string platform{};
  uint32_t count = 1;
  std::optional<uint32_t> gpus{};       // per server
  std::optional<uint32_t> nics{};       // per server
  std::optional<DataRate> nic_rate{};   // of each port
  std::optional<uint32_t> nic_ports{};  // per NIC
  std::optional<std::string> cpu{};     // "INTEL", "AMD" or "ARM"
};

enum class Operation : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kGather,
  kScatter,
  kSendRecv,
  kPermutation,
};

// Describes a collective that all ranks call or, with `groups_of`, each group of that many
// consecutive ranks.
struct Collective {
  Operation operation = Operation::kAllReduce;
  DataSize size{};  // as nccl-tests counts it
  std::optional<uint32_t> root{};
  std::optional<uint32_t> repeat{};
  std::optional<uint32_t> groups_of{};
  std::optional<uint32_t> stride{};
  std::optional<Duration> compute_before{};
  std::optional<bool> in_place{};
};

// Describes a fault. One of `link`, `device` and `domain` names its target; docs/faults.md has the
// names. Further fields are set by their paths: Set("faults[0].loss.probability", 1e-4).
struct Fault {
  enum class Kind : uint8_t {
    kLinkDown,
    kSwitchReboot,
    kDegrade,
    kLoss,
    kDelay,
    kPauseStorm,
    kBackgroundLoad,
    kStraggler,
  };
  std::string name{};
  Kind kind = Kind::kLinkDown;
  std::string link{};
  std::string device{};
  std::string domain{};
  std::optional<Duration> at{};     // since time zero
  std::optional<Duration> until{};  // absent: permanent
};

}  // namespace scenario

// Builds a scenario from typed blocks and fields. A builder can be copied, so that similar
// scenarios are made from one. Mistakes are kept until Build(), which reports all of them at once;
// no member throws because of a wrong value.
class ScenarioBuilder {
 public:
  // `name` is used in results and at the beginning of findings.
  explicit ScenarioBuilder(const std::string& name);
  // Returns a builder with the contents of a scenario's file. `sets` are edits as `railyard run
  // --set` takes them, "faults[0].until=5ms". Throws EnvironmentError if a file that exists cannot
  // be read.
  static ScenarioBuilder Read(const std::string& path, const std::vector<std::string>& sets = {});
  ScenarioBuilder(const ScenarioBuilder& other);
  ScenarioBuilder(ScenarioBuilder&& other) noexcept;
  ScenarioBuilder& operator=(ScenarioBuilder other) noexcept;
  ~ScenarioBuilder();

  // Sets the fabric; the last call wins.
  ScenarioBuilder& Preset(const std::string& name);
  ScenarioBuilder& FabricFile(const std::string& path);
  ScenarioBuilder& Fabric(const scenario::RailOptimized& fabric);
  ScenarioBuilder& Fabric(const std::vector<scenario::Servers>& rail_optimized_servers);
  // Sets the fabric to a graph (topologies/graph/) that a program built in this tree has made; an
  // installation has no headers of graphs. Every generator can be set by its fields:
  // Set("fabric.dragonfly.groups", 9).
  ScenarioBuilder& Fabric(std::shared_ptr<const FabricGraph> graph);

  // Sets the job; the last source wins. Add() appends a collective, which runs after those that
  // were added before.
  ScenarioBuilder& Add(const scenario::Collective& collective);
  ScenarioBuilder& NcclLogs(const std::vector<std::string>& paths);
  ScenarioBuilder& TraceFile(const std::string& path);
  ScenarioBuilder& PlanFile(const std::string& path);
  // Sets the job to a trace in memory (traces/trace/trace.h): a captured job's
  // (railyard/import_files.h), or one that the program has made.
  ScenarioBuilder& Calls(std::shared_ptr<const Trace> calls);

  // Adds a fault after those that have been added.
  ScenarioBuilder& Add(const scenario::Fault& fault);

  // Sets any field by its path in docs/scenario.md, e.g. Set("nccl.IB_TIMEOUT", 18). Enclosing
  // messages are created; an index one past the end appends. Relative paths of files are relative
  // to the current directory.
  ScenarioBuilder& Set(std::string_view field, const FieldValue& value = {});
  // Returns true if the field or block has been set.
  bool Has(std::string_view field) const;
  // Returns all that has been set as the text of a scenario's file. A graph or a trace in memory
  // has no text.
  std::string ToText() const;

  // Returns null if there is any error; `diagnostics` then has every finding, by field. Throws
  // EnvironmentError if a file that exists cannot be read.
  std::shared_ptr<const Scenario> Build(Diagnostics& diagnostics) const;

 private:
  struct Made;

  explicit ScenarioBuilder(std::unique_ptr<Made> made);
  int Size(std::string_view repeated_field) const;

  std::unique_ptr<Made> made_;
};

// Reads a scenario file. `sets` are edits as `railyard run --set` takes them,
// "faults[0].until=5ms". Returns null with findings as Build() does.
//
// A scenario does not keep the calls from which its job was made: Run() needs none, and those of a
// long trace are large. If `calls` is not null, it receives them, or null with several jobs.
std::shared_ptr<const Scenario> ReadScenario(const std::string& path,
                                             const std::vector<std::string>& sets,
                                             Diagnostics& diagnostics,
                                             std::shared_ptr<const Trace>* calls = nullptr);

}  // namespace railyard
