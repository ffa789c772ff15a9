//===- MailboxOps.cpp - tiles that are handed out --------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/Warp.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn::warp;

LogicalResult DrawOp::verify() {
  auto type = dyn_cast<MemRefType>(getCounter().getType());
  if (!type || type.getShape() != ArrayRef<int64_t>({1}) ||
      !type.getElementType().isInteger(32))
    return emitOpError("counts in ")
           << getCounter().getType() << ", expected a memref of one i32"; // C2
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (!kernel || !kernel.getResident())
    return emitOpError("stands outside a resident kernel"); // C1
  return success();
}

LogicalResult MailboxOp::verify() {
  if (!isa_and_present<KernelOp>((*this)->getParentOp()))
    return emitOpError("must stand directly in a warp.kernel"); // C1
  return success();
}

int64_t MailboxOp::getOffset() {
  auto kernel = cast<KernelOp>((*this)->getParentOp());
  assert(kernel.getSharedBytes() && kernel.hasRoles() && "a placed kernel");
  int64_t offset = *kernel.getSharedBytes();
  for (auto mailbox : kernel.getBodyBlock()->getOps<MailboxOp>()) {
    MailboxType type = mailbox.getRing().getType();
    offset -= type.getDepth() * type.getItemBytes();
    if (mailbox == *this)
      break;
  }
  return offset;
}

LogicalResult SendOp::verify() {
  int64_t count = getRing().getType().getCount();
  if (int64_t(getValues().size()) != count)
    return emitOpError("sends ")
           << getValues().size() << " numbers in " << getRing().getType(); // C1
  return success();
}

LogicalResult ReceiveOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location>,
                                          ValueRange operands, DictionaryAttr,
                                          OpaqueProperties, RegionRange,
                                          SmallVectorImpl<Type> &types) {
  auto ring = dyn_cast<MailboxType>(operands.front().getType());
  if (!ring)
    return failure();
  types.assign(ring.getCount(), IndexType::get(context)); // C1
  return success();
}
