//===- ValueScopes.h - where the names of a text stand ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PIPELINES_VALUESCOPES_H
#define ATTN_LIB_PIPELINES_VALUESCOPES_H

#include "attn/Support/LLVM.h"
#include "llvm/ADT/StringSet.h"

namespace attn {

/// The names of values in the curly brackets that are open at one place of a
/// text. If the second block of a region is wrong, MLIR's parser frees the
/// first but not the uses of its values outside of the region; this finds such
/// uses.
class ValueScopes {
public:
  void open() { scopes.emplace_back(); }
  void close();

  /// A name, `%` included, and the text after it.
  void add(StringRef name, StringRef rest);

  /// Reads `text`, which begins with `^`, and returns the first value of the
  /// block that ends here which is used outside of its region; or nothing.
  /// Only `^name:` and `^name(%a : i32):` begin a block and end the last:
  /// `text` moves to the colon. A branch to a block has none.
  StringRef readLabel(StringRef &text);

private:
  StringRef endBlock();

  struct Scope {
    /// Names that stand here without a definition.
    llvm::StringSet<> used;
    /// Those that are defined here or further inside, and how many of them
    /// belong to blocks that have ended.
    SmallVector<StringRef, 0> values;
    size_t ended = 0;
  };
  SmallVector<Scope, 0> scopes = SmallVector<Scope, 0>(1);
};

} // namespace attn

#endif // ATTN_LIB_PIPELINES_VALUESCOPES_H
