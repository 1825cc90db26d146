# SPDX-License-Identifier: GPL-2.0-only
# A Debian package of what `cmake --install` puts below /usr: `cpack --config build/release/CPackConfig.cmake`.
# It depends on the libraries that the program is linked with, as dpkg-shlibdeps finds them, and on what
# programs that link the archive need.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME railyard)
set(CPACK_PACKAGE_CONTACT "The Railyard authors <railyard@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
    "cmake, g++, libns3-dev, libboost-graph-dev, libboost-iostreams-dev, libprotobuf-dev, libsqlite3-dev, libxml2-dev, libfmt-dev, libxxhash-dev, libzstd-dev")
include(CPack)
