# SPDX-License-Identifier: GPL-2.0-only
# Files that `cmake --install` puts below the prefix: the program in bin/, its manual page in share/man/, its
# reference in share/doc/railyard/, and in share/railyard/ the scenarios, studies, plans, platforms, prices, sample logs and schemas. The program finds them relative
# to itself. This is the component `program`, which needs the target `railyard` alone.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME program)
include(GNUInstallDirs)
railyard_install_folders(${CMAKE_INSTALL_BINDIR} ${CMAKE_INSTALL_MANDIR}/man1 share/doc/railyard
                         share/bash-completion/completions share/railyard/scenarios)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/railyard RENAME copyright)
if(RAILYARD_ECHARTS_LICENCE)
  install(FILES ${RAILYARD_ECHARTS_LICENCE} DESTINATION share/doc/railyard RENAME echarts.LICENSE)
  install(FILES ${RAILYARD_ECHARTS_NOTICE} DESTINATION share/doc/railyard RENAME echarts.NOTICE)
endif()
install(TARGETS railyard RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/workloads/examples/ DESTINATION share/railyard/plans
        FILES_MATCHING PATTERN *.textproto)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/topologies/platforms/ DESTINATION share/railyard/platforms
        FILES_MATCHING PATTERN *.textproto)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/topologies/prices/ DESTINATION share/railyard/prices
        FILES_MATCHING PATTERN *.textproto)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/analysis/studies/ DESTINATION share/railyard/studies
        FILES_MATCHING PATTERN *.textproto)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/traces/samples/ DESTINATION share/railyard/traces
        FILES_MATCHING PATTERN *.log)
# The schemas of all files, below the paths with which they import each other.
file(GLOB_RECURSE schemas RELATIVE ${PROJECT_SOURCE_DIR}
     ${PROJECT_SOURCE_DIR}/simulator/*.proto ${PROJECT_SOURCE_DIR}/topologies/*.proto
     ${PROJECT_SOURCE_DIR}/traces/*.proto ${PROJECT_SOURCE_DIR}/workloads/*.proto)
foreach(schema IN LISTS schemas)
  get_filename_component(folder ${schema} DIRECTORY)
  railyard_install_folders(share/railyard/schemas/${folder})
  install(FILES ${PROJECT_SOURCE_DIR}/${schema} DESTINATION share/railyard/schemas/${folder})
endforeach()
# Scripts make files of their own, which are to be as readable as all others.
install(CODE "set(RAILYARD_READABLE PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)")
install(CODE "set(RAILYARD_SCENARIOS \"${PROJECT_SOURCE_DIR}/simulator/scenarios\")")
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/install_scenarios.cmake)
install(CODE "set(RAILYARD_BINDIR \"${CMAKE_INSTALL_BINDIR}\")
              set(RAILYARD_MANDIR \"${CMAKE_INSTALL_MANDIR}\")
              set(RAILYARD_COMMANDS \"${PROJECT_SOURCE_DIR}/docs/commands.md\")")
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/install_manual.cmake)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
install(CODE "set(RAILYARD_PYTHON \"${Python3_EXECUTABLE}\")
              set(RAILYARD_REFERENCE \"${PROJECT_SOURCE_DIR}/docs/reference/reference.py\")")
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/install_reference.cmake)
