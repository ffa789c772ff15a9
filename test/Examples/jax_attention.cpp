//===- x - jax_attention.cpp - attention as a call of XLA -----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// A foreign function of XLA around attn.h, which jax_attention.py calls.
#include "attn-c/attn.h"
#include "xla/ffi/api/ffi.h"
#include <deque>
#include <map>
#include <mutex>
namespace ffi = xla::ffi;
using Text = ffi::Span<const uint8_t>;

static AttnKernel *compile(Text text, bool backward) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, bool>, AttnKernel *> kernels;
  std::lock_guard<std::mutex> lock(mutex);
  std::string source(text.begin(), text.end());
  AttnCompileOptions options = {sizeof(options)};
  options.functions = backward ? ATTN_BACKWARD : ATTN_FORWARD;
  options.lse_gradient = backward;
  AttnKernel *&kernel = kernels[{source, backward}];
  if (!kernel)
    kernel = attnCompileForCPU(source.data(), source.size(), &options);
  return kernel;
}

static ffi::Error launch(ffi::RemainingArgs inputs, ffi::RemainingRets results,
                         Text text, bool backward) {
  AttnKernel *kernel = compile(text, backward);
  std::vector<AttnArgument> values;
  std::deque<std::vector<int64_t>> strides; // values point to them
  auto add = [&](ffi::AnyBuffer buffer) {
    auto sizes = buffer.dimensions();
    auto &steps = strides.emplace_back(sizes.size(), 1); // rows without gaps
    for (size_t i = sizes.size(); i-- > 1;)
      steps[i - 1] = steps[i] * sizes[i];
    AttnTensor tensor = {buffer.untyped_data(), int64_t(sizes.size()),
                         sizes.begin(), steps.data()};
    values.push_back({ATTN_TENSOR, {tensor}});
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    add(*inputs.get<ffi::AnyBuffer>(i));
  for (size_t i = 0; i < results.size(); ++i)
    add(**results.get<ffi::AnyBuffer>(i));
  if (kernel && !attnLaunch(kernel, values.data(), values.size(), nullptr))
    return ffi::Error::Success();
  return ffi::Error::InvalidArgument(attnErrorMessage());
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(AttnLaunch, launch,
                              ffi::Ffi::Bind()
                                  .RemainingArgs()
                                  .RemainingRets()
                                  .Attr<Text>("text")
                                  .Attr<bool>("backward"));
