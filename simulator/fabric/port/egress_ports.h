// SPDX-License-Identifier: GPL-2.0-only
// Implements egress ports in both forms, and the holds of their data: pauses and missing credit.
//
// A port that is a plain FIFO knows a packet's arrival at the far end when the packet joins it,
// which needs one event per hop (short form). A port whose data may be paused, lacks credit or is
// overtaken also needs an event for each departure (general form): control and data wait, one
// packet is in service, and its departure starts the next. Ports change between the forms as
// needed; results do not depend on the form.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/fabric/buffer/channel_accounts.h"
#include "simulator/fabric/buffer/pause_frames.h"
#include "simulator/fabric/buffer/shared_buffers.h"
#include "simulator/fabric/link/hold_monitor.h"
#include "simulator/fabric/tables/fabric_tables.h"
#include "simulator/fabric/tables/telemetry_table.h"

namespace railyard {

class EgressPorts {
 public:
  // All must outlive this.
  EgressPorts(FabricTables& tables, ChannelAccounts& accounts, SharedBuffers& buffers,
              HoldMonitor& holds, TelemetryTable& telemetry)
      : tables_(tables),
        accounts_(accounts),
        buffers_(buffers),
        holds_(holds),
        telemetry_(telemetry) {}

  // --- Packets -----------------------------------------------------------------------------------
  // Puts an admitted packet behind those that its port holds, in the form the port can take.
  void Send(PacketId index);
  // Changes the port to the general form, with departure events. May move packets.
  void LeaveShortForm(LinkId link);
  // Does the same for every port of the buffer that has something to send.
  void LeaveShortForms(BufferId buffer);
  // Ends the service of the packet that has left its port. Resume() must follow.
  void FinishService(LinkId link);
  // Continues after the end of a hold, in the form that the port may take.
  void Resume(LinkId link);
  // Recomputes the times of waiting packets after a change of the link's rate. Resume() must
  // follow.
  void RetimeWaiting(LinkId link);

  // --- Holds. Functions that may end a hold return whether they have released a link out of a NIC
  // or GPU, which nothing holds any more.
  // Applies a pause frame at the channel's sender.
  bool Obey(PauseFrame frame);
  // Starts or ends a pause of the link's data in all classes, independently of pause frames.
  bool SetStorm(LinkId link, bool storms);
  // Must be called when credit returns to a channel whose port waits for it.
  bool WakeForCredit(VirtualChannelId channel);
  bool IsPaused(LinkId link) const {
    const Port* const port = tables_.FindPort(link);
    return port != nullptr && port->paused_classes != 0;
  }
  // Returns the duration, up to now, of pauses that have not ended.
  int64_t OpenPausePs(const Port& port) const;

 private:
  // Returns whether a packet waits behind the one in service, in a port of the short form.
  bool SomethingWaits(LinkId link) const;
  void SendInShortForm(PacketId index) {
    Packet& packet = tables_.packets[index];
    tables_.SendInShortForm(index, packet, tables_.links[packet.link]);
  }
  bool MayReturn(LinkId link, const Port& port) const;
  void ReturnToShortForm(LinkId link, Port& port);
  void Append(Port& port, PacketId index);
  PacketId PopControl(Port& port);
  PacketId PopData(Port& port, uint32_t lossless_class);
  // Starts the next packet that may be sent. Precondition: none is in service.
  void StartNext(LinkId link, Port& port);
  void Start(LinkId link, Port& port, PacketId index);
  bool SetPaused(LinkId link, uint32_t lossless_class, bool paused);
  void BeginHold(VirtualChannelId channel);
  bool EndHold(LinkId link);

  FabricTables& tables_;
  ChannelAccounts& accounts_;
  SharedBuffers& buffers_;
  HoldMonitor& holds_;
  TelemetryTable& telemetry_;
  std::vector<PacketId> leaving_;  // LeaveShortForm's
};

}  // namespace railyard
