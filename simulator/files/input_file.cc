// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/files/input_file.h"

#include <cerrno>
#include <sys/stat.h>

namespace railyard {

std::ifstream OpenInputFile(const std::string& path) {
  std::ifstream file;
  struct stat status = {};
  const bool exists = stat(path.c_str(), &status) == 0;
  if (exists && S_ISREG(status.st_mode)) {
    file.open(path, std::ios::binary);
  } else {
    if (exists) errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    file.setstate(std::ios::failbit);
  }
  return file;
}

}  // namespace railyard
