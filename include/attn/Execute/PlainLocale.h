//===- PlainLocale.h - numbers with a decimal point -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_EXECUTE_PLAINLOCALE_H
#define ATTN_EXECUTE_PLAINLOCALE_H

#include <locale.h>

namespace attn {

/// The locale "C" for this thread, until the object goes. LLVM reads and prints
/// floats through the C library, which writes "0,5" where the process that has
/// loaded us asked for that.
class PlainLocale {
public:
  PlainLocale()
      : plain(newlocale(LC_ALL_MASK, "C", nullptr)),
        previous(plain ? uselocale(plain) : nullptr) {}
  ~PlainLocale() {
    if (!plain)
      return;
    uselocale(previous);
    freelocale(plain);
  }
  PlainLocale(const PlainLocale &) = delete;
  PlainLocale &operator=(const PlainLocale &) = delete;

private:
  locale_t plain, previous;
};

} // namespace attn

#endif // ATTN_EXECUTE_PLAINLOCALE_H
