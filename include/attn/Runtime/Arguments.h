//===- Arguments.h - what a kernel is called with ------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks the arguments of a launch against the artifact and turns them into
// the parameter list of the kernel. Needs no GPU.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_ARGUMENTS_H
#define ATTN_RUNTIME_ARGUMENTS_H

#include "attn/Runtime/Result.h"
#include "attn/Support/Artifact.h"

#include <initializer_list>
#include <optional>

namespace attn::runtime {

/// One argument, in the order of `Artifact::arguments`: a view of a tensor
/// (sizes and strides are read during the call only, strides in elements), or
/// the value of a scalar.
struct Argument {
  enum class Kind { Tensor, Integer, Real };
  Kind kind = Kind::Integer;
  void *data = nullptr;
  int64_t rank = 0;
  const int64_t *sizes = nullptr;
  const int64_t *strides = nullptr;
  int64_t integer = 0;
  double real = 0;

  static Argument tensor(void *data, int64_t rank, const int64_t *sizes,
                         const int64_t *strides) {
    Argument argument;
    argument.kind = Kind::Tensor;
    argument.data = data;
    argument.rank = rank;
    argument.sizes = sizes;
    argument.strides = strides;
    return argument;
  }
  static Argument scalar(int64_t value) {
    Argument argument;
    argument.integer = value;
    return argument;
  }
  static Argument scalar(double value) {
    Argument argument;
    argument.kind = Kind::Real;
    argument.real = value;
    return argument;
  }
};

using Arguments = std::vector<Argument>;

/// Arguments one after the other that belong to somebody else.
class ArgumentSpan {
public:
  ArgumentSpan(const Argument *first, size_t count)
      : first(first), count(count) {}
  ArgumentSpan(const Arguments &arguments)
      : ArgumentSpan(arguments.data(), arguments.size()) {}
  /// For calls: the list ends with the expression it stands in.
  ArgumentSpan(std::initializer_list<Argument> arguments)
      : ArgumentSpan(arguments.begin(), arguments.size()) {}

  size_t size() const { return count; }
  const Argument *begin() const { return first; }
  const Argument *end() const { return first + count; }
  const Argument &operator[](size_t i) const { return first[i]; }
  Arguments copy() const { return Arguments(begin(), end()); }

private:
  const Argument *first;
  size_t count;
};

/// The value of `expr` for `arguments`, which must be valid for the artifact
/// that the expression belongs to, on a device with that many multiprocessors.
/// Division by zero and overflow are errors; x mod 0 is x.
Result<int64_t> evaluate(const LaunchExpr &expr, const Arguments &arguments,
                         int64_t multiprocessors = 1);

/// What rules of variants speak of, for `arguments` as the kernels see them; 0
/// where the artifact's rule does not name it.
LaunchQuantities measureQuantities(const Artifact &artifact,
                                   const Arguments &arguments,
                                   int64_t multiprocessors);

/// The 64 bits that hold `value` as a parameter of type `element`; an error if
/// it does not fit.
Result<uint64_t> scalarBits(const Argument &value, ElementKind element);

/// What the driver makes a tensor map of (cuTensorMapEncodeTiled): four
/// dimensions, five with several panels, the innermost first; strides in bytes.
struct TensorMapCall {
  void *data = nullptr;
  ElementKind element = ElementKind::BF16;
  unsigned rank = 4;
  std::array<uint64_t, 5> sizes = {1, 1, 1, 1, 1};
  std::array<uint64_t, 4> strides = {16, 16, 16, 16};
  std::array<uint32_t, 5> box = {1, 1, 1, 1, 1};
  int64_t swizzleBytes = 0;
  /// Where in the memory of the launch the elements lie, in place of `data`.
  std::optional<int64_t> offset;
};

/// What the driver is told of one kernel.
struct KernelCall {
  std::array<uint32_t, 3> grid = {0, 0, 0};
  /// Parameters of 128 bytes after those of arguments and workspaces.
  std::vector<TensorMapCall> tensorMaps;
  /// The grid has no block.
  bool isEmpty = false;
};

/// Memory that a launch needs besides its arguments.
struct WorkspaceCall {
  std::vector<int64_t> sizes;
  int64_t bytes = 0;
  int64_t offset = 0; // in the memory of all workspaces
  bool isZeroed = false;
};

/// The alignment of workspaces: what the driver gives allocations.
inline constexpr int64_t kWorkspaceAlignment = 256;

/// A tensor that is copied because the kernels cannot take its layout: into
/// memory of the launch, before they run, or from there, after them.
struct RelayoutCall {
  int64_t argument = 0;
  std::string reason;
  bool isOutput = false;
  void *data = nullptr;
  int64_t elementBytes = 0;
  /// Padded with ones in front; strides in elements, of the caller's tensor and
  /// of the copy.
  std::array<int64_t, 4> sizes = {1, 1, 1, 1};
  std::array<int64_t, 4> strides = {0, 0, 0, 0}, packed = {0, 0, 0, 0};
  WorkspaceCall place;
  size_t slot = 0;    // where the parameters of the kernels have its address
  int64_t kernel = 0; // of Artifact::relayouts
  std::array<uint32_t, 3> grid = {0, 0, 0};
};

/// Sizes and strides of an argument as the kernels see it.
struct ViewCall {
  std::vector<int64_t> sizes, strides;
};

struct LaunchCall {
  /// Which variant runs, and the quantities by which the rule picked it.
  size_t variant = 0;
  LaunchQuantities quantities = {};
  /// Of the arguments, one slot each (the driver reads as many bytes of a slot
  /// as the parameter has).
  std::vector<uint64_t> parameters;
  std::vector<WorkspaceCall> workspaces;
  std::vector<ViewCall> views; // one per argument
  std::vector<RelayoutCall> relayouts;
  /// What the maps of empty tensors show, which must show something; no bytes
  /// where there are none.
  WorkspaceCall zeros;
  int64_t workspaceBytes = 0;
  /// Those in front that must be zero.
  int64_t zeroBytes = 0;
  /// These are left as zero as they are found.
  bool isRestored = false;
  std::vector<KernelCall> kernels;
  /// Nothing to do: no output has an element. No memory, no kernels then.
  bool isEmpty = false;
};

/// Checks everything that can be wrong with `arguments` and prepares the call,
/// for a device with that many multiprocessors.
Result<LaunchCall> prepareLaunch(const Artifact &artifact,
                                 const Arguments &arguments,
                                 int64_t multiprocessors = 1);

/// The parameters of the kernels but for tensor maps, where the memory of the
/// launch is at `memory`.
std::vector<uint64_t> kernelParameters(const LaunchCall &call, void *memory);

/// One line for each tensor that is copied, with the reason.
std::string describeRelayouts(const Artifact &artifact, const LaunchCall &call);

} // namespace attn::runtime

#endif // ATTN_RUNTIME_ARGUMENTS_H
