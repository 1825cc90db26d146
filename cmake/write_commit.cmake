# SPDX-License-Identifier: GPL-2.0-only
# Writes SOURCE, which defines kVersion, the text VERSION, and kCommit: the commit of SOURCE_DIR, "-dirty" behind it
# where files differ from it, and an empty text where it is in no repository of its own (a source archive, also
# within another repository). Leaves an equal file untouched.
cmake_policy(VERSION 3.25)
find_program(GIT git)
set(commit "")
if(GIT)
  set(git ${GIT} -C ${SOURCE_DIR} -c safe.directory=*)  # also of another owner
  execute_process(COMMAND ${git} rev-parse --show-prefix
                  OUTPUT_VARIABLE prefix RESULT_VARIABLE status ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(status EQUAL 0 AND prefix STREQUAL "")
    execute_process(COMMAND ${git} describe --always --dirty --abbrev=12 --exclude=*
                    OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
endif()
file(CONFIGURE OUTPUT ${SOURCE} @ONLY CONTENT
"#include \"simulator/cli/version.h\"
const char* const railyard::kVersion = \"@VERSION@\";
const char* const railyard::kCommit = \"@commit@\";
")
