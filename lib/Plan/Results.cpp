//===- Results.cpp - measured plans, and the best of them -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/Results.h"

#include "attn/Plan/Plan.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <tuple>

using namespace mlir;
using namespace attn;
using namespace attn::plan;

static constexpr StringLiteral versionKey = "attn_results";
static constexpr int64_t version = 1;

bool ResultKey::operator==(const ResultKey &other) const {
  return target == other.target && element == other.element &&
         headDim == other.headDim && valueHeadDim == other.valueHeadDim &&
         hasMask == other.hasMask && hasScore == other.hasScore;
}

std::string ResultKey::describe() const {
  return target + " " + element + " " + std::to_string(headDim) + "/" +
         std::to_string(valueHeadDim) + (hasMask ? " masked" : "") +
         (hasScore ? " scored" : "");
}

ResultKey plan::getResultKey(AttentionOp op, StringRef target) {
  ResultKey key;
  key.target = target.str();
  llvm::raw_string_ostream(key.element)
      << cast<RankedTensorType>(op.getQuery().getType()).getElementType();
  Workload workload = getWorkload(op);
  if (workload.hasIeeeProducts)
    key.element += " ieee";
  key.headDim = workload.headDim;
  key.valueHeadDim = workload.valueHeadDim;
  key.hasMask = workload.hasMask;
  key.hasScore = workload.hasScore;
  return key;
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

// Found by the argument's namespace.
namespace attn::plan {
static bool fromJSON(const llvm::json::Value &value, MeasuredPlan &measured,
                     llvm::json::Path path) {
  llvm::json::ObjectMapper map(value, path);
  return map && map.map("plan", measured.plan) &&
         map.map("seconds", measured.seconds);
}

static bool fromJSON(const llvm::json::Value &value, Result &result,
                     llvm::json::Path path) {
  llvm::json::ObjectMapper map(value, path);
  ResultKey &key = result.key;
  return map && map.map("target", key.target) &&
         map.map("element", key.element) && map.map("head_dim", key.headDim) &&
         map.map("value_head_dim", key.valueHeadDim) &&
         map.map("masked", key.hasMask) && map.map("scored", key.hasScore) &&
         map.map("device", result.device) && map.map("shapes", result.shapes) &&
         map.map("plans", result.plans);
}

} // namespace attn::plan

FailureOr<Results> Results::parse(StringRef text, std::string &error) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value) {
    error = "no JSON: " + llvm::toString(value.takeError());
    return failure();
  }
  const llvm::json::Object *object = value->getAsObject();
  if (!object || object->getInteger(versionKey) != version) {
    error = llvm::formatv("no results file of this compiler (wanted an object "
                          "with \"{0}\": {1})",
                          versionKey, version);
    return failure();
  }
  Results results;
  llvm::json::Path::Root root("results");
  const llvm::json::Value *list = object->get("results");
  if (!list || !llvm::json::fromJSON(*list, results.results, root)) {
    error = list ? llvm::toString(root.getError()) : "no 'results'";
    return failure();
  }
  return results;
}

FailureOr<Results> Results::read(StringRef path, std::string &error) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!file) {
    error = file.getError().message();
    return failure();
  }
  return parse((*file)->getBuffer(), error);
}

std::string Results::print() const {
  llvm::json::Array list;
  for (const Result &result : results) {
    llvm::json::Array plans;
    for (const MeasuredPlan &measured : result.plans)
      plans.push_back(llvm::json::Object{{"plan", measured.plan},
                                         {"seconds", measured.seconds}});
    const ResultKey &key = result.key;
    list.push_back(llvm::json::Object{{"target", key.target},
                                      {"element", key.element},
                                      {"head_dim", key.headDim},
                                      {"value_head_dim", key.valueHeadDim},
                                      {"masked", key.hasMask},
                                      {"scored", key.hasScore},
                                      {"device", result.device},
                                      {"shapes", result.shapes},
                                      {"plans", std::move(plans)}});
  }
  llvm::json::Object file{{versionKey, version}, {"results", std::move(list)}};
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(file)));
}

const Result *Results::find(const ResultKey &key) const {
  for (const Result &result : results)
    if (result.key == key && !result.plans.empty())
      return &result;
  return nullptr;
}

void Results::insert(Result result) {
  llvm::sort(result.plans, [](const MeasuredPlan &a, const MeasuredPlan &b) {
    return std::tie(a.seconds, a.plan) < std::tie(b.seconds, b.plan);
  });
  for (Result &known : results)
    if (known.key == result.key) {
      known = std::move(result);
      return;
    }
  results.push_back(std::move(result));
}
