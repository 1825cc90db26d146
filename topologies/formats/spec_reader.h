// SPDX-License-Identifier: GPL-2.0-only
// Reads a generator's message into its spec. Absent fields keep the spec's defaults; a field that
// cannot be read is a finding at its place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/text_proto/text_proto.h"
#include "topologies/generators/direct_connect.h"
#include "topologies/graph/server.h"
#include "topologies/platforms/platform.h"

namespace railyard {

class SpecReader {
 public:
  // `diagnostics` must outlive this.
  SpecReader(ProtoCursor cursor, Diagnostics& diagnostics);

  void Number(const char* field, uint32_t& value);
  void Number(const char* field, std::optional<uint32_t>& value);
  void Seed(const char* field, uint64_t& value);
  void Flag(const char* field, bool& value);
  void Rate(const char* field, uint64_t& value_bps);
  void Delay(const char* field, int64_t& value_ps);
  // Reads the fields `traffic` and `demands` of a railyard.protos.DirectConnect. `network` must
  // have its servers already.
  void Demands(const NetworkSpec& network, std::vector<ServerDemand>& demands);
  void Links(const char* field, LinkSpec& links);                         // a railyard.protos.Links
  void Dimensions(const char* field, std::vector<uint32_t>& dimensions);  // repeated uint32
  void Servers(const char* field, std::vector<ServerSpec>& servers);      // railyard.protos.Servers
  // Reads the fields with which all generators' messages except RailOptimized begin; `servers` is
  // required.
  void Network(NetworkSpec& network);

  bool Has(const char* field) const { return cursor_.Has(field); }
  void Missing(const char* field, std::string_view expected);
  void Error(const char* field, std::string what);
  // Reports the problems as findings at their fields. Returns true if the message has no error at
  // all.
  bool Accept(const std::vector<SpecProblem>& problems);

 private:
  ServerSpec ReadServers(const ProtoCursor& cursor);
  Platform ReadPlatform(const ProtoCursor& cursor);  // as named in railyard.protos.Servers
  void ReadNvlink(const ProtoCursor& cursor, ServerSpec& spec);
  ServerSpec ReadNcclTopology(const ProtoCursor& cursor);
  void ReportAt(const ProtoCursor& cursor, std::string_view field, const std::string& what);

  const ProtoCursor cursor_;
  Diagnostics& diagnostics_;
  const int errors_before_;
};

}  // namespace railyard
