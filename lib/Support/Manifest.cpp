//===- Manifest.cpp - an artifact without its images, as JSON -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Manifest.h"

// The library may be built without exceptions: no call below throws.
#define JSON_NOEXCEPTION
#include <nlohmann/json.hpp>

using namespace attn;
using Json = nlohmann::ordered_json;

// Constant 3: 3. Dimension 1 of argument 0: ["dim", 0, 1]. A sum: ["add", a,
// b].
static Json toJson(const LaunchExpr &expr) {
  switch (expr.kind) {
  case LaunchExpr::Kind::Constant:
    return expr.value;
  case LaunchExpr::Kind::Dim:
    return Json::array({"dim", expr.argument, expr.value});
  case LaunchExpr::Kind::Scalar:
    return Json::array({"scalar", expr.argument});
  case LaunchExpr::Kind::Multiprocessors:
    return Json::array({"multiprocessors"});
  default:
    break;
  }
  Json json = Json::array();
  for (const BinaryExprName &row : kBinaryExprs)
    if (row.kind == expr.kind)
      json.push_back(row.name);
  for (const LaunchExpr &operand : expr.operands)
    json.push_back(toJson(operand));
  return json;
}

static Json toJson(const ArgumentInfo &argument) {
  Json json;
  json["name"] = argument.name;
  json["roles"] = Json::array();
  for (ArgumentRole role : argument.roles)
    json["roles"].push_back(roleName(role));
  json["element"] = elementName(argument.element);
  json["tensor"] = argument.isTensor;
  json["output"] = argument.isOutput;
  json["shape"] = argument.shape;
  json["alignment"] = argument.alignment;
  json["view"] = Json::array();
  for (const auto &dimension : argument.view) {
    Json parts = Json::array();
    for (const ViewPart &part : dimension)
      parts.push_back(Json::array({part.dim, part.size, part.step}));
    json["view"].push_back(std::move(parts));
  }
  return json;
}

template <typename Exprs> static Json toJsonArray(const Exprs &exprs) {
  Json json = Json::array();
  for (const LaunchExpr &expr : exprs)
    json.push_back(toJson(expr));
  return json;
}

static Json toJson(const WorkspaceInfo &workspace) {
  Json json;
  json["element"] = elementName(workspace.element);
  json["sizes"] = toJsonArray(workspace.sizes);
  json["zeroed"] = workspace.isZeroed;
  json["restored"] = workspace.isRestored;
  return json;
}

static Json toJson(const KernelInfo &kernel) {
  Json json;
  json["entry"] = kernel.entry;
  json["plan"] = kernel.plan;
  json["results"] = kernel.results;
  json["threads"] = kernel.threads;
  json["shared_bytes"] = kernel.sharedBytes;
  json["starts_early"] = kernel.startsEarly;
  json["registers"] = kernel.registers;
  json["spill_store_bytes"] = kernel.spillStoreBytes;
  json["spill_load_bytes"] = kernel.spillLoadBytes;
  json["grid"] = toJsonArray(kernel.grid);
  json["tensor_maps"] = Json::array();
  for (const TensorMapInfo &map : kernel.tensorMaps)
    json["tensor_maps"].push_back({{"argument", map.argument},
                                   {"rows", map.boxRows},
                                   {"columns", map.boxColumns},
                                   {"panels", map.boxPanels},
                                   {"swizzle", map.swizzleBytes}});
  return json;
}

static Json toJson(const VariantInfo &variant) {
  Json json;
  json["plan"] = variant.plan;
  json["workspaces"] = Json::array();
  for (const WorkspaceInfo &workspace : variant.workspaces)
    json["workspaces"].push_back(toJson(workspace));
  json["kernels"] = Json::array();
  for (const KernelInfo &kernel : variant.kernels)
    json["kernels"].push_back(toJson(kernel));
  return json;
}

static Json toJson(const Artifact &artifact) {
  Json json;
  json["name"] = artifact.name;
  json["target"] = artifact.target;
  json["compiler"] = artifact.compilerVersion;
  json["ptx_bytes"] = artifact.ptx.size();
  json["cubin_bytes"] = artifact.cubin.size();
  json["arguments"] = Json::array();
  for (const ArgumentInfo &argument : artifact.arguments)
    json["arguments"].push_back(toJson(argument));
  json["rule"] = artifact.rule.print();
  if (artifact.partOf) {
    json["of_rule"] = artifact.partOf->rule.print();
    json["variant_of_rule"] = artifact.partOf->variant;
  }
  json["variants"] = Json::array();
  for (const VariantInfo &variant : artifact.variants)
    json["variants"].push_back(toJson(variant));
  json["relayouts"] = Json::array();
  for (const RelayoutInfo &relayout : artifact.relayouts)
    json["relayouts"].push_back({{"entry", relayout.entry},
                                 {"element_bytes", relayout.elementBytes},
                                 {"threads", relayout.threads},
                                 {"elements", relayout.elements}});
  json["checks"] = Json::array();
  for (const LaunchCheck &check : artifact.checks)
    json["checks"].push_back({{"lhs", toJson(check.lhs)},
                              {"rhs", toJson(check.rhs)},
                              {"message", check.message}});
  json["companions"] = Json::array();
  for (const Artifact &companion : artifact.companions)
    json["companions"].push_back(toJson(companion));
  return json;
}

std::string Artifact::manifest() const {
  return toJson(*this).dump(1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}
