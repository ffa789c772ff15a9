//===- DeviceProgram.cpp - an artifact on a device, with its operands ----===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Execute/DeviceProgram.h"

#include <algorithm>

using namespace attn;
using attn::runtime::Result;
using attn::runtime::Status;

Result<DeviceOperands> DeviceOperands::upload(const runtime::Device &device,
                                              Operands &operands) {
  DeviceOperands uploaded;
  uploaded.values = operands.arguments();
  for (size_t i = 0; i < uploaded.values.size(); ++i) {
    runtime::Buffer &place = uploaded.buffers.emplace_back();
    if (!operands.tensors[i])
      continue;
    HostTensor &tensor = *operands.tensors[i];
    auto buffer = runtime::Buffer::allocate(device, tensor.storage().size());
    if (!buffer.ok())
      return buffer.status();
    place = std::move(*buffer);
    if (Status status = place.copyFrom(tensor.storage().data()); !status.ok())
      return status;
    uploaded.values[i].data =
        static_cast<char *>(place.data()) + tensor.storageOffset();
  }
  return uploaded;
}

Status DeviceOperands::readOutputs(const Artifact &manifest,
                                   Operands &operands) const {
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!manifest.arguments[i].isOutput)
      continue;
    Status status = buffers[i].copyTo(operands.tensors[i]->storage().data());
    if (!status.ok())
      return status;
  }
  return Status();
}

Status DeviceOperands::poisonOutputs(const Artifact &manifest) {
  for (auto [info, buffer] : llvm::zip_equal(manifest.arguments, buffers))
    if (Status status = info.isOutput ? buffer.fill(0xff) : Status();
        !status.ok())
      return status;
  return Status();
}

Result<DeviceProgram> DeviceProgram::load(const runtime::Device &device,
                                          Artifact artifact,
                                          const DeviceOperands &operands) {
  auto kernel = runtime::Module::load(device, std::move(artifact));
  if (!kernel.ok())
    return kernel.status();
  auto stream = runtime::Stream::create(device);
  if (!stream.ok())
    return stream.status();
  return DeviceProgram(std::move(*kernel), std::move(*stream), operands);
}

Status DeviceProgram::run() {
  Status status = kernel.launch(operands->arguments(), stream.handle());
  return status.ok() ? stream.synchronize() : status;
}

Status DeviceProgram::runPoisoned() {
  auto bytes = kernel.workspaceBytes(operands->arguments());
  if (!bytes.ok())
    return bytes.status();
  auto workspace = runtime::Buffer::allocate(kernel.device(), *bytes);
  if (!workspace.ok())
    return workspace.status();
  Status status = workspace->fill(0xff);
  if (!status.ok())
    return status;
  runtime::WorkspaceMemory memory{workspace->data(), workspace->size()};
  status = kernel.launch(operands->arguments(), stream.handle(), &memory);
  return status.ok() ? stream.synchronize() : status;
}

Result<double> DeviceProgram::secondsOf(int calls, runtime::Event &start,
                                        runtime::Event &stop) {
  Status status = start.record(stream.handle());
  for (int i = 0; i < calls && status.ok(); ++i)
    status = kernel.launch(operands->arguments(), stream.handle());
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

Result<double> DeviceProgram::Sampler::sample() {
  return program->secondsOf(callsPerSample, start, stop);
}

Result<DeviceProgram::Sampler> DeviceProgram::sampler() {
  auto start = runtime::Event::create(kernel.device());
  if (!start.ok())
    return start.status();
  auto stop = runtime::Event::create(kernel.device());
  if (!stop.ok())
    return stop.status();
  Sampler sampler(*this, std::move(*start), std::move(*stop));
  // The first calls warm up; then runs of about 2 ms hide the launch.
  auto first = secondsOf(3, sampler.start, sampler.stop);
  if (first.ok())
    first = secondsOf(3, sampler.start, sampler.stop);
  if (!first.ok())
    return first.status();
  sampler.callsPerSample =
      static_cast<int>(std::clamp(2e-3 / std::max(*first, 1e-7), 1.0, 1000.0));
  return sampler;
}

Result<Timing> DeviceProgram::measure(int repeats) {
  auto timer = sampler();
  if (!timer.ok())
    return timer.status();
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    auto one = timer->sample();
    if (!one.ok())
      return one.status();
    seconds.push_back(*one);
  }
  return summarize(std::move(seconds), timer->calls());
}
