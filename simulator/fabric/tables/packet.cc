// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/tables/packet.h"

namespace railyard {

const char* DropReasonName(DropReason reason) {
  switch (reason) {
    case DropReason::kLinkDown:
      return "LINK_DOWN";
    case DropReason::kNoRoute:
      return "NO_ROUTE";
    case DropReason::kOutOfSequence:
      return "OUT_OF_SEQUENCE";
    case DropReason::kDuplicate:
      return "DUPLICATE";
    case DropReason::kBufferFull:
      return "BUFFER_FULL";
    case DropReason::kHeadroomFull:
      return "HEADROOM_FULL";
    case DropReason::kBitError:
      return "BIT_ERROR";
    case DropReason::kQueuePairError:
      return "QUEUE_PAIR_ERROR";
  }
  return "";
}

}  // namespace railyard
