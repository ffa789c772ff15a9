//===- Processor.cpp - which processor code is compiled for -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Execute/Processor.h"

#include "attn/Target/PTX.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

using namespace attn;
using llvm::orc::JITTargetMachineBuilder;

static llvm::Error fault(const llvm::Twine &message) {
  return llvm::createStringError(message.str());
}

template <typename Table> static std::string listNames(const Table &table) {
  return llvm::join(llvm::map_range(table, [](auto &row) { return row.Key; }),
                    ", ");
}

void attn::initializeBackends() {
  static std::once_flag once;
  std::call_once(once, [] {
    initializeGPUBackend();
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

static std::unique_ptr<llvm::MCSubtargetInfo>
describe(const llvm::Triple &triple, StringRef name, StringRef features) {
  initializeBackends();
  std::string message;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, message);
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      target ? target->createMCSubtargetInfo(triple, name, features) : nullptr);
}

/// Every processor of this kind has what this one has.
static StringRef plainProcessor(const llvm::Triple &triple) {
  return triple.getArch() == llvm::Triple::x86_64 ? "x86-64" : "generic";
}

/// Words that LLVM knows; it only warns of others.
static llvm::Error checkWords(const llvm::MCSubtargetInfo &known,
                              StringRef name,
                              llvm::ArrayRef<StringRef> features) {
  if (name != "native" && !known.isCPUStringValid(name))
    return fault("unknown processor '" + name + "', expected native, " +
                 listNames(known.getAllProcessorDescriptions()));
  for (StringRef feature : features) {
    StringRef bare = feature;
    if ((bare.consume_front("+") || bare.consume_front("-")) &&
        llvm::any_of(known.getAllProcessorFeatures(),
                     [&](auto &row) { return bare == row.Key; }))
      continue;
    return fault("unknown feature '" + feature + "' of '" + name +
                 "', expected + or - and one of " +
                 listNames(known.getAllProcessorFeatures()));
  }
  return llvm::Error::success();
}

/// Code for `wanted` runs here, and can be made. The rest of the features are
/// of the kind that this processor was not asked for.
static llvm::Error checkRuns(const llvm::MCSubtargetInfo &wanted,
                             const llvm::MCSubtargetInfo &plain,
                             StringRef processor) {
  for (const auto &entry : llvm::sys::getHostCPUFeatures()) {
    std::string feature = "+" + entry.getKey().str();
    bool isWanted = wanted.checkFeatures(feature);
    if (isWanted && !entry.getValue())
      return fault("processor '" + processor + "' has " + entry.getKey() +
                   ", the one at hand has not");
    if (!isWanted && plain.checkFeatures(feature))
      return fault("processor '" + processor + "' has no " + entry.getKey() +
                   ", which every " + plain.getCPU() + " has");
  }
  return llvm::Error::success();
}

llvm::Expected<JITTargetMachineBuilder>
attn::selectProcessor(StringRef processor) {
  llvm::Triple triple(llvm::sys::getProcessTriple());
  StringRef plainName = plainProcessor(triple);
  auto plain = describe(triple, plainName, "");
  if (!plain)
    return fault("no code can be made for " + triple.str());
  SmallVector<StringRef> words;
  processor.split(words, ',');
  StringRef name = words.front();
  auto features = llvm::ArrayRef(words).drop_front();
  if (llvm::Error error = checkWords(*plain, name, features))
    return error;
  llvm::Expected<JITTargetMachineBuilder> builder =
      name == "native" ? JITTargetMachineBuilder::detectHost()
                       : JITTargetMachineBuilder(triple).setCPU(name.str());
  if (!builder)
    return builder.takeError();
  builder->addFeatures({features.begin(), features.end()});
  auto wanted =
      describe(triple, builder->getCPU(), builder->getFeatures().getString());
  if (llvm::Error error = checkRuns(*wanted, *plain, processor))
    return error;
  return builder;
}

runtime::Status attn::checkProcessor(StringRef processor) {
  auto builder = selectProcessor(processor);
  return builder ? runtime::Status()
                 : runtime::Status::error(llvm::toString(builder.takeError()));
}
