//===- FragmentGroups.cpp - fragments that are spread alike -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FragmentGroups.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace attn::warp;

namespace {
/// Ties values to each other while walking over a function.
class GroupCollector {
public:
  void visit(Operation *op);
  std::vector<FragmentGroup> take();

private:
  void tie(ArrayRef<OpOperand *> uses, ValueRange values);
  void tieAll(Operation *op);
  void visitStore(StoreOp store);
  void visitProduct(MmaOp product);
  void pin(Operation *op);
  size_t find(size_t number);
  size_t numberOf(Value value);
  void unite(size_t a, size_t b);

  llvm::MapVector<Value, size_t> numbers;
  SmallVector<size_t> parents;
  std::vector<FragmentGroup> groups; // of each number, moved to its parent
  llvm::DenseMap<Value, Value> packed;
};
} // namespace

static bool isFragment(Value value) { return isa<FragType>(value.getType()); }

static bool isSplat(Value value) { return value.getDefiningOp<SplatOp>(); }

size_t GroupCollector::find(size_t number) {
  while (parents[number] != number)
    number = parents[number] = parents[parents[number]];
  return number;
}

size_t GroupCollector::numberOf(Value value) {
  auto [entry, isNew] = numbers.insert({value, parents.size()});
  if (isNew) {
    parents.push_back(parents.size());
    groups.emplace_back().values.push_back(value);
    if (cast<FragType>(value.getType()).getKind() == FragKind::A)
      groups.back().obstacle = "a tile is an operand in registers";
  }
  return find(entry->second);
}

void GroupCollector::unite(size_t a, size_t b) {
  if (a == b)
    return;
  auto [first, second] = std::minmax(a, b);
  parents[second] = first;
  FragmentGroup &to = groups[first], &from = groups[second];
  llvm::append_range(to.values, from.values);
  llvm::append_range(to.splats, from.splats);
  llvm::append_range(to.products, from.products);
  llvm::append_range(to.converts, from.converts);
  llvm::append_range(to.exchanges, from.exchanges);
  if (to.obstacle.empty())
    to.obstacle = from.obstacle;
  auto warpsOf = [](const FragmentGroup &group) {
    return cast<FragType>(group.values.front().getType()).getWarps();
  };
  if (to.obstacle.empty() && warpsOf(to) != warpsOf(from))
    to.obstacle = "kernels of other numbers of warps share a tile";
  from = {};
}

/// Operands and values that are spread alike.
void GroupCollector::tie(ArrayRef<OpOperand *> uses, ValueRange values) {
  SmallVector<Value> all = llvm::to_vector(values);
  for (OpOperand *use : uses)
    if (!isSplat(use->get()))
      all.push_back(use->get());
  if (all.empty())
    return;
  for (Value value : all)
    unite(numberOf(all.front()), numberOf(value));
  FragmentGroup &group = groups[numberOf(all.front())];
  for (OpOperand *use : uses)
    if (isSplat(use->get()))
      group.splats.push_back(use);
}

static SmallVector<OpOperand *> fragmentUses(Operation *op) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : op->getOpOperands())
    if (isFragment(use.get()))
      uses.push_back(&use);
  return uses;
}

void GroupCollector::tieAll(Operation *op) {
  SmallVector<Value> results;
  for (Value result : op->getResults())
    if (isFragment(result))
      results.push_back(result);
  tie(fragmentUses(op), results);
}

/// What is not known to take fragments in another grid.
void GroupCollector::pin(Operation *op) {
  std::string reason = op->getName().getStringRef().str() +
                       " wants warps that are stacked along the rows";
  auto refuse = [&](Value value) {
    if (isFragment(value) && !isSplat(value))
      if (std::string &why = groups[numberOf(value)].obstacle; why.empty())
        why = reason;
  };
  llvm::for_each(op->getOperands(), refuse);
  llvm::for_each(op->getResults(), refuse);
}

void GroupCollector::visitStore(StoreOp store) {
  if (store.getRows() || store.getStaging())
    return pin(store);
  tieAll(store);
  Value value = store.getValue();
  if (!store.getPacked() || isSplat(value))
    return;
  Value &first = packed.insert({store.getView(), value}).first->second;
  unite(numberOf(first), numberOf(value));
}

void GroupCollector::visitProduct(MmaOp product) {
  tie({&product.getAccMutable()}, product.getResult());
  groups[numberOf(product.getResult())].products.push_back(product);
  bool isRead =
      isFragment(product.getA()) && !product.getA().getDefiningOp<ConvertOp>();
  if (isRead || product.getAtom() != ProductAtom::MmaSync)
    pin(product);
}

void GroupCollector::visit(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (auto [init, argument, yielded, result] :
         llvm::zip_equal(loop.getInitArgsMutable(), loop.getRegionIterArgs(),
                         *loop.getYieldedValuesMutable(), loop.getResults()))
      if (isFragment(result))
        tie({&init, &yielded}, {argument, result});
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    for (auto [number, result] : llvm::enumerate(branch.getResults()))
      if (isFragment(result))
        tie({&branch.thenYield()->getOpOperand(number),
             &branch.elseYield()->getOpOperand(number)},
            result);
  } else if (auto convert = dyn_cast<ConvertOp>(op)) {
    if (isSplat(convert.getValue()) ||
        !llvm::all_of(convert->getUsers(), llvm::IsaPred<MmaOp>))
      return pin(op);
    groups[numberOf(convert.getValue())].converts.push_back(convert);
  } else if (auto product = dyn_cast<MmaOp>(op)) {
    visitProduct(product);
  } else if (auto store = dyn_cast<StoreOp>(op)) {
    visitStore(store);
  } else if (auto load = dyn_cast<LoadOp>(op)) {
    tieAll(op);
    Value value = load.getResult();
    Value &first = packed.insert({load.getView(), value}).first->second;
    unite(numberOf(first), numberOf(value));
  } else if (auto store = dyn_cast<StoreFragOp>(op)) {
    if (store.getItem())
      return pin(op);
    tieAll(op);
    if (!isSplat(store.getValue()))
      groups[numberOf(store.getValue())].exchanges.push_back(store);
  } else if (auto load = dyn_cast<LoadFragOp>(op)) {
    tieAll(op);
    if (load.getSlot().getType().getShape()[0] != 1)
      pin(op);
  } else if (isa<SplatOp, scf::YieldOp>(op)) {
    return;
  } else if (isa<BroadcastOp, SelectOp, CastOp, AnyOp, ExtremeOp, CoordsOp,
                 GatherOp>(op) ||
             OpTrait::hasElementwiseMappableTraits(op)) {
    tieAll(op);
  } else {
    pin(op);
  }
}

std::vector<FragmentGroup> GroupCollector::take() {
  std::vector<FragmentGroup> result;
  for (auto [number, group] : llvm::enumerate(groups))
    if (parents[number] == number)
      result.push_back(std::move(group));
  return result;
}

std::vector<FragmentGroup>
attn::warp::collectFragmentGroups(func::FuncOp function) {
  GroupCollector collector;
  function.walk([&](Operation *op) { collector.visit(op); });
  return collector.take();
}
