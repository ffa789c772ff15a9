//===- Expression.h - one element of a tensor as scalar code -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Raising compares what graphs compute, not how they are written. An element of
// a tensor at symbolic indices is a scalar expression:
//
//   P[i, j] of `linalg.softmax` over S, S of `linalg.matmul` of Q and K^T
//     = exp(S_ij - max_j' S_ij') / sum_j' exp(S_ij' - max_j'' S_ij''),
//   S_ij = sum_d element(Q, i, d) * element(K, j, d)
//
// Broadcasts, transpositions, reshapes and casts between float types are gone:
// they only changed indices or rounded. (Where an integer or a truth value is
// made of a float, roundings stay: Roundings.cpp.) Expressions are unique: two
// spellings of one expression are one pointer. A reduction names what it runs
// over by a bound variable whose number is the height of reductions below it,
// so equal reductions are equal expressions.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_LINALGTOATTN_EXPRESSION_H
#define ATTN_LIB_CONVERSION_LINALGTOATTN_EXPRESSION_H

#include "Extents.h"
#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/Value.h"

#include <deque>
#include <map>

namespace attn::raise {

/// Bounds of an integer, both inclusive.
struct IntegerRange {
  int64_t low, high;
  bool fits(Type type) const;
};

/// How a reduction combines; the two kinds of float maxima, which differ for
/// NaN only, are one.
enum class Combiner { Add, Mul, Max, Min, And, Or, Other };

/// One node. All float values have type f32, but for those of a rounding, which
/// have the type that they are rounded to.
struct Expr {
  enum class Kind {
    Variable,  // number, extent
    Constant,  // real or integer, by type
    Scalar,    // value: a scalar of the function
    Size,      // extent, as an index
    Element,   // value: a tensor; operands: indices; number: 1 where roundings
               // of what makes it stay
    Operation, // name, predicate; operands
    Join,      // operands: parts of one index, the slowest first; extents
    Split,     // operand: index; extents of its parts, number of the part
    Reduction, // combiner; operands: body, initial value; then bound variables
    Rounding,  // operand: a float
    Undefined, // what tensor.empty holds
  };
  Expr(Kind kind, Type type) : kind(kind), type(type) {}

  Kind kind;
  Type type;
  unsigned number = 0; // Variable, Split
  int64_t predicate = 0;
  double real = 0;
  int64_t integer = 0;
  Value value;
  Combiner combiner = Combiner::Other;
  std::optional<OperationName> name;
  SmallVector<Extent, 2> extents;
  SmallVector<const Expr *, 3> operands;
  unsigned id = 0;     // order of creation, the order of commutative operands
  unsigned height = 0; // nested reductions
  unsigned depth = 0;  // nested nodes
  std::optional<IntegerRange> range; // of an operation on numbers

  bool isFloat() const { return isa<FloatType>(type); }
  bool isConstant() const { return kind == Kind::Constant; }
  /// True for a float or integer constant of this value.
  bool isReal(double wanted) const {
    return isConstant() && isFloat() && real == wanted;
  }
  bool isInteger(int64_t wanted) const {
    return isConstant() && !isFloat() && integer == wanted;
  }
  template <typename Op> bool is() const {
    return kind == Kind::Operation &&
           name->getStringRef() == Op::getOperationName();
  }
  bool isReduction(Combiner wanted) const {
    return kind == Kind::Reduction && combiner == wanted;
  }
  bool isVariable() const { return kind == Kind::Variable; }
  /// Of a reduction.
  const Expr *body() const { return operands[0]; }
  const Expr *init() const { return operands[1]; }
  ArrayRef<const Expr *> bound() const {
    return ArrayRef(operands).drop_front(2);
  }
};
using ExprRef = const Expr *;

/// Owns expressions; the constructors simplify.
class Expressions {
public:
  /// With `splits`, a reduction whose last element is another one than those
  /// before is one over these, and that element.
  explicit Expressions(MLIRContext *context, bool splits = true);

  ExprRef variable(Extent extent);
  ExprRef real(double value);
  ExprRef integer(int64_t value, Type type);
  ExprRef index(int64_t value) { return integer(value, indexType); }
  ExprRef scalar(Value value);
  /// A float that `value` names and nothing else is.
  ExprRef named(Value value);
  ExprRef size(Extent extent);
  ExprRef element(Value tensor, ArrayRef<ExprRef> indices,
                  bool keepsRoundings = false);
  ExprRef undefined(Type type);
  /// A float rounded to a type; what depends on a sum has no roundings.
  ExprRef rounding(ExprRef expr, Type type);
  /// The result of an operation in the type that it has in the graph, and an
  /// operand as f64 has it.
  ExprRef writtenAs(ExprRef expr, Type type);
  ExprRef readInF64(ExprRef expr, Type type);
  /// `root` without the roundings that lead to no integer and no truth value;
  /// with `isExact`, the root leads to one.
  ExprRef settleRoundings(ExprRef root, bool isExact);
  /// An operation of arith or math; `predicate` of comparisons.
  ExprRef operation(OperationName name, Type type, ArrayRef<ExprRef> operands,
                    int64_t predicate = 0);
  template <typename Op>
  ExprRef make(Type type, ArrayRef<ExprRef> operands, int64_t predicate = 0) {
    return operation(OperationName(Op::getOperationName(), context), type,
                     operands, predicate);
  }
  ExprRef add(ExprRef a, ExprRef b) { return make<arith::AddFOp>(f32, {a, b}); }
  ExprRef mul(ExprRef a, ExprRef b) { return make<arith::MulFOp>(f32, {a, b}); }
  ExprRef negated(ExprRef condition);
  ExprRef both(ExprRef a, ExprRef b) { return make<arith::AndIOp>(i1, {a, b}); }
  /// The index of a collapsed dimension from those of its parts.
  ExprRef join(ArrayRef<ExprRef> parts, ArrayRef<Extent> extents);
  /// Part `number` of an index.
  ExprRef split(ExprRef index, ArrayRef<Extent> extents, unsigned number);
  /// Reduces `body` over `variables`, free variables of it that get bound.
  ExprRef reduction(Combiner combiner, ExprRef body, ExprRef init,
                    ArrayRef<ExprRef> variables);
  /// Whether a reduction is now one with another last element.
  bool hasSplit() const { return numSplits > 0; }
  /// `whole` is one more than `size`, both unknown or not.
  void setSuccessor(Extent whole, Extent size) { successors[whole] = size; }
  /// The body of a reduction with its bound variables replaced.
  ExprRef instantiate(ExprRef reduction, ArrayRef<ExprRef> variables);

  /// Rebuilds `root` with what `replace` returns in place of a node, where it
  /// returns one.
  ExprRef rewrite(ExprRef root, function_ref<ExprRef(ExprRef)> replace);
  ExprRef substitute(ExprRef root, ArrayRef<ExprRef> from,
                     ArrayRef<ExprRef> to);
  /// Calls `visit` on every node of `root` once, users first; a node whose
  /// visit is false is not entered.
  static void walk(ExprRef root, function_ref<bool(ExprRef)> visit);
  static bool contains(ExprRef root, function_ref<bool(ExprRef)> wanted);
  static bool dependsOn(ExprRef root, ExprRef node);

  MLIRContext *getContext() const { return context; }
  Type f32, i1, i32, i64, indexType;

private:
  ExprRef unique(Expr node);
  ExprRef rebuild(ExprRef expr, ArrayRef<ExprRef> operands);
  ExprRef roundFromWide(ExprRef wide);
  ExprRef integerQuotient(const Expr &conversion);
  ExprRef simplifyFloat(const Expr &node);
  ExprRef simplifyInteger(const Expr &node);
  ExprRef simplifySelect(const Expr &node);
  /// A reduction whose body has another form at its last position, as two;
  /// null if that is not so.
  ExprRef splitLast(Combiner combiner, ExprRef body, ExprRef init,
                    ArrayRef<ExprRef> variables);
  bool isLast(ExprRef variable, ExprRef position);

  using Key = std::tuple<int, const void *, unsigned, int64_t, uint64_t,
                         int64_t, const void *, int, const void *,
                         std::vector<int64_t>, std::vector<const Expr *>>;
  MLIRContext *context;
  std::deque<Expr> nodes;
  std::map<Key, ExprRef> uniqued;
  bool splits;
  unsigned numVariables = 0, numSplits = 0;
  llvm::DenseMap<Extent, Extent> successors;
};

/// True for the largest of several numbers, one of which is computed, with a
/// constant in its place where it is infinite.
bool isMaximum(ExprRef expr);

/// x = sum of coefficient * term + constant.
struct LinearSum {
  std::map<unsigned, std::pair<ExprRef, double>> terms; // by id
  double constant = 0;

  void scale(double factor);
  void add(std::pair<ExprRef, double> term);
  /// Equal up to rounding of coefficients.
  bool matches(const LinearSum &other) const;
};
LinearSum linearForm(ExprRef expr);
/// The same, where what holds no reduction is a term: to take (1 - m) * 1e9
/// apart loses what is added to it.
LinearSum linearFormOfReductions(ExprRef expr);

/// The factors of a product, divisors apart.
struct FactorList {
  SmallVector<ExprRef> factors, divisors;
  double constant = 1;
};
FactorList product(ExprRef expr);

/// One line for messages: `sum(element(%q)…)` is not wanted there, so only the
/// outermost operation.
std::string describe(ExprRef expr);
/// A number as short as it is.
std::string text(double value);

} // namespace attn::raise

#endif // ATTN_LIB_CONVERSION_LINALGTOATTN_EXPRESSION_H
