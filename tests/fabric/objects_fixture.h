// SPDX-License-Identifier: GPL-2.0-only
// Holds all objects of a small fabric over tables made by hand, without a network around them.
#pragma once

#include "simulator/fabric/buffer/pause_frames.h"
#include "simulator/fabric/buffer/shared_buffers.h"
#include "simulator/fabric/fabric_part.h"
#include "simulator/fabric/flow_accounts.h"
#include "simulator/fabric/in_network/in_network_reduction.h"
#include "simulator/fabric/link/hold_monitor.h"
#include "simulator/fabric/link/link_delays.h"
#include "simulator/fabric/link/link_states.h"
#include "simulator/fabric/tables/path_table.h"
#include "simulator/fabric/tables/telemetry_table.h"
#include "tests/fabric/tables_fixture.h"

namespace railyard::testing {

class ObjectsFixture : public TablesFixture {
 protected:
  void SetUp() override {
    TablesFixture::SetUp();
    buffers_.Reset();
    pause_frames_.Reset();
    states_.ResetUp();
  }

  PathTable paths_;
  SharedBuffers buffers_{tables_, accounts_};
  TelemetryTable telemetry_{tables_};
  HoldMonitor holds_{tables_};
  PauseFrames pause_frames_{tables_};
  LinkStates states_{tables_};
  LinkDelays delays_;
  InNetworkReduction reduction_{tables_, paths_, telemetry_};
  FlowAccounts flows_{tables_};
  FabricPart part_{tables_, delays_};
};

}  // namespace railyard::testing
