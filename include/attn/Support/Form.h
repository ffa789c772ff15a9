//===- Form.h - what a pass asks of the program it is given -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes of a room have an order. What a pass leaves can be seen in the
// program, and the program has the form of the last pass that left something. A
// pass names the form it needs. It takes programs of that form and of those
// before it, since passes may be left out or find nothing to do; a program of a
// later form is an error, not a slower kernel. The forms of a room stand in one
// table, in the order of its passes.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_FORM_H
#define ATTN_SUPPORT_FORM_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Operation.h"

namespace attn {

/// An operation that a pass makes, or leaves none of.
struct Sign {
  bool (*isShownBy)(Operation *op);
  StringLiteral what; // in words
  StringLiteral pass;
};

struct Form {
  StringLiteral name;
  /// What shows that a program has come to this form; empty for the first.
  ArrayRef<Sign> has;
  /// What is not in a program of this form.
  ArrayRef<Sign> lacks;
};

/// Checks that what is under `root` has the form number `needed` of a room, or
/// one before it. The error, at the operation that shows it, names the form of
/// the program and says where to run the pass.
inline LogicalResult requireForm(Operation *root, ArrayRef<Form> forms,
                                 size_t needed, StringRef pass) {
  // The last form, what shows it, and where.
  const Form *found = nullptr;
  const Sign *sign = nullptr;
  Operation *place = nullptr;
  root->walk([&](Operation *op) {
    for (const Form &form : forms.drop_front(needed + 1))
      for (const Sign &has : form.has)
        if ((!found || found < &form) && has.isShownBy(op))
          std::tie(found, sign, place) = std::tuple(&form, &has, op);
  });
  if (found) {
    InFlightDiagnostic error = place->emitError()
                               << pass << " needs " << forms[needed].name
                               << ", got " << found->name << ": " << sign->what;
    return sign->pass == pass ? error << "; it has run already"
                              : error << "; run it before " << sign->pass;
  }
  return success(!root->walk([&](Operation *op) -> WalkResult {
                        for (const Sign &lacked : forms[needed].lacks)
                          if (lacked.isShownBy(op))
                            return op->emitError()
                                   << pass << " needs " << forms[needed].name
                                   << ", got " << lacked.what
                                   << "; run it after " << lacked.pass;
                        return WalkResult::advance();
                      })
                      .wasInterrupted());
}

} // namespace attn

#endif // ATTN_SUPPORT_FORM_H
