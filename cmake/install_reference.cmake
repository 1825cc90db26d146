# SPDX-License-Identifier: GPL-2.0-only
# Installs reference.html, made of the sources and of the attributes that the installed program knows.
set(page ${CMAKE_INSTALL_PREFIX}/share/doc/railyard/reference.html)
execute_process(COMMAND ${RAILYARD_PYTHON} -B ${RAILYARD_REFERENCE}
                        $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${RAILYARD_BINDIR}/railyard
                        -o $ENV{DESTDIR}${page} COMMAND_ERROR_IS_FATAL ANY)
file(CHMOD $ENV{DESTDIR}${page} ${RAILYARD_READABLE})
list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${page})
message(STATUS "Installed the reference: $ENV{DESTDIR}${page}")
