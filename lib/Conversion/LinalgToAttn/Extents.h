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
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_LINALGTOATTN_EXTENTS_H
#define ATTN_LIB_CONVERSION_LINALGTOATTN_EXTENTS_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include <map>

namespace attn::raise {

/// A size: known (>= 0), or class -1 - number.
using Extent = int64_t;
inline bool isKnown(Extent extent) { return extent >= 0; }

class Extents {
public:
  explicit Extents(func::FuncOp func);

  /// The size of one dimension of a tensor.
  Extent of(Value tensor, int64_t dim);
  /// The size that an index value or attribute says.
  Extent of(OpFoldResult size);

  struct Place {
    Value tensor; // or an index, with dim -1
    int64_t dim;
  };
  /// Where sizes of this class can be read.
  ArrayRef<Place> placesOf(Extent extent);

private:
  unsigned node(Value value, int64_t dim);
  unsigned node(int64_t constant);
  unsigned node(OpFoldResult size);
  unsigned find(unsigned node);
  void unite(unsigned a, unsigned b);
  void uniteShapes(Value a, Value b);
  void visit(Operation *op);
  void visitReassociation(Value wide, Value narrow,
                          ArrayRef<SmallVector<int64_t, 2>> groups);

  SmallVector<unsigned> parents;
  SmallVector<int64_t> constants; // of a root; -1 where unknown
  SmallVector<SmallVector<Place, 2>> places;
  llvm::DenseMap<std::pair<Value, int64_t>, unsigned> nodes;
  std::map<int64_t, unsigned> constantNodes;
};

} // namespace attn::raise

#endif // ATTN_LIB_CONVERSION_LINALGTOATTN_EXTENTS_H
