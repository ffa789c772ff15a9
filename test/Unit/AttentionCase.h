//===- AttentionCase.h - a random attention problem, answered ---*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tests that simulate kernels: the program as text, tensors for it, and
// float64 with the rule C20: the error may be twice that of the plain
// evaluation in the input type.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_ATTENTIONCASE_H
#define ATTN_TEST_UNIT_ATTENTIONCASE_H

#include "Simulator/Simulator.h"

#include "llvm/ADT/APFloat.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace attn {

enum class Variant { Plain, Causal, Window, Softcap, Alibi, Bias };

struct Case {
  int64_t batch = 1, heads = 1, group = 1, queries = 1, keys = 1;
  int64_t dim = 64, valueDim = 64;
  Variant variant = Variant::Plain;
  bool bf16 = true;
  bool rowsOutside = false; // [batch, length, heads, dim] in memory
  double magnitude = 1;     // of the query: the deviation of the scores
  std::string target = "sm_80";
  bool hasPlan = true; // else the compiler's
  int64_t blockQ = 64, blockK = 32, warps = 4, stages = 2;
  bool queryInRegisters = false;
  std::string buffer = "warp-buffer";
  bool deferSum = true;
};

/// What each 16-bit pattern stands for.
inline const std::vector<double> &decoded(const llvm::fltSemantics &semantics) {
  auto decode = [](const llvm::fltSemantics &from) {
    std::vector<double> values;
    for (uint64_t bits = 0; bits < 65536; ++bits) {
      llvm::APFloat value(from, llvm::APInt(16, bits));
      bool lossy;
      value.convert(llvm::APFloat::IEEEdouble(),
                    llvm::APFloat::rmNearestTiesToEven, &lossy);
      values.push_back(value.convertToDouble());
    }
    return values;
  };
  static const std::vector<double> bf16 = decode(llvm::APFloat::BFloat());
  static const std::vector<double> f16 = decode(llvm::APFloat::IEEEhalf());
  return &semantics == &llvm::APFloat::BFloat() ? bf16 : f16;
}

/// A tensor of 16-bit floats [batch, heads, length, dim].
struct Tensor {
  int64_t sizes[4], strides[4];
  std::vector<uint16_t> data;
  const llvm::fltSemantics *semantics = nullptr;

  double at(int64_t b, int64_t h, int64_t i, int64_t c) const {
    return decoded(
        *semantics)[data[b * strides[0] + h * strides[1] + i * strides[2] + c]];
  }

  simulator::HostArgument argument() {
    return {data.data(), SmallVector<int64_t>(sizes, sizes + 4),
            SmallVector<int64_t>(strides, strides + 4), 0};
  }
};

inline const llvm::fltSemantics &semanticsOf(const Case &test) {
  return test.bf16 ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf();
}

inline uint16_t round16(const llvm::fltSemantics &semantics, double number) {
  llvm::APFloat value(number);
  bool lossy;
  value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &lossy);
  return value.bitcastToAPInt().getZExtValue();
}

/// Through the input type and back.
inline double rounded(const Case &test, double number) {
  llvm::APFloat value(number);
  bool lossy;
  value.convert(semanticsOf(test), llvm::APFloat::rmNearestTiesToEven, &lossy);
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &lossy);
  return value.convertToDouble();
}

inline std::string planOf(const Case &test) {
  auto number = [](int64_t n) { return std::to_string(n); };
  return "plan = #attn.plan<target = " + test.target +
         ", block_q = " + number(test.blockQ) +
         ", block_k = " + number(test.blockK) +
         ", warps = " + number(test.warps) +
         ", stages = " + number(test.stages) +
         ", q_in_registers = " + (test.queryInRegisters ? "true" : "false") +
         ">";
}

inline std::string textOf(const Case &test) {
  std::string t = test.bf16 ? "bf16" : "f16";
  auto number = [](int64_t n) { return std::to_string(n); };
  std::string q = "tensor<?x?x?x" + number(test.dim) + "x" + t + ">";
  std::string v = "tensor<?x?x?x" + number(test.valueDim) + "x" + t + ">";
  std::string variants;
  if (test.variant == Variant::Causal)
    variants = "#attn.causal";
  if (test.variant == Variant::Window)
    variants = "#attn.window<left = 20, right = 3>";
  if (test.variant == Variant::Softcap)
    variants = "#attn.softcap<2.0 : f32>";
  if (test.variant == Variant::Alibi)
    variants = "#attn.causal, #attn.alibi";
  bool bias = test.variant == Variant::Bias;
  std::string extra = bias ? ", %bias: tensor<?x?xf32>" : "";
  std::string extraType = bias ? ", tensor<?x?xf32>" : "";
  std::string region = !bias ? "" : R"(
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
      %e = attn.capture_load %t[%i, %j] : tensor<?x?xf32>
      %y = arith.addf %x, %e : f32
      attn.yield %y : f32
    })";
  return "func.func @f(%q: " + q + ", %k: " + q + ", %v: " + v + extra +
         ") -> (" + v + ", tensor<?x?x?xf32>) {\n  %o, %lse = attn.attention " +
         "%q, %k, %v" + (bias ? " captures(%bias)" : "") + " {" +
         (variants.empty() ? "" : "variants = [" + variants + "]") +
         (test.hasPlan && !variants.empty() ? ", " : "") +
         (test.hasPlan ? planOf(test) : "") + "}" + region + " : (" + q + ", " +
         q + ", " + v + extraType + ") -> (" + v +
         ", tensor<?x?x?xf32>)\n  return %o, %lse : " + v +
         ", tensor<?x?x?xf32>\n}\n";
}

/// The tensors of a case.
class CaseTensors {
public:
  CaseTensors(const Case &test, std::mt19937 &random);

  /// Results that nobody wrote: NaN.
  void reset();
  /// For the function that `textOf` names `f`.
  SmallVector<simulator::HostArgument> arguments();
  /// Compares the results with float64.
  void judge() const;

private:
  Tensor makeTensor(int64_t heads, int64_t length, int64_t dim, bool isOutput,
                    double magnitude = 1);
  double scoreOf(double x, int64_t h, int64_t i, int64_t j) const;
  void evaluate(int64_t b, int64_t h, int64_t i);

  Case test;
  std::mt19937 &random;
  Tensor q, k, v, o;
  std::vector<float> lse, bias;
  std::vector<double> exact, exactLse;
  double plainWorst = 0, plainSquare = 0;
};

inline CaseTensors::CaseTensors(const Case &test, std::mt19937 &random)
    : test(test), random(random) {
  int64_t keyHeads = test.heads / test.group;
  q = makeTensor(test.heads, test.queries, test.dim, false, test.magnitude);
  k = makeTensor(keyHeads, test.keys, test.dim, false);
  v = makeTensor(keyHeads, test.keys, test.valueDim, false);
  o = makeTensor(test.heads, test.queries, test.valueDim, true);
  lse.assign(test.batch * test.heads * test.queries, NAN);
  bias.resize(test.queries * test.keys);
  std::normal_distribution<float> normal;
  for (float &element : bias)
    element = normal(random);
  for (int64_t b = 0; b < test.batch; ++b)
    for (int64_t h = 0; h < test.heads; ++h)
      for (int64_t i = 0; i < test.queries; ++i)
        evaluate(b, h, i);
}

inline void CaseTensors::reset() {
  o.data.assign(o.data.size(), 0x7fff);
  lse.assign(lse.size(), NAN);
}

inline SmallVector<simulator::HostArgument> CaseTensors::arguments() {
  SmallVector<simulator::HostArgument> arguments = {q.argument(), k.argument(),
                                                    v.argument()};
  if (test.variant == Variant::Bias)
    arguments.push_back(
        {bias.data(), {test.queries, test.keys}, {test.keys, 1}, 0});
  arguments.push_back(o.argument());
  arguments.push_back({lse.data(),
                       {test.batch, test.heads, test.queries},
                       {test.heads * test.queries, test.queries, 1},
                       0});
  return arguments;
}

inline Tensor CaseTensors::makeTensor(int64_t heads, int64_t length,
                                      int64_t dim, bool isOutput,
                                      double magnitude) {
  Tensor tensor = {{test.batch, heads, length, dim},
                   {heads * length * dim, length * dim, dim, 1},
                   {},
                   &semanticsOf(test)};
  if (test.rowsOutside) {
    tensor.strides[1] = dim;
    tensor.strides[2] = heads * dim;
  }
  std::normal_distribution<double> normal(0, magnitude);
  tensor.data.resize(test.batch * heads * length * dim);
  for (uint16_t &element : tensor.data)
    element = isOutput ? 0x7fff : round16(*tensor.semantics, normal(random));
  return tensor;
}

/// The score after the region, or -inf where the mask hides it.
inline double CaseTensors::scoreOf(double x, int64_t h, int64_t i,
                                   int64_t j) const {
  int64_t diagonal = i + test.keys - test.queries;
  bool visible = true;
  if (test.variant == Variant::Causal || test.variant == Variant::Alibi)
    visible = j <= diagonal;
  if (test.variant == Variant::Window)
    visible = j >= diagonal - 20 && j <= diagonal + 3;
  if (!visible)
    return -INFINITY;
  if (test.variant == Variant::Softcap)
    return 2 * std::tanh(x / 2);
  if (test.variant == Variant::Alibi)
    return x - std::exp2(-8.0 * (h + 1) / test.heads) * std::abs(diagonal - j);
  if (test.variant == Variant::Bias)
    return x + bias[i * test.keys + j];
  return x;
}

/// One row: in float64, and as t0, which is scores rounded to the input type,
/// an f32 softmax, probabilities rounded.
inline void CaseTensors::evaluate(int64_t b, int64_t h, int64_t i) {
  double scale = 1 / std::sqrt(double(test.dim));
  int64_t kh = h / test.group;
  std::vector<double> x(test.keys), plain(test.keys);
  double max = -INFINITY, plainMax = -INFINITY;
  for (int64_t j = 0; j < test.keys; ++j) {
    double dot = 0;
    for (int64_t c = 0; c < test.dim; ++c)
      dot += q.at(b, h, i, c) * k.at(b, kh, j, c);
    x[j] = scoreOf(dot * scale, h, i, j);
    plain[j] = scoreOf(rounded(test, dot * scale), h, i, j);
    if (std::isfinite(plain[j]))
      plain[j] = rounded(test, plain[j]);
    max = std::max(max, x[j]);
    plainMax = std::max(plainMax, plain[j]);
  }
  double sum = 0, plainSum = 0;
  for (int64_t j = 0; j < test.keys && std::isfinite(max); ++j) {
    sum += x[j] = std::exp(x[j] - max);
    plainSum += plain[j] = std::exp(plain[j] - plainMax);
  }
  for (int64_t j = 0; j < test.keys && sum != 0; ++j) {
    x[j] /= sum;
    plain[j] = rounded(test, plain[j] / plainSum);
  }
  exactLse.push_back(sum == 0 ? -INFINITY : max + std::log(sum));
  for (int64_t c = 0; c < test.valueDim; ++c) {
    double expected = 0, unfused = 0;
    for (int64_t j = 0; j < test.keys && sum != 0; ++j) {
      double value = v.at(b, kh, j, c);
      expected += x[j] * value;
      unfused += plain[j] * value;
    }
    exact.push_back(expected);
    double error = rounded(test, unfused) - expected;
    plainWorst = std::max(plainWorst, std::abs(error));
    plainSquare += error * error;
  }
}

inline void CaseTensors::judge() const {
  double worst = 0, worstLse = 0, square = 0;
  auto expected = exact.begin();
  auto expectedLse = exactLse.begin();
  for (int64_t b = 0; b < test.batch; ++b)
    for (int64_t h = 0; h < test.heads; ++h)
      for (int64_t i = 0; i < test.queries; ++i) {
        double gotLse = lse[(b * test.heads + h) * test.queries + i];
        double wanted = *expectedLse++;
        if (std::isinf(wanted))
          EXPECT_EQ(gotLse, wanted);
        else
          ASSERT_FALSE(std::isnan(gotLse)) << "row " << i;
        if (!std::isinf(wanted))
          worstLse = std::max(worstLse, std::abs(wanted - gotLse));
        for (int64_t c = 0; c < test.valueDim; ++c) {
          double got = o.at(b, h, i, c), error = got - *expected++;
          ASSERT_FALSE(std::isnan(got)) << "row " << i << " column " << c;
          worst = std::max(worst, std::abs(error));
          square += error * error;
        }
      }
  // The terms of the error rule, of scores so small that f32 loses nothing.
  double largest = 0, roundingSquare = 0;
  for (double value : exact) {
    largest = std::max(largest, std::abs(value));
    double error = rounded(test, value) - value;
    roundingSquare += error * error;
  }
  int digits = &semanticsOf(test) == &llvm::APFloat::BFloat() ? 8 : 11;
  double unit = largest ? std::ldexp(1.0, std::ilogb(largest) + 1 - digits) : 0;
  EXPECT_LE(worst, std::max(2 * plainWorst, unit) + 1e-5);
  // The rule judges root mean squares from 4096 elements on; few rows scatter,
  // so they get a tenth on top.
  double elements = exact.size(), slack = exact.size() >= 4096 ? 1 : 1.1;
  EXPECT_LE(std::sqrt(square / elements),
            slack *
                std::sqrt(std::max(plainSquare, roundingSquare) / elements));
  EXPECT_LE(worstLse, 1e-4);
}

} // namespace attn

#endif // ATTN_TEST_UNIT_ATTENTIONCASE_H
