# SPDX-License-Identifier: GPL-2.0-only
# Installs railyard.1 and the completion for bash, made of what the installed program prints and of the
# exit statuses in RAILYARD_COMMANDS, a document.
# A variable named like a component, `program`, would change what CMake installs after this.
set(installed_railyard $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${RAILYARD_BINDIR}/railyard)
set(page ${CMAKE_INSTALL_PREFIX}/${RAILYARD_MANDIR}/man1/railyard.1)

# Sets VARIABLE to TEXT as roff that is printed as it stands.
function(railyard_roff variable text)
  string(REPLACE "\\" "\\e" text "${text}")
  string(REPLACE "-" "\\-" text "${text}")
  string(REGEX REPLACE "(^|\n)([.'])" "\\1\\\\&\\2" text "${text}")
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# Sets VARIABLE to the help of a command as roff that is printed line by line.
function(railyard_help variable)
  execute_process(COMMAND ${installed_railyard} ${ARGN} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
  railyard_roff(help "${help}")
  set(${variable} ".nf\n${help}.fi\n" PARENT_SCOPE)
endfunction()

railyard_help(help)
set(text ".TH RAILYARD 1\n.SH NAME\nrailyard \\- replays GPU collectives on a modelled fabric\n")
string(APPEND text ".SH SYNOPSIS\n.B railyard\nCOMMAND [OPTIONS]\n.SH DESCRIPTION\n${help}")

# The completion has a branch for each command, "    'trace cut ') …", nested ones included.
execute_process(COMMAND ${installed_railyard} completion OUTPUT_VARIABLE completion COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\n    '[a-z0-9 -]+ '\\)" commands "${completion}")
foreach(command IN LISTS commands)
  string(REGEX REPLACE "^\n    '(.*) '\\)$" "\\1" command "${command}")
  string(REPLACE " " ";" words "${command}")
  railyard_help(help ${words})
  string(APPEND text ".SH RAILYARD ${command}\n${help}")
endforeach()

string(APPEND text ".SH EXIT STATUS\n")
file(READ ${RAILYARD_COMMANDS} document)
string(ASCII 31 separator)  # stands for ";", which would end an element of a list
string(REPLACE ";" "${separator}" document "${document}")
string(REGEX MATCHALL "\n\\| [0-9] \\| [^\n]*" rows "${document}")
foreach(row IN LISTS rows)
  string(REGEX REPLACE "^\n\\| ([0-9]) \\| (.*) \\|$" "\\2" meaning "${row}")
  string(REGEX REPLACE "^\n\\| ([0-9]) .*$" "\\1" status "${row}")
  string(REPLACE "${separator}" ";" meaning "${meaning}")
  string(REPLACE "`" "" meaning "${meaning}")
  string(REGEX REPLACE "\\[([^]]*)\\]\\([^)]*\\)" "\\1" meaning "${meaning}")  # links
  railyard_roff(meaning "${meaning}")
  string(APPEND text ".TP\n.B ${status}\n${meaning}\n")
endforeach()
string(APPEND text ".SH FILES\nPaths are relative to the folder of the program.\n")
foreach(folder_and_contents
        "scenarios:scenarios, the argument of railyard run" "studies:studies, the argument of railyard study"
        "plans:plans of training and inference, which scenarios name" "platforms:servers and GPUs"
        "prices:prices of switches and cables, for railyard topo compare --prices"
        "schemas:the .proto files that describe the fields of every file"
        "traces:logs of captured jobs, which scenarios name")
  string(REGEX REPLACE ":.*" "" folder "${folder_and_contents}")
  string(REGEX REPLACE "^[^:]*:" "" contents "${folder_and_contents}")
  string(APPEND text ".TP\n.I ../share/railyard/${folder}\n${contents}\n")
endforeach()
string(APPEND text ".TP\n.I ../share/doc/railyard/reference.html\n"
       "every field of every file, every attribute and every figure of results, with a search box\n"
       ".SH SEE ALSO\n.BR bash (1),\n.I ../share/doc/railyard/reference.html\n")
file(WRITE $ENV{DESTDIR}${page} "${text}")
file(CHMOD $ENV{DESTDIR}${page} ${RAILYARD_READABLE})
list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${page})
message(STATUS "Installed the manual page: $ENV{DESTDIR}${page}")

set(script ${CMAKE_INSTALL_PREFIX}/share/bash-completion/completions/railyard)
file(WRITE $ENV{DESTDIR}${script} "${completion}")
file(CHMOD $ENV{DESTDIR}${script} ${RAILYARD_READABLE})
list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${script})
message(STATUS "Installed the completion: $ENV{DESTDIR}${script}")
