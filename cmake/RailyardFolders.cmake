# SPDX-License-Identifier: GPL-2.0-only
# Folders that are installed can be read by everybody, whatever the umask is of who installs. CMake sees to
# that for some of those that it makes on the way to a file, and not for others.
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
    GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# railyard_install_folders(FOLDERS...): makes folders below the prefix, and those that they lie in, one by
# one from the top. Folders that are there already are left as they are.
function(railyard_install_folders)
  set(folders "")
  foreach(folder IN LISTS ARGN)
    while(folder AND NOT IS_ABSOLUTE "${folder}")
      list(APPEND folders ${folder})
      cmake_path(GET folder PARENT_PATH folder)
    endwhile()
  endforeach()
  list(SORT folders)
  list(REMOVE_DUPLICATES folders)
  list(JOIN folders "\" \"/" folders)
  install(CODE "foreach(folder \"\" \"/${folders}\")
    file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}\${folder}\" TYPE DIRECTORY MESSAGE_NEVER FILES \"\")
  endforeach()")
endfunction()
