# SPDX-License-Identifier: GPL-2.0-only
# The released ns-3 as Debian packages it: shared libraries and headers, no CMake package of its own
# that works without the separate "ns3" package. Defines Ns3::core and Ns3::network.
find_path(Ns3_INCLUDE_DIR ns3/simulator-impl.h PATH_SUFFIXES ns3.37 ns3)
find_library(Ns3_CORE_LIBRARY ns3-core)
find_library(Ns3_NETWORK_LIBRARY ns3-network)
find_library(Ns3_STATS_LIBRARY ns3-stats)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Ns3 REQUIRED_VARS Ns3_CORE_LIBRARY Ns3_NETWORK_LIBRARY
                                  Ns3_STATS_LIBRARY Ns3_INCLUDE_DIR)
if(Ns3_FOUND AND NOT TARGET Ns3::core)
  add_library(Ns3::core UNKNOWN IMPORTED)
  set_target_properties(Ns3::core PROPERTIES IMPORTED_LOCATION ${Ns3_CORE_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${Ns3_INCLUDE_DIR})
  add_library(Ns3::network UNKNOWN IMPORTED)
  set_target_properties(Ns3::network PROPERTIES IMPORTED_LOCATION ${Ns3_NETWORK_LIBRARY}
                        INTERFACE_LINK_LIBRARIES "Ns3::core;${Ns3_STATS_LIBRARY}")
endif()
