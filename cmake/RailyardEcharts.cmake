# SPDX-License-Identifier: GPL-2.0-only
# Apache ECharts (Apache-2.0), which report.html carries with it: not linked, an asset of what the program
# writes. It is the package of the npm registry, of a pinned version and digest: given as RAILYARD_ECHARTS,
# from the user's cache that scripts/setup fills, from /var/cache/railyard, which it fills for all users if it
# runs as root, or downloaded. RAILYARD_ECHARTS_SCRIPT becomes the file to embed;
# without one, programs are built that say so when they are asked for a report.
set(version 5.6.0)
set(digest e1b82487dd7f8d9f0438eec1f1433051148e0095ac7a15d4db890afda45cf610)
set(RAILYARD_ECHARTS "" CACHE FILEPATH "The package echarts-${version}.tgz of the npm registry")

set(cache $ENV{XDG_CACHE_HOME})
if(NOT cache AND NOT "$ENV{HOME}" STREQUAL "")
  set(cache $ENV{HOME}/.cache)
elseif(NOT cache)
  set(cache /tmp/.cache)  # as scripts/setup does
endif()
set(package ${PROJECT_BINARY_DIR}/echarts-${version}.tgz)
set(RAILYARD_ECHARTS_SCRIPT ${PROJECT_BINARY_DIR}/echarts-${version}/package/dist/echarts.min.js)

function(railyard_has_digest result path)
  set(found "")
  if(EXISTS ${path})
    file(SHA256 ${path} found)
  endif()
  if(found STREQUAL digest)
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

set(is_there FALSE)
foreach(candidate ${package} ${RAILYARD_ECHARTS} ${cache}/railyard/echarts-${version}.tgz
        /var/cache/railyard/echarts-${version}.tgz)
  railyard_has_digest(is_there ${candidate})
  if(is_there)
    if(NOT candidate STREQUAL package)
      file(COPY_FILE ${candidate} ${package})
    endif()
    break()
  endif()
  if(RAILYARD_ECHARTS AND candidate STREQUAL RAILYARD_ECHARTS)
    message(FATAL_ERROR "RAILYARD_ECHARTS: ${candidate} is not echarts-${version}.tgz (SHA-256 ${digest})")
  endif()
endforeach()
if(NOT is_there)
  file(DOWNLOAD https://registry.npmjs.org/echarts/-/echarts-${version}.tgz ${package} TIMEOUT 120)
  railyard_has_digest(is_there ${package})
endif()

if(is_there)
  if(NOT EXISTS ${RAILYARD_ECHARTS_SCRIPT})
    file(ARCHIVE_EXTRACT INPUT ${package} DESTINATION ${PROJECT_BINARY_DIR}/echarts-${version}
         PATTERNS package/dist/echarts.min.js package/LICENSE package/NOTICE)
  endif()
  # Its licence requires both with every copy.
  set(RAILYARD_ECHARTS_LICENCE ${PROJECT_BINARY_DIR}/echarts-${version}/package/LICENSE)
  set(RAILYARD_ECHARTS_NOTICE ${PROJECT_BINARY_DIR}/echarts-${version}/package/NOTICE)
else()
  file(REMOVE ${package})
  set(RAILYARD_ECHARTS_SCRIPT ${PROJECT_BINARY_DIR}/no_echarts.js)
  file(WRITE ${RAILYARD_ECHARTS_SCRIPT} "")
  message(WARNING "Apache ECharts ${version} is not in ${cache}/railyard, and registry.npmjs.org cannot be reached: "
                  "the program will write no report.html. scripts/setup fetches it; or give "
                  "-DRAILYARD_ECHARTS=echarts-${version}.tgz.")
endif()
