# SPDX-License-Identifier: GPL-2.0-only
# Writes SOURCE, which defines kCommit: the commit of SOURCE_DIR, "-dirty" behind it where files differ
# from it, and an empty text where there is no repository (a source archive). Leaves an equal file untouched.
cmake_policy(VERSION 3.25)
find_program(GIT git)
set(commit "")
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --exclude=*
                  OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
file(CONFIGURE OUTPUT ${SOURCE} @ONLY CONTENT
"#include \"simulator/cli/version.h\"
const char* const railyard::kCommit = \"@commit@\";
")
