//===- Cache.cpp - compiled artifacts on disk ----------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file: the magic line, the size of the key on a line of its own, the key,
// the artifact. The artifact carries a checksum, the key is compared whole.
// That is against accidents; against others there are owner and mode: what is
// found is launched, so nothing is taken that another user could have written.
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Cache.h"

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace attn;
using namespace attn::runtime;

static constexpr const char *kMagic = "attn-cache 1\n";
static constexpr std::string_view kTemporaryPrefix = "new-";
/// Far more than any key and artifact have; more is no entry.
static constexpr off_t kMaxBytes = off_t(1) << 28;
/// Seconds after which nobody writes to a temporary any more.
static constexpr time_t kAbandoned = 3600;

Result<Cache> Cache::user() {
  // The XDG rules: a relative path is to be ignored.
  const char *cache = std::getenv("XDG_CACHE_HOME");
  if (cache && cache[0] == '/')
    return Cache(std::string(cache) + "/attn");
  const char *home = std::getenv("HOME");
  if (home && home[0] == '/')
    return Cache(std::string(home) + "/.cache/attn");
  return Status::error(
      "no cache directory: neither XDG_CACHE_HOME nor HOME is set");
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

// The fields with their sizes, so that no two keys have one text.
static std::string keyText(const CacheKey &key) {
  std::string text;
  for (const std::string *field :
       {&key.op, &key.plan, &key.target, &key.compiler, &key.options})
    text += std::to_string(field->size()) + "\n" + *field + "\n";
  return text;
}

static std::string header(const CacheKey &key) {
  std::string text = keyText(key);
  return kMagic + std::to_string(text.size()) + "\n" + text;
}

static std::string entryName(const CacheKey &key) {
  uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
  for (unsigned char byte : keyText(key))
    hash = (hash ^ byte) * 0x100000001b3u;
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016" PRIx64, hash);
  return std::string(digits) + ".attn";
}

std::string Cache::fileName(const CacheKey &key) const {
  return path + "/" + entryName(key);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

namespace {
/// A file descriptor that closes itself; below 0: none.
class Descriptor {
public:
  explicit Descriptor(int number) : number(number) {}
  Descriptor(Descriptor &&other) : number(other.number) { other.number = -1; }
  Descriptor &operator=(Descriptor &&) = delete;
  ~Descriptor() { (void)finish(); }

  explicit operator bool() const { return number >= 0; }
  int get() const { return number; }
  /// Closes; whether all that was written has arrived.
  bool finish() {
    bool isOpen = number >= 0;
    int closed = isOpen ? close(number) : 0;
    number = -1;
    return closed == 0;
  }

private:
  int number;
};
} // namespace

static Status systemError(const std::string &what) {
  return Status::error(what + ": " + std::strerror(errno));
}

// Written by this user, and by nobody else.
static bool isOurs(const struct stat &status) {
  return status.st_uid == geteuid() && !(status.st_mode & (S_IWGRP | S_IWOTH));
}

// The directory, which may be behind a link, but belongs to this user alone.
static Result<Descriptor> openDirectory(const std::string &path) {
  std::string use = "cannot use the directory '" + path + "'";
  Descriptor directory(
      open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
  struct stat status;
  if (!directory || fstat(directory.get(), &status) != 0)
    return systemError(use);
  if (status.st_uid != geteuid())
    return Status::error(use + ": it belongs to user " +
                         std::to_string(status.st_uid) +
                         ", this process to user " + std::to_string(geteuid()));
  if (!isOurs(status))
    return Status::error(use + ": others may write to it (wanted mode 0700)");
  return directory;
}

// The bytes of an entry. A pipe would make the caller wait, a device or a large
// hole never end: these are none.
static std::optional<std::string> readEntry(const Descriptor &directory,
                                            const std::string &name) {
  Descriptor file(
      openat(directory.get(), name.c_str(),
             O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      !isOurs(status) || status.st_size > kMaxBytes)
    return std::nullopt;
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t end = 0;
  while (end < bytes.size()) {
    ssize_t count = read(file.get(), &bytes[end], bytes.size() - end);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return std::nullopt;
    end += static_cast<size_t>(count);
  }
  return bytes;
}

std::optional<Artifact> Cache::find(const CacheKey &key) const {
  Result<Descriptor> directory = openDirectory(path);
  if (!directory.ok())
    return std::nullopt;
  std::optional<std::string> bytes = readEntry(*directory, entryName(key));
  std::string expected = header(key);
  if (!bytes || bytes->compare(0, expected.size(), expected) != 0)
    return std::nullopt;
  std::string error;
  return Artifact::parse(std::string_view(*bytes).substr(expected.size()),
                         error);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

// mkdir -p, for this user alone.
static Status makeDirectories(const std::string &path) {
  constexpr mode_t kMode = S_IRWXU;
  for (size_t end = path.find('/', 1); end != std::string::npos;
       end = path.find('/', end + 1))
    (void)mkdir(path.substr(0, end).c_str(), kMode); // the last one tells
  if (mkdir(path.c_str(), kMode) != 0 && errno != EEXIST)
    return systemError("cannot make the directory '" + path + "'");
  return Status();
}

static bool writeAll(const Descriptor &file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// Temporaries whose writers were killed.
static void sweep(const Descriptor &directory) {
  int again = openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *listing = again < 0 ? nullptr : fdopendir(again);
  if (!listing) {
    (void)close(again);
    return;
  }
  while (const dirent *entry = readdir(listing)) {
    std::string_view name = entry->d_name;
    struct stat status;
    if (name.substr(0, kTemporaryPrefix.size()) == kTemporaryPrefix &&
        fstatat(directory.get(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) ==
            0 &&
        S_ISREG(status.st_mode) &&
        status.st_mtime + kAbandoned < std::time(nullptr))
      (void)unlinkat(directory.get(), entry->d_name, 0);
  }
  closedir(listing);
}

// A new file of this process alone, and its name.
static Descriptor createTemporary(const Descriptor &directory,
                                  std::string &name) {
  // One who was killed may have had the same number, on this or another host.
  constexpr int kTries = 1000;
  static std::atomic<unsigned> counter;
  for (int i = 0; i < kTries; ++i) {
    name = std::string(kTemporaryPrefix) + std::to_string(getpid()) + "-" +
           std::to_string(counter++);
    Descriptor file(openat(directory.get(), name.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                           S_IRUSR | S_IWUSR));
    if (file || errno != EEXIST)
      return file;
  }
  return Descriptor(-1);
}

Status Cache::store(const CacheKey &key, const Artifact &artifact) const {
  std::string bytes = header(key) + artifact.serialize();
  if (bytes.size() > static_cast<size_t>(kMaxBytes))
    return Status::error("an entry of " + std::to_string(bytes.size()) +
                         " bytes is too large, the most is " +
                         std::to_string(kMaxBytes));
  Status status = makeDirectories(path);
  if (!status.ok())
    return status;
  Result<Descriptor> directory = openDirectory(path);
  if (!directory.ok())
    return directory.status();
  sweep(*directory);
  // Written under another name, then renamed in one step.
  std::string temporary;
  Descriptor file = createTemporary(*directory, temporary);
  if (!file)
    return systemError("cannot write into the directory '" + path + "'");
  if (!writeAll(file, bytes) || !file.finish() ||
      renameat(directory->get(), temporary.c_str(), directory->get(),
               entryName(key).c_str()) != 0) {
    status = systemError("cannot write '" + fileName(key) + "'");
    (void)unlinkat(directory->get(), temporary.c_str(), 0);
  }
  return status;
}
