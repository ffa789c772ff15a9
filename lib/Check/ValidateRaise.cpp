//===- ValidateRaise.cpp - does a raised graph compute the same? ---------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Check/Passes.h"
#include "attn/Conversion/LinalgToAttn.h"
#include "attn/Conversion/Passes.h"
#include "attn/Execute/Engine.h"
#include "attn/Pipelines/CPU.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <random>

namespace attn {
#define GEN_PASS_DEF_ATTNVALIDATERAISE
#include "attn/Check/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The largest difference, relative to the largest result.
static constexpr double tolerance = 1e-5;

//===----------------------------------------------------------------------===//
// Everything in f64
//===----------------------------------------------------------------------===//

static Type widened(Type type) {
  if (isa<FloatType>(type))
    return Float64Type::get(type.getContext());
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(widened(tensor.getElementType()));
  return type;
}

static Attribute widened(Attribute attribute) {
  if (auto real = dyn_cast<FloatAttr>(attribute))
    return FloatAttr::get(Float64Type::get(real.getContext()),
                          real.getValueAsDouble());
  // The bytes of a resource, if they are there, are those of elements.
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attribute);
      resource && isa<FloatType>(resource.getElementType()))
    if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
      if (bool isSplat; DenseElementsAttr::isValidRawBuffer(
              resource.getType(), blob->getData(), isSplat))
        attribute = DenseElementsAttr::getFromRawBuffer(resource.getType(),
                                                        blob->getData());
  auto elements = dyn_cast<DenseFPElementsAttr>(attribute);
  if (!elements)
    return attribute;
  Type f64 = Float64Type::get(attribute.getContext());
  return elements.mapValues(f64, [](const APFloat &value) {
    APFloat wide = value;
    bool losesInfo;
    wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
    return wide.bitcastToAPInt();
  });
}

/// No type is left that rounds.
static void widen(func::FuncOp func) {
  SmallVector<Operation *> casts;
  func.walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setType(widened(argument.getType()));
    for (OpResult result : op->getResults())
      result.setType(widened(result.getType()));
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      constant.setValueAttr(cast<TypedAttr>(widened(constant.getValue())));
    if (isa<arith::ExtFOp, arith::TruncFOp>(op))
      casts.push_back(op);
  });
  for (Operation *op : casts) {
    op->getResult(0).replaceAllUsesWith(op->getOperand(0));
    op->erase();
  }
  func.setFunctionType(FunctionType::get(
      func.getContext(), func.getBody().getArgumentTypes(),
      func.getBody().front().getTerminator()->getOperandTypes()));
}

static LogicalResult decomposeSoftmax(func::FuncOp func) {
  SmallVector<linalg::SoftmaxOp> ops;
  func.walk([&](linalg::SoftmaxOp op) { ops.push_back(op); });
  IRRewriter rewriter(func.getContext());
  for (linalg::SoftmaxOp op : ops) {
    rewriter.setInsertionPoint(op);
    FailureOr<SmallVector<Value>> values = op.decomposeOperation(rewriter);
    if (failed(values))
      return op.emitOpError("cannot be taken apart");
    rewriter.replaceOp(op, *values);
  }
  return success();
}

/// What is returned has memory of its own: a slice has that of its source.
static void copyReturnedSlices(func::FuncOp func) {
  Operation *end = func.getBody().front().getTerminator();
  OpBuilder b(end);
  for (OpOperand &result : end->getOpOperands()) {
    auto slice = result.get().getDefiningOp<tensor::ExtractSliceOp>();
    if (!slice)
      continue;
    Location loc = slice.getLoc();
    Value empty =
        tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, slice),
                                slice.getType().getElementType());
    auto copy = linalg::CopyOp::create(b, loc, slice.getResult(), empty);
    result.set(copy.getResult(0));
  }
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

namespace {
/// A tensor or scalar of a call; elements as doubles, integers as they are.
struct Datum {
  Type type; // of the function
  SmallVector<int64_t> sizes;
  std::vector<char> bytes;

  Type element() const { return getElementTypeOrSelf(type); }
  bool isFloat() const { return isa<FloatType>(element()); }
  unsigned elementBytes() const {
    if (isFloat() || element().isIndex())
      return 8;
    return std::max(1u, element().getIntOrFloatBitWidth() / 8);
  }
  int64_t count() const {
    int64_t result = 1;
    for (int64_t size : sizes)
      result *= size;
    return result;
  }
  double real(int64_t i) const {
    double value;
    memcpy(&value, bytes.data() + 8 * i, 8);
    return value;
  }
  void set(int64_t i, double value) {
    int64_t integer = static_cast<int64_t>(value);
    memcpy(bytes.data() + elementBytes() * i,
           isFloat() ? static_cast<void *>(&value) : &integer, elementBytes());
  }
};

/// One function, compiled.
class Program {
public:
  static FailureOr<Program> compile(func::FuncOp func, StringRef processor);
  void run(MutableArrayRef<Datum> inputs, MutableArrayRef<Datum> outputs);

private:
  std::unique_ptr<ExecutionEngine> engine;
  void (*entry)(void **) = nullptr;
};
} // namespace

/// A module with a copy of the one function.
static OwningOpRef<ModuleOp> isolate(func::FuncOp func) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(func.getLoc());
  auto copy = cast<func::FuncOp>(func->clone());
  copy.setPublic();
  module->push_back(copy);
  return module;
}

FailureOr<Program> Program::compile(func::FuncOp func, StringRef processor) {
  auto module = func->getParentOfType<ModuleOp>();
  std::string name = func.getName().str();
  auto run = [&](function_ref<void(OpPassManager &)> build) {
    PassManager manager(func.getContext());
    build(manager);
    return manager.run(module);
  };
  // Attention in its unfused definition; what it rounds, it rounds no more.
  if (failed(run([](OpPassManager &manager) {
        ConvertAttnToLinalgOptions options;
        options.precision = OraclePrecision::Input;
        manager.addPass(createConvertAttnToLinalg(options));
        manager.addPass(createConvertElementwiseToLinalgPass());
      })) ||
      failed(decomposeSoftmax(func)))
    return failure();
  widen(func);
  copyReturnedSlices(func);
  if (failed(run(buildLinalgToLLVMPipeline)))
    return failure();
  auto engine = createHostEngine(module, 0, processor);
  if (failed(engine))
    return failure();
  Program program;
  program.engine = std::move(*engine);
  auto entry = program.engine->lookupPacked(name);
  if (!entry)
    return module.emitError("cannot link the compiled function: ")
           << llvm::toString(entry.takeError());
  program.entry = *entry;
  return program;
}

void Program::run(MutableArrayRef<Datum> inputs,
                  MutableArrayRef<Datum> outputs) {
  // Pointers to the fields of memref descriptors: their addresses must last.
  std::deque<int64_t> fields;
  SmallVector<void *> slots;
  auto push = [&](int64_t value) {
    fields.push_back(value);
    slots.push_back(&fields.back());
  };
  for (MutableArrayRef<Datum> data : {inputs, outputs})
    for (Datum &datum : data) {
      if (!isa<RankedTensorType>(datum.type)) {
        slots.push_back(datum.bytes.data());
        continue;
      }
      push(reinterpret_cast<int64_t>(datum.bytes.data()));
      push(reinterpret_cast<int64_t>(datum.bytes.data()));
      push(0);
      SmallVector<int64_t> strides(datum.sizes.size());
      int64_t stride = 1;
      for (size_t dim = datum.sizes.size(); dim-- > 0;) {
        strides[dim] = stride;
        stride *= datum.sizes[dim];
      }
      for (int64_t size : datum.sizes)
        push(size);
      for (int64_t step : strides)
        push(step);
    }
  entry(slots.data());
}

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

namespace {
/// Sizes of classes and inputs of one call.
class Sample {
public:
  Sample(uint64_t seed) : random(seed) {}

  LogicalResult makeInputs(func::FuncOp func);
  LogicalResult makeOutputs(func::FuncOp func);
  SmallVector<Datum> inputs, outputs;

private:
  /// Small; multiples of 4, as sizes are taken apart; few are alike.
  int64_t sizeOf(int64_t extent) {
    if (extent >= 0)
      return extent;
    auto [entry, isNew] = sizes.try_emplace(extent, 0);
    if (isNew)
      entry->second = 4 * (1 + (sizes.size() * 2 + random() % 2) % 7);
    return entry->second;
  }
  void fill(Datum &datum);

  std::mt19937_64 random;
  std::map<int64_t, int64_t> sizes;
};
} // namespace

void Sample::fill(Datum &datum) {
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < datum.count(); ++i) {
    double value = normal(random);
    if (!datum.isFloat())
      value = static_cast<double>(random() % 4);
    if (datum.element().isInteger(1))
      value = random() % 4 != 0;
    datum.set(i, value);
  }
}

LogicalResult Sample::makeInputs(func::FuncOp func) {
  auto extents = sizesOfArguments(func, /*ofResults=*/false);
  int64_t total = 0;
  for (auto [type, dims] : llvm::zip_equal(func.getArgumentTypes(), extents)) {
    Datum datum{type, {}, {}};
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!datum.element().isIntOrIndexOrFloat() ||
        (!tensor && isa<ShapedType>(type)))
      return func.emitError("cannot be run: an argument is ") << type;
    if (tensor)
      for (int64_t extent : dims)
        datum.sizes.push_back(sizeOf(extent));
    total += datum.count();
    if (total > (int64_t(1) << 22))
      return func.emitError("cannot be run: its arguments have more than 2^22 "
                            "elements");
    datum.bytes.resize(datum.count() * datum.elementBytes());
    fill(datum);
    if (type.isIndex())
      datum.set(0, sizeOf(dims.front()));
    inputs.push_back(std::move(datum));
  }
  return success();
}

LogicalResult Sample::makeOutputs(func::FuncOp func) {
  auto extents = sizesOfArguments(func, /*ofResults=*/true);
  for (auto [type, dims] : llvm::zip_equal(func.getResultTypes(), extents)) {
    Datum datum{type, {}, {}};
    if (!isa<RankedTensorType>(type))
      return func.emitError("cannot be run: a result is ") << type;
    for (int64_t extent : dims) {
      if (extent < 0 && !sizes.count(extent))
        return func.emitError("cannot be run: a size of a result is not that "
                              "of an argument");
      datum.sizes.push_back(sizeOf(extent));
    }
    datum.bytes.assign(datum.count() * datum.elementBytes(), 0);
    outputs.push_back(std::move(datum));
  }
  return success();
}

/// A row without a visible key: NaN in the graph, 0 or -inf in attention.
static bool isEmptyRow(double graph, double attention) {
  return std::isnan(graph) && (attention == 0 || attention == -HUGE_VAL);
}

/// The largest difference, relative to the largest value; infinite where only
/// one is a number.
static double difference(const Datum &a, const Datum &b) {
  double largest = 0, apart = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    if (!a.isFloat()) {
      if (memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) != 0)
        return HUGE_VAL;
      return 0;
    }
    double x = a.real(i), y = b.real(i);
    if (x == y || (std::isnan(x) && std::isnan(y)) || isEmptyRow(x, y))
      continue;
    if (!std::isfinite(x) || !std::isfinite(y))
      return HUGE_VAL;
    apart = std::max(apart, std::fabs(x - y));
  }
  for (int64_t i = 0; i < a.count(); ++i)
    if (std::isfinite(a.real(i)))
      largest = std::max(largest, std::fabs(a.real(i)));
  return apart == 0 ? 0 : apart / std::max(largest, 1e-30);
}

static FailureOr<int> validateRaise(func::FuncOp func,
                                    const AttnValidateRaiseOptions &options) {
  OwningOpRef<ModuleOp> raisedModule = isolate(func), module = isolate(func);
  auto raised = *raisedModule->getOps<func::FuncOp>().begin();
  auto original = *module->getOps<func::FuncOp>().begin();
  IRRewriter rewriter(func.getContext());
  int count = 0;
  for (const RaisedGraph &graph : raiseAttention(rewriter, raised))
    count += graph.attention != nullptr;
  if (count == 0)
    return 0;
  SmallVector<Sample, 0> samples;
  for (int64_t number = 0; number < options.samples; ++number) {
    samples.emplace_back(options.seed + number);
    if (failed(samples.back().makeInputs(func)) ||
        failed(samples.back().makeOutputs(func)))
      return failure();
  }
  FailureOr<Program> before = Program::compile(original, options.processor);
  FailureOr<Program> after = Program::compile(raised, options.processor);
  if (failed(before) || failed(after))
    return failure();
  for (auto [number, sample] : llvm::enumerate(samples)) {
    // A program may compute in the memory of its arguments.
    SmallVector<Datum> outputs = sample.outputs, inputs = sample.inputs;
    before->run(inputs, sample.outputs);
    after->run(sample.inputs, outputs);
    for (auto [result, pair] :
         llvm::enumerate(llvm::zip_equal(sample.outputs, outputs))) {
      double apart = difference(std::get<0>(pair), std::get<1>(pair));
      if (apart > tolerance)
        return func.emitError("raised to attention, result #")
               << result << " of sample " << number << " differs: " << apart
               << " of its largest element, wanted " << tolerance;
    }
  }
  return count;
}

namespace {
struct ValidateRaise final : attn::impl::AttnValidateRaiseBase<ValidateRaise> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    registerDialects(registry);
  }
  void runOnOperation() override {
    bool valid = true;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      FailureOr<int> count = validateRaise(func, {samples, seed, processor});
      valid &= succeeded(count);
      if (succeeded(count))
        remark::analysis(
            func.getLoc(),
            remark::RemarkOpts::name("validate").category(getArgument()))
            << remark::metric("raised", *count);
    }
    if (!valid)
      signalPassFailure();
  }
};
} // namespace
