//===- ProgramRuns.cpp - what programs are run on ---------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramRuns.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

using namespace attn;

namespace {
constexpr int64_t dim = 64, pageRows = 16;
constexpr double scale = 0.125;

/// Tensors of one element type.
struct Draw {
  explicit Draw(bool isF16) : isF16(isF16) {}

  Tensor draw(std::vector<int64_t> sizes);
  Tensor output(std::vector<int64_t> sizes, bool isSum = false);
  Tensor sums(std::vector<int64_t> sizes, std::vector<double> values);
  Tensor numbers(std::vector<int64_t> sizes, std::vector<double> values);
  ProgramRun splitKeys(int64_t queries, int64_t keys);
  ProgramRun pagedKeys();
  ProgramRun backward();

  bool isF16;
  std::mt19937 random{20u};
};

/// o and lse of one head: rows of q over rows of k and v, `keys` of them.
void attend(const double *q, int64_t queries, int64_t keys,
            llvm::function_ref<const double *(int64_t)> k,
            llvm::function_ref<const double *(int64_t)> v,
            std::vector<double> &o, std::vector<double> &lse) {
  for (int64_t i = 0; i < queries; ++i) {
    std::vector<double> row(dim, 0);
    double sum = 0;
    for (int64_t j = 0; j < keys; ++j) {
      double score = 0;
      for (int64_t c = 0; c < dim; ++c)
        score += q[i * dim + c] * k(j)[c];
      double p = std::exp(score * scale);
      sum += p;
      for (int64_t c = 0; c < dim; ++c)
        row[c] += p * v(j)[c];
    }
    for (double x : row)
      o.push_back(keys == 0 ? 0 : x / sum);
    lse.push_back(std::log(sum));
  }
}
} // namespace

void Tensor::write() {
  bytes.assign(count() * elementBytes() + 1, 0); // never without address
  for (int64_t i = 0; i < count(); ++i) {
    uint64_t bits = uint32_t(int32_t(values[i]));
    if (element) {
      llvm::APFloat number(values[i]);
      bool loses;
      number.convert(*element, llvm::APFloat::rmNearestTiesToEven, &loses);
      bits = number.bitcastToAPInt().getZExtValue();
    }
    std::memcpy(bytes.data() + i * elementBytes(), &bits, elementBytes());
  }
  if (element)
    read();
}

void Tensor::read() {
  for (int64_t i = 0; i < count(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * elementBytes(), elementBytes());
    llvm::APFloat number(*element, llvm::APInt(8 * elementBytes(), bits));
    bool loses;
    number.convert(llvm::APFloat::IEEEdouble(),
                   llvm::APFloat::rmNearestTiesToEven, &loses);
    values[i] = number.convertToDouble();
  }
}

simulator::HostArgument Tensor::argument() {
  simulator::HostArgument argument;
  argument.data = bytes.data();
  argument.sizes.assign(sizes.begin(), sizes.end());
  argument.strides.assign(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;)
    argument.strides[i - 1] = argument.strides[i] * sizes[i];
  return argument;
}

Tensor Draw::draw(std::vector<int64_t> sizes) {
  Tensor tensor{std::move(sizes),
                isF16 ? &llvm::APFloat::IEEEhalf() : &llvm::APFloat::BFloat(),
                {},
                {}};
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < tensor.count(); ++i)
    tensor.values.push_back(normal(random));
  tensor.write();
  return tensor;
}

Tensor Draw::output(std::vector<int64_t> sizes, bool isSum) {
  Tensor tensor = draw(std::move(sizes));
  if (isSum)
    tensor.element = &llvm::APFloat::IEEEsingle();
  tensor.values.assign(tensor.count(), std::nan(""));
  tensor.write();
  return tensor;
}

Tensor Draw::sums(std::vector<int64_t> sizes, std::vector<double> values) {
  Tensor tensor{
      std::move(sizes), &llvm::APFloat::IEEEsingle(), std::move(values), {}};
  tensor.write();
  return tensor;
}

Tensor Draw::numbers(std::vector<int64_t> sizes, std::vector<double> values) {
  Tensor tensor{std::move(sizes), nullptr, std::move(values), {}};
  tensor.write();
  return tensor;
}

ProgramRun Draw::splitKeys(int64_t queries, int64_t keys) {
  constexpr int64_t heads = 2;
  ProgramRun run;
  run.tensors = {draw({heads, queries, dim}), draw({heads, keys, dim}),
                 draw({heads, keys, dim}), output({heads, queries, dim}),
                 output({heads, queries}, /*isSum=*/true)};
  run.expected.resize(run.tensors.size());
  auto at = [&](int tensor, int64_t head, int64_t row) {
    const Tensor &t = run.tensors[tensor];
    return t.values.data() + (head * t.sizes[1] + row) * dim;
  };
  for (int64_t head = 0; head < heads; ++head)
    attend(
        at(0, head, 0), queries, keys,
        [&](int64_t row) { return at(1, head, row); },
        [&](int64_t row) { return at(2, head, row); }, run.expected[3],
        run.expected[4]);
  return run;
}

ProgramRun Draw::pagedKeys() {
  constexpr int64_t batch = 2, heads = 2, queries = 70, numPages = 14,
                    width = 10;
  const int64_t lengths[batch] = {150, 37};
  std::vector<double> order(numPages), table;
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (int64_t b = 0, used = 0; b < batch; ++b)
    for (int64_t page = 0; page < width; ++page)
      table.push_back(page * pageRows < lengths[b] ? order[used++] : 0);
  ProgramRun run;
  run.tensors = {draw({batch, heads, queries, dim}),
                 draw({numPages, heads, pageRows, dim}),
                 draw({numPages, heads, pageRows, dim}),
                 numbers({batch, width}, table),
                 numbers({batch}, {double(lengths[0]), double(lengths[1])}),
                 output({batch, heads, queries, dim}),
                 output({batch, heads, queries}, /*isSum=*/true)};
  run.expected.resize(run.tensors.size());
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t head = 0; head < heads; ++head) {
      auto rowOf = [&](int tensor, int64_t key) {
        auto page = int64_t(table[b * width + key / pageRows]);
        return run.tensors[tensor].values.data() +
               ((page * heads + head) * pageRows + key % pageRows) * dim;
      };
      attend(
          run.tensors[0].values.data() + (b * heads + head) * queries * dim,
          queries, lengths[b], [&](int64_t key) { return rowOf(1, key); },
          [&](int64_t key) { return rowOf(2, key); }, run.expected[5],
          run.expected[6]);
    }
  return run;
}

ProgramRun Draw::backward() {
  constexpr int64_t heads = 2, queries = 100, keys = 150;
  ProgramRun run;
  run.tensors = {draw({heads, queries, dim}), draw({heads, keys, dim}),
                 draw({heads, keys, dim}), draw({heads, queries, dim})};
  auto at = [&](int tensor, int64_t head, int64_t row) {
    const Tensor &t = run.tensors[tensor];
    return t.values.data() + (head * t.sizes[1] + row) * dim;
  };
  auto dot = [](const double *a, const double *b) {
    return std::inner_product(a, a + dim, b, 0.0);
  };
  std::vector<double> lse, delta, dq, dk, dv;
  dq.assign(heads * queries * dim, 0);
  dk.assign(heads * keys * dim, 0);
  dv = dk;
  for (int64_t head = 0; head < heads; ++head) {
    std::vector<double> o, sums;
    attend(
        at(0, head, 0), queries, keys,
        [&](int64_t row) { return at(1, head, row); },
        [&](int64_t row) { return at(2, head, row); }, o, sums);
    for (int64_t i = 0; i < queries; ++i) {
      lse.push_back(sums[i]);
      delta.push_back(dot(o.data() + i * dim, at(3, head, i)));
      for (int64_t j = 0; j < keys; ++j) {
        double p =
            std::exp(scale * dot(at(0, head, i), at(1, head, j)) - sums[i]);
        double ds =
            p * (dot(at(3, head, i), at(2, head, j)) - delta.back()) * scale;
        for (int64_t c = 0; c < dim; ++c) {
          dq[(head * queries + i) * dim + c] += ds * at(1, head, j)[c];
          dk[(head * keys + j) * dim + c] += ds * at(0, head, i)[c];
          dv[(head * keys + j) * dim + c] += p * at(3, head, i)[c];
        }
      }
    }
  }
  run.tensors.push_back(sums({heads, queries}, lse));
  run.tensors.push_back(sums({heads, queries}, delta));
  run.tensors.push_back(output({heads, queries, dim}));
  run.tensors.push_back(output({heads, keys, dim}));
  run.tensors.push_back(output({heads, keys, dim}));
  run.expected.resize(run.tensors.size());
  run.expected[6] = dq;
  run.expected[7] = dk;
  run.expected[8] = dv;
  return run;
}

ProgramRun attn::splitKeys(int64_t queries, int64_t keys, bool isF16) {
  return Draw(isF16).splitKeys(queries, keys);
}
ProgramRun attn::pagedKeys(bool isF16) { return Draw(isF16).pagedKeys(); }
ProgramRun attn::backward(bool isF16) { return Draw(isF16).backward(); }

ProgramRun attn::makeRun(StringRef program) {
  if (program.starts_with("split"))
    return attn::splitKeys(/*queries=*/70, /*keys=*/300, /*isF16=*/false);
  return program.starts_with("paged") ? attn::pagedKeys(/*isF16=*/false)
                                      : attn::backward(/*isF16=*/false);
}

// Inputs and the 16-bit operands of products are exact or rounded once: errors
// are a few units in the last place of the largest number.
double ProgramRun::judge() {
  double worst = 0;
  for (auto [tensor, wanted] : llvm::zip_equal(tensors, expected)) {
    if (wanted.empty())
      continue;
    tensor.read();
    bool isSum = tensor.elementBytes() == 4;
    bool isHalf = tensor.element == &llvm::APFloat::IEEEhalf();
    double largest = 1e-3;
    for (double value : wanted)
      if (std::isfinite(value))
        largest = std::max(largest, std::abs(value));
    double allowed = largest * (isSum ? 1e-5 : isHalf ? 0x1p-9 : 0x1p-6);
    for (auto [got, value] : llvm::zip_equal(tensor.values, wanted)) {
      double error = got == value ? 0 : std::abs(got - value) / allowed;
      worst = std::max(worst, std::isnan(error) ? INFINITY : error);
    }
  }
  return worst;
}
