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
  Status launch(const Arguments &arguments, void *stream,
                const WorkspaceMemory *memory) const override {
    return module.launch(arguments, static_cast<CUstream>(stream), memory);
  }
  Result<int64_t> workspaceBytes(const Arguments &arguments) const override {
    return module.workspaceBytes(arguments);
  }
  Result<std::string>
  describeLaunch(const Arguments &arguments) const override {
    return module.describeLaunch(arguments);
  }
  Result<VariantChoice>
  chooseVariant(const Arguments &arguments) const override {
    return module.chooseVariant(arguments);
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

static Result<Arguments> convert(const char *call, const AttnKernel *kernel,
                                 const AttnArgument *arguments, size_t count) {
  if (!kernel || (count != 0 && !arguments))
    return Status::error(std::string(call) + ": kernel or arguments is NULL");
  Arguments converted;
  converted.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const AttnArgument &argument = arguments[i];
    switch (argument.kind) {
    case ATTN_TENSOR: {
      const AttnTensor &tensor = argument.value.tensor;
      converted.push_back(Argument::tensor(tensor.data, tensor.rank,
                                           tensor.sizes, tensor.strides));
      break;
    }
    case ATTN_INTEGER:
      converted.push_back(Argument::scalar(argument.value.integer));
      break;
    case ATTN_REAL:
      converted.push_back(Argument::scalar(argument.value.real));
      break;
    default:
      return Status::error(std::string(call) + ": argument " +
                           std::to_string(i) + " has unknown kind " +
                           std::to_string(argument.kind));
    }
  }
  return converted;
}

int attnLaunch(const AttnKernel *kernel, const AttnArgument *arguments,
               size_t count, void *stream) {
  Result<Arguments> converted = convert("attnLaunch", kernel, arguments, count);
  if (!converted.ok())
    return finish(converted.status());
  return finish(kernel->kernel->launch(*converted, stream, nullptr));
}

int attnGetWorkspaceBytes(const AttnKernel *kernel,
                          const AttnArgument *arguments, size_t count,
                          size_t *bytes) {
  Result<Arguments> converted =
      convert("attnGetWorkspaceBytes", kernel, arguments, count);
  if (!converted.ok() || !bytes)
    return finish(converted.ok()
                      ? Status::error("attnGetWorkspaceBytes: bytes is NULL")
                      : converted.status());
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
  Result<Arguments> converted =
      convert("attnLaunchWithWorkspace", kernel, arguments, count);
  if (!converted.ok())
    return finish(converted.status());
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
  Result<Arguments> converted =
      convert("attnDescribeLaunch", kernel, arguments, count);
  if (!converted.ok() || !text)
    return finish(converted.ok()
                      ? Status::error("attnDescribeLaunch: text is NULL")
                      : converted.status());
  Result<std::string> description = kernel->kernel->describeLaunch(*converted);
  if (!description.ok())
    return finish(description.status());
  *text = keep(std::move(*description));
  return 0;
}

int attnChooseVariant(const AttnKernel *kernel, const AttnArgument *arguments,
                      size_t count, int *variant, const char **reason) {
  Result<Arguments> converted =
      convert("attnChooseVariant", kernel, arguments, count);
  if (!converted.ok() || !variant)
    return finish(converted.ok()
                      ? Status::error("attnChooseVariant: variant is NULL")
                      : converted.status());
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
