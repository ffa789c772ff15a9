//===- Identifier.cpp - names of functions in other languages -------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Support/Identifier.h"

static bool isDigit(char c) { return c >= '0' && c <= '9'; }

static bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool isHexDigit(char c) {
  return isDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static std::string escaped(char byte) {
  constexpr char digits[] = "0123456789abcdef";
  auto value = static_cast<unsigned char>(byte);
  return {'_', 'x', digits[value / 16], digits[value % 16], '_'};
}

/// "_x" and two digits, which stand for a byte.
static bool startsWithEscape(std::string_view text) {
  return text.size() >= 4 && text.substr(0, 2) == "_x" && isHexDigit(text[2]) &&
         isHexDigit(text[3]);
}

std::string attn::cIdentifier(std::string_view name) {
  std::string result;
  for (size_t i = 0; i < name.size(); ++i) {
    char byte = name[i];
    bool isKept = isLetter(byte) || (isDigit(byte) && i > 0) ||
                  (byte == '_' && !startsWithEscape(name.substr(i)));
    result += isKept ? std::string(1, byte) : escaped(byte);
  }
  return result;
}

std::string attn::ptxIdentifier(std::string_view name) {
  // The words that PTX keeps for itself, and the memory beside every kernel.
  if (name == "_" || name == "WARP_SZ" || name == "attn_shared_memory")
    return escaped(name.front()) + std::string(name.substr(1));
  return cIdentifier(name);
}
