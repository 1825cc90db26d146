# SPDX-License-Identifier: GPL-2.0-only
# Railyard::railyard: one static archive of all libraries that are added above, and what
# `cmake --install` puts below the prefix for programs that link it: the archive in lib/, the public
# headers and those that they include in include/railyard/, and the package in lib/cmake/Railyard/.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

get_property(railyard_libraries GLOBAL PROPERTY RAILYARD_LIBRARIES)
set(railyard_objects $<TARGET_OBJECTS:railyard_protos>)
foreach(library IN LISTS railyard_libraries)
  list(APPEND railyard_objects $<TARGET_OBJECTS:${library}>)
endforeach()
add_library(railyard_archive STATIC ${railyard_objects})
set_target_properties(railyard_archive PROPERTIES OUTPUT_NAME railyard EXPORT_NAME railyard
                      LINKER_LANGUAGE CXX)
target_compile_features(railyard_archive INTERFACE cxx_std_20)
target_link_libraries(railyard_archive PRIVATE Ns3::internet Ns3::network Ns3::core protobuf::libprotobuf
                      Boost::graph Boost::iostreams SQLite::SQLite3 LibXml2::LibXml2 fmt::fmt xxhash)
# The public headers as "railyard/…", and what they include as in the source tree.
target_include_directories(railyard_archive INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/railyard>)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/simulator/api/railyard ${PROJECT_SOURCE_DIR}/simulator/ns3/railyard
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
foreach(header
        analysis/metrics/run_metrics.h analysis/metrics/statistics.h
        analysis/result/link_rows.h analysis/result/on_off_load.h analysis/result/run_result.h
        analysis/result/text_pool.h analysis/result/time_series.h analysis/result/traffic_result.h
        analysis/tables/run_table.h
        analysis/writers/result_files.h
        simulator/diagnostics/diagnostics.h simulator/diagnostics/names.h
        simulator/fabric/telemetry.h simulator/files/sync.h simulator/replay/episodes/replay_cache_mode.h
        simulator/run/run_options.h simulator/transport/congestion/queue_pair_control.h
        simulator/units/identifier.h simulator/units/rank_index.h topologies/graph/graph_ids.h
        traces/trace/rank_programs.h traces/trace/trace.h
        workloads/collectives/explicit_schedule.h workloads/collectives/registered_algorithms.h
        workloads/collectives/schedule.h)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${header}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/railyard/${folder})
endforeach()

set(railyard_package ${CMAKE_INSTALL_LIBDIR}/cmake/Railyard)
install(TARGETS railyard_archive EXPORT RailyardTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT RailyardTargets NAMESPACE Railyard:: DESTINATION ${railyard_package})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/RailyardConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/RailyardConfig.cmake
                              INSTALL_DESTINATION ${railyard_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/RailyardConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/RailyardConfig.cmake
              ${PROJECT_BINARY_DIR}/RailyardConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindNs3.cmake
        DESTINATION ${railyard_package})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/examples/ DESTINATION share/railyard/examples
        FILES_MATCHING PATTERN *.cc)
