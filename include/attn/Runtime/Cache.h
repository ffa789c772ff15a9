//===- Cache.h - compiled artifacts on disk ------------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_CACHE_H
#define ATTN_RUNTIME_CACHE_H

#include "attn/Runtime/Result.h"
#include "attn/Support/Artifact.h"

namespace attn::runtime {

/// All that a kernel is a function of. Any text; nothing is normalised.
struct CacheKey {
  std::string op;       // the source program
  std::string plan;     // with every choice; a rule where there are several
  std::string target;   // "sm_80"
  std::string compiler; // the identity of the compiler, not only its number
  std::string options;  // whatever else was asked for
};

/// A directory of artifacts, one file per key. Several processes may use one
/// directory at once: a file appears whole or not at all. The key is stored in
/// the file, so two keys with one hash cannot be confused, and a file that was
/// damaged is as good as absent.
///
/// What is found is run: a directory or a file that another user owns or may
/// write to is not used, nor is what is no file. Directories are made with mode
/// 0700, files with 0600, less what the umask takes.
class Cache {
public:
  explicit Cache(std::string directory) : path(std::move(directory)) {}
  /// $XDG_CACHE_HOME/attn, or $HOME/.cache/attn.
  static Result<Cache> user();

  const std::string &directory() const { return path; }
  /// The file that `key` has or would have.
  std::string fileName(const CacheKey &key) const;
  /// The artifact stored under `key`, if any.
  std::optional<Artifact> find(const CacheKey &key) const;
  /// Stores `artifact`, replacing what was there; makes the directory, and
  /// removes what writers that were killed have left there.
  Status store(const CacheKey &key, const Artifact &artifact) const;

private:
  std::string path;
};

} // namespace attn::runtime

#endif // ATTN_RUNTIME_CACHE_H
