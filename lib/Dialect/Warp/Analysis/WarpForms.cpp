//===- WarpForms.cpp - by what the forms of warp kernels are known -------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Analysis/WarpForms.h"

#include "attn/Dialect/Warp/IR/Atoms.h"
#include "attn/Support/Form.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

static bool isResident(Operation *op) {
  auto kernel = dyn_cast<KernelOp>(op);
  return kernel && kernel.getResident();
}

static bool isStaged(Operation *op) {
  auto store = dyn_cast<StoreOp>(op);
  return store && store.getStaging();
}

/// Each tile fills it once: one slot would do.
static bool isDeepened(Operation *op) {
  auto ring = dyn_cast<RingOp>(op);
  return ring && ring.getRing().getType().getDepth() > 1 &&
         llvm::all_of(ring.getRing().getUsers(), [](Operation *user) {
           return !isa<CopyAsyncOp, StoreFragOp>(user) ||
                  isa<scf::WhileOp>(user->getParentOp());
         });
}

static bool isPlaced(Operation *op) {
  auto kernel = dyn_cast<KernelOp>(op);
  return kernel && kernel.getSharedBytes();
}

static bool isSynchronous(Operation *op) {
  auto product = dyn_cast<MmaOp>(op);
  return product && getTraits(product.getAtom()).isAsync;
}

/// The barriers of roles have their places at the end of a kernel's memory.
static bool isUnplaced(Operation *op) {
  auto kernel = dyn_cast<KernelOp>(op);
  auto alloc = dyn_cast<AllocOp>(op);
  auto ring = dyn_cast<RingOp>(op);
  return (kernel && kernel.hasRoles() && !kernel.getSharedBytes()) ||
         (alloc && !alloc.getOffset()) || (ring && !ring.getOffset());
}

// Dialects of other rooms are known by name only.
static bool isAttention(Operation *op) {
  return op->getName().getStringRef() == "attn.attention";
}
static bool isTileKernel(Operation *op) {
  return op->getName().getStringRef() == "tile.kernel";
}

template <typename Op> static bool isOp(Operation *op) { return isa<Op>(op); }

static constexpr Sign resident[] = {
    {isResident, "a resident kernel", "warp-persist"}};
static constexpr Sign buffered[] = {{isOp<RingOp>, "a ring", "warp-buffer"}};
static constexpr Sign roles[] = {{isOp<RoleOp>, "a role", "warp-specialize"}};
static constexpr Sign async[] = {
    {isOp<MmaAsyncOp>, "a product in flight", "warp-make-async"}};
static constexpr Sign staged[] = {
    {isStaged, "a store via shared memory", "warp-stage-stores"}};
static constexpr Sign deepened[] = {
    {isDeepened, "a ring of several slots that a tile fills once",
     "warp-deepen-rings"}};
static constexpr Sign placed[] = {
    {isPlaced, "memory that has its place", "warp-assign-resources"}};
static constexpr Sign launched[] = {
    {isOp<gpu::LaunchFuncOp>, "a gpu.launch_func", "convert-warp-to-gpu"}};

// A form lacks a part of these.
static constexpr Sign remains[] = {
    {isSynchronous,
     "a product that is waited for at once and could be in flight",
     "warp-make-async"},
    {isAttention, "an attn.attention", "convert-attn-to-tile"},
    {isTileKernel, "a tile.kernel", "convert-tile-to-warp"},
    {isUnplaced, "memory without a place", "warp-assign-resources"}};
static constexpr ArrayRef<Sign> kernels(remains + 1, 2),
    synchronous(remains, 3), unplaced(remains + 1, 3);

static constexpr Form forms[] = {
    {"warp-sync", {}, kernels},
    {"warp-resident", resident, kernels},
    {"warp-buffered", buffered, kernels},
    {"warp-roles", roles, kernels},
    {"warp-async", async, synchronous},
    {"warp-staged", staged, kernels},
    {"warp-deepened", deepened, kernels},
    {"warp-placed", placed, unplaced},
    {"gpu", launched, {}},
};

LogicalResult warp::requireForm(Operation *root, WarpForm form,
                                StringRef pass) {
  return attn::requireForm(root, forms, size_t(form), pass);
}
