//===- Result.h - errors as values ---------------------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_RESULT_H
#define ATTN_RUNTIME_RESULT_H

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace attn::runtime {

/// Success, or a message that says what was got and what was wanted.
class [[nodiscard]] Status {
public:
  Status() = default;
  static Status error(std::string message) {
    Status status;
    status.text = std::move(message);
    return status;
  }

  bool ok() const { return !text.has_value(); }
  /// Empty on success.
  const std::string &message() const {
    static const std::string none;
    return text ? *text : none;
  }

private:
  std::optional<std::string> text;
};

/// A value, or the status that says why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : value(std::move(value)) {}
  Result(Status error) : failure(std::move(error)) {
    assert(!failure.ok() && "a result without a value needs an error");
  }

  bool ok() const { return value.has_value(); }
  const Status &status() const { return failure; }
  const std::string &message() const { return failure.message(); }

  T &operator*() {
    assert(ok() && "no value");
    return *value;
  }
  const T &operator*() const {
    assert(ok() && "no value");
    return *value;
  }
  T *operator->() { return &**this; }
  const T *operator->() const { return &**this; }

private:
  std::optional<T> value;
  Status failure;
};

} // namespace attn::runtime

#endif // ATTN_RUNTIME_RESULT_H
