# SPDX-License-Identifier: GPL-2.0-only
# For code that runs once per command, or that takes long to compile: functions of the start still lie together.
set(RAILYARD_RUNS_ONCE_OPTIONS -O1 $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-freorder-functions>)
# Flags for our own code only: third-party and generated headers are SYSTEM.
add_library(railyard_options INTERFACE)
target_compile_options(railyard_options INTERFACE -Wall -Wextra -Wconversion -Wshadow -Werror=return-type)
# Failed checks name their file as it is in the tree, wherever the tree was when it was built.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(RAILYARD_SANITIZE)
  # Programs have a fixed address: each place that UndefinedBehaviorSanitizer watches has a record with
  # pointers, which would be relocated at every start.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -fno-pie)
  add_link_options(-fsanitize=address,undefined -no-pie)
  add_compile_definitions(RAILYARD_SANITIZE)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    add_compile_options(-fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/sanitizer_ignorelist.txt)
  endif()
endif()
# Counts what an input reaches, for libFuzzer.
set(RAILYARD_FUZZ_OPTIONS -fsanitize-coverage=inline-8bit-counters,indirect-calls,trace-cmp,pc-table)
