//===- ManifestCheck.cpp - whether a manifest makes sense ----- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A checksum says that a file is what somebody wrote, not that it can be meant.
// What no compiler writes is refused here, before a launch multiplies with it.
//
//===----------------------------------------------------------------------===//

#include "Manifest.h"

#include <algorithm>
#include <set>

using namespace attn;

/// More than any GPU has, and small enough that products of two fit.
static constexpr int64_t kMaxThreads = 1024, kMaxSharedBytes = 1 << 20,
                         kMaxAlignment = 4096, kMaxRank = 16,
                         kMaxSize = int64_t(1) << 48, kMaxGrid = 0x7fffffff;

static std::string range(int64_t value, int64_t least, int64_t most) {
  return std::to_string(value) + ", wanted " + std::to_string(least) + " to " +
         std::to_string(most);
}

static bool isOutside(int64_t value, int64_t least, int64_t most) {
  return value < least || value > most;
}

// A symbol as PTX spells it.
static bool isSymbol(const std::string &name) {
  auto isLetter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '$';
  };
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && !isDigit(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return isLetter(c) || isDigit(c); });
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

// The parts of a dimension count each of its elements once: the step of each is
// what those inside it count together, and the open one is the outermost.
static bool countsOnce(const ArgumentInfo &argument, int64_t dim) {
  std::vector<ViewPart> parts;
  for (const auto &dimension : argument.view)
    for (const ViewPart &part : dimension)
      if (part.dim == dim && part.size != 1)
        parts.push_back(part);
  std::sort(
      parts.begin(), parts.end(),
      [](const ViewPart &a, const ViewPart &b) { return a.step < b.step; });
  int64_t count = 1;
  for (const ViewPart &part : parts) {
    if (part.step != count || part.size == 0)
      return part.size == 0; // no elements, nothing to count
    if (part.size < 0)
      return &part == &parts.back();
    if (part.size > kMaxSize / count)
      return false;
    count *= part.size;
  }
  int64_t size = argument.shape[dim];
  return size < 0 || size == count;
}

static bool computesGradients(const Artifact &artifact) {
  return artifact.findArgument(ArgumentRole::OutputGradient).has_value();
}

static std::string faultOfRole(const ArgumentInfo &argument, ArgumentRole role,
                               bool hasGradients) {
  std::string text = "has role '" + std::string(roleName(role)) + "', ";
  // What the forward gives, gradients read.
  bool isForward = role == ArgumentRole::Output || role == ArgumentRole::Lse;
  bool isResult =
      isForward ? !hasGradients : role >= ArgumentRole::QueryGradient;
  if (isResult != argument.isOutput)
    return text + (isResult ? "but is no output" : "but is an output");
  bool isNumber = role == ArgumentRole::Seed || role == ArgumentRole::Offset;
  if (role != ArgumentRole::Capture && isNumber == argument.isTensor)
    return text + (isNumber ? "but is a tensor" : "but is a scalar");
  return "";
}

/// A role that two arguments have and only one can: empty if there is none.
static std::string findRoleTwice(const Artifact &artifact) {
  std::set<ArgumentRole> found;
  for (const ArgumentInfo &argument : artifact.arguments)
    for (ArgumentRole role : argument.roles)
      if (role != ArgumentRole::Capture && !argument.isOutput &&
          !found.insert(role).second)
        return "role '" + std::string(roleName(role)) + "' is there twice";
  return "";
}

static std::string faultOf(const ArgumentInfo &argument, bool hasGradients) {
  for (ArgumentRole role : argument.roles)
    if (std::string fault = faultOfRole(argument, role, hasGradients);
        !fault.empty())
      return fault;
  if (isOutside(argument.alignment, 0, kMaxAlignment) ||
      (argument.alignment & (argument.alignment - 1)) != 0)
    return "has alignment " + std::to_string(argument.alignment) +
           ", wanted 0 or a power of two up to " +
           std::to_string(kMaxAlignment);
  if (isOutside(argument.rank(), 0, kMaxRank) ||
      isOutside(static_cast<int64_t>(argument.shape.size()), 0, kMaxRank))
    return "has more than " + std::to_string(kMaxRank) + " dimensions";
  for (int64_t size : argument.shape)
    if (size > kMaxSize)
      return "has size " + range(size, 0, kMaxSize);
  for (size_t dim = 0; dim < argument.shape.size(); ++dim)
    if (!argument.view.empty() &&
        !countsOnce(argument, static_cast<int64_t>(dim)))
      return "has a view that does not count each element of dimension " +
             std::to_string(dim) + " once";
  return "";
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static std::string faultOf(const KernelInfo &kernel) {
  if (isOutside(kernel.threads, 1, kMaxThreads))
    return "has threads " + range(kernel.threads, 1, kMaxThreads);
  if (isOutside(kernel.sharedBytes, 0, kMaxSharedBytes))
    return "has shared_bytes " + range(kernel.sharedBytes, 0, kMaxSharedBytes);
  for (int64_t number :
       {kernel.registers, kernel.spillStoreBytes, kernel.spillLoadBytes})
    if (isOutside(number, -1, kMaxGrid))
      return "has registers or spills " + range(number, -1, kMaxGrid);
  for (const LaunchExpr &blocks : kernel.grid)
    if (blocks.kind == LaunchExpr::Kind::Constant &&
        isOutside(blocks.value, 1, kMaxGrid))
      return "has a grid of " + range(blocks.value, 1, kMaxGrid);
  return "";
}

/// Every result is written, and nothing else.
static std::string findResultFault(const Artifact &artifact,
                                   const VariantInfo &variant) {
  std::set<int64_t> written;
  for (const KernelInfo &kernel : variant.kernels)
    for (int64_t number : kernel.results) {
      if (isOutside(number, 0,
                    static_cast<int64_t>(artifact.arguments.size()) - 1) ||
          !artifact.arguments[number].isOutput)
        return "kernel '" + kernel.entry + "' writes argument " +
               std::to_string(number) + ", which is no output";
      written.insert(number);
    }
  for (size_t i = 0; i < artifact.arguments.size(); ++i)
    if (artifact.arguments[i].isOutput &&
        !written.count(static_cast<int64_t>(i)))
      return "no kernel writes the output '" + artifact.arguments[i].name + "'";
  return "";
}

static std::string faultOf(const RelayoutInfo &relayout) {
  int64_t bytes = relayout.elementBytes;
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
    return "has element_bytes " + std::to_string(bytes) +
           ", wanted 1, 2, 4 or 8";
  if (isOutside(relayout.threads, 1, kMaxThreads))
    return "has threads " + range(relayout.threads, 1, kMaxThreads);
  if (isOutside(relayout.elements, 1, kMaxGrid))
    return "has elements " + range(relayout.elements, 1, kMaxGrid);
  return "";
}

// Of an entry, what it is, and what is wrong with the rest of it.
static std::string faultOfEntry(const std::string &name, const char *what,
                                std::string fault,
                                std::set<std::string> &entries) {
  std::string prefix = std::string(what) + " '" + name + "' ";
  if (!isSymbol(name))
    return prefix + "has no name that PTX knows";
  if (!entries.insert(name).second)
    return prefix + "is there twice";
  return fault.empty() ? "" : prefix + fault;
}

static std::string findVariantFault(const Artifact &artifact,
                                    const VariantInfo &variant,
                                    std::set<std::string> &entries) {
  for (const WorkspaceInfo &workspace : variant.workspaces)
    for (const LaunchExpr &size : workspace.sizes)
      if (size.kind == LaunchExpr::Kind::Constant &&
          isOutside(size.value, 0, kMaxSize))
        return "a workspace has size " + range(size.value, 0, kMaxSize);
  if (variant.kernels.empty())
    return "there is no kernel";
  std::string fault = findResultFault(artifact, variant);
  for (const KernelInfo &kernel : variant.kernels)
    if (fault.empty())
      fault = faultOfEntry(kernel.entry, "kernel", faultOf(kernel), entries);
  return fault;
}

/// The quantities of a rule are sizes of the query and the key.
static std::string findRuleFault(const Artifact &artifact) {
  constexpr std::pair<LaunchQuantity, ArgumentRole> sources[] = {
      {LaunchQuantity::QueryLength, ArgumentRole::Query},
      {LaunchQuantity::KeyLength, ArgumentRole::Key},
      {LaunchQuantity::BatchHeads, ArgumentRole::Query},
      {LaunchQuantity::BatchKeyHeads, ArgumentRole::Key}};
  constexpr int64_t kRank = 4; // batch, heads, length, dim
  std::string fault = artifact.rule.findFault(artifact.variants.size());
  if (!fault.empty())
    return "the rule " + fault;
  for (auto [quantity, role] : sources) {
    if (!artifact.rule.names(quantity))
      continue;
    std::optional<size_t> number = artifact.findArgument(role);
    if (!number || artifact.arguments[*number].rank() != kRank)
      return "the rule names " + std::string(quantityName(quantity)) +
             ", but no argument of rank 4 has role '" +
             std::string(roleName(role)) + "'";
  }
  return "";
}

/// A variant of a rule that has others.
static std::string faultOf(const RulePart &part) {
  int64_t last = 0;
  for (const VariantRule::Case &entry : part.rule.cases())
    last = std::max(last, entry.variant);
  if (std::string fault = part.rule.findFault(last + 1); !fault.empty())
    return "the rule in 'of_rule' " + fault;
  if (last == 0)
    return "the rule in 'of_rule' has one variant";
  return isOutside(part.variant, 0, last)
             ? "'variant_of_rule' is " + range(part.variant, 0, last)
             : "";
}

std::string attn::findManifestFault(const Artifact &artifact) {
  if (artifact.name.empty())
    return "'name' is empty";
  if (artifact.target.empty())
    return "'target' is empty";
  for (const ArgumentInfo &argument : artifact.arguments)
    if (std::string fault = faultOf(argument, computesGradients(artifact));
        !fault.empty())
      return "argument '" + argument.name + "' " + fault;
  if (std::string twice = findRoleTwice(artifact); !twice.empty())
    return twice;
  if (std::none_of(artifact.arguments.begin(), artifact.arguments.end(),
                   [](const ArgumentInfo &info) { return info.isOutput; }))
    return "no argument is an output";
  std::set<std::string> entries;
  std::string fault;
  for (const VariantInfo &variant : artifact.variants)
    if (fault.empty())
      fault = findVariantFault(artifact, variant, entries);
  if (fault.empty())
    fault = findRuleFault(artifact);
  if (fault.empty() && artifact.partOf)
    fault = faultOf(*artifact.partOf);
  for (const RelayoutInfo &relayout : artifact.relayouts)
    if (fault.empty())
      fault =
          faultOfEntry(relayout.entry, "relayout", faultOf(relayout), entries);
  return fault;
}
