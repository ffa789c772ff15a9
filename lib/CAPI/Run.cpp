//===- x - Run.cpp - kernels for C --------------------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Handles.h"

using namespace attn;
using namespace attn::runtime;

namespace {
/// A kernel on a GPU.
class DeviceKernel final : public capi::Kernel {
public:
  explicit DeviceKernel(Module module) : module(std::move(module)) {}

  const Artifact &artifact() const override { return module.artifact(); }
  Status launch(ArgumentSpan arguments, void *stream,
                const WorkspaceMemory *memory) const override {
    return module.launch(arguments, static_cast<CUstream>(stream), memory);
  }
  Result<int64_t> workspaceBytes(ArgumentSpan arguments) const override {
    return module.workspaceBytes(arguments);
  }
  Result<std::string> describeLaunch(ArgumentSpan arguments) const override {
    return module.describeLaunch(arguments.copy());
  }
  Result<VariantChoice> chooseVariant(ArgumentSpan arguments) const override {
    return module.chooseVariant(arguments.copy());
  }
  int64_t relayouts() const override { return module.relayouts(); }
  Status synchronize() const override { return module.device().synchronize(); }
  int registers() const override { return module.registers(); }
  int localBytes() const override { return module.localBytes(); }

private:
  Module module;
};
} // namespace

// 0, or 1 with the message kept.
static int finish(const Status &status) {
  if (status.ok())
    return 0;
  capi::setError(status.message());
  return 1;
}

static AttnKernel *load(Artifact artifact, int device) {
  Result<Device> found = device < 0 ? Device::current() : Device::open(device);
  if (!found.ok()) {
    capi::setError(found.message());
    return nullptr;
  }
  Result<Module> module = Module::load(*found, std::move(artifact));
  if (!module.ok()) {
    capi::setError(module.message());
    return nullptr;
  }
  auto *handle = new AttnKernel;
  handle->manifest = module->artifact().manifest();
  handle->log = module->log();
  handle->kernel = std::make_unique<DeviceKernel>(std::move(*module));
  return handle;
}

AttnKernel *attnLoad(const AttnArtifact *artifact, int device) {
  if (!artifact) {
    capi::setError("attnLoad: artifact is NULL");
    return nullptr;
  }
  return load(artifact->artifact, device);
}

AttnKernel *attnLoadVariant(const AttnArtifact *artifact, int device,
                            int variant) {
  if (!artifact) {
    capi::setError("attnLoadVariant: artifact is NULL");
    return nullptr;
  }
  Artifact fixed = artifact->artifact;
  if (std::string error = fixed.fixVariant(variant); !error.empty()) {
    capi::setError("attnLoadVariant: " + error);
    return nullptr;
  }
  return load(std::move(fixed), device);
}

void attnKernelDestroy(AttnKernel *kernel) { delete kernel; }

namespace {
/// The arguments of a call as the runtime has them: few of them on the stack.
class Converted {
public:
  Converted() {} // NOLINT: the room stays as it is
  Converted(const Converted &) = delete;
  Converted &operator=(const Converted &) = delete;

  /// What is wrong with the handle, the pointer and the kinds.
  Status read(const char *call, const AttnKernel *kernel,
              const AttnArgument *arguments, size_t count);
  ArgumentSpan operator*() const { return {first, size}; }

private:
  static constexpr size_t kFew = 16;
  union {
    Argument few[kFew];
  };
  Arguments many;
  Argument *first = nullptr;
  size_t size = 0;
};
} // namespace

Status Converted::read(const char *call, const AttnKernel *kernel,
                       const AttnArgument *arguments, size_t count) {
  if (!kernel || (count != 0 && !arguments))
    return Status::error(std::string(call) + ": kernel or arguments is NULL");
  if (count > kFew)
    many.resize(count);
  first = count > kFew ? many.data() : few;
  size = count;
  for (size_t i = 0; i < count; ++i) {
    const AttnArgument &argument = arguments[i];
    const AttnTensor &tensor = argument.value.tensor;
    switch (argument.kind) {
    case ATTN_TENSOR:
      new (first + i) Argument(Argument::tensor(tensor.data, tensor.rank,
                                                tensor.sizes, tensor.strides));
      break;
    case ATTN_INTEGER:
      new (first + i) Argument(Argument::scalar(argument.value.integer));
      break;
    case ATTN_REAL:
      new (first + i) Argument(Argument::scalar(argument.value.real));
      break;
    default:
      return Status::error(std::string(call) + ": argument " +
                           std::to_string(i) + " has unknown kind " +
                           std::to_string(argument.kind));
    }
  }
  return Status();
}

int attnLaunch(const AttnKernel *kernel, const AttnArgument *arguments,
               size_t count, void *stream) {
  Converted converted;
  Status status = converted.read("attnLaunch", kernel, arguments, count);
  if (!status.ok())
    return finish(status);
  return finish(kernel->kernel->launch(*converted, stream, nullptr));
}

int attnGetWorkspaceBytes(const AttnKernel *kernel,
                          const AttnArgument *arguments, size_t count,
                          size_t *bytes) {
  Converted converted;
  Status status =
      converted.read("attnGetWorkspaceBytes", kernel, arguments, count);
  if (!status.ok() || !bytes)
    return finish(status.ok()
                      ? Status::error("attnGetWorkspaceBytes: bytes is NULL")
                      : status);
  Result<int64_t> size = kernel->kernel->workspaceBytes(*converted);
  if (!size.ok())
    return finish(size.status());
  *bytes = static_cast<size_t>(*size);
  return 0;
}

int attnLaunchWithWorkspace(const AttnKernel *kernel,
                            const AttnArgument *arguments, size_t count,
                            void *workspace, size_t workspace_bytes,
                            void *stream) {
  Converted converted;
  Status status =
      converted.read("attnLaunchWithWorkspace", kernel, arguments, count);
  if (!status.ok())
    return finish(status);
  WorkspaceMemory memory{workspace, workspace_bytes};
  return finish(kernel->kernel->launch(*converted, stream, &memory));
}

// Keeps `text` for the caller, until the next call in this thread.
static const char *keep(std::string text) {
  thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

int attnDescribeLaunch(const AttnKernel *kernel, const AttnArgument *arguments,
                       size_t count, const char **text) {
  Converted converted;
  Status status =
      converted.read("attnDescribeLaunch", kernel, arguments, count);
  if (!status.ok() || !text)
    return finish(status.ok()
                      ? Status::error("attnDescribeLaunch: text is NULL")
                      : status);
  Result<std::string> description = kernel->kernel->describeLaunch(*converted);
  if (!description.ok())
    return finish(description.status());
  *text = keep(std::move(*description));
  return 0;
}

int attnChooseVariant(const AttnKernel *kernel, const AttnArgument *arguments,
                      size_t count, int *variant, const char **reason) {
  Converted converted;
  Status status = converted.read("attnChooseVariant", kernel, arguments, count);
  if (!status.ok() || !variant)
    return finish(status.ok()
                      ? Status::error("attnChooseVariant: variant is NULL")
                      : status);
  Result<VariantChoice> choice = kernel->kernel->chooseVariant(*converted);
  if (!choice.ok())
    return finish(choice.status());
  *variant = static_cast<int>(choice->variant);
  if (reason)
    *reason = keep(std::move(choice->reason));
  return 0;
}

// Whether there is a handle; if not, that is the error of `call`.
static bool isGiven(const AttnKernel *kernel, const char *call) {
  if (!kernel)
    capi::setError(std::string(call) + ": kernel is NULL");
  return kernel != nullptr;
}

int64_t attnKernelGetRelayouts(const AttnKernel *kernel) {
  return isGiven(kernel, "attnKernelGetRelayouts") ? kernel->kernel->relayouts()
                                                   : -1;
}

int attnSynchronize(const AttnKernel *kernel) {
  return isGiven(kernel, "attnSynchronize")
             ? finish(kernel->kernel->synchronize())
             : 1;
}

const char *attnKernelGetManifest(const AttnKernel *kernel) {
  return isGiven(kernel, "attnKernelGetManifest") ? kernel->manifest.c_str()
                                                  : nullptr;
}

const char *attnKernelGetLog(const AttnKernel *kernel) {
  return isGiven(kernel, "attnKernelGetLog") ? kernel->log.c_str() : nullptr;
}

int attnKernelGetRegisters(const AttnKernel *kernel) {
  return isGiven(kernel, "attnKernelGetRegisters") ? kernel->kernel->registers()
                                                   : -1;
}

int attnKernelGetLocalBytes(const AttnKernel *kernel) {
  return isGiven(kernel, "attnKernelGetLocalBytes")
             ? kernel->kernel->localBytes()
             : -1;
}
