# SPDX-License-Identifier: GPL-2.0-only
# Faster builds where the tools are there; results do not depend on them.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without a place that can be written, as without HOME, ccache would end each compilation.
  execute_process(COMMAND ${CCACHE_PROGRAM} --get-config cache_dir OUTPUT_VARIABLE ccache_directory
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${CMAKE_COMMAND} -E make_directory ${ccache_directory} ERROR_QUIET)
  execute_process(COMMAND ${CMAKE_COMMAND} -E touch ${ccache_directory}/.railyard RESULT_VARIABLE ccache_refuses
                  ERROR_QUIET)
  execute_process(COMMAND ${CMAKE_COMMAND} -E rm -f ${ccache_directory}/.railyard)
endif()
if(CCACHE_PROGRAM AND NOT ccache_refuses AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what ccache asks for before it caches anything that uses precompiled headers;
  # a checkout elsewhere finds what this one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${CCACHE_PROGRAM})
  add_compile_options(-fpch-preprocess)
endif()
find_program(LLD_PROGRAM ld.lld)
if(LLD_PROGRAM)
  # Code that runs once, when the program starts, and code that handles errors lie together as other
  # linkers put them: scattered, they bring a megabyte more of the program into memory.
  add_link_options(-fuse-ld=lld LINKER:-z,keep-text-section-prefix)
endif()
