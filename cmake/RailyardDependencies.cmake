# SPDX-License-Identifier: GPL-2.0-only
# railyard_find(PACKAGE DEBIAN_PACKAGE...): find_package that says what to install.
macro(railyard_find package debian)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} was not found: install the Debian package(s) ${debian} (scripts/setup does).")
  endif()
endmacro()

set(Protobuf_USE_STATIC_LIBS OFF)
railyard_find(Ns3 "libns3-dev libgsl-dev libxml2-dev libsqlite3-dev")
railyard_find(Boost "libboost-graph-dev libboost-iostreams-dev" 1.74 COMPONENTS graph iostreams)
railyard_find(Protobuf "libprotobuf-dev protobuf-compiler")
railyard_find(CLI11 "libcli11-dev")
railyard_find(fmt "libfmt-dev")
railyard_find(RapidJSON "rapidjson-dev")
railyard_find(SQLite3 "libsqlite3-dev")
railyard_find(LibXml2 "libxml2-dev")

# xxHash (BSD-2-Clause) comes without a package file.
find_path(XXHASH_INCLUDE_DIR xxhash.h)
find_library(XXHASH_LIBRARY xxhash)
if(NOT XXHASH_INCLUDE_DIR OR NOT XXHASH_LIBRARY)
  message(FATAL_ERROR "xxHash was not found: install the Debian package libxxhash-dev (scripts/setup does).")
endif()
add_library(railyard_xxhash INTERFACE)
target_include_directories(railyard_xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE_DIR})
target_link_libraries(railyard_xxhash INTERFACE ${XXHASH_LIBRARY})
add_library(railyard_rapidjson INTERFACE)
target_include_directories(railyard_rapidjson SYSTEM INTERFACE ${RapidJSON_INCLUDE_DIRS} ${RAPIDJSON_INCLUDE_DIRS})
if(RAILYARD_FUZZ)  # its empty stack is a null pointer, to which it adds what is to be pushed
  target_compile_options(railyard_rapidjson INTERFACE -fno-sanitize=pointer-overflow)
endif()
