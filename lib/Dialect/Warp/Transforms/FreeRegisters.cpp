//===- FreeRegisters.cpp - what products leave to a lane -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FreeRegisters.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn::warp;

int64_t attn::warp::countRegisters(Type type) {
  auto fragment = dyn_cast<FragType>(type);
  if (!fragment)
    return 0;
  constexpr int64_t registerBits = 32;
  int64_t bits = fragment.getElementType().getIntOrFloatBitWidth(),
          elements = fragment.getLayout().numRegisters();
  if (fragment.getKind() == FragKind::A)
    return llvm::divideCeil(bits * elements, registerBits);
  return llvm::divideCeil(bits, registerBits) * elements;
}

int64_t attn::warp::countFreeRegisters(Block *body,
                                       ArrayRef<MmaAsyncOp> products) {
  constexpr int64_t least = 16;
  Operation *parent = body->getParentOp();
  auto role = isa<RoleOp>(parent) ? cast<RoleOp>(parent)
                                  : parent->getParentOfType<RoleOp>();
  if (!role || !role.getRegisters())
    return std::numeric_limits<int64_t>::max();
  // A sixth is for addresses, numbers of the loop and what masks and functions
  // of scores compute.
  int64_t limit = *role.getRegisters(), left = limit - limit / 6;
  if (auto loop = dyn_cast<scf::ForOp>(parent))
    for (Value carried : loop.getRegionIterArgs())
      left -= countRegisters(carried.getType());
  for (auto load : body->getOps<LoadFragOp>())
    if (!products.empty() && load->isBeforeInBlock(products.front()))
      left -= countRegisters(load.getResult().getType());
  for (MmaAsyncOp product : products)
    if (!isa<BlockArgument>(product.getAcc())) // which is carried
      left -= countRegisters(product.getAcc().getType());
  return std::max(left, least);
}
