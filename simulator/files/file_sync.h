// SPDX-License-Identifier: GPL-2.0-only
// Forces many files to disk in about the time of one file.
#pragma once

#include <string>

namespace railyard {

// Forces the files of a directory, without subdirectories, and the directory itself to disk. Throws
// EnvironmentError if the disk fails or is full.
void SyncFilesIn(const std::string& directory);

// Forces a whole file system to disk, for files of many directories. It must be made before the
// first of them is written: Commit() reports every write that has failed since.
class FileSystemSync {
 public:
  // `path` must be an existing file or directory on the file system to be synced.
  explicit FileSystemSync(std::string path);
  FileSystemSync(const FileSystemSync&) = delete;
  FileSystemSync& operator=(const FileSystemSync&) = delete;
  ~FileSystemSync();

  // Throws EnvironmentError if the disk has failed or is full.
  void Commit() const;

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace railyard
