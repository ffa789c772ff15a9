//===- RegionBody.cpp - expressions as the body of a region -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Integers that are numbers (type index) are computed in i32 where their bounds
// fit, else in i64; integers that may wrap around in the type they have.
//
//===----------------------------------------------------------------------===//

#include "RegionBody.h"

#include "Build.h"
#include "Positions.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace attn;
using namespace attn::raise;
using Kind = Expr::Kind;

/// The type an integer is computed in.
static Type naturalType(ExprRef expr) {
  if (!expr->type.isIndex())
    return expr->type;
  MLIRContext *context = expr->type.getContext();
  Type i32 = IntegerType::get(context, 32);
  auto range = interval(expr);
  return range && range->fits(i32) ? i32 : Type(IntegerType::get(context, 64));
}

static Type wider(Type a, Type b) {
  return a.getIntOrFloatBitWidth() >= b.getIntOrFloatBitWidth() ? a : b;
}

static bool isIntegerCast(ExprRef expr) {
  return expr->is<arith::ExtSIOp>() || expr->is<arith::ExtUIOp>() ||
         expr->is<arith::TruncIOp>() || expr->is<arith::IndexCastOp>() ||
         expr->is<arith::IndexCastUIOp>();
}

//===----------------------------------------------------------------------===//
// What can be a region
//===----------------------------------------------------------------------===//

static bool isUnsigned(ExprRef expr) {
  if (expr->is<arith::CmpIOp>())
    return static_cast<arith::CmpIPredicate>(expr->predicate) >=
           arith::CmpIPredicate::ult;
  return expr->is<arith::DivUIOp>() || expr->is<arith::RemUIOp>() ||
         expr->is<arith::CeilDivUIOp>() || expr->is<arith::MinUIOp>() ||
         expr->is<arith::MaxUIOp>() || expr->is<arith::ShRUIOp>() ||
         expr->is<arith::UIToFPOp>() || expr->is<arith::ExtUIOp>();
}

static bool isDivision(ExprRef expr) {
  return expr->is<arith::DivSIOp>() || expr->is<arith::FloorDivSIOp>() ||
         expr->is<arith::CeilDivSIOp>() || expr->is<arith::RemSIOp>() ||
         expr->is<arith::DivUIOp>() || expr->is<arith::CeilDivUIOp>() ||
         expr->is<arith::RemUIOp>();
}

/// Operations of scalars that every target computes.
static bool isKnownOperation(ExprRef expr) {
  StringRef name = expr->name->getStringRef();
  static constexpr StringLiteral names[] = {
      "arith.addf",      "arith.subf",     "arith.mulf",     "arith.divf",
      "arith.negf",      "arith.maximumf", "arith.minimumf", "arith.maxnumf",
      "arith.minnumf",   "arith.cmpf",     "arith.cmpi",     "arith.select",
      "arith.sitofp",    "arith.uitofp",   "arith.fptosi",   "arith.addi",
      "arith.subi",      "arith.muli",     "arith.divsi",    "arith.floordivsi",
      "arith.ceildivsi", "arith.remsi",    "arith.divui",    "arith.remui",
      "arith.andi",      "arith.ori",      "arith.xori",     "arith.minsi",
      "arith.maxsi",     "arith.minui",    "arith.maxui",    "arith.shli",
      "arith.shrsi",     "arith.shrui",    "math.absf",      "math.absi",
      "math.ceil",       "math.floor",     "math.exp",       "math.exp2",
      "math.log",        "math.log2",      "math.log1p",     "math.sqrt",
      "math.rsqrt",      "math.sin",       "math.cos",       "math.tanh",
      "math.powf",       "math.erf",       "math.fma",       "math.erfc",
      "math.expm1",      "math.log10",     "math.trunc",     "math.round",
      "math.roundeven",  "math.copysign",  "math.cbrt",      "math.tan",
      "math.asin",       "math.acos",      "math.atan",      "math.atan2",
      "math.sinh",       "math.cosh",      "math.asinh",     "math.acosh",
      "math.atanh"};
  return llvm::is_contained(names, name) || isIntegerCast(expr);
}

static std::string whyNoNode(ExprRef node, ExprRef x,
                             ArrayRef<ExprRef> positions) {
  switch (node->kind) {
  case Kind::Variable:
    return llvm::is_contained(positions, node)
               ? ""
               : "the scores depend on a position that is none of attention";
  case Kind::Element: {
    Type element =
        cast<RankedTensorType>(node->value.getType()).getElementType();
    if (!AttentionOp::isScalar(element))
      return "the scores read a tensor of " +
             llvm::formatv("{0}", element).str();
    return "";
  }
  case Kind::Scalar:
    if (node == x || node->value.getType().isIndex() ||
        AttentionOp::isScalar(node->value.getType()))
      return "";
    return "the scores read a scalar of " +
           llvm::formatv("{0}", node->value.getType()).str();
  case Kind::Join:
    if (!llvm::all_of(ArrayRef(node->extents).drop_front(), isKnown))
      return "the scores depend on positions joined by an unknown size";
    return "";
  case Kind::Reduction:
    return "the scores hold " + describe(node);
  case Kind::Rounding:
    if (node->type.getIntOrFloatBitWidth() <= 32 &&
        AttentionOp::isScalar(node->type))
      return "";
    return "the scores make an integer or a choice of a number of " +
           llvm::formatv("{0}", node->type).str();
  case Kind::Undefined:
    return "the scores read an undefined value";
  case Kind::Operation:
    break;
  default:
    return "";
  }
  if (!isKnownOperation(node))
    return "the scores hold " + describe(node);
  if (isDivision(node) &&
      (!node->operands[1]->isConstant() || node->operands[1]->integer <= 0))
    return "the scores divide an integer by what is no positive constant";
  for (ExprRef operand : node->operands)
    if (!operand->isFloat() && isUnsigned(node) && operand->type.isIndex() &&
        !operand->isConstant() &&
        interval(operand).value_or(IntegerRange{-1, 0}).low < 0)
      return "the scores hold " + describe(node) +
             " of a number that may be negative";
  return "";
}

std::string attn::raise::whyNoRegion(ExprRef expr, ExprRef x,
                                     ArrayRef<ExprRef> positions) {
  std::string problem;
  Expressions::walk(expr, [&](ExprRef node) {
    if (problem.empty())
      problem = whyNoNode(node, x, positions);
    return problem.empty();
  });
  return problem;
}

bool attn::raise::needsTable(ExprRef expr) {
  // The size of the slowest part counts for none.
  return expr->kind == Kind::Split &&
         !llvm::all_of(
             ArrayRef(expr->extents).drop_front(std::max(1u, expr->number)),
             isKnown);
}

//===----------------------------------------------------------------------===//
// Captures
//===----------------------------------------------------------------------===//

/// Part `split` of each index, as regions divide by constants only.
static Value buildTable(OpBuilder &b, Location loc, Extents &extents,
                        ExprRef split) {
  SmallVector<OpFoldResult> sizes;
  for (Extent extent : split->extents)
    sizes.push_back(isKnown(extent)
                        ? OpFoldResult(b.getIndexAttr(extent))
                        : OpFoldResult(readSize(b, loc, extents, extent)));
  unsigned rank = sizes.size();
  Value empty = tensor::EmptyOp::create(b, loc, sizes, b.getI32Type());
  auto table = linalg::GenericOp::create(
      b, loc, empty.getType(), ValueRange(), empty,
      b.getMultiDimIdentityMap(rank),
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
      [&](OpBuilder &b, Location loc, ValueRange) {
        Value part = linalg::IndexOp::create(b, loc, split->number);
        Value narrow = arith::IndexCastOp::create(b, loc, b.getI32Type(), part);
        linalg::YieldOp::create(b, loc, narrow);
      });
  ReassociationIndices all = llvm::to_vector(llvm::seq<int64_t>(rank));
  return tensor::CollapseShapeOp::create(b, loc, table.getResult(0),
                                         ArrayRef<ReassociationIndices>(all));
}

CapturedValues::CapturedValues(OpBuilder &b, Location loc, Extents &extents,
                               ExprRef x, ArrayRef<ExprRef> exprs) {
  for (ExprRef expr : exprs) {
    if (!expr)
      continue;
    Expressions::walk(expr, [&](ExprRef node) {
      if (node == x)
        return true;
      if (node->kind == Kind::Element) {
        if (tensors.try_emplace(node->value, captured.size()).second)
          captured.push_back(node->value);
      } else if (needsTable(node)) {
        if (scalars.try_emplace(node, captured.size()).second)
          captured.push_back(buildTable(b, loc, extents, node));
      } else if (node->kind == Kind::Scalar || node->kind == Kind::Size) {
        bool isSize = node->kind == Kind::Size;
        if (!scalars.try_emplace(node, captured.size()).second)
          return true;
        Value value =
            isSize ? readSize(b, loc, extents, node->extents[0]) : node->value;
        if (value.getType().isIndex())
          value = arith::IndexCastOp::create(
              b, loc, isSize ? b.getI32Type() : b.getI64Type(), value);
        captured.push_back(value);
      }
      return true;
    });
  }
}

unsigned CapturedValues::numberOf(ExprRef expr) const {
  return expr->kind == Kind::Element ? tensors.lookup(expr->value)
                                     : scalars.lookup(expr);
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

/// Between signless integers, as signed numbers.
Value RegionBody::convert(Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (from == to)
    return value;
  if (from > to)
    return arith::TruncIOp::create(b, loc, type, value);
  return arith::ExtSIOp::create(b, loc, type, value);
}

/// An element of what `expr`, an element or a part of an index, captures.
Value RegionBody::emitElement(ExprRef expr) {
  Value buffer = captured[captures.numberOf(expr)];
  Type type = cast<RankedTensorType>(buffer.getType()).getElementType();
  SmallVector<Value> indices;
  for (ExprRef index : expr->operands) {
    indices.push_back(emitInteger(index, b.getI32Type()));
    if (readsInPlace)
      indices.back() =
          arith::IndexCastOp::create(b, loc, b.getIndexType(), indices.back());
  }
  if (readsInPlace)
    return tensor::ExtractOp::create(b, loc, buffer, indices);
  return CaptureLoadOp::create(b, loc, type, buffer, indices);
}

Value RegionBody::emitFloat(ExprRef expr) {
  Value &known = built[{expr, b.getF32Type()}];
  if (known)
    return known;
  Value value;
  if (expr->isConstant()) {
    value = arith::ConstantOp::create(
        b, loc, b.getF32FloatAttr(static_cast<float>(expr->real)));
  } else if (expr->kind == Kind::Element) {
    value = emitElement(expr);
  } else if (expr->kind == Kind::Scalar) {
    value = captured[captures.numberOf(expr)];
  } else if (expr->kind == Kind::Rounding) {
    value = arith::TruncFOp::create(b, loc, expr->type,
                                    emitFloat(expr->operands[0]));
  } else {
    value = emitOperation(expr, b.getF32Type());
  }
  if (value.getType() != b.getF32Type())
    value = arith::ExtFOp::create(b, loc, b.getF32Type(), value);
  return built[{expr, b.getF32Type()}] = value;
}

Value RegionBody::emitInteger(ExprRef expr, Type type) {
  if (Value known = built.lookup({expr, type}))
    return known;
  Value value;
  Type natural = naturalType(expr);
  switch (expr->kind) {
  case Kind::Constant:
    value = arith::ConstantOp::create(b, loc,
                                      b.getIntegerAttr(type, expr->integer));
    break;
  case Kind::Element:
    value = emitElement(expr);
    break;
  case Kind::Scalar:
  case Kind::Size:
    value = captured[captures.numberOf(expr)];
    break;
  case Kind::Join: {
    value = emitInteger(expr->operands[0], natural);
    for (size_t part = 1; part < expr->operands.size(); ++part) {
      Value size = arith::ConstantOp::create(
          b, loc, b.getIntegerAttr(natural, expr->extents[part]));
      value = arith::MulIOp::create(b, loc, value, size);
      value = arith::AddIOp::create(b, loc, value,
                                    emitInteger(expr->operands[part], natural));
    }
    break;
  }
  case Kind::Split: {
    if (needsTable(expr)) {
      value = emitElement(expr);
      break;
    }
    value = emitInteger(expr->operands[0], natural);
    int64_t below = 1;
    for (size_t part = expr->number + 1; part < expr->extents.size(); ++part)
      below *= expr->extents[part];
    auto constant = [&](int64_t number) {
      return arith::ConstantOp::create(b, loc,
                                       b.getIntegerAttr(natural, number));
    };
    if (below != 1)
      value = arith::DivSIOp::create(b, loc, value, constant(below));
    if (expr->number != 0)
      value = arith::RemSIOp::create(b, loc, value,
                                     constant(expr->extents[expr->number]));
    break;
  }
  case Kind::Variable:
    value = built.lookup({expr, b.getI32Type()});
    break;
  default:
    value = emitOperation(expr, natural);
  }
  value = convert(value, type);
  return built[{expr, type}] = value;
}

/// The operation with operands of the types it wants.
Value RegionBody::emitOperation(ExprRef expr, Type type) {
  if (isIntegerCast(expr)) {
    // A cast that is left changes the number, or reads it as unsigned.
    Value operand =
        emitInteger(expr->operands[0], naturalType(expr->operands[0]));
    unsigned from = operand.getType().getIntOrFloatBitWidth();
    unsigned to = type.getIntOrFloatBitWidth();
    bool isUnsignedCast =
        expr->is<arith::ExtUIOp>() || expr->is<arith::IndexCastUIOp>();
    if (from < to && isUnsignedCast)
      return arith::ExtUIOp::create(b, loc, type, operand);
    return convert(operand, type);
  }
  // Integer operands have one type; a condition of a select keeps its own.
  Type common;
  for (auto [number, operand] : llvm::enumerate(expr->operands)) {
    if (operand->isFloat() || (expr->is<arith::SelectOp>() && number == 0))
      continue;
    Type natural = naturalType(operand);
    common = common && !operand->isConstant() ? wider(common, natural)
                                              : (common ? common : natural);
  }
  // Only comparisons and casts have another type than their operands.
  bool computesInteger = !expr->isFloat() && !expr->is<arith::CmpIOp>() &&
                         !expr->is<arith::CmpFOp>() &&
                         !expr->is<arith::FPToSIOp>();
  if (common) {
    for (ExprRef operand : expr->operands)
      if (!operand->isFloat() && operand->isConstant() &&
          !operand->type.isInteger(1))
        common = wider(common, naturalType(operand));
    if (computesInteger)
      common = expr->type.isIndex() ? wider(common, type) : expr->type;
  }
  SmallVector<Value> operands;
  for (auto [number, operand] : llvm::enumerate(expr->operands)) {
    bool isCondition = expr->is<arith::SelectOp>() && number == 0;
    operands.push_back(operand->isFloat() ? emitFloat(operand)
                       : isCondition      ? emitInteger(operand, b.getI1Type())
                                          : emitInteger(operand, common));
  }
  if (expr->is<arith::CmpIOp>())
    return arith::CmpIOp::create(
        b, loc, static_cast<arith::CmpIPredicate>(expr->predicate), operands[0],
        operands[1]);
  if (expr->is<arith::CmpFOp>())
    return arith::CmpFOp::create(
        b, loc, static_cast<arith::CmpFPredicate>(expr->predicate), operands[0],
        operands[1]);
  OperationState state(loc, *expr->name);
  state.addOperands(operands);
  state.addTypes(computesInteger && common ? common : type);
  return b.create(state)->getResult(0);
}
