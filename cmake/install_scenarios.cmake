# SPDX-License-Identifier: GPL-2.0-only
# Installs the scenarios of RAILYARD_SCENARIOS. They name plans and logs relative to themselves, which
# lie in other folders of an installation than of the source tree. A scenario that reads a file from
# outside the source tree is left out.
set(destination ${CMAKE_INSTALL_PREFIX}/share/railyard/scenarios)
file(GLOB files ${RAILYARD_SCENARIOS}/*.textproto ${RAILYARD_SCENARIOS}/*.csv)
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME)
  file(READ ${file} text)
  string(REPLACE "\"../../workloads/examples/" "\"../plans/" text "${text}")
  string(REPLACE "\"../../traces/samples/" "\"../traces/" text "${text}")
  if(text MATCHES "\"\\.\\./\\.\\./\\.\\./")
    continue()
  endif()
  file(WRITE $ENV{DESTDIR}${destination}/${name} "${text}")
  file(CHMOD $ENV{DESTDIR}${destination}/${name} ${RAILYARD_READABLE})
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${destination}/${name})
endforeach()
message(STATUS "Installed the scenarios: $ENV{DESTDIR}${destination}")
