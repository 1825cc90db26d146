// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/replayable.h"

#include <array>

#include <fmt/format.h>

namespace railyard {
namespace {

constexpr std::array kReplayable = {
    ReplayChoice{Algorithm::kRing, Protocol::kLl},
    ReplayChoice{Algorithm::kRing, Protocol::kLl128},
    ReplayChoice{Algorithm::kRing, Protocol::kSimple},
    ReplayChoice{Algorithm::kTree, Protocol::kLl},
    ReplayChoice{Algorithm::kTree, Protocol::kLl128},
    ReplayChoice{Algorithm::kTree, Protocol::kSimple},
    ReplayChoice{Algorithm::kCollnetDirect, Protocol::kSimple},
    ReplayChoice{Algorithm::kCollnetChain, Protocol::kSimple},
    ReplayChoice{Algorithm::kNvls, Protocol::kSimple},
    ReplayChoice{Algorithm::kNvlsTree, Protocol::kSimple},
    ReplayChoice{Algorithm::kPat, Protocol::kSimple},
    ReplayChoice{Algorithm::kDirect, Protocol::kSimple},
    ReplayChoice{Algorithm::kHalvingDoubling, Protocol::kSimple},
};

}  // namespace

std::span<const ReplayChoice> ReplayableChoices() { return kReplayable; }

ReplayChoice StatedChoice(const JobCollective& collective) {
  const ReplayChoice forced{collective.forced_algorithm, collective.forced_protocol};
  // A protocol that a log states belongs to its algorithm.
  if (forced.algorithm != Algorithm::kUnstated) return forced;
  return {collective.logged_algorithm,
          forced.protocol != Protocol::kUnstated ? forced.protocol : collective.logged_protocol};
}

std::string ReplayName(const ReplayChoice& choice) {
  if (choice.protocol == Protocol::kUnstated) return std::string(AlgorithmName(choice.algorithm));
  if (choice.algorithm == Algorithm::kUnstated) return std::string(ProtocolName(choice.protocol));
  return fmt::format("{}/{}", AlgorithmName(choice.algorithm), ProtocolName(choice.protocol));
}

std::string P2pReplayName(const JobCollective& collective) {
  if (collective.expert_kernel == ExpertKernel::kNone) return std::string(kP2pReplayName);
  return std::string(ExpertKernelName(collective.expert_kernel));
}

}  // namespace railyard
