//===- DeviceProgram.cpp - an artifact on a device, with its operands -*- C++
//-*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Host/DeviceProgram.h"

#include <algorithm>

using namespace attn;
using attn::runtime::Result;
using attn::runtime::Status;

Result<DeviceProgram> DeviceProgram::load(const runtime::Device &device,
                                          Artifact artifact,
                                          Operands &operands) {
  auto kernel = runtime::Module::load(device, std::move(artifact));
  if (!kernel.ok())
    return kernel.status();
  auto stream = runtime::Stream::create(device);
  if (!stream.ok())
    return stream.status();
  DeviceProgram program(std::move(*kernel), std::move(*stream));
  if (Status status = program.upload(operands); !status.ok())
    return status;
  return program;
}

Status DeviceProgram::upload(Operands &operands) {
  arguments = operands.arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    buffers.emplace_back();
    if (!operands.tensors[i])
      continue;
    HostTensor &tensor = *operands.tensors[i];
    auto buffer =
        runtime::Buffer::allocate(kernel.device(), tensor.storage().size());
    if (!buffer.ok())
      return buffer.status();
    buffers.back() = std::move(*buffer);
    if (Status status = buffers.back().copyFrom(tensor.storage().data());
        !status.ok())
      return status;
    arguments[i].data =
        static_cast<char *>(buffers.back().data()) + tensor.storageOffset();
  }
  return Status();
}

Status DeviceProgram::run() {
  Status status = kernel.launch(arguments, stream.handle());
  return status.ok() ? stream.synchronize() : status;
}

Status DeviceProgram::readOutputs(Operands &operands) const {
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!kernel.artifact().arguments[i].isOutput)
      continue;
    Status status = buffers[i].copyTo(operands.tensors[i]->storage().data());
    if (!status.ok())
      return status;
  }
  return Status();
}

/// Time per call.
Result<double> DeviceProgram::secondsOf(int calls, runtime::Event &start,
                                        runtime::Event &stop) {
  Status status = start.record(stream.handle());
  for (int i = 0; i < calls && status.ok(); ++i)
    status = kernel.launch(arguments, stream.handle());
  if (status.ok())
    status = stop.record(stream.handle());
  if (status.ok())
    status = stop.synchronize();
  if (!status.ok())
    return status;
  auto milliseconds = stop.millisecondsSince(start);
  if (!milliseconds.ok())
    return milliseconds.status();
  return *milliseconds * 1e-3 / calls;
}

Result<Timing> DeviceProgram::measure(int repeats) {
  auto start = runtime::Event::create(kernel.device());
  if (!start.ok())
    return start.status();
  auto stop = runtime::Event::create(kernel.device());
  if (!stop.ok())
    return stop.status();
  // The first calls warm up; then runs of about 2 ms hide the launch.
  auto first = secondsOf(3, *start, *stop);
  if (first.ok())
    first = secondsOf(3, *start, *stop);
  if (!first.ok())
    return first.status();
  int calls =
      static_cast<int>(std::clamp(2e-3 / std::max(*first, 1e-7), 1.0, 1000.0));
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    auto one = secondsOf(calls, *start, *stop);
    if (!one.ok())
      return one.status();
    seconds.push_back(*one);
  }
  return summarize(std::move(seconds), calls);
}
