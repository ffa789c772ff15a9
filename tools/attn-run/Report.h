//===- Report.h - what a trial gave, as text or JSON -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_ATTNRUN_REPORT_H
#define ATTN_TOOLS_ATTNRUN_REPORT_H

#include "attn/Tune/Trial.h"
#include "llvm/Support/raw_ostream.h"

namespace attn {

/// One report; of several functions a line each, or an array.
void printText(ArrayRef<TrialReport> reports, llvm::raw_ostream &os);
void printJSON(ArrayRef<TrialReport> reports, llvm::raw_ostream &os);

} // namespace attn

#endif // ATTN_TOOLS_ATTNRUN_REPORT_H
