//===- AddRelayouts.cpp - kernels that copy tensors -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AddRelayouts.h"

#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Support/Identifier.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <set>

namespace attn {
#define GEN_PASS_DEF_GPUADDRELAYOUTS
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

static constexpr int64_t rank = 4, threads = 256;
/// Of the last two dimensions, for each block.
static constexpr int64_t elementsPerBlock = 4096;

/// A strided tensor of elements of that size, whatever they are.
static MemRefType viewType(MLIRContext *context, int64_t elementBytes) {
  SmallVector<int64_t> unknown(rank, ShapedType::kDynamic);
  return MemRefType::get(unknown, IntegerType::get(context, 8 * elementBytes),
                         StridedLayoutAttr::get(context, 0, unknown));
}

static int64_t elementBytes(MemRefType type) {
  constexpr int64_t indexBytes = 8;
  Type element = type.getElementType();
  return element.isIntOrFloat()
             ? llvm::divideCeil(element.getIntOrFloatBitWidth(), 8)
             : indexBytes;
}

/// Copies the elements of one block; consecutive threads write neighbours.
static void buildBody(OpBuilder &builder, gpu::GPUFuncOp function) {
  Location loc = function.getLoc();
  Value from = function.getArgument(0), to = function.getArgument(1);
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto block = [&](gpu::Dimension dimension) -> Value {
    return gpu::BlockIdOp::create(builder, loc, dimension);
  };
  Value outermost = block(gpu::Dimension::z), outer = block(gpu::Dimension::y);
  Value rows = memref::DimOp::create(builder, loc, from, rank - 2);
  Value columns = memref::DimOp::create(builder, loc, from, rank - 1);
  Value count = arith::MulIOp::create(builder, loc, rows, columns);
  Value size = index(elementsPerBlock);
  Value first =
      arith::MulIOp::create(builder, loc, block(gpu::Dimension::x), size);
  Value end = arith::AddIOp::create(builder, loc, first, size);
  end = arith::MinSIOp::create(builder, loc, end, count);
  Value thread = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
  Value start = arith::AddIOp::create(builder, loc, first, thread);
  auto loop = scf::ForOp::create(builder, loc, start, end, index(threads));
  gpu::ReturnOp::create(builder, loc);
  builder.setInsertionPointToStart(loop.getBody());
  Value element = loop.getInductionVar();
  Value row = arith::DivUIOp::create(builder, loc, element, columns);
  Value column = arith::RemUIOp::create(builder, loc, element, columns);
  SmallVector<Value> position = {outermost, outer, row, column};
  Value value = memref::LoadOp::create(builder, loc, from, position);
  memref::StoreOp::create(builder, loc, value, to, position);
}

gpu::GPUFuncOp attn::addRelayout(gpu::GPUModuleOp module, StringRef name,
                                 int64_t elementBytes) {
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  Type view = viewType(module.getContext(), elementBytes);
  auto function =
      gpu::GPUFuncOp::create(builder, module.getLoc(), name,
                             builder.getFunctionType({view, view}, {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                    builder.getUnitAttr());
  function.setKnownBlockSize(std::array<int32_t, 3>{threads, 1, 1});
  function->setAttr(
      warp::WarpDialect::kRelayoutAttrName,
      builder.getDenseI64ArrayAttr({elementBytes, elementsPerBlock}));
  builder.setInsertionPointToStart(&function.getBody().front());
  buildBody(builder, function);
  return function;
}

namespace {
struct GPUAddRelayouts
    : public attn::impl::GPUAddRelayoutsBase<GPUAddRelayouts> {
  void runOnOperation() override {
    for (auto host : getOperation().getOps<func::FuncOp>()) {
      auto launches = host.getOps<gpu::LaunchFuncOp>();
      if (launches.empty())
        continue;
      auto module = SymbolTable::lookupNearestSymbolFrom<gpu::GPUModuleOp>(
          host, (*launches.begin()).getKernelModuleName());
      if (!module)
        continue;
      std::set<int64_t> sizes;
      for (Type type : host.getArgumentTypes())
        if (auto memory = dyn_cast<MemRefType>(type))
          if (memory.getRank() <= rank)
            sizes.insert(elementBytes(memory));
      for (int64_t size : sizes)
        addRelayout(module,
                    ptxIdentifier(
                        (host.getName() + "_relayout" + Twine(8 * size)).str()),
                    size);
    }
  }
};
} // namespace
