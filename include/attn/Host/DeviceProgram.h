//===- DeviceProgram.h - an artifact on a device, with its operands -*- C++
//-*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_HOST_DEVICEPROGRAM_H
#define ATTN_HOST_DEVICEPROGRAM_H

#include "attn/Host/Operands.h"
#include "attn/Host/Timing.h"
#include "attn/Runtime/Buffer.h"
#include "attn/Runtime/Device.h"
#include "attn/Runtime/Module.h"
#include "attn/Runtime/Stream.h"

namespace attn {

/// A loaded kernel and device copies of the operands of its calls.
class DeviceProgram {
public:
  static runtime::Result<DeviceProgram>
  load(const runtime::Device &device, Artifact artifact, Operands &operands);

  /// One call; waits for it.
  runtime::Status run();
  /// Copies the outputs back into `operands`, with what stands around them.
  runtime::Status readOutputs(Operands &operands) const;
  /// Device time of a call, by events around runs of calls.
  runtime::Result<Timing> measure(int repeats);

  const runtime::Module &module() const { return kernel; }

private:
  DeviceProgram(runtime::Module kernel, runtime::Stream stream)
      : kernel(std::move(kernel)), stream(std::move(stream)) {}
  runtime::Status upload(Operands &operands);
  runtime::Result<double> secondsOf(int calls, runtime::Event &start,
                                    runtime::Event &stop);

  runtime::Module kernel;
  runtime::Stream stream;
  std::vector<runtime::Buffer> buffers; // one per argument
  runtime::Arguments arguments;
};

} // namespace attn

#endif // ATTN_HOST_DEVICEPROGRAM_H
