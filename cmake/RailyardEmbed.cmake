# SPDX-License-Identifier: GPL-2.0-only
# railyard_embed(OUTPUT HEADER header NAME FILE...): a source that defines each NAME, which the header
# declares, as a std::string_view of the content of FILE. Runs as a script (cmake -P) at build time too,
# so that a change of a file builds the source again.
if(CMAKE_SCRIPT_MODE_FILE)
  string(REPLACE "|" ";" FILES "${FILES}")
  set(source "// Generated from files of the source tree.\n#include \"${HEADER}\"\n\nnamespace railyard {\n")
  while(FILES)
    list(POP_FRONT FILES name path)
    file(READ "${path}" text)
    # Compilers take literals of any length here, but a raw one must not hold its own end.
    string(FIND "${text}" ")railyard\"" end)
    if(NOT end EQUAL -1)
      message(FATAL_ERROR "${path} holds )railyard\"")
    endif()
    string(APPEND source "const std::string_view ${name} = R\"railyard(${text})railyard\";\n")
  endwhile()
  string(APPEND source "}  // namespace railyard\n")
  file(WRITE "${OUTPUT}" "${source}")
  return()
endif()

set(RAILYARD_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(railyard_embed output)
  cmake_parse_arguments(ARG "" "HEADER" "" ${ARGN})
  set(files ${ARG_UNPARSED_ARGUMENTS})
  set(paths)
  set(index 0)
  foreach(entry IN LISTS files)
    math(EXPR odd "${index} % 2")
    if(odd)
      list(APPEND paths ${entry})
    endif()
    math(EXPR index "${index} + 1")
  endforeach()
  string(REPLACE ";" "|" joined "${files}")
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${output}" "-DHEADER=${ARG_HEADER}" "-DFILES=${joined}"
            -P ${RAILYARD_EMBED_SCRIPT}
    DEPENDS ${paths} ${RAILYARD_EMBED_SCRIPT} VERBATIM)
  set_source_files_properties(${output} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON
    COMPILE_OPTIONS "-Wno-overlength-strings")
endfunction()
