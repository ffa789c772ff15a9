//===- TileEvaluator.cpp - visits of a tile kernel ------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileEvaluator.h"

#include "attn/Dialect/Attn/IR/ScoreBound.h"
#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cstdio>
#include <cstdlib>

using namespace mlir;
using namespace attn::test;
using namespace attn::tile;

namespace {
/// Values of integers at one row and column of a block.
class Evaluator {
public:
  Evaluator(func::FuncOp func, const std::vector<Argument> &arguments)
      : func(func), arguments(arguments) {}

  void set(Value value, int64_t number) { scalars[value] = number; }
  void forget() { scalars.clear(); }
  void setPoint(int64_t newRow, int64_t newColumn) {
    row = newRow;
    column = newColumn;
  }
  int64_t get(Value value);

private:
  int64_t compute(Operation *op, Value value);
  int64_t computeBinary(Operation *op, int64_t a, int64_t b);
  int64_t compare(arith::CmpIPredicate predicate, int64_t a, int64_t b,
                  unsigned width);
  const Argument &memory(Value view) {
    return arguments[cast<BlockArgument>(view).getArgNumber()];
  }
  int64_t load(Value view, ArrayRef<int64_t> indices, bool mustBeInside);

  func::FuncOp func;
  const std::vector<Argument> &arguments;
  DenseMap<Value, int64_t> scalars;
  int64_t row = 0, column = 0;
};
} // namespace

static void stop(const Twine &reason, Operation *op) {
  std::string text;
  llvm::raw_string_ostream(text) << reason << ": " << *op;
  std::fprintf(stderr, "%s\n", text.c_str());
  std::exit(1);
}

int64_t Evaluator::load(Value view, ArrayRef<int64_t> indices,
                        bool mustBeInside) {
  const Argument &tensor = memory(view);
  int64_t place = 0;
  for (auto [index, size] : llvm::zip_equal(indices, tensor.shape)) {
    if (index < 0 || index >= size) {
      if (mustBeInside)
        stop("out of range", func);
      return 0;
    }
    place = place * size + index;
  }
  return tensor.data[place];
}

int64_t Evaluator::get(Value value) {
  bool isScalar = !isa<ShapedType>(value.getType());
  if (isScalar) {
    auto known = scalars.find(value);
    if (known != scalars.end())
      return known->second;
  }
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != &func.getBody().front())
      stop("unknown argument", argument.getOwner()->getParentOp());
    return arguments[argument.getArgNumber()].data.front();
  }
  int64_t result = compute(value.getDefiningOp(), value);
  if (isScalar)
    scalars[value] = result;
  return result;
}

int64_t Evaluator::compare(arith::CmpIPredicate predicate, int64_t a, int64_t b,
                           unsigned width) {
  using arith::CmpIPredicate;
  uint64_t ua = llvm::maskTrailingOnes<uint64_t>(width) & uint64_t(a);
  uint64_t ub = llvm::maskTrailingOnes<uint64_t>(width) & uint64_t(b);
  switch (predicate) {
  case CmpIPredicate::eq:
    return ua == ub;
  case CmpIPredicate::ne:
    return ua != ub;
  case CmpIPredicate::slt:
    return a < b;
  case CmpIPredicate::sle:
    return a <= b;
  case CmpIPredicate::sgt:
    return a > b;
  case CmpIPredicate::sge:
    return a >= b;
  case CmpIPredicate::ult:
    return ua < ub;
  case CmpIPredicate::ule:
    return ua <= ub;
  case CmpIPredicate::ugt:
    return ua > ub;
  case CmpIPredicate::uge:
    return ua >= ub;
  }
  return 0;
}

int64_t Evaluator::computeBinary(Operation *op, int64_t a, int64_t b) {
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case([&](arith::AddIOp) { return a + b; })
      .Case([&](arith::SubIOp) { return a - b; })
      .Case([&](arith::MulIOp) { return a * b; })
      .Case([&](arith::DivSIOp) { return a / b; })
      .Case([&](arith::RemSIOp) { return a % b; })
      .Case([&](arith::DivUIOp) { return uint32_t(a) / uint32_t(b); })
      .Case([&](arith::RemUIOp) { return uint32_t(a) % uint32_t(b); })
      .Case([&](arith::FloorDivSIOp) { return llvm::divideFloorSigned(a, b); })
      .Case([&](arith::CeilDivSIOp) { return llvm::divideCeilSigned(a, b); })
      .Case([&](arith::MinSIOp) { return std::min(a, b); })
      .Case([&](arith::MaxSIOp) { return std::max(a, b); })
      .Case([&](arith::ShRSIOp) { return a >> b; })
      .Case([&](arith::ShRUIOp) { return int64_t(uint32_t(a) >> b); })
      .Case([&](arith::ShLIOp) { return a << b; })
      .Case([&](arith::AndIOp) { return a & b; })
      .Case([&](arith::OrIOp) { return a | b; })
      .Case([&](arith::XOrIOp) { return a ^ b; })
      .Case([&](arith::CmpIOp compareOp) {
        Type type = getElementTypeOrSelf(compareOp.getLhs());
        return compare(compareOp.getPredicate(), a, b,
                       type.isIndex() ? 64 : type.getIntOrFloatBitWidth());
      })
      .Default([&](Operation *other) -> int64_t {
        stop("not evaluated", other);
        return 0;
      });
}

int64_t Evaluator::compute(Operation *op, Value value) {
  if (std::optional<int64_t> number = getIntegerConstant(value))
    return getElementTypeOrSelf(value).isInteger(1) ? *number & 1 : *number;
  auto all = [&](OperandRange operands) {
    return llvm::map_to_vector(operands, [&](Value v) { return get(v); });
  };
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case<vector::BroadcastOp, arith::IndexCastOp, arith::IndexCastUIOp,
            arith::ExtSIOp, arith::ExtUIOp>(
          [&](Operation *) { return get(op->getOperand(0)); })
      .Case([&](CoordsOp coords) {
        return get(coords.getBase()) + (coords.getAxis() == 0 ? row : column);
      })
      .Case([&](math::AbsIOp) { return std::abs(get(op->getOperand(0))); })
      .Case([&](arith::SelectOp select) {
        return get(select.getCondition()) ? get(select.getTrueValue())
                                          : get(select.getFalseValue());
      })
      .Case([&](GatherOp gather) {
        return load(gather.getView(), all(gather.getIndices()), false);
      })
      .Case([&](memref::LoadOp loadOp) {
        return load(loadOp.getMemRef(), all(loadOp.getIndices()), true);
      })
      .Case([&](SearchOp search) {
        const Argument &tensor = memory(search.getView());
        SmallVector<int64_t> place = all(search.getIndices());
        for (auto [index, size] : llvm::zip(place, tensor.shape))
          if (index < 0 || index >= size)
            return int64_t(0);
        int64_t limit = get(search.getValue()), count = 0;
        place.push_back(0);
        for (; place.back() < tensor.shape.back(); ++place.back())
          count += load(search.getView(), place, true) <= limit;
        return count;
      })
      .Case([&](memref::DimOp dim) {
        return memory(dim.getSource()).shape[get(dim.getIndex())];
      })
      .Case([&](scf::IfOp branch) {
        Block *taken = get(branch.getCondition()) ? branch.thenBlock()
                                                  : branch.elseBlock();
        unsigned number = cast<OpResult>(value).getResultNumber();
        return get(taken->getTerminator()->getOperand(number));
      })
      .Default([&](Operation *) {
        if (op->getNumOperands() != 2)
          stop("not evaluated", op);
        return computeBinary(op, get(op->getOperand(0)),
                             get(op->getOperand(1)));
      });
}

/// The key block of the iteration: the rows of the keys' box.
static int64_t getKeyBlock(Evaluator &evaluator, scf::ForOp loop,
                           int64_t blockSize) {
  for (auto load : loop.getBody()->getOps<LoadOp>()) {
    SmallVector<Value> indices(load.getIndices());
    return evaluator.get(indices[indices.size() - 2]) / blockSize;
  }
  stop("no keys", loop);
  return 0;
}

static Visit visit(Evaluator &evaluator, scf::ForOp loop, int64_t firstRow,
                   int64_t numQueries) {
  auto softmax = *loop.getBody()->getOps<OnlineSoftmaxOp>().begin();
  auto tile = cast<VectorType>(softmax.getScores().getType());
  // select mask, scores, -inf
  auto select = softmax.getScores().getDefiningOp<arith::SelectOp>();
  if (select && !attn::isMinusInf(select.getFalseValue()))
    select = {};
  Visit result{getKeyBlock(evaluator, loop, tile.getDimSize(1)), bool(select)};
  for (int64_t row = 0; row < tile.getDimSize(0); ++row)
    for (int64_t column = 0; column < tile.getDimSize(1); ++column) {
      evaluator.setPoint(row, column);
      bool isSeen = !select || evaluator.get(select.getCondition()) != 0;
      result.showsInAnyRow |= isSeen;
      result.isFullInAllRows &= isSeen;
      if (firstRow + row < numQueries) {
        result.shows |= isSeen;
        result.isFull &= isSeen;
      }
    }
  return result;
}

std::map<std::string, std::vector<Visit>>
attn::test::runKernel(ModuleOp module, const std::vector<Argument> &arguments) {
  std::map<std::string, std::vector<Visit>> visits;
  auto func = *module.getOps<func::FuncOp>().begin();
  auto kernel = *func.getOps<KernelOp>().begin();
  Evaluator evaluator(func, arguments);
  SmallVector<int64_t> sizes;
  for (Value size : kernel.getGrid())
    sizes.push_back(evaluator.get(size));
  auto runBlock = [&](ArrayRef<int64_t> numbers) {
    evaluator.forget();
    for (auto [argument, number] :
         llvm::zip_equal(kernel.getNumbers(), numbers))
      evaluator.set(argument, number);
    // The queries' box says which rows they are; without loops there is none.
    int64_t firstRow = 0, queryBlock = numbers[2];
    for (auto query : kernel.getBody()->getOps<LoadOp>()) {
      firstRow = evaluator.get(query.getIndices()[2]);
      queryBlock = firstRow /
                   cast<VectorType>(query.getResult().getType()).getDimSize(0);
    }
    std::string name = std::to_string(numbers[0]) + " " +
                       std::to_string(numbers[1]) + " " +
                       std::to_string(queryBlock);
    std::vector<Visit> &list = visits[name];
    for (auto loop : kernel.getBody()->getOps<scf::ForOp>()) {
      int64_t lo = evaluator.get(loop.getLowerBound());
      int64_t hi = evaluator.get(loop.getUpperBound());
      for (int64_t n = lo; n < hi; ++n) {
        Evaluator inner = evaluator;
        inner.set(loop.getInductionVar(), n);
        list.push_back(visit(inner, loop, firstRow, arguments[0].shape[2]));
      }
    }
  };
  for (int64_t b = 0; b < sizes[0]; ++b)
    for (int64_t h = 0; h < sizes[1]; ++h)
      for (int64_t x = 0; x < sizes[2]; ++x)
        runBlock({b, h, x});
  return visits;
}
