// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <ns3/type-id.h>

#include "simulator/cli/command.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/scenario/models/model_attributes.h"

namespace railyard {
namespace {

constexpr const char* kPrefix = "railyard::";

// Names of ns-3's types of this project that have something to tell, without the prefix, sorted.
std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  for (uint16_t i = 0; i < ns3::TypeId::GetRegisteredN(); ++i) {
    const ns3::TypeId type = ns3::TypeId::GetRegistered(i);
    if (type.GetGroupName() != "Railyard") continue;
    if (type.GetAttributeN() == 0 && type.GetTraceSourceN() == 0) continue;
    names.push_back(type.GetName().substr(std::string(kPrefix).size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Attributes that are no field of their model's block.
struct SetElsewhere {
  const char* type;
  const char* attribute;
  const char* field;
};
constexpr std::array<SetElsewhere, 4> kSetElsewhere = {
    {{"railyard::FabricNetwork", "Seed", "seed"},
     {"railyard::Nic", "CongestionControl", "nic.congestion_control"},
     {"railyard::Nic", "IbTimeout", "nccl.IB_TIMEOUT"},
     {"railyard::Nic", "IbRetryCount", "nccl.IB_RETRY_CNT"}}};

// "nic.mtu_bytes"; what else sets the attribute, where no field does.
std::string SetBy(const std::string& type, const std::string& attribute) {
  for (const ModelBlock& block : ModelBlocks()) {
    if (block.type != type) continue;
    for (int i = 0; i < block.fields->field_count(); ++i) {
      const auto found = AttributeOfField(type, *block.fields->field(i));
      if (found && found->name == attribute) {
        return block.path + "." + block.fields->field(i)->name();
      }
    }
  }
  for (const SetElsewhere& other : kSetElsewhere) {
    if (type == other.type && attribute == other.attribute) return other.field;
  }
  return "C++ only";
}

// In lines of at most 96 characters, four in.
std::string Wrapped(const std::string& text) {
  constexpr size_t kWidth = 92;
  std::string lines;
  size_t start = 0;
  while (start < text.size()) {
    size_t end = text.size();
    if (end - start > kWidth) {
      const size_t space = text.rfind(' ', start + kWidth);
      end = space == std::string::npos || space <= start ? start + kWidth : space;
    }
    lines += "    " + text.substr(start, end - start) + "\n";
    start = end == text.size() ? end : end + 1;
  }
  return lines;
}

void PrintModel(const std::string& name) {
  const std::string full_name = kPrefix + name;
  const ns3::TypeId type = ns3::TypeId::LookupByName(full_name);
  fmt::print("{}\n", full_name);
  for (size_t i = 0; i < type.GetAttributeN(); ++i) {
    const ns3::TypeId::AttributeInformation attribute = type.GetAttribute(i);
    std::string value =
        WithUnit(attribute, attribute.originalInitialValue->SerializeToString(attribute.checker));
    if (value.empty()) value = "none";
    const std::string range = RangeOf(attribute);
    fmt::print("  {} = {}{}; in a scenario: {}\n", attribute.name, value,
               range.empty() ? "" : fmt::format(" ({})", range), SetBy(full_name, attribute.name));
    fmt::print("{}", Wrapped(attribute.help));
  }
  for (size_t i = 0; i < type.GetTraceSourceN(); ++i) {
    const ns3::TypeId::TraceSourceInformation source = type.GetTraceSource(i);
    fmt::print("  trace source {}: {}\n", source.name, source.callback);
    fmt::print("{}", Wrapped(source.help));
  }
}

class HelpCommand : public Command {
 public:
  explicit HelpCommand(CLI::App& program)
      : Command(program.add_subcommand("help", "Print the attributes of the models")),
        program_(program),
        models_(parser()->add_subcommand(
            "models",
            "Attributes and trace sources of the models that a scenario sets, with units, defaults "
            "and sources")) {
    models_->add_option("NAME", name_, "Name of one model, e.g. Switch");
  }

  ExitStatus Run() override {
    if (!models_->parsed()) {
      fmt::print("{}", program_.help());
      return kExitDone;
    }
    const std::vector<std::string> names = ModelNames();
    if (!name_) {
      for (const std::string& name : names) {
        PrintModel(name);
        if (name != names.back()) fmt::print("\n");
      }
      return kExitDone;
    }
    const std::string name =
        name_->starts_with(kPrefix) ? name_->substr(std::string(kPrefix).size()) : *name_;
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      fmt::print(stderr, "railyard: error: {}\n", UnknownName("model", name, names));
      return kExitInput;
    }
    PrintModel(name);
    return kExitDone;
  }

 private:
  const CLI::App& program_;
  CLI::App* const models_;
  std::optional<std::string> name_;
};

}  // namespace

std::unique_ptr<Command> MakeHelpCommand(CLI::App& program) {
  return std::make_unique<HelpCommand>(program);
}

}  // namespace railyard
