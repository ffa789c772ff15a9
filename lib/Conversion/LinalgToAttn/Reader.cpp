//===- Reader.cpp - tensors to expressions -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reader.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/ScopeExit.h"

#include <cmath>

using namespace mlir;
using namespace attn::raise;
using Kind = Expr::Kind;

/// Nested operations beyond which a tensor or a scalar is a name, and not what
/// it is computed from: expressions are walked on the stack. Of one expression,
/// and of all that are being read, one inside of the other.
static constexpr unsigned maxDepth = 300, maxOpen = 1000;

bool attn::raise::isContraction(ExprRef expr) {
  if (!expr->isReduction(Combiner::Add) || !expr->isFloat())
    return false;
  auto varies = [&](ExprRef factor) {
    return llvm::any_of(expr->bound(), [&](ExprRef variable) {
      return Expressions::dependsOn(factor, variable);
    });
  };
  return llvm::count_if(product(expr->body()).factors, varies) >= 2;
}

SmallVector<ExprRef> Reader::makeIndices(Value tensor) {
  SmallVector<ExprRef> indices;
  auto type = cast<RankedTensorType>(tensor.getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    indices.push_back(e.variable(extents.of(tensor, dim)));
  return indices;
}

ArrayRef<ExprRef> Reader::originsOf(ExprRef expr) {
  auto found = origins.find(expr);
  return found == origins.end() ? ArrayRef<ExprRef>() : found->second;
}

//===----------------------------------------------------------------------===//
// Reading on
//===----------------------------------------------------------------------===//

ExprRef Reader::read(Value tensor, ArrayRef<ExprRef> indices) {
  return expand(e.element(tensor, indices));
}

/// The products of a sum are found before they are read on: what feeds a
/// contraction stays as it stands.
static bool stopsAt(ExprRef expr) {
  return expr->kind == Kind::Reduction && isContraction(expr);
}

ExprRef Reader::expand(ExprRef expr) {
  return e.rewrite(expr, [&](ExprRef node) -> ExprRef {
    if (stopsAt(node))
      return node;
    if (node->kind != Kind::Element)
      return nullptr;
    if (ExprRef known = expanded.lookup(node))
      return known;
    if (numOpen >= maxOpen)
      return node;
    unsigned opened = numOpen++;
    llvm::scope_exit close([&] { numOpen = opened; });
    SmallVector<ExprRef> indices;
    for (ExprRef index : node->operands)
      indices.push_back(expand(index));
    ExprRef element = e.element(node->value, indices);
    ExprRef result =
        readOnce(node->value, element->operands, node->number != 0);
    // A sum of one tensor that holds products.
    while (result && result->isReduction(Combiner::Add) &&
           !isContraction(result) && result->body()->kind == Kind::Element) {
      SmallVector<ExprRef> variables;
      for (ExprRef bound : result->bound())
        variables.push_back(e.variable(bound->extents[0]));
      ExprRef body = e.instantiate(result, variables);
      ExprRef next = readOnce(body->value, body->operands);
      if (!next)
        break;
      result = e.reduction(result->combiner, next, result->init(), variables);
    }
    if (result && !stopsAt(result)) {
      numOpen += result->depth;
      result = numOpen < maxOpen ? expand(result) : nullptr;
    }
    if (!result || result->depth > maxDepth)
      result = element;
    if (result->kind == Kind::Reduction &&
        !llvm::is_contained(origins[result], element))
      origins[result].push_back(element);
    expanded[node] = result;
    return result;
  });
}

ExprRef Reader::readOnce(Value tensor, ArrayRef<ExprRef> indices,
                         bool keepsRoundings) {
  ExprRef read = readProducer(tensor, indices);
  return read ? e.settleRoundings(read, keepsRoundings) : nullptr;
}

ExprRef Reader::readProducer(Value tensor, ArrayRef<ExprRef> indices) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  Operation *op = tensor.getDefiningOp();
  if (!op || !type || !type.getElementType().isIntOrIndexOrFloat())
    return nullptr;
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return readStructured(structured, cast<OpResult>(tensor).getResultNumber(),
                          indices);
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op))
    return readSoftmax(softmax, indices);
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
    return splat
               ? readConstant(cast<TypedAttr>(splat.getSplatValue<Attribute>()))
               : nullptr;
  }
  if (OpTrait::hasElementwiseMappableTraits(op))
    return readElementwise(op, indices);
  return readView(op, indices);
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

ExprRef Reader::readConstant(TypedAttr value) {
  if (auto real = dyn_cast<FloatAttr>(value))
    return e.real(real.getValueAsDouble());
  if (auto integer = dyn_cast<IntegerAttr>(value))
    if (integer.getValue().getBitWidth() <= 64)
      return e.integer(integer.getType().isInteger(1)
                           ? int64_t(integer.getValue().getZExtValue())
                           : integer.getValue().getSExtValue(),
                       integer.getType());
  return nullptr;
}

ExprRef Reader::readOperation(Operation *op, ArrayRef<ExprRef> operands) {
  if (op->getNumRegions() != 0 || op->getNumResults() != 1 ||
      !isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
          op->getDialect()) ||
      isa<arith::BitcastOp, arith::ConstantOp>(op))
    return nullptr;
  if (llvm::any_of(operands,
                   [](ExprRef operand) { return operand->depth > maxDepth; }))
    return nullptr;
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  if (isa<arith::TruncFOp>(op))
    return e.rounding(operands[0], type);
  if (isa<arith::ExtFOp>(op))
    return operands[0];
  if (!type.isIntOrIndexOrFloat())
    return nullptr;
  int64_t predicate = 0;
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    predicate = static_cast<int64_t>(compare.getPredicate());
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    predicate = static_cast<int64_t>(compare.getPredicate());
  SmallVector<ExprRef> read;
  for (auto [value, operand] : llvm::zip_equal(op->getOperands(), operands))
    read.push_back(e.readInF64(operand, getElementTypeOrSelf(value.getType())));
  return e.writtenAs(e.operation(op->getName(), type, read, predicate), type);
}

/// A scalar of the function: constants and arithmetic are read, the rest is
/// its name.
ExprRef Reader::readScalar(Value value) {
  if (!value.getType().isIntOrIndexOrFloat())
    return nullptr;
  if (ExprRef known = scalars.lookup(value))
    return known;
  if (numOpen >= maxOpen)
    return e.scalar(value);
  ++numOpen;
  ExprRef result = computeScalar(value);
  --numOpen;
  if (result)
    scalars[value] = result;
  return result;
}

ExprRef Reader::computeScalar(Value value) {
  TypedAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return readConstant(constant);
  Operation *op = value.getDefiningOp();
  if (auto dim = dyn_cast_if_present<tensor::DimOp>(op))
    if (dim.getConstantIndex())
      return e.size(extents.of(OpFoldResult(value)));
  if (std::optional<Extent> size = extents.sizeOf(value))
    return e.size(*size);
  if (auto extract = dyn_cast_if_present<tensor::ExtractOp>(op)) {
    SmallVector<ExprRef> indices;
    for (Value index : extract.getIndices())
      if (ExprRef position = readScalar(index))
        indices.push_back(position);
    if (indices.size() == extract.getIndices().size())
      return e.element(extract.getTensor(), indices);
  }
  if (op) {
    SmallVector<ExprRef> operands;
    for (Value operand : op->getOperands())
      if (ExprRef read = readScalar(operand))
        operands.push_back(read);
    if (op->getNumOperands() > 0 && operands.size() == op->getNumOperands())
      if (ExprRef result = readOperation(op, operands))
        return result;
  }
  return e.scalar(value);
}

/// What one side of a choice that is written as a branch gives the other does,
/// too, as long as nothing else comes of it.
ExprRef Reader::readBranches(scf::IfOp op, ExprRef condition,
                             const llvm::DenseMap<Value, ExprRef> &values,
                             ArrayRef<ExprRef> loops) {
  if (op.getNumResults() != 1 || !op.elseBlock())
    return nullptr;
  auto yes = readBody(*op.thenBlock(), values, loops);
  auto no = readBody(*op.elseBlock(), values, loops);
  if (yes.empty() || no.empty())
    return nullptr;
  Type type = op.getResult(0).getType();
  return e.make<arith::SelectOp>(type, {condition, yes[0], no[0]});
}

SmallVector<ExprRef> Reader::readBody(Block &block,
                                      llvm::DenseMap<Value, ExprRef> values,
                                      ArrayRef<ExprRef> loops) {
  auto lookup = [&](Value value) -> ExprRef {
    if (ExprRef known = values.lookup(value))
      return known;
    return value.getParentBlock() == &block ? nullptr : readScalar(value);
  };
  for (Operation &op : block.without_terminator()) {
    SmallVector<ExprRef> operands;
    for (Value operand : op.getOperands()) {
      if (isa<RankedTensorType>(operand.getType())) {
        operands.push_back(nullptr);
        continue;
      }
      ExprRef read = lookup(operand);
      if (!read)
        return {};
      operands.push_back(read);
    }
    ExprRef result = nullptr;
    if (auto index = dyn_cast<linalg::IndexOp>(op)) {
      result = loops[index.getDim()];
    } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      result = readConstant(constant.getValue());
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      result = e.element(extract.getTensor(), ArrayRef(operands).drop_front());
    } else if (auto branches = dyn_cast<scf::IfOp>(op)) {
      result = readBranches(branches, operands[0], values, loops);
    } else if (isa<tensor::DimOp>(op)) {
      result = e.size(extents.of(OpFoldResult(op.getResult(0))));
    } else if (!llvm::is_contained(operands, nullptr)) {
      result = readOperation(&op, operands);
    }
    if (!result)
      return {};
    values[op.getResult(0)] = result;
  }
  SmallVector<ExprRef> results;
  for (Value value : block.getTerminator()->getOperands()) {
    ExprRef read = lookup(value);
    if (!read)
      return {};
    results.push_back(read);
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Structured operations
//===----------------------------------------------------------------------===//

ExprRef Reader::readMap(AffineExpr map, ArrayRef<ExprRef> dims) {
  if (auto dim = dyn_cast<AffineDimExpr>(map))
    return dims[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(map))
    return e.index(constant.getValue());
  auto binary = dyn_cast<AffineBinaryOpExpr>(map);
  if (!binary)
    return nullptr;
  ExprRef lhs = readMap(binary.getLHS(), dims);
  ExprRef rhs = readMap(binary.getRHS(), dims);
  if (!lhs || !rhs)
    return nullptr;
  switch (map.getKind()) {
  case AffineExprKind::Add:
    return e.make<arith::AddIOp>(e.indexType, {lhs, rhs});
  case AffineExprKind::Mul:
    return e.make<arith::MulIOp>(e.indexType, {lhs, rhs});
  case AffineExprKind::FloorDiv:
    return e.make<arith::FloorDivSIOp>(e.indexType, {lhs, rhs});
  default:
    return nullptr;
  }
}

/// What `expr` combines with `accumulator`: x of accumulator + x.
static ExprRef withoutAccumulator(Expressions &e, ExprRef expr,
                                  ExprRef accumulator, StringRef name) {
  if (expr->kind != Kind::Operation || expr->operands.size() != 2 ||
      expr->name->getStringRef() != name)
    return nullptr;
  ExprRef a = expr->operands[0], b = expr->operands[1];
  if (Expressions::dependsOn(a, accumulator))
    std::swap(a, b);
  if (Expressions::dependsOn(a, accumulator))
    return nullptr;
  if (b == accumulator)
    return a;
  // (accumulator + x) + y
  ExprRef rest = withoutAccumulator(e, b, accumulator, name);
  return rest ? e.operation(*expr->name, expr->type, {rest, a}) : nullptr;
}

/// The sum of a product and an accumulator, for one that is fused.
static ExprRef splitFma(Expressions &e, ExprRef expr) {
  if (!expr->is<math::FmaOp>())
    return expr;
  return e.add(e.mul(expr->operands[0], expr->operands[1]),
               splitFma(e, expr->operands[2]));
}

static Combiner combinerOf(ExprRef expr) {
  if (expr->kind != Kind::Operation)
    return Combiner::Other;
  return llvm::StringSwitch<Combiner>(expr->name->getStringRef())
      .Cases({"arith.addf", "arith.addi"}, Combiner::Add)
      .Cases({"arith.mulf", "arith.muli"}, Combiner::Mul)
      .Cases({"arith.maximumf", "arith.maxnumf"}, Combiner::Max)
      .Cases({"arith.minimumf", "arith.minnumf"}, Combiner::Min)
      .Case("arith.andi", Combiner::And)
      .Case("arith.ori", Combiner::Or)
      .Default(Combiner::Other);
}

ExprRef Reader::readStructured(linalg::LinalgOp op, unsigned result,
                               ArrayRef<ExprRef> indices) {
  if (!op.hasPureTensorSemantics() || op->getNumRegions() != 1)
    return nullptr;
  OpOperand *init = op.getDpsInitOperand(result);
  AffineMap written = op.getMatchingIndexingMap(init);
  SmallVector<ExprRef> loops(op.getNumLoops());
  for (auto [position, expr] : llvm::enumerate(written.getResults())) {
    // A dimension of size 1 that is kept: there is no other position.
    if (expr == getAffineConstantExpr(0, op.getContext()) &&
        cast<RankedTensorType>(init->get().getType()).getDimSize(position) == 1)
      continue;
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || loops[dim.getPosition()])
      return nullptr;
    loops[dim.getPosition()] = indices[position];
  }
  SmallVector<ExprRef> reduced;
  SmallVector<Range> ranges;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (loops[loop])
      continue;
    if (kind != utils::IteratorType::reduction)
      return nullptr;
    // The size of an operand that this loop runs over.
    std::optional<Extent> extent;
    for (OpOperand &operand : op->getOpOperands()) {
      AffineMap map = op.getMatchingIndexingMap(&operand);
      for (auto [dim, expr] : llvm::enumerate(map.getResults()))
        if (expr == getAffineDimExpr(loop, op.getContext()))
          extent = extents.of(operand.get(), dim);
    }
    if (!extent)
      return nullptr;
    loops[loop] = e.variable(*extent);
    if (loops[loop]->isVariable())
      reduced.push_back(loops[loop]);
  }

  llvm::DenseMap<Value, ExprRef> values;
  Block &body = *op.getBlock();
  if (body.getNumArguments() != op->getNumOperands())
    return nullptr;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = body.getArgument(operand.getOperandNumber());
    if (!isa<RankedTensorType>(operand.get().getType())) {
      values[argument] = readScalar(operand.get());
      continue;
    }
    SmallVector<ExprRef> positions;
    for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults()) {
      ExprRef position = readMap(expr, loops);
      if (!position)
        return nullptr;
      positions.push_back(position);
    }
    values[argument] = e.element(operand.get(), positions);
  }
  // With loops that reduce, the accumulator is a name until it is found.
  BlockArgument output = body.getArgument(init->getOperandNumber());
  ExprRef start = values[output];
  bool reduces = op.getNumReductionLoops() > 0;
  ExprRef accumulator = reduces ? e.scalar(output) : start;
  for (OpOperand &other : op.getDpsInitsMutable())
    if (reduces)
      values[body.getArgument(other.getOperandNumber())] =
          e.scalar(body.getArgument(other.getOperandNumber()));
  SmallVector<ExprRef> yielded = readBody(body, values, loops);
  if (yielded.empty())
    return nullptr;
  ExprRef value = yielded[result];
  if (!reduces)
    return value;

  value = splitFma(e, e.settleRoundings(value, /*isExact=*/false));
  Combiner combiner = combinerOf(value);
  if (combiner == Combiner::Other)
    return nullptr;
  ExprRef rest =
      withoutAccumulator(e, value, accumulator, value->name->getStringRef());
  bool usesOthers = !rest || Expressions::contains(rest, [&](ExprRef expr) {
    auto argument = expr->kind == Kind::Scalar
                        ? dyn_cast<BlockArgument>(expr->value)
                        : BlockArgument();
    return argument && argument.getOwner() == &body;
  });
  if (usesOthers)
    return nullptr;
  return e.reduction(combiner, rest, expand(start), reduced);
}

ExprRef Reader::readSoftmax(linalg::SoftmaxOp op, ArrayRef<ExprRef> indices) {
  if (op->getNumResults() != 1)
    return nullptr;
  Value input = op.getInput();
  uint64_t dim = op.getDimension();
  auto at = [&](ExprRef position) {
    SmallVector<ExprRef> moved(indices);
    moved[dim] = position;
    return e.element(input, moved);
  };
  auto fresh = [&] { return e.variable(extents.of(input, dim)); };
  ExprRef i = fresh(), j = fresh();
  ExprRef top = e.reduction(Combiner::Max, at(i), e.real(-HUGE_VAL), {i});
  auto weight = [&](ExprRef position) {
    return e.make<math::ExpOp>(
        e.f32, {e.make<arith::SubFOp>(e.f32, {at(position), top})});
  };
  ExprRef sum = e.reduction(Combiner::Add, weight(j), e.real(0), {j});
  return e.make<arith::DivFOp>(e.f32, {weight(indices[dim]), sum});
}

//===----------------------------------------------------------------------===//
// Elementwise operations
//===----------------------------------------------------------------------===//

ExprRef Reader::readElementwise(Operation *op, ArrayRef<ExprRef> indices) {
  SmallVector<ExprRef> operands;
  for (Value operand : op->getOperands()) {
    ExprRef read = isa<RankedTensorType>(operand.getType())
                       ? e.element(operand, indices)
                       : readScalar(operand);
    if (!read)
      return nullptr;
    operands.push_back(read);
  }
  return readOperation(op, operands);
}
