# SPDX-License-Identifier: GPL-2.0-only
# railyard_find(PACKAGE DEBIAN_PACKAGE...): find_package that says what to install.
macro(railyard_find package debian)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} was not found: install the Debian package(s) ${debian} (scripts/setup does).")
  endif()
endmacro()

set(Protobuf_USE_STATIC_LIBS OFF)
if(RAILYARD_IN_NS3)
  foreach(name core network internet internet_apps applications)
    string(REPLACE _ - library ${name})
    add_library(Ns3::${name} INTERFACE IMPORTED GLOBAL)
    target_link_libraries(Ns3::${name} INTERFACE ${lib${library}})
    target_include_directories(Ns3::${name} SYSTEM INTERFACE ${CMAKE_HEADER_OUTPUT_DIRECTORY}/..)
  endforeach()
else()
  railyard_find(Ns3 "libns3-dev libgsl-dev libxml2-dev libsqlite3-dev")
endif()
railyard_find(Boost "libboost-graph-dev libboost-iostreams-dev" 1.74 COMPONENTS graph iostreams)
railyard_find(Protobuf "libprotobuf-dev protobuf-compiler")
railyard_find(CLI11 "libcli11-dev")
railyard_find(fmt "libfmt-dev")
railyard_find(RapidJSON "rapidjson-dev")
railyard_find(SQLite3 "libsqlite3-dev")
railyard_find(LibXml2 "libxml2-dev")

# railyard_find_plain(NAME HEADER DEBIAN_PACKAGE [LIBRARY]): a library that comes without a package file, or with one that
# differs from version to version, as railyard_NAME.
function(railyard_find_plain name header debian)
  find_path(RAILYARD_${name}_INCLUDE_DIR ${header})
  foreach(library IN LISTS ARGN)
    find_library(RAILYARD_${name}_LIBRARY ${library})
  endforeach()
  if(NOT RAILYARD_${name}_INCLUDE_DIR OR (ARGN AND NOT RAILYARD_${name}_LIBRARY))
    message(FATAL_ERROR "${name} was not found: install the Debian package ${debian} (scripts/setup does).")
  endif()
  add_library(railyard_${name} INTERFACE)
  target_include_directories(railyard_${name} SYSTEM INTERFACE ${RAILYARD_${name}_INCLUDE_DIR})
  target_link_libraries(railyard_${name} INTERFACE ${RAILYARD_${name}_LIBRARY})
endfunction()
railyard_find_plain(xxhash xxhash.h libxxhash-dev xxhash)  # BSD-2-Clause
railyard_find_plain(zstd zstd.h libzstd-dev zstd)          # BSD-3-Clause
railyard_find_plain(lemon lemon/matching.h liblemon-dev)   # Boost Software License 1.0: its headers alone
add_library(railyard_rapidjson INTERFACE)
target_include_directories(railyard_rapidjson SYSTEM INTERFACE ${RapidJSON_INCLUDE_DIRS} ${RAPIDJSON_INCLUDE_DIRS})
