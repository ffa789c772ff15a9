//===- Extents.h - which sizes of a function are the same -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A structured operation makes the sizes that one of its loops runs over
// equal; a program that breaks this has no meaning. Classes of equal sizes say
// whether two loops over unknown sizes visit the same positions.
//
// Importers compute with sizes: a class may be a product of others, so that
//
//   %n = arith.muli %batch, %c4          // batch * 4
//   %b = arith.divsi %n, %c4             // batch
//   cf.assert (%m == %n)                 // m is batch * 4, too
//
// are known. No product of sizes of tensors wraps around: there would be no
// tensor with so many elements.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_LINALGTOATTN_EXTENTS_H
#define ATTN_LIB_CONVERSION_LINALGTOATTN_EXTENTS_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include <map>
#include <vector>

namespace attn::raise {

/// A size: known (>= 0), or class -1 - number.
using Extent = int64_t;
inline bool isKnown(Extent extent) { return extent >= 0; }

class Extents {
public:
  /// With `drawsAlike`, a size that a graph takes for another one or for 1 is
  /// that other one: sizes of a sample, not what a graph says.
  explicit Extents(func::FuncOp func, bool drawsAlike = false);

  /// The size of one dimension of a tensor.
  Extent of(Value tensor, int64_t dim);
  /// The size that an index value or attribute says.
  Extent of(OpFoldResult size);

  /// The size of a tensor that a scalar is, or a product of such sizes.
  std::optional<Extent> sizeOf(Value scalar);

  /// How often the product of `part` is in that of `whole`.
  enum class Ratio { Unknown, One, Several };
  Ratio ratio(ArrayRef<Extent> whole, ArrayRef<Extent> part);

  struct Place {
    Value tensor; // or an index, with dim -1
    int64_t dim;
  };
  /// Where sizes of this class can be read.
  ArrayRef<Place> placesOf(Extent extent);

private:
  /// coefficient * product of classes.
  struct Product {
    int64_t coefficient = 1;
    std::vector<unsigned> factors; // roots, sorted
  };

  unsigned node(Value value, int64_t dim);
  unsigned node(int64_t constant);
  unsigned node(OpFoldResult size);
  unsigned node(const Product &product);
  unsigned create();
  unsigned find(unsigned node);
  void unite(unsigned a, unsigned b);
  void uniteShapes(Value a, Value b);
  /// The product that a class is, if it is one, else the class.
  Product productOf(unsigned node);
  Product productOf(ArrayRef<Extent> extents);
  void renewProducts();
  static std::optional<Product> multiply(Product a, const Product &b);
  static std::optional<Product> divide(Product a, const Product &b);
  bool isSize(unsigned node);
  void visit(Operation *op);
  void visitScalar(Operation *op);
  void visitReshape(tensor::ReshapeOp op);
  void visitStructured(linalg::LinalgOp op);
  void visitReassociation(Value wide, Value narrow,
                          ArrayRef<SmallVector<int64_t, 2>> groups);
  Value boundOf(Operation *op);
  std::optional<bool> decide(Value condition);
  std::optional<Product> evaluate(AffineExpr expr, ValueRange operands,
                                  unsigned numDims);

  bool drawsAlike;
  bool changed = false;
  SmallVector<unsigned> parents;
  SmallVector<int64_t> constants; // of a root; -1 where unknown
  SmallVector<SmallVector<Place, 2>> places;
  llvm::DenseMap<std::pair<Value, int64_t>, unsigned> nodes;
  std::map<int64_t, unsigned> constantNodes;
  std::map<unsigned, Product> products; // of classes that are one, by root
  std::map<std::pair<int64_t, std::vector<unsigned>>, unsigned> nodesOfProducts;
};

} // namespace attn::raise

#endif // ATTN_LIB_CONVERSION_LINALGTOATTN_EXTENTS_H
