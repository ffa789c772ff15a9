//===- DeviceProgram.h - an artifact on a device, with operands -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_EXECUTE_DEVICEPROGRAM_H
#define ATTN_EXECUTE_DEVICEPROGRAM_H

#include "attn/Execute/Operands.h"
#include "attn/Execute/Timing.h"
#include "attn/Runtime/Buffer.h"
#include "attn/Runtime/Device.h"
#include "attn/Runtime/Module.h"
#include "attn/Runtime/Stream.h"

namespace attn {

/// The tensors of a call in device memory; with the padding around them, so
/// that the host sees what was written beside.
class DeviceOperands {
public:
  static runtime::Result<DeviceOperands> upload(const runtime::Device &device,
                                                Operands &operands);

  const runtime::Arguments &arguments() const { return values; }
  /// Copies the outputs back into `operands`, with what stands around them.
  runtime::Status readOutputs(const Artifact &manifest,
                              Operands &operands) const;
  /// Fills the outputs, and what stands around them, with ones: NaN.
  runtime::Status poisonOutputs(const Artifact &manifest);

private:
  std::vector<runtime::Buffer> buffers; // one per argument
  runtime::Arguments values;
};

/// An artifact on a device, with a stream, to be called on operands that live
/// at least as long.
class DeviceProgram {
public:
  static runtime::Result<DeviceProgram> load(const runtime::Device &device,
                                             Artifact artifact,
                                             const DeviceOperands &operands);

  /// One call; waits for it.
  runtime::Status run();
  /// The same, in a workspace whose bytes are all ones: NaN.
  runtime::Status runPoisoned();

  /// Takes device times of a call, by events around runs of calls.
  class Sampler {
  public:
    /// Seconds per call, of one run.
    runtime::Result<double> sample();
    int calls() const { return callsPerSample; }

  private:
    friend class DeviceProgram;
    Sampler(DeviceProgram &program, runtime::Event start, runtime::Event stop)
        : program(&program), start(std::move(start)), stop(std::move(stop)) {}

    DeviceProgram *program;
    runtime::Event start, stop;
    int callsPerSample = 1;
  };
  /// Warms up, and finds how many calls a run of about 2 ms has.
  runtime::Result<Sampler> sampler();
  /// The median of `repeats` samples.
  runtime::Result<Timing> measure(int repeats);

  const runtime::Module &module() const { return kernel; }

private:
  DeviceProgram(runtime::Module kernel, runtime::Stream stream,
                const DeviceOperands &operands)
      : kernel(std::move(kernel)), stream(std::move(stream)),
        operands(&operands) {}
  runtime::Result<double> secondsOf(int calls, runtime::Event &start,
                                    runtime::Event &stop);

  runtime::Module kernel;
  runtime::Stream stream;
  const DeviceOperands *operands;
};

} // namespace attn

#endif // ATTN_EXECUTE_DEVICEPROGRAM_H
