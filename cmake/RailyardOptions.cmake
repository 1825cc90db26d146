# SPDX-License-Identifier: GPL-2.0-only
# For code that runs once per command, or that takes long to compile: functions of the start still lie together.
set(RAILYARD_RUNS_ONCE_OPTIONS -O1 $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-freorder-functions>)
# Flags for our own code only: third-party and generated headers are SYSTEM.
add_library(railyard_options INTERFACE)
target_compile_options(railyard_options INTERFACE -Wall -Wextra -Wconversion -Wshadow -Werror=return-type)
if(RAILYARD_FUZZ)  # with the sanitizers
  set(RAILYARD_SANITIZE ON)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(RAILYARD_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
