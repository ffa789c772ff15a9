//===- Module.cpp - an artifact on a device, ready to launch -- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Module.h"

#include <cctype>

using namespace attn;
using namespace attn::runtime;

// CUfunction_attribute.
static constexpr int kMaxThreads = 0;
static constexpr int kStaticShared = 1;
static constexpr int kLocalBytes = 3;
static constexpr int kRegisters = 4;
static constexpr int kMaxDynamicShared = 8;
// CUjit_option.
static constexpr int kInfoLog = 3, kInfoLogBytes = 4;
static constexpr int kErrorLog = 5, kErrorLogBytes = 6;
static constexpr int kLogVerbose = 12;

namespace {
/// "sm_90a": 9, 0, exact.
struct Capability {
  int major = 0, minor = 0;
  bool isExact = false;
};
} // namespace

static Result<Capability> parseTarget(const std::string &target) {
  Capability capability;
  std::string_view rest = target;
  constexpr std::string_view kPrefix = "sm_";
  if (rest.substr(0, kPrefix.size()) != kPrefix)
    return Status::error("artifact is for target '" + target +
                         "', wanted one for a GPU ('sm_80', …)");
  rest.remove_prefix(kPrefix.size());
  int number = 0, digits = 0;
  while (!rest.empty() && std::isdigit(static_cast<unsigned char>(rest[0])) &&
         digits < 4) {
    number = number * 10 + (rest[0] - '0');
    rest.remove_prefix(1);
    ++digits;
  }
  capability.isExact = rest == "a";
  if (digits < 2 || (!rest.empty() && !capability.isExact))
    return Status::error("artifact is for unknown target '" + target + "'");
  capability.major = number / 10;
  capability.minor = number % 10;
  return capability;
}

Result<Image> runtime::chooseImage(const Artifact &artifact, int major,
                                   int minor) {
  Result<Capability> wanted = parseTarget(artifact.target);
  if (!wanted.ok())
    return wanted.status();
  bool isSame = wanted->major == major && wanted->minor == minor;
  bool isNewer = major > wanted->major ||
                 (major == wanted->major && minor > wanted->minor);
  bool runsCubin =
      isSame || (!wanted->isExact && isNewer && major == wanted->major);
  if (!artifact.cubin.empty() && runsCubin)
    return Image::Cubin;
  if (!artifact.ptx.empty() && (isSame || (!wanted->isExact && isNewer)))
    return Image::PTX;
  std::string device = "sm_" + std::to_string(major) + std::to_string(minor);
  if (artifact.ptx.empty() && artifact.cubin.empty())
    return Status::error("artifact '" + artifact.name + "' holds no code");
  if (isSame || isNewer)
    return Status::error("artifact '" + artifact.name + "' holds code for " +
                         artifact.target + " only and no PTX; the device is " +
                         device);
  return Status::error("artifact '" + artifact.name + "' is for " +
                       artifact.target + ", the device is only " + device);
}

// Until the terminating zero, without trailing blanks.
static std::string logText(const std::vector<char> &log) {
  std::string text(log.data());
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.pop_back();
  return text;
}

Status Module::loadImage() {
  const Driver &driver = *owner.driver;
  if (kind == Image::Cubin)
    return driver.check(driver.moduleLoadDataEx(&module, source.cubin.data(), 0,
                                                nullptr, nullptr),
                        "loading the cubin");
  constexpr size_t kLogBytes = 16384;
  std::vector<char> info(kLogBytes, 0), errors(kLogBytes, 0);
  int options[] = {kInfoLog, kInfoLogBytes, kErrorLog, kErrorLogBytes,
                   kLogVerbose};
  // The driver takes integers by value in the pointers.
  void *values[] = {info.data(), reinterpret_cast<void *>(kLogBytes - 1),
                    errors.data(), reinterpret_cast<void *>(kLogBytes - 1),
                    reinterpret_cast<void *>(uintptr_t(1))};
  Status status =
      driver.check(driver.moduleLoadDataEx(&module, source.ptx.c_str(),
                                           sizeof(options) / sizeof(options[0]),
                                           options, values),
                   "compiling the PTX in the driver");
  text = logText(info);
  std::string errorText = logText(errors);
  if (!status.ok() && !errorText.empty())
    return Status::error(status.message() + ": " + errorText);
  return status;
}

// The parameters of the kernels of a variant, but for tensor maps.
static size_t countNumbers(const Artifact &artifact,
                           const VariantInfo &variant) {
  auto ofTensor = [](size_t rank) { return 3 + 2 * rank; };
  size_t count = 0;
  for (const ArgumentInfo &argument : artifact.arguments)
    count +=
        argument.isTensor ? ofTensor(static_cast<size_t>(argument.rank())) : 1;
  for (const WorkspaceInfo &workspace : variant.workspaces)
    count += ofTensor(workspace.sizes.size());
  return count;
}

// Finds the kernel and gives it its shared memory.
Status Module::configure(const KernelInfo &kernel, size_t numbers,
                         std::vector<Function> &list) {
  const Driver &driver = *owner.driver;
  CUfunction function = nullptr;
  Status status = driver.check(
      driver.moduleGetFunction(&function, module, kernel.entry.c_str()),
      ("finding the kernel '" + kernel.entry + "'").c_str());
  int maxThreads = 0, staticShared = 0, registers = 0, localBytes = 0;
  auto attribute = [&](int which, int &value) {
    if (status.ok())
      status = driver.check(driver.funcGetAttribute(&value, which, function),
                            "cuFuncGetAttribute");
  };
  attribute(kMaxThreads, maxThreads);
  attribute(kStaticShared, staticShared);
  attribute(kRegisters, registers);
  attribute(kLocalBytes, localBytes);
  if (!status.ok())
    return status;
  registerCount = std::max(registerCount, registers);
  localByteCount = std::max(localByteCount, localBytes);
  if (kernel.threads < 1 || kernel.threads > maxThreads)
    return Status::error("kernel '" + kernel.entry + "' wants " +
                         std::to_string(kernel.threads) +
                         " threads per block, the device can give it 1 to " +
                         std::to_string(maxThreads));
  if (kernel.sharedBytes < 0 ||
      kernel.sharedBytes > owner.sharedBytesPerBlock - staticShared)
    return Status::error(
        "kernel '" + kernel.entry + "' wants " +
        std::to_string(kernel.sharedBytes) +
        " bytes of shared memory per block, " + owner.name + " has " +
        std::to_string(owner.sharedBytesPerBlock - staticShared));
  list.push_back(
      {function, ParameterLayout::of(driver, function,
                                     numbers + kernel.tensorMaps.size())});
  return driver.check(
      driver.funcSetAttribute(function, kMaxDynamicShared,
                              static_cast<int>(kernel.sharedBytes)),
      "asking for shared memory");
}

// Whether a launch may ask for zeros that it leaves behind.
static bool leavesZeros(const Artifact &artifact) {
  for (const VariantInfo &variant : artifact.variants)
    for (const WorkspaceInfo &workspace : variant.workspaces)
      if (workspace.isRestored)
        return true;
  return false;
}

Result<Module> Module::load(const Device &device, Artifact artifact) {
  Result<Image> image =
      chooseImage(artifact, device.computeMajor, device.computeMinor);
  if (!image.ok())
    return image.status();
  for (const VariantInfo &variant : artifact.variants)
    if (variant.kernels.empty())
      return Status::error("artifact '" + artifact.name + "' has no kernel");
  Module module;
  module.number = KnownLaunches::nextModule();
  module.source = std::move(artifact);
  module.source.companions.clear();
  module.owner = device;
  module.kind = *image;
  module.streamMemory = std::make_unique<StreamMemory>(*device.driver);
  ScopedContext scope(*device.driver, device.context);
  RelaxedCapture relaxed(*device.driver);
  Status status = scope.status();
  if (status.ok())
    status = module.loadImage();
  for (const VariantInfo &variant : module.source.variants) {
    std::vector<Function> &list = module.functions.emplace_back();
    size_t numbers = countNumbers(module.source, variant);
    for (const KernelInfo &kernel : variant.kernels)
      if (status.ok())
        status = module.configure(kernel, numbers, list);
  }
  for (const RelayoutInfo &kernel : module.source.relayouts)
    if (status.ok())
      status = device.driver->check(
          device.driver->moduleGetFunction(
              &module.relayoutFunctions.emplace_back(), module.module,
              kernel.entry.c_str()),
          ("finding the kernel '" + kernel.entry + "'").c_str());
  if (!status.ok())
    return status;
  if (leavesZeros(module.source))
    module.streamMemory->reserve();
  return module;
}

Module::~Module() {
  if (!module)
    return;
  ScopedContext scope(*owner.driver, owner.context);
  RelaxedCapture relaxed(*owner.driver);
  streamMemory.reset();
  (void)owner.driver->moduleUnload(module);
}

void Module::swap(Module &other) {
  std::swap(number, other.number);
  std::swap(source, other.source);
  std::swap(owner, other.owner);
  std::swap(kind, other.kind);
  std::swap(text, other.text);
  std::swap(module, other.module);
  std::swap(functions, other.functions);
  std::swap(relayoutFunctions, other.relayoutFunctions);
  std::swap(streamMemory, other.streamMemory);
  std::swap(relayoutCount, other.relayoutCount);
  std::swap(registerCount, other.registerCount);
  std::swap(localByteCount, other.localByteCount);
}
