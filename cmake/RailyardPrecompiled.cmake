# SPDX-License-Identifier: GPL-2.0-only
# Headers that most sources include and that are slow to parse, each parsed once: Boost.Graph alone
# takes 1.8 s, GoogleMock 1.9 s. Every source still includes what it uses: the preset tidy compiles
# without any of this.
set(RAILYARD_COMMON_HEADERS
    <algorithm> <array> <filesystem> <functional> <map> <memory> <optional> <set> <string>
    <unordered_map> <vector> <boost/graph/adjacency_list.hpp> <fmt/format.h>
    <google/protobuf/message.h>)

# A precompiled header is valid only where the same macros are set that it has looked at.
get_target_property(railyard_fmt_definitions fmt::fmt INTERFACE_COMPILE_DEFINITIONS)
if(railyard_fmt_definitions)
  add_compile_definitions(${railyard_fmt_definitions})
endif()

# GCC 12 sees std::string overflow where none does. It keeps quiet about its own headers,
# but no longer knows them once they are precompiled.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
  add_compile_options(-Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
endif()

# railyard_precompiled(NAME HEADERS... LINKS...): the common headers and HEADERS; a target takes them
# by target_precompile_headers(TARGET REUSE_FROM NAME).
function(railyard_precompiled name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINKS" ${ARGN})
  file(CONFIGURE OUTPUT ${name}.cc CONTENT "// Has to be there for the headers to be compiled.\n")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  target_precompile_headers(${name} PRIVATE ${RAILYARD_COMMON_HEADERS} ${ARG_HEADERS})
  target_link_libraries(${name} PRIVATE railyard_options ${ARG_LINKS})
endfunction()
