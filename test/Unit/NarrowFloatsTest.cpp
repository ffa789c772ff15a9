//===- NarrowFloatsTest.cpp - conversions of f16 and bf16 are exact -------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled conversions against LLVM's APFloat: every number of 16 bits, and
// around every one and every tie between two the nearest numbers of the wider
// type.
//
//===----------------------------------------------------------------------===//

#include "TestProcessor.h"
#include "attn/Execute/Engine.h"
#include "attn/Pipelines/CPU.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include <gtest/gtest.h>

using namespace attn;
using llvm::APFloat;
using llvm::APInt;

namespace {

struct Narrow {
  const char *name;
  const llvm::fltSemantics &semantics;
};

const Narrow f16{"f16", APFloat::IEEEhalf()}, bf16{"bf16", APFloat::BFloat()};

template <typename T> struct Wide;
template <> struct Wide<float> {
  using Bits = uint32_t;
  static constexpr const char *name = "f32";
  static const llvm::fltSemantics &semantics() { return APFloat::IEEEsingle(); }
};
template <> struct Wide<double> {
  using Bits = uint64_t;
  static constexpr const char *name = "f64";
  static const llvm::fltSemantics &semantics() { return APFloat::IEEEdouble(); }
};

APFloat converted(APFloat value, const llvm::fltSemantics &semantics) {
  bool losesInfo;
  value.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
  return value;
}

APFloat ofBits(const Narrow &type, uint64_t bits) {
  return APFloat(type.semantics, APInt(16, bits));
}

/// So many halves of the way from one number to another, exactly.
APFloat between(const APFloat &from, const APFloat &to, unsigned halves) {
  APFloat start = converted(from, APFloat::IEEEquad());
  APFloat way = converted(to, APFloat::IEEEquad());
  way.subtract(start, APFloat::rmNearestTiesToEven);
  way.multiply(converted(APFloat(halves / 2.0), APFloat::IEEEquad()),
               APFloat::rmNearestTiesToEven);
  start.add(way, APFloat::rmNearestTiesToEven);
  return start;
}

class NarrowFloatsTest : public ::testing::Test {
protected:
  NarrowFloatsTest() : context(registry()) {
    context.loadAllAvailableDialects();
  }

  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  /// Runs `operation` from type `from` to type `to` on each input.
  template <typename In, typename Out>
  std::vector<Out> run(const std::string &operation, const std::string &from,
                       const std::string &to, std::vector<In> inputs) {
    std::string ins = "tensor<?x" + from + ">", outs = "tensor<?x" + to + ">";
    std::string source =
        "func.func @f(%x: " + ins + ", %y: " + outs + ") -> " + outs +
        " {\n %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>,"
        " affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]}\n ins(%x "
        ": " +
        ins + ") outs(%y : " + outs + ") {\n ^bb0(%a: " + from + ", %b: " + to +
        "):\n %c = " + operation + " %a : " + from + " to " + to +
        "\n linalg.yield %c : " + to + "\n } -> " + outs +
        "\n return %r : " + outs + "\n}\n";
    auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
    mlir::PassManager manager(&context);
    buildLinalgToLLVMPipeline(manager);
    std::vector<Out> outputs(inputs.size());
    if (!module || mlir::failed(manager.run(*module))) {
      ADD_FAILURE() << "does not compile:\n" << source;
      return outputs;
    }
    auto engine = createHostEngine(*module, 2, testProcessor());
    EXPECT_TRUE(mlir::succeeded(engine));
    auto entry = (*engine)->lookupPacked("f");
    EXPECT_TRUE(static_cast<bool>(entry)) << llvm::toString(entry.takeError());
    // The initial output and the output are one memory.
    void *data[] = {inputs.data(), outputs.data(), outputs.data()};
    int64_t zero = 0, one = 1, size = inputs.size();
    std::vector<void *> slots;
    for (void *&memory : data)
      slots.insert(slots.end(), {&memory, &memory, &zero, &size, &one});
    (*entry)(slots.data());
    return outputs;
  }

  template <typename T> void checkWidening(const Narrow &type) {
    using Bits = typename Wide<T>::Bits;
    std::vector<uint16_t> inputs(1 << 16);
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = i;
    auto got =
        run<uint16_t, Bits>("arith.extf", type.name, Wide<T>::name, inputs);
    for (uint16_t input : inputs) {
      APFloat value(Wide<T>::semantics(), APInt(sizeof(T) * 8, got[input]));
      APFloat wanted = converted(ofBits(type, input), Wide<T>::semantics());
      if (wanted.isNaN())
        ASSERT_TRUE(value.isNaN()) << type.name << " " << input;
      else
        ASSERT_TRUE(value.bitwiseIsEqual(wanted)) << type.name << " " << input;
    }
  }

  /// Every number of `type`, every tie after one, and their neighbours.
  template <typename T>
  std::vector<typename Wide<T>::Bits> around(const Narrow &type) {
    using Bits = typename Wide<T>::Bits;
    std::vector<Bits> inputs;
    auto insert = [&](const APFloat &exact, std::initializer_list<int> steps) {
      APFloat value = converted(exact, Wide<T>::semantics());
      for (int step : steps)
        inputs.push_back(value.bitcastToAPInt().getZExtValue() +
                         static_cast<Bits>(step));
    };
    for (uint64_t number = 0; number < 1 << 16; ++number) {
      APFloat value = ofBits(type, number);
      insert(value, {-2, -1, 0, 1, 2});
      if (!value.isFinite())
        continue;
      // After the largest number as far as before it.
      bool isLargest = !ofBits(type, number + 1).isFinite();
      insert(between(ofBits(type, number - isLargest),
                     ofBits(type, number + !isLargest), isLargest ? 3 : 1),
             {-2, -1, 0, 1, 2});
    }
    return inputs;
  }

  template <typename T> void checkNarrowing(const Narrow &type) {
    using Bits = typename Wide<T>::Bits;
    std::vector<Bits> inputs = around<T>(type);
    auto got =
        run<Bits, uint16_t>("arith.truncf", Wide<T>::name, type.name, inputs);
    for (auto [input, output] : llvm::zip(inputs, got)) {
      APFloat value(Wide<T>::semantics(), APInt(sizeof(T) * 8, input));
      APFloat wanted = converted(value, type.semantics);
      if (wanted.isNaN())
        ASSERT_TRUE(ofBits(type, output).isNaN()) << type.name << " " << input;
      else
        ASSERT_TRUE(ofBits(type, output).bitwiseIsEqual(wanted))
            << type.name << " of the bits " << input << ": " << output;
    }
  }

  template <typename T>
  void checkIntegers(const Narrow &type, const std::string &name) {
    constexpr bool isSigned = std::is_signed_v<T>;
    constexpr unsigned width = sizeof(T) * 8;
    std::vector<T> inputs = {0, 1, std::numeric_limits<T>::min(),
                             std::numeric_limits<T>::max()};
    // Around every number of the type, and every tie, that it has.
    for (uint64_t number = 0; number < 0xffff; ++number)
      for (bool isTie : {false, true}) {
        APFloat value = ofBits(type, number), next = ofBits(type, number + 1);
        if (!value.isFinite() || !next.isFinite())
          continue;
        value = between(value, next, isTie);
        llvm::APSInt whole(width, !isSigned);
        bool isExact;
        if (value.convertToInteger(whole, APFloat::rmTowardZero, &isExact) &
            APFloat::opInvalidOp)
          continue;
        for (int step : {-1, 0, 1})
          inputs.push_back(static_cast<T>(*whole.getRawData() + step));
      }
    auto got = run<T, uint16_t>(isSigned ? "arith.sitofp" : "arith.uitofp",
                                name, type.name, inputs);
    for (auto [input, output] : llvm::zip(inputs, got)) {
      APFloat wanted(type.semantics);
      wanted.convertFromAPInt(
          APInt(width, static_cast<uint64_t>(input), isSigned, true), isSigned,
          APFloat::rmNearestTiesToEven);
      ASSERT_TRUE(ofBits(type, output).bitwiseIsEqual(wanted))
          << type.name << " of " << +input << ": " << output;
    }
  }

  mlir::MLIRContext context;
};

} // namespace

TEST_F(NarrowFloatsTest, Widening) {
  for (const Narrow *type : {&f16, &bf16}) {
    checkWidening<float>(*type);
    checkWidening<double>(*type);
  }
}

TEST_F(NarrowFloatsTest, NarrowingFromF32) {
  checkNarrowing<float>(f16);
  checkNarrowing<float>(bf16);
}

TEST_F(NarrowFloatsTest, NarrowingFromF64IsRoundedOnce) {
  checkNarrowing<double>(f16);
  checkNarrowing<double>(bf16);
}

TEST_F(NarrowFloatsTest, IntegersAreRoundedOnce) {
  for (const Narrow *type : {&f16, &bf16}) {
    checkIntegers<int8_t>(*type, "i8");
    checkIntegers<uint8_t>(*type, "i8");
    checkIntegers<int32_t>(*type, "i32");
    checkIntegers<uint32_t>(*type, "i32");
    checkIntegers<int64_t>(*type, "i64");
    checkIntegers<uint64_t>(*type, "i64");
  }
}

TEST_F(NarrowFloatsTest, ToIntegers) {
  std::vector<uint16_t> inputs;
  for (uint16_t bits = 0; bits < 0x4f00; ++bits)
    inputs.insert(inputs.end(), {bits, uint16_t(bits | 0x8000)});
  for (const Narrow *type : {&f16, &bf16}) {
    auto got =
        run<uint16_t, int64_t>("arith.fptosi", type->name, "i64", inputs);
    for (auto [input, output] : llvm::zip(inputs, got)) {
      llvm::APSInt wanted(64, /*isUnsigned=*/false);
      bool isExact;
      ofBits(*type, input)
          .convertToInteger(wanted, APFloat::rmTowardZero, &isExact);
      ASSERT_EQ(output, wanted.getExtValue()) << type->name << " " << input;
    }
  }
}
