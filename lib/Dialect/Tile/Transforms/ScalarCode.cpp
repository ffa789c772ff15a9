//===- ScalarCode.cpp - scalar regions as code on vectors -----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Transforms/ScalarCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {
/// Clones one region. A value's shape is what it depends on: batch and head
/// only (a scalar), the row (Mx1), the column (1xN), or both (MxN).
class Expansion {
public:
  Expansion(OpBuilder &outer, OpBuilder &inner, scf::ForOp loop,
            Operation *early, ArrayRef<int64_t> shape, const IRMapping &outside)
      : outer(outer), inner(inner), loop(loop), early(early), whole(shape),
        mapping(outside) {}

  Value run(Block &block, ValueRange arguments, Value root) {
    mapping.map(block.getArguments(), arguments);
    for (Value argument : arguments)
      if (!isKnownBefore(argument))
        variant.insert(argument);
    for (Operation &op : block.without_terminator())
      clone(op);
    return stretch(inner, lookup(root), whole);
  }

private:
  using Shape = SmallVector<int64_t, 2>;

  Value lookup(Value value) const { return mapping.lookupOrDefault(value); }

  static Shape shapeOf(Value value) {
    if (auto type = dyn_cast<VectorType>(value.getType()))
      return Shape(type.getShape());
    return {};
  }

  /// Whether a value is known where `outer` builds.
  bool isKnownBefore(Value value) {
    if (loop)
      return loop.isDefinedOutsideOfLoop(value);
    Operation *op = value.getDefiningOp();
    return !early || !op || op->getBlock() != early->getBlock() ||
           op->isBeforeInBlock(early);
  }

  /// The smallest shape all operands stretch to.
  static Shape joinShapes(ArrayRef<Value> operands) {
    Shape joined;
    for (Value operand : operands) {
      Shape shape = shapeOf(operand);
      if (joined.empty())
        joined = shape;
      else if (!shape.empty())
        for (auto [to, from] : llvm::zip(joined, shape))
          to = std::max(to, from);
    }
    return joined;
  }

  static Value stretch(OpBuilder &builder, Value value,
                       ArrayRef<int64_t> shape) {
    if (ArrayRef<int64_t>(shapeOf(value)) == shape)
      return value;
    auto type = VectorType::get(shape, getElementTypeOrSelf(value));
    TypedAttr constant;
    if (matchPattern(value, m_Constant(&constant)) &&
        !isa<VectorType>(value.getType()))
      return arith::ConstantOp::create(builder, value.getLoc(), type,
                                       DenseElementsAttr::get(type, constant));
    return vector::BroadcastOp::create(builder, value.getLoc(), type, value);
  }

  void clone(Operation &op) {
    SmallVector<Value> operands = lookupAll(op.getOperands());
    if (isa<GatherOp>(op))
      for (auto [operand, value] : llvm::zip_equal(op.getOperands(), operands))
        if (Value digit = readDigit(operand))
          value = digit;
    Shape shape = joinShapes(operands);
    // Before the loop only what does not depend on it, and cannot trap there.
    bool isInvariant = llvm::none_of(operands, [&](Value value) {
      return variant.contains(value) || !isKnownBefore(value);
    });
    // One number per row at most: columns would be registers while a product
    // fills its own.
    if (early && !shape.empty() && shape.back() != 1)
      isInvariant = false;
    bool hoist =
        isInvariant && (isSpeculatable(&op) || isa<GatherOp, SearchOp>(op));
    OpBuilder &builder = hoist ? outer : inner;
    Value result;
    if (auto gather = dyn_cast<GatherOp>(op))
      result = expandGather(builder, gather, operands, shape);
    else if (auto search = dyn_cast<SearchOp>(op))
      result = expandSearch(builder, search, shape);
    else if (isa<memref::DimOp>(op))
      result = builder.clone(op, mapping)->getResult(0);
    else
      result = cloneElementwise(builder, op, shape);
    mapping.map(op.getResult(0), result);
    if (!hoist)
      variant.insert(result);
  }

  /// Of the quotient or the remainder of a position by a constant, where blocks
  /// are as long as the divisor, or one is a multiple of the other: a scalar,
  /// or what all blocks share; null otherwise.
  Value readDigit(Value index);

  SmallVector<Value> lookupAll(ValueRange values) const {
    return llvm::map_to_vector(values, [&](Value v) { return lookup(v); });
  }

  Value expandSearch(OpBuilder &builder, SearchOp op, const Shape &shape) {
    Type type = op.getResult().getType();
    if (!shape.empty())
      type = VectorType::get(shape, type);
    return SearchOp::create(builder, op.getLoc(), type, lookup(op.getView()),
                            lookupAll(op.getIndices()), lookup(op.getValue()));
  }

  Value expandGather(OpBuilder &builder, GatherOp op, ArrayRef<Value> operands,
                     const Shape &shape) {
    Value view = operands.front();
    ArrayRef<Value> indices = operands.drop_front();
    if (shape.empty())
      return loadElement(builder, op.getLoc(), view, indices);
    return GatherOp::create(
        builder, op.getLoc(), VectorType::get(shape, op.getResult().getType()),
        view, indices, op.getSorted(), op.getInside(), op.getAligned());
  }

  Value cloneElementwise(OpBuilder &builder, Operation &op,
                         const Shape &shape) {
    SmallVector<Value> operands;
    for (Value operand : op.getOperands()) {
      Value value = lookup(operand);
      operands.push_back(shape.empty() ? value
                                       : stretch(builder, value, shape));
    }
    Type type = op.getResult(0).getType();
    if (!shape.empty())
      type = VectorType::get(shape, type);
    OperationState state(op.getLoc(), op.getName(), operands, type,
                         op.getDiscardableAttrDictionary().getValue());
    state.propertiesAttr = op.getPropertiesAsAttribute();
    return builder.create(state)->getResult(0);
  }

  OpBuilder &outer, &inner;
  scf::ForOp loop; // or null
  /// Without a loop, the operation before the code that `outer` builds before;
  /// null if that is where the rest goes, too.
  Operation *early;
  ArrayRef<int64_t> whole;
  IRMapping mapping;
  /// What exists only inside the loop. (Shapes do not tell: a block may have
  /// one row or one column.)
  DenseSet<Value> variant;
};
} // namespace

/// A number by which `value` can be divided; 0 if it is 0.
static int64_t getDivisor(Value value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return std::abs(*constant);
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    return getDivisor(cast.getIn());
  auto product = value.getDefiningOp<arith::MulIOp>();
  return product ? getDivisor(product.getLhs()) * getDivisor(product.getRhs())
                 : 1;
}

namespace {
/// position // divisor or position % divisor, of an argument of a region.
struct Digit {
  Value position;
  int64_t divisor = 0;
  bool isRemainder = false;

  static Digit match(Value value);
};
} // namespace

Digit Digit::match(Value value) {
  Digit digit;
  if (auto difference = value.getDefiningOp<arith::SubIOp>()) {
    auto product = difference.getRhs().getDefiningOp<arith::MulIOp>();
    if (!product)
      return {};
    digit = match(product.getLhs());
    if (digit.isRemainder || digit.position != difference.getLhs() ||
        getConstantIntValue(product.getRhs()) != digit.divisor)
      return {};
    digit.isRemainder = true;
    return digit;
  }
  Operation *op = value.getDefiningOp();
  // Positions are not negative: all divisions are alike.
  bool isQuotient =
      isa_and_present<arith::FloorDivSIOp, arith::DivSIOp, arith::DivUIOp>(op);
  digit.isRemainder = isa_and_present<arith::RemSIOp, arith::RemUIOp>(op);
  if ((!isQuotient && !digit.isRemainder) ||
      !isa<BlockArgument>(op->getOperand(0)))
    return {};
  digit.position = op->getOperand(0);
  digit.divisor = getConstantIntValue(op->getOperand(1)).value_or(0);
  return digit.divisor > 0 ? digit : Digit();
}

Value Expansion::readDigit(Value index) {
  Digit digit = Digit::match(index);
  auto coords = digit.position
                    ? lookup(digit.position).getDefiningOp<CoordsOp>()
                    : CoordsOp();
  if (!coords)
    return {};
  Location loc = coords.getLoc();
  Value base = coords.getBase();
  VectorType type = coords.getType();
  int64_t block = getDivisor(base), divisor = digit.divisor;
  int64_t size = type.getNumElements();
  bool isVariant = variant.contains(coords) || !isKnownBefore(coords);
  auto make = [&](OpBuilder &b, Value first) -> Value {
    return CoordsOp::create(b, loc, type, first, coords.getAxis());
  };
  auto makeLocal = [&] {
    return make(outer, arith::ConstantOp::create(outer, loc,
                                                 outer.getI32IntegerAttr(0)));
  };
  bool isFirst = block == 0;
  // All positions of a block have one quotient.
  if (isFirst ? size <= divisor : divisor % block == 0 && size <= block) {
    if (digit.isRemainder && (isFirst || block == divisor))
      return makeLocal();
    OpBuilder &b = isVariant ? inner : outer;
    Value length =
        arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(divisor));
    Value result = arith::FloorDivSIOp::create(b, loc, base, length);
    if (digit.isRemainder) {
      Value whole = arith::MulIOp::create(b, loc, result, length);
      result = make(b, arith::SubIOp::create(b, loc, base, whole));
    }
    if (isVariant)
      variant.insert(result);
    return result;
  }
  if (!digit.isRemainder || block % divisor != 0)
    return {};
  // All blocks have the same remainders.
  Value local = makeLocal();
  Value length = arith::ConstantOp::create(
      outer, loc,
      DenseElementsAttr::get(type, outer.getI32IntegerAttr(divisor)));
  Value quotient = arith::FloorDivSIOp::create(outer, loc, local, length);
  Value whole = arith::MulIOp::create(outer, loc, quotient, length);
  return arith::SubIOp::create(outer, loc, local, whole);
}

Value attn::tile::loadElement(OpBuilder &builder, Location loc, Value view,
                              ValueRange indices) {
  Type element = cast<MemRefType>(view.getType()).getElementType();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value inside = arith::ConstantIntOp::create(builder, loc, 1, 1);
  SmallVector<Value> positions;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    Value position =
        arith::IndexCastOp::create(builder, loc, builder.getIndexType(), index);
    Value size = builder.createOrFold<memref::DimOp>(loc, view, dim);
    Value conditions[] = {
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, position,
                              zero),
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, position,
                              size)};
    for (Value condition : conditions)
      inside = builder.createOrFold<arith::AndIOp>(loc, inside, condition);
    positions.push_back(position);
  }
  auto load = scf::IfOp::create(
      builder, loc, inside,
      [&](OpBuilder &b, Location loc) {
        Value value = memref::LoadOp::create(b, loc, view, positions);
        scf::YieldOp::create(b, loc, value);
      },
      [&](OpBuilder &b, Location loc) {
        Value value = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
        scf::YieldOp::create(b, loc, value);
      });
  return load.getResult(0);
}

Value attn::tile::expandScalarCode(OpBuilder &inner, Operation *head,
                                   Region &region, ValueRange arguments,
                                   ArrayRef<int64_t> shape, Value root,
                                   const IRMapping &outside) {
  auto loop = dyn_cast_or_null<scf::ForOp>(inner.getBlock()->getParentOp());
  OpBuilder outer(head);
  bool isEarly = !loop && head != &*inner.getInsertionPoint();
  Block &block = region.front();
  return Expansion(outer, inner, loop, isEarly ? head : nullptr, shape, outside)
      .run(block, arguments,
           root ? root : block.getTerminator()->getOperand(0));
}

/// What `loadElement` builds of an argument.
static memref::LoadOp matchElement(scf::IfOp op) {
  if (op.getNumResults() != 1 || op.elseBlock() == nullptr)
    return {};
  auto load = dyn_cast<memref::LoadOp>(op.thenBlock()->front());
  if (!load || op.thenYield().getOperand(0) != load.getResult() ||
      !matchPattern(op.elseYield().getOperand(0), m_Constant()) ||
      !isa<BlockArgument>(load.getMemRef()))
    return {};
  return load;
}

static bool isWritten(Value memory) {
  return llvm::any_of(memory.getUsers(), [](Operation *user) {
    return hasEffect<MemoryEffects::Write>(user);
  });
}

/// Replaces reads of elements of what nobody writes by earlier ones: all that
/// are alike now, as others are alike only when these are.
static bool shareElements(RewriterBase &rewriter, func::FuncOp function) {
  DominanceInfo dominance(function);
  SmallVector<scf::IfOp> reads;
  function.walk([&](scf::IfOp op) {
    if (matchElement(op))
      reads.push_back(op);
  });
  llvm::SmallDenseMap<Value, bool> written;
  llvm::DenseMap<Value, SmallVector<scf::IfOp>> kept; // by condition
  bool changes = false;
  for (scf::IfOp read : reads) {
    memref::LoadOp load = matchElement(read);
    Value memory = load.getMemRef();
    auto [known, isNew] = written.try_emplace(memory, false);
    if (isNew)
      known->second = isWritten(memory);
    if (known->second)
      continue;
    SmallVector<scf::IfOp> &others = kept[read.getCondition()];
    auto *same = llvm::find_if(others, [&](scf::IfOp first) {
      memref::LoadOp other = matchElement(first);
      return other.getMemRef() == memory &&
             other.getIndices() == load.getIndices() &&
             dominance.properlyDominates(first, read);
    });
    if (same == others.end()) {
      others.push_back(read);
      continue;
    }
    rewriter.replaceOp(read, *same);
    changes = true;
  }
  return changes;
}

void attn::tile::shareScalarCode(RewriterBase &rewriter,
                                 func::FuncOp function) {
  do {
    // What nobody uses is no place for what others compute later.
    (void)runRegionDCE(rewriter, function->getRegions());
    DominanceInfo dominance(function);
    eliminateCommonSubExpressions(rewriter, dominance, function);
  } while (shareElements(rewriter, function));
}
