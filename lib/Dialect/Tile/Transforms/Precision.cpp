//===- Precision.cpp - what programs promise of roundings -----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Precision.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace attn;

bool attn::tile::isPrecise(Operation *op) {
  auto numerics =
      op->getParentOfType<func::FuncOp>()->getAttrOfType<NumericsAttr>(
          AttnDialect::kNumericsAttrName);
  return numerics && (!numerics.getFastMath() ||
                      numerics.getF32Products() == F32Products::IEEE);
}
