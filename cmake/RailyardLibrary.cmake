# SPDX-License-Identifier: GPL-2.0-only
# railyard_library(NAME SOURCES... LINKS... [RUNS_ONCE] [PER_PACKET]): one concept, one library.
# LINKS is the whole of what it may include; the dependency direction of the project is these lists and
# nothing else. Code that runs once per command or fault (RUNS_ONCE) is not worth optimizing much: it compiles in two
# thirds of the time and is a sixth smaller. Code that runs for every packet (PER_PACKET) reads no files, and is not
# instrumented for fuzz targets.
railyard_precompiled(railyard_headers)
function(railyard_library name)
  cmake_parse_arguments(ARG "RUNS_ONCE;PER_PACKET" "" "SOURCES;LINKS" ${ARGN})
  if(NOT ARG_SOURCES)  # headers alone
    add_library(railyard_${name} INTERFACE)
    add_library(railyard::${name} ALIAS railyard_${name})
    target_include_directories(railyard_${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(railyard_${name} INTERFACE ${ARG_LINKS})
    return()
  endif()
  add_library(railyard_${name} STATIC ${ARG_SOURCES})
  add_library(railyard::${name} ALIAS railyard_${name})
  target_include_directories(railyard_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(railyard_${name} PUBLIC ${ARG_LINKS} PRIVATE railyard_options)
  if(ARG_RUNS_ONCE)
    target_compile_options(railyard_${name} PRIVATE "$<$<CONFIG:Release>:${RAILYARD_RUNS_ONCE_OPTIONS}>")
  endif()
  if(RAILYARD_FUZZ AND NOT ARG_PER_PACKET)
    target_compile_options(railyard_${name} PRIVATE ${RAILYARD_FUZZ_OPTIONS})
  endif()
  target_precompile_headers(railyard_${name} REUSE_FROM railyard_headers)
  set_target_properties(railyard_${name} PROPERTIES UNITY_BUILD ${RAILYARD_UNITY_BUILD}
                        UNITY_BUILD_BATCH_SIZE ${RAILYARD_UNITY_BATCH})
  set_property(GLOBAL APPEND PROPERTY RAILYARD_LIBRARIES railyard_${name})
endfunction()
