//===- Module.h - an artifact on a device, ready to launch ---- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_MODULE_H
#define ATTN_RUNTIME_MODULE_H

#include "attn/Runtime/Device.h"
#include "attn/Runtime/KnownLaunch.h"
#include "attn/Runtime/ParameterLayout.h"
#include "attn/Runtime/StreamMemory.h"

#include <atomic>
#include <memory>

namespace attn::runtime {

/// Which image of an artifact a device can run.
enum class Image { Cubin, PTX };

/// The image for a device of compute capability `major`.`minor`: the cubin
/// where its code runs there (same major version, minor not below; "sm_90a":
/// exactly there), otherwise the PTX where the driver can compile it.
Result<Image> chooseImage(const Artifact &artifact, int major, int minor);

/// The variant that a launch runs, and why that one; no reason where the rule
/// leaves no choice.
struct VariantChoice {
  size_t variant = 0;
  std::string reason;
};

/// Memory for the workspaces of a launch, from the caller.
struct WorkspaceMemory {
  void *data = nullptr; // device memory, aligned to kWorkspaceAlignment
  size_t bytes = 0;
};

/// The loaded kernels of an artifact. Move-only; unloaded at destruction. One
/// module may be launched from several threads.
class Module {
public:
  /// Loads the function of `artifact`, and none of its companions, onto
  /// `device`. The driver's messages about PTX that it refuses are
  /// part of the error; what it says about PTX that it compiles is in `log`.
  static Result<Module> load(const Device &device, Artifact artifact);

  Module(Module &&other) noexcept { swap(other); }
  Module &operator=(Module &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Module();

  /// Checks the arguments (one per entry of `artifact().arguments`) and puts
  /// the kernels into `stream`; does not wait. Pointers are device memory.
  /// Workspaces lie in `memory`, which must not be used by anything else until
  /// the kernels are done, or are allocated in the stream.
  Status launch(ArgumentSpan arguments, CUstream stream,
                const WorkspaceMemory *memory = nullptr) const;
  /// Bytes of memory that the workspaces of such a launch need.
  Result<int64_t> workspaceBytes(ArgumentSpan arguments) const;
  /// What such a launch does besides its kernels: a line for each tensor that
  /// it copies, with the reason; empty if nothing.
  Result<std::string> describeLaunch(const Arguments &arguments) const;
  /// Which variant such a launch runs.
  Result<VariantChoice> chooseVariant(const Arguments &arguments) const;
  /// How many tensors launches have copied.
  int64_t relayouts() const { return *relayoutCount; }

  const Artifact &artifact() const { return source; }
  const Device &device() const { return owner; }
  Image image() const { return kind; }
  const std::string &log() const { return text; }
  /// Registers per thread and bytes of local memory (stack and spills) per
  /// thread, of the code that runs; the most of any kernel.
  int registers() const { return registerCount; }
  int localBytes() const { return localByteCount; }

private:
  Module() = default;
  void swap(Module &other);
  Status loadImage();
  /// A kernel of the module.
  struct Function {
    CUfunction function = nullptr;
    ParameterLayout layout;
  };
  /// `numbers`: parameters before its tensor maps.
  Status configure(const KernelInfo &kernel, size_t numbers,
                   std::vector<Function> &list);
  /// The launch on these arguments: a known one of this thread, which lives
  /// until the next call, or `own`.
  Result<PackedLaunch *> prepare(ArgumentSpan arguments,
                                 std::optional<PackedLaunch> &own) const;
  /// Writes into `launch` where its memory lies, and its tensor maps.
  Status fill(PackedLaunch &launch, void *workspace) const;
  CUresult launchKernel(PackedLaunch &launch, size_t number, bool isFirst,
                        CUstream stream) const;
  Status run(PackedLaunch &launch, void *workspace, bool isCleared,
             CUstream stream) const;
  Status relayout(const LaunchCall &call, bool outputs, void *workspace,
                  CUstream stream) const;

  uint64_t number = 0; // for KnownLaunches
  Artifact source;
  Device owner;
  Image kind = Image::PTX;
  std::string text;
  CUmodule module = nullptr;
  std::vector<std::vector<Function>> functions; // of variants, per kernel
  std::vector<CUfunction> relayoutFunctions;
  std::unique_ptr<StreamMemory> streamMemory;
  std::unique_ptr<std::atomic<int64_t>> relayoutCount =
      std::make_unique<std::atomic<int64_t>>(0);
  int registerCount = 0;
  int localByteCount = 0;
};

} // namespace attn::runtime

#endif // ATTN_RUNTIME_MODULE_H
