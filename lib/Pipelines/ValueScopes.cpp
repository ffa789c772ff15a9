//===- ValueScopes.cpp - where the names of a text stand --------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ValueScopes.h"

#include "llvm/ADT/StringExtras.h"

using namespace attn;

static bool isNameCharacter(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$' || c == '-';
}

/// After a name: `= …`, `:2 = …` or `, %other = …`.
static bool isDefinition(StringRef rest) {
  while (true) {
    rest = rest.ltrim();
    if (rest.consume_front(":"))
      rest = rest.ltrim().drop_while(llvm::isDigit).ltrim();
    if (!rest.consume_front(","))
      return rest.starts_with("=") && !rest.starts_with("==");
    rest = rest.ltrim();
    if (!rest.consume_front("%"))
      return false;
    rest = rest.drop_while(isNameCharacter);
  }
}

void ValueScopes::add(StringRef name, StringRef rest) {
  if (isDefinition(rest))
    scopes.back().values.push_back(name);
  else
    scopes.back().used.insert(name);
}

void ValueScopes::close() {
  if (scopes.size() == 1)
    return;
  Scope inner = scopes.pop_back_val();
  llvm::append_range(scopes.back().values, inner.values);
}

StringRef ValueScopes::endBlock() {
  Scope &scope = scopes.back();
  for (; scope.ended < scope.values.size(); ++scope.ended)
    for (const Scope &outer : llvm::ArrayRef(scopes).drop_back())
      if (outer.used.contains(scope.values[scope.ended]))
        return scope.values[scope.ended];
  return {};
}

StringRef ValueScopes::readLabel(StringRef &text) {
  StringRef arguments;
  StringRef rest = text.drop_front().drop_while(isNameCharacter).ltrim();
  if (rest.starts_with("("))
    std::tie(arguments, rest) = rest.drop_front().split(')');
  rest = rest.ltrim();
  if (!rest.starts_with(":"))
    return {};
  text = rest;
  StringRef escaped = endBlock();
  while (true) {
    arguments = arguments.drop_until([](char c) { return c == '%'; });
    if (arguments.empty())
      return escaped;
    size_t length =
        1 + arguments.drop_front().take_while(isNameCharacter).size();
    scopes.back().values.push_back(arguments.take_front(length));
    arguments = arguments.drop_front(length);
  }
}
