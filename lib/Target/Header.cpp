//===- Header.cpp - an artifact as a C header -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/Header.h"

#include "attn/Support/Identifier.h"
#include "attn/Support/LLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace attn;

static bool isInteger(ElementKind element) {
  return element >= ElementKind::I1;
}

/// "q: bf16, ?x8x?x64", "seed: i32".
static void printArgument(const ArgumentInfo &info, llvm::raw_ostream &os) {
  os << info.name << ": " << elementName(info.element);
  if (!info.isTensor)
    return;
  os << ", ";
  for (auto [i, size] : llvm::enumerate(info.shape))
    os << (i ? "x" : "")
       << (size < 0 ? std::string("?") : std::to_string(size));
  if (info.alignment > 0)
    os << ", aligned to " << info.alignment << " bytes";
  os << (info.isOutput ? " (result)" : "");
}

/// The plan; of several variants the rule, and each by its number.
static void printPlans(const Artifact &artifact, llvm::raw_ostream &os) {
  bool isOne = artifact.variants.size() == 1;
  if (!isOne)
    os << "   variants, by the rule " << artifact.rule.print() << ":\n";
  for (auto [number, variant] : llvm::enumerate(artifact.variants))
    os << "   " << (isOne ? "" : std::to_string(number) + ": ") << variant.plan
       << "\n";
}

static void printBytes(llvm::StringRef name, llvm::StringRef bytes,
                       llvm::raw_ostream &os) {
  constexpr size_t perLine = 20;
  os << "static const unsigned char " << name << "_artifact[" << bytes.size()
     << "] = {";
  for (auto [i, byte] : llvm::enumerate(bytes))
    os << (i % perLine ? "" : "\n    ") << unsigned((unsigned char)byte) << ",";
  os << "\n};\n\n";
}

/// Loads function `number` of the artifact in `bytes`.
static void printLoad(llvm::StringRef name, llvm::StringRef bytes,
                      size_t number, llvm::raw_ostream &os) {
  os << "/* Onto GPU number `device`; -1: that of the current context. NULL, "
        "and\n   attnErrorMessage(), if that fails. */\n"
     << "static inline AttnKernel *" << name << "_load(int device) {\n"
     << "  AttnArtifact *" << (number ? "all" : "artifact")
     << " =\n      attnArtifactParse(" << bytes << "_artifact, sizeof(" << bytes
     << "_artifact));\n";
  if (number)
    os << "  AttnArtifact *artifact =\n      all ? "
       << "attnArtifactCopyFunction(all, " << number << ") : NULL;\n";
  os << "  AttnKernel *kernel = artifact ? attnLoad(artifact, device) : NULL;\n"
     << "  if (artifact)\n    attnArtifactDestroy(artifact);\n";
  if (number)
    os << "  if (all)\n    attnArtifactDestroy(all);\n";
  os << "  return kernel;\n}\n\n";
}

static void printLaunch(const Artifact &artifact, llvm::StringRef name,
                        llvm::raw_ostream &os) {
  os << "/* Puts the kernel into `stream` (a CUstream or cudaStream_t) and "
        "returns; 0 on\n   success. */\n"
     << "static inline int " << name << "_launch(const AttnKernel *kernel";
  for (const ArgumentInfo &info : artifact.arguments)
    os << ",\n    "
       << (info.isTensor             ? "AttnTensor "
           : isInteger(info.element) ? "int64_t "
                                     : "double ")
       << "arg_" << cIdentifier(info.name);
  os << ",\n    void *stream) {\n  AttnArgument arguments["
     << artifact.arguments.size() << "];\n";
  for (auto [i, info] : llvm::enumerate(artifact.arguments)) {
    std::string place = "arguments[" + std::to_string(i) + "]";
    bool integer = isInteger(info.element);
    os << "  " << place << ".kind = "
       << (info.isTensor ? "ATTN_TENSOR"
           : integer     ? "ATTN_INTEGER"
                         : "ATTN_REAL")
       << ";\n  " << place << ".value."
       << (info.isTensor ? "tensor"
           : integer     ? "integer"
                         : "real")
       << " = arg_" << cIdentifier(info.name) << ";\n";
  }
  os << "  return attnLaunch(kernel, arguments, " << artifact.arguments.size()
     << ", stream);\n}\n\n";
}

/// What a function is called in C.
static std::string nameInC(const Artifact &function) {
  return cIdentifier(function.name) + "_" + function.target;
}

std::string attn::emitHeader(const Artifact &artifact) {
  // One program may hold a function for several targets, and functions whose
  // names differ in case only; other kernels under one name are an error of the
  // C compiler, the same header twice is none.
  std::string text, bytes = artifact.serialize();
  std::string name = nameInC(artifact);
  constexpr size_t checksumDigits = 16;
  std::string guard = "ATTN_KERNEL_" + name + "_" +
                      bytes.substr(bytes.size() - checksumDigits) + "_H";
  llvm::raw_string_ostream os(text);
  os << "/* " << cIdentifier(artifact.name) << " for " << artifact.target
     << ", made by attn " << artifact.compilerVersion << ".\n";
  for (const Artifact *function : artifact.functions()) {
    if (!artifact.companions.empty())
      os << "   " << nameInC(*function) << ":\n";
    printPlans(*function, os);
    for (const ArgumentInfo &info : function->arguments) {
      os << "   ";
      printArgument(info, os);
      os << "\n";
    }
  }
  os << "*/\n#ifndef " << guard << "\n#define " << guard
     << "\n\n#include \"attn-c/attn.h\"\n\n";
  printBytes(name, bytes, os);
  for (auto [number, function] : llvm::enumerate(artifact.functions())) {
    std::string own = nameInC(*function);
    printLoad(own, name, number, os);
    printLaunch(*function, own, os);
  }
  os << "#endif /* " << guard << " */\n";
  return text;
}
