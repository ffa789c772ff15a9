//===- Identifier.h - names of functions in other languages --- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function of MLIR may be called anything: @"a b", @"größe", @a.b. In PTX and
// in C a name has letters, digits and _. Any other byte becomes its number,
// `a_x20_b`; so does what would be read as such a number, and a leading digit.
// Different names stay different.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_IDENTIFIER_H
#define ATTN_SUPPORT_IDENTIFIER_H

#include <string>
#include <string_view>

namespace attn {

/// The name in C, as a part of one that begins with it.
std::string cIdentifier(std::string_view name);

/// The name of a kernel in PTX.
std::string ptxIdentifier(std::string_view name);

} // namespace attn

#endif // ATTN_SUPPORT_IDENTIFIER_H
