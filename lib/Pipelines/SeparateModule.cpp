//===- SeparateModule.cpp - a module that a thread can have -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SeparateModule.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace attn;

SeparateModule::SeparateModule(ModuleOp original)
    : origin(original.getContext()),
      context(origin->getDialectRegistry(), MLIRContext::Threading::DISABLED),
      handler(&context, [this](Diagnostic &diagnostic) {
        messages.emplace_back(diagnostic);
        return success();
      }) {
  context.allowUnregisteredDialects(origin->allowsUnregisteredDialects());
  context.printOpOnDiagnostic(origin->shouldPrintOpOnDiagnostic());
  context.printStackTraceOnDiagnostic(
      origin->shouldPrintStackTraceOnDiagnostic());
  std::string text;
  llvm::raw_string_ostream stream(text);
  original.print(stream, OpPrintingFlags().enableDebugInfo());
  copy = parseSourceString<ModuleOp>(
      text, ParserConfig(&context, /*verifyAfterParse=*/false));
  assert(copy && "a module that does not parse as it prints");
}

SeparateModule::Message::Message(Diagnostic &diagnostic)
    : severity(diagnostic.getSeverity()), text(diagnostic.str()) {
  llvm::raw_string_ostream stream(location);
  diagnostic.getLocation().print(stream);
  for (Diagnostic &note : diagnostic.getNotes())
    notes.emplace_back(note);
}

Location SeparateModule::Message::findLocation(MLIRContext *context) const {
  auto found =
      dyn_cast_or_null<LocationAttr>(parseAttribute(location, context));
  return found ? Location(found) : UnknownLoc::get(context);
}

void SeparateModule::say() {
  for (const Message &message : messages) {
    InFlightDiagnostic diagnostic = origin->getDiagEngine().emit(
        message.findLocation(origin), message.severity);
    diagnostic << message.text;
    for (const Message &note : message.notes)
      diagnostic.attachNote(note.findLocation(origin)) << note.text;
  }
  messages.clear();
}
