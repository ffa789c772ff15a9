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
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Cache.h"

#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace attn;
using namespace attn::runtime;

static constexpr const char *kMagic = "attn-cache 1\n";

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

std::string Cache::fileName(const CacheKey &key) const {
  uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
  for (unsigned char byte : keyText(key))
    hash = (hash ^ byte) * 0x100000001b3u;
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016" PRIx64, hash);
  return path + "/" + digits + ".attn";
}

static std::optional<std::string> readFile(const std::string &name) {
  int file = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return std::nullopt;
  std::string bytes;
  char block[65536];
  ssize_t count;
  do {
    count = read(file, block, sizeof(block));
    if (count > 0)
      bytes.append(block, static_cast<size_t>(count));
  } while (count > 0 || (count < 0 && errno == EINTR));
  close(file);
  if (count < 0)
    return std::nullopt;
  return bytes;
}

std::optional<Artifact> Cache::find(const CacheKey &key) const {
  std::optional<std::string> bytes = readFile(fileName(key));
  std::string expected = header(key);
  if (!bytes || bytes->compare(0, expected.size(), expected) != 0)
    return std::nullopt;
  std::string error;
  return Artifact::parse(std::string_view(*bytes).substr(expected.size()),
                         error);
}

static Status systemError(const std::string &what) {
  return Status::error(what + ": " + std::strerror(errno));
}

// mkdir -p
static Status makeDirectories(const std::string &path) {
  for (size_t end = path.find('/', 1); end != std::string::npos;
       end = path.find('/', end + 1))
    (void)mkdir(path.substr(0, end).c_str(), 0777); // the last one tells
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)
    return systemError("cannot make the directory '" + path + "'");
  return Status();
}

static bool writeAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

Status Cache::store(const CacheKey &key, const Artifact &artifact) const {
  Status status = makeDirectories(path);
  if (!status.ok())
    return status;
  // A file of this process alone, then renamed into place in one step.
  std::string temporary = path + "/new-XXXXXX";
  int file = mkstemp(temporary.data());
  if (file < 0)
    return systemError("cannot write into the directory '" + path + "'");
  bool written = writeAll(file, header(key) + artifact.serialize()) &&
                 fchmod(file, 0644) == 0;
  written &= close(file) == 0;
  if (!written || rename(temporary.c_str(), fileName(key).c_str()) != 0) {
    status = systemError("cannot write '" + fileName(key) + "'");
    (void)unlink(temporary.c_str());
  }
  return status;
}
