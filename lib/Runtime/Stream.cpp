//===- Stream.cpp - streams, and events that time them -------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Stream.h"

using namespace attn::runtime;

// CU_STREAM_DEFAULT: in order with the null stream, which the copies use.
static constexpr unsigned kDefault = 0;

Result<Stream> Stream::create(const Device &device) {
  Stream result;
  result.device = device;
  ScopedContext scope(*device.driver, device.context);
  if (!scope.status().ok())
    return scope.status();
  Status status = device.driver->check(
      device.driver->streamCreate(&result.stream, kDefault), "cuStreamCreate");
  if (!status.ok())
    return status;
  return result;
}

Stream::~Stream() {
  if (!stream)
    return;
  ScopedContext scope(*device.driver, device.context);
  (void)device.driver->streamDestroy(stream);
}

Status Stream::synchronize() const {
  ScopedContext scope(*device.driver, device.context);
  if (!scope.status().ok())
    return scope.status();
  return device.driver->check(device.driver->streamSynchronize(stream),
                              "cuStreamSynchronize");
}

Result<Event> Event::create(const Device &device) {
  Event result;
  result.device = device;
  ScopedContext scope(*device.driver, device.context);
  if (!scope.status().ok())
    return scope.status();
  Status status = device.driver->check(
      device.driver->eventCreate(&result.event, 0), "cuEventCreate");
  if (!status.ok())
    return status;
  return result;
}

Event::~Event() {
  if (!event)
    return;
  ScopedContext scope(*device.driver, device.context);
  (void)device.driver->eventDestroy(event);
}

Status Event::record(CUstream stream) {
  ScopedContext scope(*device.driver, device.context);
  if (!scope.status().ok())
    return scope.status();
  return device.driver->check(device.driver->eventRecord(event, stream),
                              "cuEventRecord");
}

Status Event::synchronize() const {
  ScopedContext scope(*device.driver, device.context);
  if (!scope.status().ok())
    return scope.status();
  return device.driver->check(device.driver->eventSynchronize(event),
                              "cuEventSynchronize");
}

Result<float> Event::millisecondsSince(const Event &start) const {
  ScopedContext scope(*device.driver, device.context);
  if (!scope.status().ok())
    return scope.status();
  float milliseconds = 0;
  Status status = device.driver->check(
      device.driver->eventElapsedTime(&milliseconds, start.event, event),
      "cuEventElapsedTime");
  if (!status.ok())
    return status;
  return milliseconds;
}
