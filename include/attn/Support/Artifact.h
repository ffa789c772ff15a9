//===- Artifact.h - what the compiler hands to the runtime -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Plain data, no MLIR and no LLVM: written by Target, read by Runtime.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_ARTIFACT_H
#define ATTN_SUPPORT_ARTIFACT_H

#include "attn/Support/VariantRule.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

enum class ElementKind { F16, BF16, F32, F64, I1, I8, I16, I32, I64 };

/// Size in bytes of one element in memory.
int64_t elementBytes(ElementKind kind);
/// "f16", "bf16", …
std::string_view elementName(ElementKind kind);
/// The reverse.
std::optional<ElementKind> findElement(std::string_view name);

/// What the attention makes of an argument.
enum class ArgumentRole {
  Query,
  Key,
  Value,
  Sink,
  Seed,   // of dropout
  Offset, // of dropout
  Capture,
  Output, // a result, or what the gradients read of it
  Lse,    // the same
  OutputGradient,
  LseGradient,
  QueryTangent,
  KeyTangent,
  ValueTangent,
  // What follows are results.
  QueryGradient,
  KeyGradient,
  ValueGradient,
  SinkGradient,
  CaptureGradient,
  OutputTangent,
  LseTangent
};

/// "query", "key", …; "d_query" for the gradient of one, "t_query" for its
/// tangent.
std::string_view roleName(ArgumentRole role);
/// The reverse.
std::optional<ArgumentRole> findRole(std::string_view name);

/// A part of a dimension of an argument: `size` elements (-1: as many as the
/// other parts leave), `step` elements apart.
struct ViewPart {
  int64_t dim = 0, size = -1, step = 1;

  bool operator==(const ViewPart &other) const;
};

/// One argument of the kernel, in the order of the source function: its
/// arguments first, then its results as output buffers. In the kernel's
/// parameter list a tensor of rank r is a strided memref descriptor, spread
/// out: pointer, pointer, i64 offset, r x i64 sizes, r x i64 strides (in
/// elements; the innermost stride is 1). A scalar is itself.
struct ArgumentInfo {
  /// What messages call it; nothing is recognised by it.
  std::string name;
  /// One argument may be key and value; one that the attention does not see
  /// has none.
  std::vector<ArgumentRole> roles;
  ElementKind element = ElementKind::F32;
  bool isTensor = true;
  bool isOutput = false;
  std::vector<int64_t> shape; // -1: known at launch; empty for scalars
  /// Bytes that divide the data pointer and every stride but the innermost
  /// (of dimensions longer than 1); 0: the size of the element.
  int64_t alignment = 0;
  /// How the kernel sees a tensor, where not as its caller does: for each
  /// dimension of the kernel the parts that it counts through, the outermost
  /// first; none: one element. Expressions and tensor maps are about these.
  std::vector<std::vector<ViewPart>> view;
  /// Without gaps, for a program in this process; not kept in files.
  bool isDense = false;

  bool is(ArgumentRole role) const;

  /// Of the tensor as the kernel sees it.
  int64_t rank() const {
    return static_cast<int64_t>(view.empty() ? shape.size() : view.size());
  }

  bool operator==(const ArgumentInfo &other) const;
};

/// An integer expression over the arguments and the number of multiprocessors
/// of the device, evaluated at launch.
struct LaunchExpr {
  enum class Kind {
    Constant,
    Dim,
    Scalar,
    Multiprocessors,
    Add,
    Sub,
    Mul,
    FloorDiv,
    CeilDiv,
    Mod,
    Min,
    Max
  };
  Kind kind = Kind::Constant;
  int64_t value = 0;                // Constant: the value; Dim: the dimension
  int64_t argument = 0;             // Dim, Scalar: which argument
  std::vector<LaunchExpr> operands; // two, for the binary kinds

  bool operator==(const LaunchExpr &other) const;
};

/// Holds at launch or the launch is refused with `message`: lhs == rhs.
struct LaunchCheck {
  LaunchExpr lhs, rhs;
  std::string message;

  bool operator==(const LaunchCheck &other) const;
};

/// A parameter of 128 bytes after those of the arguments: how the tensor
/// memory accelerator copies boxes of an argument or workspace (its last four
/// dimensions, the innermost first). Made at launch.
struct TensorMapInfo {
  int64_t argument = 0; // workspaces count on after the arguments
  int64_t boxRows = 0, boxColumns = 0; // elements; the other sizes are 1
  int64_t swizzleBytes = 0;            // 128 to 16; 0: a box of one row
  /// With more than one the innermost dimension counts as two, columns of a
  /// panel and panels, which stand before and after the rows: one box is
  /// that many panels of `boxColumns`, one after the other.
  int64_t boxPanels = 1;

  bool operator==(const TensorMapInfo &other) const;
};

/// Memory that lives for one launch: a contiguous tensor that the kernels of an
/// artifact fill and read.
struct WorkspaceInfo {
  ElementKind element = ElementKind::I32;
  std::vector<LaunchExpr> sizes;
  bool isZeroed = false; // before the first kernel
  /// The kernels leave it zero, too: launches that run one after the other may
  /// share it, and it need be cleared once only.
  bool isRestored = false;

  bool operator==(const WorkspaceInfo &other) const;
};

/// One kernel of a variant. Its parameters are those of all arguments, of all
/// workspaces, in the same form, and its tensor maps.
struct KernelInfo {
  std::string entry;            // symbol in the image
  std::string plan;             // as printed in IR
  std::vector<int64_t> results; // the arguments that it defines, or a part of
  std::vector<TensorMapInfo> tensorMaps;
  std::array<LaunchExpr, 3> grid;
  int64_t threads = 0;     // per block
  int64_t sharedBytes = 0; // dynamic shared memory per block
  /// It waits for the kernel before it, and may start while that runs.
  bool startsEarly = false;
  // What ptxas said; -1 where it did not run.
  int64_t registers = -1, spillStoreBytes = -1, spillLoadBytes = -1;

  bool operator==(const KernelInfo &other) const;
};

/// A kernel that copies a tensor of rank 4 and of elements of that size from
/// one layout into another: its parameters are two such tensors, as arguments
/// are, of the same sizes. Each block copies that many `elements` of the last
/// two dimensions; the grid's y and z are the second and the first dimension.
struct RelayoutInfo {
  std::string entry; // symbol in the image
  int64_t elementBytes = 0;
  int64_t threads = 0;
  int64_t elements = 0;

  bool operator==(const RelayoutInfo &other) const;
};

/// What a launch runs: the function compiled by one plan.
struct VariantInfo {
  std::string plan; // of the attention, as printed in IR
  std::vector<WorkspaceInfo> workspaces;
  /// They run in this order.
  std::vector<KernelInfo> kernels;

  /// Of all kernels: the most registers that a thread of one has, and all that
  /// they spill; -1 where ptxas did not run.
  struct CodeFigures {
    int64_t registers = -1, spillStoreBytes = -1, spillLoadBytes = -1;
  };
  CodeFigures figures() const;

  bool operator==(const VariantInfo &other) const;
};

/// The rule that says for which sizes a function is compiled by which plan, and
/// the one of its variants that an artifact has: for all other sizes it runs,
/// too, but another variant was meant for them.
struct RulePart {
  VariantRule rule;
  int64_t variant = 0;

  bool operator==(const RulePart &other) const {
    return rule == other.rule && variant == other.variant;
  }
};

struct Artifact {
  std::string name;   // the source function
  std::string target; // "sm_80"
  std::string compilerVersion;
  std::string ptx;            // empty if not kept
  std::vector<uint8_t> cubin; // empty where no ptxas was found
  std::vector<ArgumentInfo> arguments;
  std::vector<LaunchCheck> checks;
  /// At least one, and which of them a launch runs.
  std::vector<VariantInfo> variants = std::vector<VariantInfo>(1);
  VariantRule rule;
  /// Where one variant of several was compiled, it alone is above.
  std::optional<RulePart> partOf;
  /// For arguments whose layout the kernels cannot take.
  std::vector<RelayoutInfo> relayouts;
  /// Further functions for the same target, each with images of its own and no
  /// companions: the gradients of this one, other attentions of a program.
  std::vector<Artifact> companions;

  /// This function, then its companions.
  std::vector<const Artifact *> functions() const;
  /// The number of the argument with that role; none if there is none.
  std::optional<size_t> findArgument(ArgumentRole role) const;
  /// Every launch runs variant `number` from now on. An error in words if there
  /// is none, else empty.
  std::string fixVariant(int64_t number);

  /// The artifact as bytes of one file: a magic line, a JSON manifest, the
  /// images of all functions, a checksum.
  std::string serialize() const;
  /// The reverse; on failure nothing, and `error` says what is wrong.
  static std::optional<Artifact> parse(std::string_view bytes,
                                       std::string &error);
  /// Everything but the images, as the JSON text that the file holds.
  std::string manifest() const;

  bool operator==(const Artifact &other) const;
};

} // namespace attn

#endif // ATTN_SUPPORT_ARTIFACT_H
