//===- LinalgToAttn.cpp - convert-linalg-to-attn -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/LinalgToAttn.h"

#include "Build.h"
#include "attn/Conversion/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

namespace attn {
#define GEN_PASS_DEF_ATTNNORMALIZEINPUT
#define GEN_PASS_DEF_CONVERTLINALGTOATTN
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;
using namespace attn::raise;

/// True for an operation that only moves elements.
static bool isView(Reader &reader, Value value) {
  ExprRef read = reader.readOnce(value, reader.makeIndices(value));
  return !read || (read->kind == Expr::Kind::Element &&
                   getElementTypeOrSelf(read->value.getType()) ==
                       getElementTypeOrSelf(value.getType()));
}

/// Groups are a quotient of the head's number: only known sizes say of what.
static bool hasNormalForm(const AttentionMatch &match) {
  if (match.sink)
    return false;
  auto isKnownSize = [](ExprRef dim) { return isKnown(dim->extents[0]); };
  return match.groups.empty() || (llvm::all_of(match.groups, isKnownSize) &&
                                  llvm::all_of(match.keyHeads, isKnownSize));
}

/// `product` and what follows it, one user after another: the last may divide
/// or round what the product sums, a view may take batches and heads of it
/// apart. The last first.
static SmallVector<Value> findRoots(Reader &reader, Value product) {
  SmallVector<Value> roots = {product};
  Value value = product;
  while (true) {
    Operation *next = nullptr;
    for (Operation *user : value.getUsers()) {
      if (isa<tensor::DimOp>(user) || user == next)
        continue;
      if (next)
        return roots;
      next = user;
    }
    if (!next || next->getBlock() != product.getParentBlock() ||
        next->getNumResults() != 1 ||
        !isa<RankedTensorType>(next->getResult(0).getType()))
      return roots;
    value = next->getResult(0);
    ExprRef read = reader.readOnce(value, reader.makeIndices(value));
    if (!read || read->kind == Expr::Kind::Reduction)
      return roots;
    auto rankOf = [](Value tensor) {
      return cast<RankedTensorType>(tensor.getType()).getRank();
    };
    if (!isView(reader, value) || rankOf(value) > rankOf(roots.front()))
      roots.insert(roots.begin(), value);
  }
}

namespace {
/// What takes the place of a graph.
enum class Replacement { NormalForm, Attention };

/// The graphs of one function, one after the other.
class Raiser {
public:
  Raiser(RewriterBase &rewriter, func::FuncOp func, Replacement replacement)
      : rewriter(rewriter), func(func), replacement(replacement) {}

  SmallVector<RaisedGraph> run() {
    while (raiseOne())
      ;
    return std::move(graphs);
  }

private:
  /// Raises the first graph that can be; notes those before it that cannot.
  bool raiseOne() {
    Expressions expressions(func.getContext());
    Extents extents(func);
    Reader reader(expressions, extents);
    Matcher matcher(expressions, extents, reader);
    SmallVector<Operation *> products;
    func.walk([&](linalg::LinalgOp op) {
      if (op->getNumResults() == 1 && op.getNumReductionLoops() > 0 &&
          !done.contains(op))
        products.push_back(op);
    });
    for (Operation *op : products) {
      Value product = op->getResult(0);
      ExprRef read = reader.readOnce(product, reader.makeIndices(product));
      if (!read || !Expressions::contains(read, isContraction))
        continue;
      std::string reason;
      SmallVector<Value> roots = findRoots(reader, product);
      if (raise(op, roots, extents, matcher, reason))
        return true;
      if (expressions.hasSplit()) {
        // What looks like a logit behind the last key may hide that key.
        Expressions whole(func.getContext(), /*splits=*/false);
        Reader readerOfWhole(whole, extents);
        Matcher matcherOfWhole(whole, extents, readerOfWhole);
        if (raise(op, roots, extents, matcherOfWhole, reason))
          return true;
      }
      done.insert(op);
      if (!reason.empty())
        graphs.push_back({op->getLoc(), nullptr, reason});
    }
    return false;
  }

  /// Puts what it can be in place of the graph of `op` that ends in one of
  /// `roots`, or says why not.
  bool raise(Operation *op, ArrayRef<Value> roots, Extents &extents,
             Matcher &matcher, std::string &reason) {
    for (Value root : roots) {
      Miss miss{"", op->getLoc()};
      std::optional<AttentionMatch> match = matcher.match(root, miss);
      if (match && replacement == Replacement::NormalForm) {
        done.insert(hasNormalForm(*match)
                        ? buildNormalForm(rewriter, *match, extents)
                        : op);
        return true;
      }
      if (match) {
        AttentionOp attention = buildAttention(rewriter, *match, extents);
        graphs.push_back(
            {attention.getLoc(), attention, "attention with " + match->found});
        return true;
      }
      if (reason.empty())
        reason = miss.reason;
    }
    return false;
  }

  RewriterBase &rewriter;
  func::FuncOp func;
  Replacement replacement;
  llvm::SmallPtrSet<Operation *, 16> done; // products
  SmallVector<RaisedGraph> graphs;
};
} // namespace

SmallVector<SmallVector<int64_t>> attn::sizesOfArguments(func::FuncOp func,
                                                         bool ofResults) {
  Extents extents(func, /*drawsAlike=*/true);
  SmallVector<Value> values(func.getArguments());
  if (ofResults)
    values.assign(func.front().getTerminator()->operand_begin(),
                  func.front().getTerminator()->operand_end());
  SmallVector<SmallVector<int64_t>> sizes;
  for (Value value : values) {
    sizes.push_back({});
    auto type = dyn_cast<RankedTensorType>(value.getType());
    for (int64_t dim = 0; type && dim < type.getRank(); ++dim)
      sizes.back().push_back(extents.of(value, dim));
    if (value.getType().isIndex())
      sizes.back().push_back(extents.of(OpFoldResult(value)));
  }
  return sizes;
}

SmallVector<RaisedGraph> attn::raiseAttention(RewriterBase &rewriter,
                                              func::FuncOp func) {
  if (func.isExternal())
    return {};
  return Raiser(rewriter, func, Replacement::Attention).run();
}

void attn::normalizeInput(RewriterBase &rewriter, func::FuncOp func) {
  if (!func.isExternal())
    Raiser(rewriter, func, Replacement::NormalForm).run();
}

namespace {
struct AttnNormalizeInput final
    : attn::impl::AttnNormalizeInputBase<AttnNormalizeInput> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    normalizeInput(rewriter, getOperation());
  }
};

struct ConvertLinalgToAttn final
    : attn::impl::ConvertLinalgToAttnBase<ConvertLinalgToAttn> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    for (const RaisedGraph &graph : raiseAttention(rewriter, getOperation())) {
      auto options = remark::RemarkOpts::name("raise").category(getArgument());
      if (graph.attention)
        remark::passed(graph.loc, options) << graph.text;
      else
        remark::missed(graph.loc, options) << graph.text;
    }
  }
};
} // namespace
