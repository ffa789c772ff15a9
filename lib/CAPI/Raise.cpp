//===- x - Raise.cpp - attention in plain graphs, for C -----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Handles.h"

#include "attn/Execute/Session.h"

using namespace attn;

struct AttnRaised {
  RaisedText raised;
};

// Whether there is a handle; if not, that is the error of `call`.
static bool isGiven(const AttnRaised *raised, const char *call) {
  if (!raised)
    capi::setError(std::string(call) + ": raised is NULL");
  return raised != nullptr;
}

AttnRaised *attnRaise(const char *text, size_t size) {
  if (!text) {
    capi::setError("attnRaise: text is NULL");
    return nullptr;
  }
  Session session;
  runtime::Result<RaisedText> raised = session.raise({text, size});
  if (!raised.ok()) {
    capi::setError(raised.message());
    return nullptr;
  }
  return new AttnRaised{std::move(*raised)};
}

void attnRaisedDestroy(AttnRaised *raised) { delete raised; }

const char *attnRaisedGetText(const AttnRaised *raised) {
  return isGiven(raised, "attnRaisedGetText") ? raised->raised.text.c_str()
                                              : nullptr;
}

const char *attnRaisedGetLog(const AttnRaised *raised) {
  return isGiven(raised, "attnRaisedGetLog") ? raised->raised.log.c_str()
                                             : nullptr;
}

int attnRaisedGetCount(const AttnRaised *raised) {
  return isGiven(raised, "attnRaisedGetCount") ? raised->raised.numRaised : -1;
}
