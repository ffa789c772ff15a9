//===- x - jit_causal.cpp - attention compiled from a string ------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Compiles, keeps the artifact in the user's cache, launches it on a stream.
#include "attn/Execute/Session.h"
#include "attn/Runtime/Buffer.h"
#include "attn/Runtime/Cache.h"
#include "attn/Runtime/Module.h"
#include "attn/Runtime/Stream.h"

using namespace attn::runtime;

static const char kProgram[] = R"mlir(
!t = tensor<2x8x?x64xbf16>
func.func @causal(%q: !t, %k: !t, %v: !t) -> (!t, tensor<2x8x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {variants = [#attn.causal]}
    : (!t, !t, !t) -> (!t, tensor<2x8x?xf32>)
  return %o, %lse : !t, tensor<2x8x?xf32>
})mlir";

static void check(const Status &status) {
  if (status.ok())
    return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}
template <typename T> static T check(Result<T> result) {
  check(result.status());
  return std::move(*result);
}

int main() {
  attn::Session session;
  Cache cache = check(Cache::user());
  attn::Artifact artifact = check(session.compile(kProgram, {}, &cache));
  std::printf("compiled with %s\n", artifact.variants.front().plan.c_str());
  Result<Device> device = Device::current();
  if (!device.ok()) {
    std::printf("not run: %s\n", device.message().c_str());
    return 77; // what test drivers take for "skipped"
  }
  Module module = check(Module::load(*device, std::move(artifact)));
  // q = 0: all visible keys weigh the same. v = its row: o = half its row.
  constexpr int64_t kLength = 200, kDim = 64, kCount = 2 * 8 * kLength * kDim;
  std::vector<uint16_t> zeros(kCount), rows(kCount), result(kCount);
  auto bf16 = [](float x) { return llvm::bit_cast<uint32_t>(x) >> 16; };
  for (int64_t i = 0; i < kCount; ++i)
    rows[i] = bf16(i / kDim % kLength);
  Buffer q = check(Buffer::allocate(*device, kCount * 2));
  Buffer v = check(Buffer::allocate(*device, kCount * 2));
  Buffer o = check(Buffer::allocate(*device, kCount * 2));
  Buffer lse = check(Buffer::allocate(*device, kCount / kDim * 4));
  check(q.copyFrom(zeros.data()));
  check(v.copyFrom(rows.data()));
  int64_t sizes[] = {2, 8, kLength, kDim}, steps[] = {8 * kLength, kLength, 1};
  int64_t strides[] = {8 * kLength * kDim, kLength * kDim, kDim, 1};
  auto tensor = [&](Buffer &buffer) {
    return Argument::tensor(buffer.data(), 4, sizes, strides);
  };
  Stream stream = check(Stream::create(*device));
  check(module.launch({tensor(q), tensor(q), tensor(v), tensor(o),
                       Argument::tensor(lse.data(), 3, sizes, steps)},
                      stream.handle()));
  check(stream.synchronize());
  check(o.copyTo(result.data()));
  for (int64_t i = 0; i < kCount; ++i)
    if (result[i] != bf16(i / kDim % kLength * 0.5f))
      check(Status::error("element " + std::to_string(i) + " is wrong"));
  std::printf("right on %s\n", device->name.c_str());
}
