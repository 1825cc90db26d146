# SPDX-License-Identifier: GPL-2.0-only
# Installs railyard.1 and the completion for bash, made of what the installed program prints.
set(program $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${RAILYARD_BINDIR}/railyard)
set(page ${CMAKE_INSTALL_PREFIX}/${RAILYARD_MANDIR}/man1/railyard.1)

# Sets VARIABLE to the help of a command as roff that is printed line by line.
function(railyard_help variable)
  execute_process(COMMAND ${program} ${ARGN} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\\" "\\e" help "${help}")
  string(REPLACE "-" "\\-" help "${help}")
  string(REGEX REPLACE "(^|\n)([.'])" "\\1\\\\&\\2" help "${help}")
  set(${variable} ".nf\n${help}.fi\n" PARENT_SCOPE)
endfunction()

railyard_help(help)
set(text ".TH RAILYARD 1\n.SH NAME\nrailyard \\- replays GPU collectives on a modelled fabric\n")
string(APPEND text ".SH SYNOPSIS\n.B railyard\nCOMMAND [OPTIONS]\n.SH DESCRIPTION\n${help}")
execute_process(COMMAND ${program} --help OUTPUT_VARIABLE plain COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "^.*\nCommands:\n" "" plain "${plain}")
string(REGEX MATCHALL "\n  [a-z]+ " commands "\n${plain}")
foreach(command IN LISTS commands)
  string(STRIP "${command}" command)
  railyard_help(help ${command})
  string(APPEND text ".SH RAILYARD ${command}\n${help}")
endforeach()
file(WRITE $ENV{DESTDIR}${page} "${text}")
list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${page})
message(STATUS "Installed the manual page: $ENV{DESTDIR}${page}")

set(completion ${CMAKE_INSTALL_PREFIX}/share/bash-completion/completions/railyard)
execute_process(COMMAND ${program} completion OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
file(WRITE $ENV{DESTDIR}${completion} "${text}")
list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${completion})
message(STATUS "Installed the completion: $ENV{DESTDIR}${completion}")
