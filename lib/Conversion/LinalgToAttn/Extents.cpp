//===- Extents.cpp - which sizes of a function are the same -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Extents.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn::raise;

Extents::Extents(func::FuncOp func, bool drawsAlike) : drawsAlike(drawsAlike) {
  // What an operation says may make sizes before it the same: again, until
  // nothing is new. A size that is a product of itself never ends.
  changed = true;
  for (int turn = 0; changed && turn < 8; ++turn) {
    changed = false;
    func.walk([&](Operation *op) { visit(op); });
    renewProducts();
  }
}

unsigned Extents::create() {
  unsigned result = parents.size();
  parents.push_back(result);
  constants.push_back(-1);
  places.push_back({});
  return result;
}

unsigned Extents::node(Value value, int64_t dim) {
  auto [entry, isNew] = nodes.try_emplace({value, dim}, parents.size());
  if (!isNew)
    return entry->second;
  unsigned result = create();
  if (value)
    places.back().push_back({value, dim});
  // The new node may have moved the map: `result`, not the entry.
  if (auto type = value ? dyn_cast<RankedTensorType>(value.getType())
                        : RankedTensorType())
    if (!type.isDynamicDim(dim))
      unite(result, node(type.getDimSize(dim)));
  return result;
}

unsigned Extents::node(int64_t constant) {
  auto [entry, isNew] = constantNodes.try_emplace(constant, parents.size());
  if (isNew)
    constants[create()] = constant;
  return entry->second;
}

unsigned Extents::node(OpFoldResult size) {
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return node(*constant);
  auto value = cast<Value>(size);
  if (auto dim = value.getDefiningOp<tensor::DimOp>())
    if (std::optional<int64_t> number = dim.getConstantIndex())
      if (isa<RankedTensorType>(dim.getSource().getType()) && *number >= 0 &&
          *number < cast<RankedTensorType>(dim.getSource().getType()).getRank())
        return node(dim.getSource(), *number);
  return node(value, -1);
}

unsigned Extents::find(unsigned node) {
  while (parents[node] != node)
    node = parents[node] = parents[parents[node]];
  return node;
}

void Extents::unite(unsigned a, unsigned b) {
  a = find(a);
  b = find(b);
  // Two known sizes that differ: a program without meaning; keep them apart.
  if (a == b || (constants[a] >= 0 && constants[b] >= 0))
    return;
  if (constants[b] >= 0)
    std::swap(a, b);
  parents[b] = a;
  llvm::append_range(places[a], places[b]);
  if (auto product = products.extract(b); !product.empty())
    products.try_emplace(a, std::move(product.mapped()));
  changed = true;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

unsigned Extents::node(const Product &product) {
  if (product.factors.empty())
    return node(product.coefficient);
  if (product.coefficient == 1 && product.factors.size() == 1)
    return product.factors.front();
  auto [entry, isNew] = nodesOfProducts.try_emplace(
      {product.coefficient, product.factors}, parents.size());
  unsigned result = entry->second;
  if (isNew)
    products[create()] = product;
  return result;
}

/// Equal products are one class, by the classes that their factors are in now.
void Extents::renewProducts() {
  nodesOfProducts.clear();
  for (auto [root, old] : std::map<unsigned, Product>(products)) {
    // 3 * size = 9
    if (int64_t whole = constants[find(root)]; whole >= 0) {
      std::optional<Product> known = Product{old.coefficient, {}};
      SmallVector<unsigned> unknown;
      for (unsigned factor : old.factors) {
        int64_t constant = constants[find(factor)];
        if (constant < 0)
          unknown.push_back(factor);
        else if (known)
          known = multiply(*known, {constant, {}});
      }
      if (known && known->coefficient > 0 && unknown.size() == 1 &&
          whole % known->coefficient == 0)
        unite(unknown.front(), node(whole / known->coefficient));
      continue;
    }
    Product product = productOf(root);
    if (product.factors.size() == 1 && product.factors.front() == find(root))
      continue;
    if (product.factors.empty() ||
        (product.coefficient == 1 && product.factors.size() == 1)) {
      unite(root, node(product));
      continue;
    }
    auto [entry, isNew] = nodesOfProducts.try_emplace(
        {product.coefficient, product.factors}, root);
    if (!isNew)
      unite(root, entry->second);
  }
}

Extents::Product Extents::productOf(unsigned node) {
  node = find(node);
  if (constants[node] >= 0)
    return {constants[node], {}};
  auto known = products.find(node);
  if (known == products.end())
    return {1, {node}};
  // Factors may be constants or other classes by now; a product is none of its
  // own factors, for then the others are 1.
  Product result{known->second.coefficient, {}};
  for (unsigned factor : known->second.factors) {
    unsigned root = find(factor);
    if (root == node)
      return {1, {node}};
    Product part = constants[root] >= 0 ? Product{constants[root], {}}
                                        : Product{1, {root}};
    std::optional<Product> next = multiply(result, part);
    if (!next)
      return {1, {node}};
    result = *next;
  }
  return result;
}

Extents::Product Extents::productOf(ArrayRef<Extent> extents) {
  Product result;
  for (Extent extent : extents) {
    Product part = isKnown(extent)
                       ? Product{extent, {}}
                       : productOf(static_cast<unsigned>(-1 - extent));
    if (std::optional<Product> next = multiply(result, part))
      result = *next;
    else
      return {0, {}};
  }
  return result;
}

std::optional<Extents::Product> Extents::multiply(Product a, const Product &b) {
  if (__builtin_mul_overflow(a.coefficient, b.coefficient, &a.coefficient))
    return std::nullopt;
  llvm::append_range(a.factors, b.factors);
  llvm::sort(a.factors);
  return a;
}

std::optional<Extents::Product> Extents::divide(Product a, const Product &b) {
  if (b.coefficient <= 0 || a.coefficient % b.coefficient != 0)
    return std::nullopt;
  a.coefficient /= b.coefficient;
  for (unsigned factor : b.factors) {
    auto found = llvm::find(a.factors, factor);
    if (found == a.factors.end())
      return std::nullopt;
    a.factors.erase(found);
  }
  return a;
}

Extents::Ratio Extents::ratio(ArrayRef<Extent> whole, ArrayRef<Extent> part) {
  std::optional<Product> quotient = divide(productOf(whole), productOf(part));
  if (!quotient || quotient->coefficient <= 0)
    return Ratio::Unknown;
  bool isOne = quotient->coefficient == 1 && quotient->factors.empty();
  return isOne ? Ratio::One : Ratio::Several;
}

/// A size of a tensor, or a product of such sizes.
bool Extents::isSize(unsigned node) {
  Product product = productOf(node);
  return product.coefficient >= 0 &&
         llvm::all_of(product.factors, [&](unsigned factor) {
           return llvm::any_of(places[factor], [](const Place &place) {
             return place.dim >= 0;
           });
         });
}

std::optional<Extent> Extents::sizeOf(Value scalar) {
  auto known = nodes.find({scalar, -1});
  if (known == nodes.end() || !isSize(known->second))
    return std::nullopt;
  return of(OpFoldResult(scalar));
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

void Extents::uniteShapes(Value a, Value b) {
  auto type = dyn_cast<RankedTensorType>(a.getType());
  auto other = dyn_cast<RankedTensorType>(b.getType());
  if (!type || !other || type.getRank() != other.getRank())
    return;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    unite(node(a, dim), node(b, dim));
}

/// The size of a group is the product of its parts.
void Extents::visitReassociation(Value wide, Value narrow,
                                 ArrayRef<SmallVector<int64_t, 2>> groups) {
  for (auto [number, group] : llvm::enumerate(groups)) {
    std::optional<Product> whole = Product();
    for (int64_t dim : group)
      if (whole)
        whole = multiply(*whole, productOf(node(wide, dim)));
    if (whole)
      unite(node(narrow, number), node(*whole));
  }
}

/// Both sides have as many elements. Where all sizes but one of each are on
/// both sides, these are the same, too, unless there are no elements at all.
void Extents::visitReshape(tensor::ReshapeOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  auto sourceType = dyn_cast<RankedTensorType>(op.getSource().getType());
  auto shape = op.getShape().getDefiningOp<tensor::FromElementsOp>();
  if (!type || !sourceType || !shape)
    return;
  SmallVector<unsigned> left, right; // by dimension
  std::optional<int64_t> leftConstant = 1, rightConstant = 1;
  auto list = [&](SmallVector<unsigned> &factors,
                  std::optional<int64_t> &constant, unsigned size) {
    Product product = productOf(size);
    llvm::append_range(factors, product.factors);
    if (constant &&
        __builtin_mul_overflow(*constant, product.coefficient, &*constant))
      constant.reset();
  };
  for (auto [dim, size] : llvm::enumerate(shape.getElements())) {
    unite(node(op.getResult(), dim), node(OpFoldResult(size)));
    list(right, rightConstant, node(op.getResult(), dim));
  }
  for (int64_t dim = 0; dim < sourceType.getRank(); ++dim)
    list(left, leftConstant, node(op.getSource(), dim));
  for (unsigned factor : SmallVector<unsigned>(left))
    if (auto found = llvm::find(right, factor); found != right.end()) {
      right.erase(found);
      left.erase(llvm::find(left, factor));
    }
  if (leftConstant == rightConstant && leftConstant > 0 &&
      left.size() == right.size() && (left.size() == 1 || drawsAlike))
    for (auto [a, b] : llvm::zip_equal(left, right))
      unite(a, b);
}

void Extents::visitStructured(linalg::LinalgOp op) {
  SmallVector<std::optional<unsigned>> loops(op.getNumLoops());
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expr)) {
        unsigned size = node(operand.get(), dim);
        std::optional<unsigned> &known = loops[loop.getPosition()];
        if (known)
          unite(*known, size);
        else
          known = size;
      }
  }
  for (auto [result, init] :
       llvm::zip_equal(op->getResults(), op.getDpsInits()))
    uniteShapes(result, init);
  if (!drawsAlike)
    return;
  // select(size == 1, 0, position)
  op.getBlock()->walk([&](arith::SelectOp select) {
    auto index = select.getFalseValue().getDefiningOp<linalg::IndexOp>();
    auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
    if (index && loops[index.getDim()] && compare &&
        compare.getPredicate() == arith::CmpIPredicate::eq &&
        getConstantIntValue(compare.getRhs()) == 1)
      unite(node(OpFoldResult(compare.getLhs())), *loops[index.getDim()]);
  });
}

/// Integers of other types wrap around.
static bool isWide(Value value) {
  return value.getType().isIndex() || value.getType().isInteger(64);
}

/// What a condition on sizes certainly is.
std::optional<bool> Extents::decide(Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || !isWide(compare.getLhs()))
    return std::nullopt;
  unsigned lhs = node(OpFoldResult(compare.getLhs()));
  bool isNegative = compare.getPredicate() == arith::CmpIPredicate::slt;
  bool isPositive = compare.getPredicate() == arith::CmpIPredicate::sge;
  if ((isNegative || isPositive) && isSize(lhs) &&
      getConstantIntValue(compare.getRhs()) == 0)
    return isPositive;
  return std::nullopt;
}

std::optional<Extents::Product>
Extents::evaluate(AffineExpr expr, ValueRange operands, unsigned numDims) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return Product{constant.getValue(), {}};
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return productOf(node(OpFoldResult(operands[dim.getPosition()])));
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return productOf(
        node(OpFoldResult(operands[numDims + symbol.getPosition()])));
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary || (expr.getKind() != AffineExprKind::Mul &&
                  expr.getKind() != AffineExprKind::FloorDiv))
    return std::nullopt;
  auto lhs = evaluate(binary.getLHS(), operands, numDims);
  auto rhs = evaluate(binary.getRHS(), operands, numDims);
  if (!lhs || !rhs)
    return std::nullopt;
  return expr.getKind() == AffineExprKind::Mul ? multiply(*lhs, *rhs)
                                               : divide(*lhs, *rhs);
}

/// value = base + constant
static std::pair<Value, int64_t> splitOffset(Value value) {
  int64_t offset = 0;
  while (Operation *op = value.getDefiningOp()) {
    if (isa<arith::IndexCastOp>(op) && isWide(op->getOperand(0))) {
      value = op->getOperand(0);
      continue;
    }
    std::optional<int64_t> added;
    if (isa<arith::AddIOp>(op) && isWide(value))
      added = getConstantIntValue(op->getOperand(1));
    if (auto apply = dyn_cast<affine::AffineApplyOp>(op))
      if (auto sum =
              dyn_cast<AffineBinaryOpExpr>(apply.getAffineMap().getResult(0));
          sum && sum.getKind() == AffineExprKind::Add &&
          apply.getMapOperands().size() == 1 &&
          isa<AffineDimExpr, AffineSymbolExpr>(sum.getLHS()))
        if (auto constant = dyn_cast<AffineConstantExpr>(sum.getRHS()))
          added = constant.getValue();
    if (!added || __builtin_add_overflow(offset, *added, &offset))
      break;
    value = op->getOperand(0);
  }
  return {value, offset};
}

/// Bounds of a slice, as importers compute them: the value that the result of
/// `op` certainly is; null where it is not known.
Value Extents::boundOf(Operation *op) {
  if (op->getNumOperands() != 2)
    return {};
  Value lhs = op->getOperand(0), rhs = op->getOperand(1);
  auto isZero = [&](Value value) {
    return constants[find(node(OpFoldResult(value)))] == 0;
  };
  bool isMin = isa<arith::MinSIOp>(op), isMax = isa<arith::MaxSIOp>(op);
  if (isa<arith::SubIOp>(op) && isZero(rhs))
    return lhs;
  if (!isMin && !isMax)
    return {};
  if (isZero(rhs) && isSize(node(OpFoldResult(lhs))))
    return isMin ? rhs : lhs;
  auto [left, leftOffset] = splitOffset(lhs);
  auto [right, rightOffset] = splitOffset(rhs);
  if (find(node(OpFoldResult(left))) != find(node(OpFoldResult(right))))
    return {};
  return (leftOffset <= rightOffset) == isMin ? lhs : rhs;
}

/// Arithmetic of sizes, and what is asserted of them.
void Extents::visitScalar(Operation *op) {
  if (auto assertion = dyn_cast<cf::AssertOp>(op)) {
    // In the first block, for there it certainly holds.
    auto compare = assertion.getArg().getDefiningOp<arith::CmpIOp>();
    if (compare && compare.getPredicate() == arith::CmpIPredicate::eq &&
        isa<func::FuncOp>(op->getParentOp()) && op->getBlock()->isEntryBlock())
      unite(node(OpFoldResult(compare.getLhs())),
            node(OpFoldResult(compare.getRhs())));
    return;
  }
  if (op->getNumResults() != 1 || op->getNumOperands() == 0)
    return;
  if (!isWide(op->getResult(0)) ||
      !llvm::all_of(op->getOperands().drop_front(isa<arith::SelectOp>(op)),
                    isWide))
    return;
  auto operand = [&](unsigned number) {
    return node(OpFoldResult(op->getOperand(number)));
  };
  std::optional<Product> product;
  if (isa<arith::IndexCastOp>(op))
    product = productOf(operand(0));
  else if (isa<arith::MulIOp>(op))
    product = multiply(productOf(operand(0)), productOf(operand(1)));
  else if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(op) &&
           isSize(operand(0)) && isSize(operand(1)))
    product = divide(productOf(operand(0)), productOf(operand(1)));
  else if (Value bound = boundOf(op))
    product = productOf(node(OpFoldResult(bound)));
  else if (auto [base, offset] = splitOffset(op->getResult(0));
           offset == 0 && isa<arith::AddIOp>(op))
    product = productOf(node(OpFoldResult(base)));
  else if (auto apply = dyn_cast<affine::AffineApplyOp>(op))
    product =
        evaluate(apply.getAffineMap().getResult(0), apply.getMapOperands(),
                 apply.getAffineMap().getNumDims());
  else if (auto select = dyn_cast<arith::SelectOp>(op))
    if (std::optional<bool> condition = decide(select.getCondition()))
      product = productOf(operand(*condition ? 1 : 2));
  if (product && product->coefficient >= 0)
    unite(node(OpFoldResult(op->getResult(0))), node(*product));
}

void Extents::visit(Operation *op) {
  if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
    if (structured.hasPureTensorSemantics())
      visitStructured(structured);
    return;
  }
  visitScalar(op);
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op)) {
    uniteShapes(softmax.getInput(), softmax.getOutput());
    if (op->getNumResults() == 1)
      uniteShapes(softmax.getOutput(), op->getResult(0));
    return;
  }
  if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
    for (auto [dim, size] : llvm::enumerate(empty.getMixedSizes()))
      unite(node(empty.getResult(), dim), node(size));
    return;
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    if (slice.getSourceType().getRank() == slice.getType().getRank())
      for (auto [dim, size] : llvm::enumerate(slice.getMixedSizes()))
        unite(node(slice.getResult(), dim), node(size));
    return;
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    visitReassociation(expand.getResult(), expand.getSrc(),
                       expand.getReassociationIndices());
    for (auto [dim, size] : llvm::enumerate(expand.getMixedOutputShape()))
      unite(node(expand.getResult(), dim), node(size));
    return;
  }
  if (auto reshape = dyn_cast<tensor::ReshapeOp>(op))
    return visitReshape(reshape);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return visitReassociation(collapse.getSrc(), collapse.getResult(),
                              collapse.getReassociationIndices());
  if (auto generate = dyn_cast<tensor::GenerateOp>(op)) {
    unsigned next = 0;
    for (int64_t dim = 0; dim < generate.getType().getRank(); ++dim)
      if (generate.getType().isDynamicDim(dim))
        unite(node(generate.getResult(), dim),
              node(OpFoldResult(generate.getDynamicExtents()[next++])));
    return;
  }
  if (isa<tensor::CastOp>(op) ||
      (OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1))
    for (Value operand : op->getOperands())
      uniteShapes(operand, op->getResult(0));
}

Extent Extents::of(Value tensor, int64_t dim) {
  unsigned root = find(node(tensor, dim));
  return constants[root] >= 0 ? constants[root] : -1 - int64_t(root);
}

Extent Extents::of(OpFoldResult size) {
  unsigned root = find(node(size));
  return constants[root] >= 0 ? constants[root] : -1 - int64_t(root);
}

ArrayRef<Extents::Place> Extents::placesOf(Extent extent) {
  unsigned root = isKnown(extent) ? find(node(extent))
                                  : find(static_cast<unsigned>(-1 - extent));
  return places[root];
}
