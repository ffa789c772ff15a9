//===- CaptureCheck.cpp - promises that only data can break -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Check/CaptureCheck.h"

#include "attn/Conversion/CaptureReads.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Pipelines/Signature.h"

using namespace mlir;
using namespace attn;
using attn::runtime::Status;

static std::string nameOf(Value capture, int64_t number,
                          const Artifact &manifest) {
  auto argument = dyn_cast<BlockArgument>(capture);
  return argument ? manifest.arguments[argument.getArgNumber()].name
                  : "c" + std::to_string(number);
}

static CaptureFinding readFinding(const HostTensor &tensor) {
  std::vector<uint64_t> bits = tensor.bits();
  std::vector<int64_t> numbers(bits.begin(), bits.end());
  return {numbers[0], numbers[1],
          numbers[2], numbers[3],
          numbers[4], {numbers[5], numbers[6], numbers[7], numbers[8]}};
}

static Status describe(const CaptureFinding &finding, const std::string &name) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const auto &where = finding.where;
  os << "capture '" << name << "'";
  if (finding.kind == CaptureFinding::NotSorted)
    os << " is not sorted: element " << where[1] << " of row " << where[0]
       << " is " << finding.found << ", after " << finding.limit;
  else
    os << ": index " << finding.found << " of dimension " << finding.dim
       << ", which has " << finding.limit
       << " elements, is read at batch entry " << where[0] << ", head "
       << where[1] << ", query " << where[2] << ", key " << where[3]
       << ", where it matters";
  return Status::error(text);
}

FailureOr<Status> attn::checkCaptures(ModuleOp module, StringRef function,
                                      StringRef processor, Operands &operands) {
  FailureOr<func::FuncOp> found = findFunction(module, function);
  if (failed(found))
    return failure();
  ScoredOp attention;
  found->walk([&](ScoredOp op) { attention = op; });
  if (attention.getCaptures().empty())
    return Status();
  HostOptions options;
  options.kind = HostOptions::Kind::CaptureReads;
  options.processor = processor.str();
  auto program = HostProgram::compile(module, function, options);
  if (failed(program))
    return failure();
  HostTensor numbers(ElementKind::I64, {CaptureFinding::numNumbers});
  runtime::Arguments arguments = operands.arguments();
  arguments.resize(program->manifest().arguments.size() - 1);
  arguments.push_back(numbers.argument());
  if (Status status = program->invoke(arguments); !status.ok())
    return status;
  CaptureFinding finding = readFinding(numbers);
  if (finding.kind == CaptureFinding::None)
    return Status();
  return describe(finding, nameOf(attention.getCaptures()[finding.capture],
                                  finding.capture, program->manifest()));
}
