//===- x - train_layer.cpp - one layer of attention learns --------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Learns q, k and v that attend to y: on the CPU, a GPU, and in float64.
#include "attn/Execute/Session.h"
#include "attn/Runtime/Buffer.h"
#include "attn/Runtime/Module.h"

using namespace attn::runtime;
static const char kProgram[] = R"mlir(!t = tensor<1x1x?x32xf32>
func.func @causal(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x1x?xf32>) {
  %r:2 = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (!t, !t, !t) -> (!t, tensor<1x1x?xf32>)
  return %r#0, %r#1 : !t, tensor<1x1x?xf32>
})mlir";
constexpr int64_t N = 48, D = 32, S = N * D, sizes[] = {1, 1, N, D};
constexpr int64_t strides[][4] = {{S, S, D, 1}, {N, N, 1}};

template <typename T> static T check(T result) {
  if (!result.ok() && std::puts(result.message().c_str()))
    std::exit(1);
  return result;
}

/// Losses; `launch` runs the function (0) or its gradients (1), results in T.
template <typename T, typename Launch> static auto train(Launch launch) {
  std::vector<float> in(6 * S);        // q, k, v, o, lse, d_o
  std::vector<T> w(3 * S), out(5 * S); // d_q, d_k, d_v, o, lse
  Arguments forward, backward;
  for (int i = 0; i < 11; ++i) {
    void *data = i < 6 ? static_cast<void *>(&in[i * S]) : &out[(i - 6) * S];
    bool isLse = i % 6 == 4;
    (i < 3 || i > 8 ? forward : backward)
        .push_back(Argument::tensor(data, 4 - isLse, sizes, strides[isLse]));
  }
  backward.insert(backward.begin(), forward.begin(), forward.begin() + 3);
  for (int i = 0; i < 3 * S; ++i)
    in[i] = w[i] = std::sin(i * 2.3f);
  std::vector<double> losses(20);
  for (double &loss : losses) {
    launch(0, forward);
    std::copy(out.begin() + 3 * S, out.end(), in.begin() + 3 * S);
    for (int i = 0; i < S; ++i) {
      double error = in[5 * S + i] = in[3 * S + i] - std::cos(i * 0.01f);
      loss += error * error / 2;
    }
    launch(1, backward);
    for (int i = 0; i < 3 * S; ++i)
      in[i] = w[i] -= out[i] / 8;
  }
  return losses;
}

template <typename T> static auto trainHere(attn::HostOptions options) {
  attn::Session session;
  auto forward = check(session.compileForHost(kProgram, options));
  options.functions = attn::FunctionChoice::Backward;
  auto backward = check(session.compileForHost(kProgram, options));
  return train<T>([&](int number, const Arguments &arguments) {
    check((number ? backward : forward)->invoke(arguments));
  });
}

static auto trainOn(const Device &device) {
  attn::CompileOptions options;
  options.functions = attn::FunctionChoice::Both;
  auto artifact = check(attn::Session().compile(kProgram, options));
  auto forward = check(Module::load(device, *artifact));
  auto backward = check(Module::load(device, artifact->companions.front()));
  return train<float>([&](int number, Arguments arguments) {
    std::vector<Result<Buffer>> memory;
    Arguments here = arguments;
    for (Argument &tensor : arguments) {
      memory.push_back(check(Buffer::allocate(device, S * sizeof(float))));
      check(memory.back()->copyFrom(tensor.data));
      tensor.data = memory.back()->data();
    }
    check((number ? backward : forward)->launch(arguments, nullptr));
    for (size_t i = 0; i < here.size(); ++i)
      check(memory[i]->copyTo(here[i].data));
  });
}

int main() {
  auto exact = trainHere<double>({attn::HostOptions::Kind::OracleF64});
  auto compare = [&](const char *where, const std::vector<double> &losses) {
    std::printf("%s: loss %.3f to %.3f\n", where, losses[0], losses[19]);
    for (int i = 0; i < 20; ++i)
      if (!(std::abs(losses[i] / exact[i] - 1) < 1e-4))
        check(Status::error("float64 differs at step " + std::to_string(i)));
  };
  compare("cpu", trainHere<float>({}));
  if (Result<Device> device = Device::current(); device.ok())
    compare("gpu", trainOn(*device));
}
