//===- NegatedExtremes.h - what an assembler gets wrong -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ptxas 13.0 (V13.0.88, and the driver of the same release) forgets a sign: on
// sm_90 it makes one VIMNMX3 of max(max(a, -b), c), of signed integers, and
// that computes max(a, b, c); min likewise. Seen where `-b` is the second
// operand of the inner one; with -O0 it is right. Bounds of |x| are such
// maxima, and a block of keys that is visible was taken for hidden.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_NEGATEDEXTREMES_H
#define ATTN_TARGET_NEGATEDEXTREMES_H

namespace llvm {
class Module;
}

namespace attn {

/// Writes each signed max(a, -b), also where it is a comparison and a choice,
/// as ~min(~a, b - 1), which is the same for all a and b, and min likewise: no
/// negation is left that an assembler could make part of another instruction.
void rewriteNegatedExtremes(llvm::Module &module);

} // namespace attn

#endif // ATTN_TARGET_NEGATEDEXTREMES_H
