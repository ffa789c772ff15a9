//===- NarrowBits.cpp - f16 and bf16 moved as integers -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/ProcessorPasses.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {
#define GEN_PASS_DEF_LLVMNARROWFLOATSTOBITS
#include "attn/Conversion/ProcessorPasses.h.inc"
} // namespace attn

using namespace mlir;

static bool isNarrow(Type type) { return type.isF16() || type.isBF16(); }

namespace {
struct LLVMNarrowFloatsToBits
    : public attn::impl::LLVMNarrowFloatsToBitsBase<LLVMNarrowFloatsToBits> {
  void runOnOperation() override {
    Type bits = IntegerType::get(&getContext(), 16);
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](FloatType type) -> std::optional<Type> {
      return isNarrow(type) ? std::optional<Type>(bits) : std::nullopt;
    });
    replacer.addReplacement([&](FloatAttr number) -> std::optional<Attribute> {
      if (!isNarrow(number.getType()))
        return std::nullopt;
      return IntegerAttr::get(bits, number.getValue().bitcastToAPInt());
    });
    replacer.addReplacement(
        [&](DenseFPElementsAttr numbers) -> std::optional<Attribute> {
          if (!isNarrow(numbers.getElementType()))
            return std::nullopt;
          return numbers.bitcast(bits);
        });
    // What has come no further than a room of this compiler stays as it is: its
    // types are not made of any other.
    replacer.addReplacement(
        [&](Type type) -> std::optional<std::pair<Type, WalkResult>> {
          if (isa<BuiltinDialect, LLVM::LLVMDialect>(type.getDialect()))
            return std::nullopt;
          return std::make_pair(type, WalkResult::skip());
        });
    replacer.recursivelyReplaceElementsIn(getOperation(),
                                          /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
  }
};
} // namespace
