//===- x - Handles.h - what the opaque handles of the C API hold --------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CAPI_HANDLES_H
#define ATTN_LIB_CAPI_HANDLES_H

#include "attn-c/attn.h"
#include "attn/Runtime/Module.h"

#include <memory>

namespace attn::capi {

/// Keeps the message for attnErrorMessage() of this thread.
void setError(std::string message);

/// What a kernel handle can do, on either kind of target.
class Kernel {
public:
  virtual ~Kernel() = default;
  /// Its arguments.
  virtual const Artifact &artifact() const = 0;
  virtual runtime::Status
  launch(runtime::ArgumentSpan arguments, void *stream,
         const runtime::WorkspaceMemory *memory) const = 0;
  virtual runtime::Result<int64_t>
  workspaceBytes(runtime::ArgumentSpan arguments) const = 0;
  virtual runtime::Result<std::string>
  describeLaunch(runtime::ArgumentSpan arguments) const = 0;
  virtual runtime::Result<runtime::VariantChoice>
  chooseVariant(runtime::ArgumentSpan arguments) const = 0;
  virtual int64_t relayouts() const = 0;
  virtual runtime::Status synchronize() const = 0;
  virtual int registers() const { return -1; }
  virtual int localBytes() const { return -1; }
};

} // namespace attn::capi

struct AttnArtifact {
  AttnArtifact(attn::Artifact source, std::string log, bool isFromCache)
      : artifact(std::move(source)), bytes(artifact.serialize()),
        manifest(artifact.manifest()), log(std::move(log)),
        isFromCache(isFromCache) {}

  attn::Artifact artifact;
  std::string bytes, manifest, log;
  bool isFromCache;
};

struct AttnKernel {
  std::unique_ptr<attn::capi::Kernel> kernel;
  std::string manifest, log;
};

#endif // ATTN_LIB_CAPI_HANDLES_H
