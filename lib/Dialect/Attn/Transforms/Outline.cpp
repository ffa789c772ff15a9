//===- Outline.cpp - attn-outline -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Outline.h"

#include "attn/Dialect/Attn/Analysis/TracedView.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace attn {
#define GEN_PASS_DEF_ATTNOUTLINEPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// Of an expansion the sizes that types leave open follow from the source where
/// no dimension becomes several of them.
static bool canBeMoved(Operation *op) {
  auto expand = dyn_cast<tensor::ExpandShapeOp>(op);
  if (!expand)
    return isView(op);
  ArrayRef<int64_t> sizes = expand.getResultType().getShape();
  return llvm::all_of(expand.getReassociationIndices(),
                      [&](ArrayRef<int64_t> group) {
                        return llvm::count_if(group, [&](int64_t dim) {
                                 return ShapedType::isDynamic(sizes[dim]);
                               }) <= 1;
                      });
}

/// The same view of `source`.
static Value rebuildView(OpBuilder &b, Operation *op, Value source) {
  Location loc = op->getLoc();
  if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, source);
    applyPermutationToVector(sizes, transpose.getPermutation());
    Value init = tensor::EmptyOp::create(
        b, loc, sizes, getElementTypeOrSelf(source.getType()));
    return linalg::TransposeOp::create(b, loc, source, init,
                                       transpose.getPermutation())
        ->getResult(0);
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return tensor::ExpandShapeOp::create(b, loc, expand.getResultType(), source,
                                         expand.getReassociationIndices());
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return tensor::CollapseShapeOp::create(b, loc, collapse.getResultType(),
                                           source,
                                           collapse.getReassociationIndices());
  return tensor::CastOp::create(b, loc, op->getResult(0).getType(), source);
}

namespace {
/// A tensor of the attention and views between it and another one, the one
/// nearer to the arguments of the caller first.
struct ViewChain {
  Value source;
  SmallVector<Operation *> views;

  Value build(OpBuilder &b, Value value) const {
    for (Operation *view : views)
      value = rebuildView(b, view, value);
    return value;
  }
};
} // namespace

/// Views that the kernel takes instead of its caller: transposes, which would
/// copy there, with what follows them, and those that undo each other. Other
/// reshapes cost the caller nothing.
static ViewChain findOperandViews(Value operand) {
  ViewChain chosen{operand, {}}, chain = chosen;
  while (Operation *op = chain.source.getDefiningOp()) {
    if (!canBeMoved(op))
      break;
    chain.source = op->getOperand(0);
    chain.views.insert(chain.views.begin(), op);
    FailureOr<TracedView> view = traceView(operand, chain.source);
    if (succeeded(view) && (isa<linalg::TransposeOp>(op) ||
                            (view->isWhole() && !isa<tensor::CastOp>(op))))
      chosen = chain;
  }
  return chosen;
}

/// The same after the attention, where nothing else reads what they see.
static ViewChain findResultViews(Value result) {
  ViewChain chosen{result, {}}, chain = chosen;
  while (chain.source.hasOneUse()) {
    Operation *op = *chain.source.user_begin();
    if (!canBeMoved(op) || op->getOperand(0) != chain.source ||
        op->getBlock() != result.getParentBlock())
      break;
    chain.source = op->getResult(0);
    chain.views.push_back(op);
    FailureOr<TracedView> view = traceView(chain.source, result);
    auto type = cast<RankedTensorType>(chain.source.getType());
    bool isWritable = succeeded(view) &&
                      succeeded(invertView(
                          *view, type.getShape(),
                          cast<RankedTensorType>(result.getType()).getRank()));
    if (isWritable && (isa<linalg::TransposeOp>(op) ||
                       (view->isWhole() && !isa<tensor::CastOp>(op))))
      chosen = chain;
  }
  return chosen;
}

//===----------------------------------------------------------------------===//
// What a function takes
//===----------------------------------------------------------------------===//

namespace {
/// A dimension of an operand of the attention.
struct OperandSize {
  unsigned operand = 0;
  int64_t dim = 0;
};

/// How one attention becomes a function.
struct Outlining {
  AttentionOp op;
  /// Query, key and value.
  SmallVector<ViewChain, 3> tensors;
  ViewChain output;
  /// Scalar code that captures are made of, in order, and the sizes that it
  /// reads: it is in the function.
  SetVector<Operation *> code;
  llvm::DenseMap<Operation *, OperandSize> sizes;
  /// The other operands that are arguments, each once.
  SetVector<Value> others;

  SmallVector<Value> arguments() const {
    SmallVector<Value> values;
    for (const ViewChain &tensor : tensors)
      values.push_back(tensor.source);
    llvm::append_range(values, others);
    return values;
  }
};

/// Reads one attention.
class OutliningReader {
public:
  explicit OutliningReader(AttentionOp op) { match.op = op; }

  Outlining run();

private:
  std::optional<OperandSize> findSize(tensor::DimOp dim) const;
  bool collectCode(Value value, SetVector<Operation *> &code);

  Outlining match;
};
} // namespace

/// The dimension of an operand that is what `dim` asks for.
std::optional<OperandSize> OutliningReader::findSize(tensor::DimOp dim) const {
  AttentionOp op = match.op;
  std::optional<int64_t> asked = dim.getConstantIndex();
  if (!asked)
    return std::nullopt;
  unsigned captures = op->getNumOperands() - op.getCaptures().size();
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    if (number >= match.tensors.size() && number < captures)
      continue;
    FailureOr<TracedView> view = traceView(operand, dim.getSource());
    if (failed(view) || (number >= captures && !view->isWhole()))
      continue;
    FailureOr<TracedView> whole = traceView(dim.getSource(), dim.getSource());
    for (auto [i, parts] : llvm::enumerate(view->parts))
      if (succeeded(whole) && parts == whole->parts[*asked])
        return OperandSize{static_cast<unsigned>(number),
                           static_cast<int64_t>(i)};
  }
  return std::nullopt;
}

/// The operations that compute a scalar of constants and of sizes of the
/// operands; fails where there is anything else.
bool OutliningReader::collectCode(Value value, SetVector<Operation *> &code) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (code.contains(op) || match.code.contains(op))
    return true;
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    std::optional<OperandSize> size = findSize(dim);
    if (!size)
      return false;
    match.sizes[op] = *size;
    return code.insert(op);
  }
  bool isScalar = op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
                  llvm::all_of(op->getResultTypes(), [](Type type) {
                    return type.isIntOrIndexOrFloat();
                  });
  for (Value operand : op->getOperands())
    if (!isScalar || !collectCode(operand, code))
      return false;
  return isScalar && code.insert(op);
}

Outlining OutliningReader::run() {
  AttentionOp op = match.op;
  for (Value tensor : {op.getQuery(), op.getKey(), op.getValue()})
    match.tensors.push_back(findOperandViews(tensor));
  match.output = findResultViews(op.getOutput());
  if (op.getSink())
    match.others.insert(op.getSink());
  match.others.insert_range(op.getDropoutKey());
  for (Value capture : op.getCaptures()) {
    SetVector<Operation *> code;
    bool isCode = !isa<ShapedType>(capture.getType()) &&
                  !match.others.contains(capture) && collectCode(capture, code);
    if (isCode)
      match.code.insert_range(code);
    else
      match.others.insert(capture);
  }
  return match;
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

static func::FuncOp buildFunction(OpBuilder &b, const Outlining &match) {
  AttentionOp op = match.op;
  SmallVector<Value> arguments = match.arguments();
  auto type =
      FunctionType::get(b.getContext(), TypeRange(ValueRange(arguments)),
                        {match.output.source.getType(), op.getLse().getType()});
  auto function = func::FuncOp::create(b, op.getLoc(), "outlined", type);
  function.setPrivate();
  Block *entry = function.addEntryBlock();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);

  IRMapping mapping;
  SmallVector<Value> operands;
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    // Captures are called after their locations.
    entry->getArgument(number).setLoc(argument.getLoc());
    if (number < match.tensors.size())
      operands.push_back(
          match.tensors[number].build(b, entry->getArgument(number)));
    else
      mapping.map(argument, entry->getArgument(number));
  }
  for (Operation *code : match.code) {
    auto size = match.sizes.find(code);
    if (size == match.sizes.end()) {
      b.clone(*code, mapping);
      continue;
    }
    auto [operand, dim] = size->second;
    Value tensor = operand < operands.size()
                       ? operands[operand]
                       : mapping.lookup(op->getOperand(operand));
    mapping.map(code->getResult(0),
                tensor::DimOp::create(b, code->getLoc(), tensor, dim));
  }
  for (Value other : op->getOperands().drop_front(match.tensors.size()))
    operands.push_back(mapping.lookup(other));
  auto attention = cast<AttentionOp>(b.clone(*op));
  attention->setOperands(operands);
  func::ReturnOp::create(
      b, op.getLoc(),
      {match.output.build(b, attention.getOutput()), attention.getLse()});
  return function;
}

/// Erases `op` where nothing needs it, and then what fed it.
static void eraseDead(ArrayRef<Operation *> ops) {
  SetVector<Operation *> worklist(ops.begin(), ops.end());
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (!isOpTriviallyDead(op))
      continue;
    for (Value operand : op->getOperands())
      if (Operation *feeder = operand.getDefiningOp())
        worklist.insert(feeder);
    op->erase();
  }
}

static void replaceByCall(const Outlining &match, func::FuncOp function) {
  AttentionOp op = match.op;
  OpBuilder b(op);
  auto call = func::CallOp::create(b, op.getLoc(), function, match.arguments());
  Value(match.output.source).replaceAllUsesWith(call.getResult(0));
  op.getLse().replaceAllUsesWith(call.getResult(1));
  // What the attention and the views after it read, and nobody else may.
  SmallVector<Operation *> feeders;
  SmallVector<Operation *> replaced = {op};
  llvm::append_range(replaced, match.output.views);
  for (Operation *gone : llvm::reverse(replaced)) {
    for (Value operand : gone->getOperands())
      if (Operation *feeder = operand.getDefiningOp();
          feeder && !llvm::is_contained(replaced, feeder))
        feeders.push_back(feeder);
    gone->erase();
  }
  eraseDead(feeders);
}

//===----------------------------------------------------------------------===//
// Functions that are an attention and nothing else
//===----------------------------------------------------------------------===//

/// Adds what `value` sees of an argument of `function`; fails where it is no
/// view of one, or where that argument is already seen in another way.
static bool addPart(func::FuncOp function, Value value,
                    llvm::DenseMap<Value, ViewParts> &parts) {
  if (!isa<RankedTensorType>(value.getType()))
    return true;
  FailureOr<TracedView> view = traceView(value);
  if (failed(view) || !isa<BlockArgument>(view->source) ||
      view->source.getParentBlock() != &function.getBody().front())
    return false;
  return parts.try_emplace(view->source, view->parts).first->second ==
         view->parts;
}

static bool isResultOf(AttentionOp op, Value value) {
  FailureOr<TracedView> view = traceView(value);
  return succeeded(view) && view->source.getDefiningOp() == op &&
         succeeded(invertView(
             *view, cast<RankedTensorType>(value.getType()).getShape(),
             cast<RankedTensorType>(view->source.getType()).getRank()));
}

/// Views of arguments, scalar code and the attention, whose results it returns.
bool attn::isAttentionAlone(func::FuncOp function) {
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return false;
  auto attentions = function.getOps<AttentionOp>();
  if (!llvm::hasSingleElement(attentions))
    return false;
  AttentionOp attention = *attentions.begin();
  Block &body = function.getBody().front();
  for (Operation &op : body.without_terminator()) {
    bool isScalar =
        isMemoryEffectFree(&op) && op.getNumRegions() == 0 &&
        llvm::none_of(op.getResultTypes(), llvm::IsaPred<ShapedType>) &&
        (isa<tensor::DimOp>(op) ||
         llvm::none_of(op.getOperandTypes(), llvm::IsaPred<ShapedType>));
    if (&op != attention && !isView(&op) && !isScalar &&
        !isa<tensor::EmptyOp>(op))
      return false;
  }
  llvm::DenseMap<Value, ViewParts> parts;
  for (Value operand : attention->getOperands()) {
    bool isCapture = llvm::is_contained(attention.getCaptures(), operand);
    if ((isCapture && isa<ShapedType>(operand.getType()) &&
         !isa<BlockArgument>(operand)) ||
        !addPart(function, operand, parts))
      return false;
  }
  return llvm::all_of(body.getTerminator()->getOperands(), [&](Value value) {
    return isResultOf(attention, value);
  });
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// A function of `known` that is the same but for its name.
static func::FuncOp findEqual(func::FuncOp function,
                              ArrayRef<func::FuncOp> known) {
  for (func::FuncOp other : known)
    if (other.getFunctionType() == function.getFunctionType() &&
        OperationEquivalence::isRegionEquivalentTo(
            &other.getBody(), &function.getBody(),
            OperationEquivalence::IgnoreLocations))
      return other;
  return {};
}

SmallVector<func::FuncOp>
attn::outlineAttention(func::FuncOp caller,
                       SmallVectorImpl<func::FuncOp> &known) {
  SmallVector<AttentionOp> found;
  caller.walk([&](AttentionOp op) { found.push_back(op); });
  if (found.empty() || isAttentionAlone(caller))
    return {};
  SymbolTable symbols(caller->getParentOp());
  OpBuilder b(caller);
  Operation *last = caller;
  unsigned number = 0;
  SmallVector<func::FuncOp> called;
  for (AttentionOp op : found) {
    Outlining match = OutliningReader(op).run();
    b.setInsertionPointAfter(last);
    func::FuncOp function = buildFunction(b, match);
    if (func::FuncOp same = findEqual(function, known)) {
      function.erase();
      function = same;
    } else {
      std::string name;
      do
        name = (caller.getName() + "_attention_" + Twine(number++)).str();
      while (symbols.lookup(name));
      function.setName(name);
      symbols.insert(function);
      known.push_back(function);
      last = function;
    }
    called.push_back(function);
    replaceByCall(match, function);
  }
  return called;
}

namespace {
struct Outline : attn::impl::AttnOutlinePassBase<Outline> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    bool isHeld = true;
    module.walk([&](AttentionOp op) {
      auto function = op->getParentOfType<func::FuncOp>();
      if (function && function->getParentOp() == module)
        return;
      op.emitOpError("is in no func.func of the module, wanted one to call a "
                     "function of its own from");
      isHeld = false;
    });
    if (!isHeld)
      return signalPassFailure();
    SmallVector<func::FuncOp> known;
    for (auto caller : llvm::to_vector(module.getOps<func::FuncOp>()))
      for (func::FuncOp function : outlineAttention(caller, known))
        remark::passed(
            caller.getLoc(),
            remark::RemarkOpts::name("outline").category(getArgument()))
            << "an attention of '" << caller.getName() << "' is '"
            << function.getName() << "'";
  }
};
} // namespace
