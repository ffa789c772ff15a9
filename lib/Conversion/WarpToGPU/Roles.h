//===- Roles.h - warps that copy and warps that compute ---------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_ROLES_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_ROLES_H

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/IRMapping.h"

namespace attn::warp {

/// How the operations of a kernel with roles use the barriers of their rings.
struct RolePlan {
  /// A ring as seen by what fills or drains it.
  struct Access {
    int64_t barriers = 0; // byte of shared memory of slot 0's full barrier
    int64_t depth = 0;
    /// Arrivals that complete a phase of `full`, and one of `empty`.
    int64_t fills = 0, releases = 0;
    /// False: another use has waited for the same phase, of joined rings.
    bool waits = true;
    /// From the barriers of one slot to those of the next.
    int64_t stride = RingOp::barrierBytesPerSlot;
    int64_t tensorMap = 0; // argument of the kernel function (copies)
    int64_t boxPanels = 1; // of the tensor map
  };
  llvm::DenseMap<Operation *, Access> accesses;
  /// Stores by TMA.
  struct TensorStore {
    int64_t tensorMap = 0;
    bool isAwaited = false; // the slot is one of a ring
    /// The groups of bulk stores since the last one via this slot: they may
    /// still be read when it is written again.
    int64_t younger = 0;
  };
  llvm::DenseMap<Operation *, TensorStore> stores;
  /// The number of a release's await, and of the await. A release that has none
  /// leaves it to another one to arrive.
  llvm::DenseMap<Operation *, int64_t> awaitNumbers;
  /// Releases that arrive for slots that each lane reads for itself.
  llvm::DenseSet<Operation *> releasesOfLanes;
  /// The empty barrier of the slot that await number i gave, once lowered.
  SmallVector<Value> emptyBarriers;

  bool contains(Operation *op) const { return accesses.contains(op); }
};

/// The tensor maps that the roles of a kernel need, without repetition; and for
/// each copy, and each store by TMA, its map's place in that list.
struct TensorMaps {
  SmallVector<TensorMapAttr> maps;
  llvm::DenseMap<Operation *, int64_t> places;

  /// A map that `op` needs, which is added to the list if it is new.
  void add(Operation *op, TensorMapAttr map);
};
FailureOr<TensorMaps> collectTensorMaps(KernelOp kernel);

/// The barriers of the slot that an item of a ring uses, and the parity of the
/// phase in which it arrives; i32.
struct ItemBarriers {
  Value full, empty, parity;

  static ItemBarriers get(OpBuilder &builder, Operation *op, Value item,
                          const RolePlan::Access &access);
};

/// Finds the rings of the operations of `kernel` and says it of their
/// clones, those of the kernel function, whose arguments from `firstMap` on are
/// the tensor maps.
RolePlan planRoles(KernelOp kernel, const IRMapping &clones,
                   const TensorMaps &maps, int64_t firstMap);

/// Replaces roles by branches on the warp's number: those that compute first,
/// so that the number of a warp of the first is that of its rows. Sets up
/// barriers and registers.
void lowerRoles(RewriterBase &rewriter, gpu::GPUFuncOp function,
                const RolePlan &plan);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_ROLES_H
