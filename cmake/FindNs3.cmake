# SPDX-License-Identifier: GPL-2.0-only
# The released ns-3 as Debian packages it: shared libraries and headers, no CMake package of its own
# that works without the separate "ns3" package. Defines Ns3::core, Ns3::network and, for programs with
# network stacks, Ns3::internet, Ns3::internet_apps and Ns3::applications.
find_path(Ns3_INCLUDE_DIR ns3/simulator-impl.h PATH_SUFFIXES ns3.37 ns3)
find_library(Ns3_CORE_LIBRARY ns3-core)
find_library(Ns3_NETWORK_LIBRARY ns3-network)
find_library(Ns3_STATS_LIBRARY ns3-stats)
find_library(Ns3_INTERNET_LIBRARY ns3-internet)
find_library(Ns3_INTERNET_APPS_LIBRARY ns3-internet-apps)
find_library(Ns3_APPLICATIONS_LIBRARY ns3-applications)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Ns3 REQUIRED_VARS Ns3_CORE_LIBRARY Ns3_NETWORK_LIBRARY
                                  Ns3_STATS_LIBRARY Ns3_INTERNET_LIBRARY Ns3_INTERNET_APPS_LIBRARY
                                  Ns3_APPLICATIONS_LIBRARY Ns3_INCLUDE_DIR)
if(Ns3_FOUND AND NOT TARGET Ns3::core)
  add_library(Ns3::core UNKNOWN IMPORTED)
  set_target_properties(Ns3::core PROPERTIES IMPORTED_LOCATION ${Ns3_CORE_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${Ns3_INCLUDE_DIR})
  add_library(Ns3::network UNKNOWN IMPORTED)
  set_target_properties(Ns3::network PROPERTIES IMPORTED_LOCATION ${Ns3_NETWORK_LIBRARY}
                        INTERFACE_LINK_LIBRARIES "Ns3::core;${Ns3_STATS_LIBRARY}")
  add_library(Ns3::internet UNKNOWN IMPORTED)
  set_target_properties(Ns3::internet PROPERTIES IMPORTED_LOCATION ${Ns3_INTERNET_LIBRARY}
                        INTERFACE_LINK_LIBRARIES Ns3::network)
  add_library(Ns3::internet_apps UNKNOWN IMPORTED)
  set_target_properties(Ns3::internet_apps PROPERTIES
                        IMPORTED_LOCATION ${Ns3_INTERNET_APPS_LIBRARY}
                        INTERFACE_LINK_LIBRARIES Ns3::internet)
  add_library(Ns3::applications UNKNOWN IMPORTED)
  set_target_properties(Ns3::applications PROPERTIES
                        IMPORTED_LOCATION ${Ns3_APPLICATIONS_LIBRARY}
                        INTERFACE_LINK_LIBRARIES Ns3::internet)
endif()
