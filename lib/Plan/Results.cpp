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
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <dlfcn.h>
#include <limits>
#include <tuple>

using namespace mlir;
using namespace attn;
using namespace attn::plan;

static constexpr StringLiteral versionKey = "attn_results";
static constexpr int64_t version = 1;

bool ResultKey::operator==(const ResultKey &other) const {
  return target == other.target && element == other.element &&
         headDim == other.headDim && valueHeadDim == other.valueHeadDim &&
         hasMask == other.hasMask && hasScore == other.hasScore &&
         hasCaptures == other.hasCaptures && hasDropout == other.hasDropout &&
         isBackward == other.isBackward && isJvp == other.isJvp;
}

std::string ResultKey::describe() const {
  return target + " " + element + " " + std::to_string(headDim) + "/" +
         std::to_string(valueHeadDim) + (hasMask ? " masked" : "") +
         (hasScore ? " scored" : "") + (hasCaptures ? " captured" : "") +
         (hasDropout ? " dropout" : "") + (isBackward ? " backward" : "") +
         (isJvp ? " jvp" : "");
}

ResultKey plan::getResultKey(ScoredOp op, StringRef target) {
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
  key.hasCaptures = workload.hasCaptures;
  key.hasDropout = workload.hasDropout;
  key.isBackward = workload.isBackward;
  key.isJvp = workload.isJvp;
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

static bool fromJSON(const llvm::json::Value &value, Measurement &result,
                     llvm::json::Path path) {
  llvm::json::ObjectMapper map(value, path);
  ResultKey &key = result.key;
  return map && map.map("target", key.target) &&
         map.map("element", key.element) && map.map("head_dim", key.headDim) &&
         map.map("value_head_dim", key.valueHeadDim) &&
         map.map("masked", key.hasMask) && map.map("scored", key.hasScore) &&
         map.mapOptional("captured", key.hasCaptures) &&
         map.mapOptional("dropout", key.hasDropout) &&
         map.mapOptional("backward", key.isBackward) &&
         map.mapOptional("jvp", key.isJvp) &&
         map.map("device", result.device) && map.map("shapes", result.shapes) &&
         map.map("queries", result.queries) &&
         map.map("rows_per_multiprocessor", result.rows) &&
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

/// One entry: a line for each plan.
static void print(const Measurement &result, llvm::raw_ostream &os) {
  auto line = [&](StringRef name, llvm::json::Value value) {
    os << "   \"" << name << "\": " << value << ",\n";
  };
  const ResultKey &key = result.key;
  os << "  {\n";
  line("target", key.target);
  line("element", key.element);
  line("head_dim", key.headDim);
  line("value_head_dim", key.valueHeadDim);
  line("masked", key.hasMask);
  line("scored", key.hasScore);
  line("captured", key.hasCaptures);
  line("dropout", key.hasDropout);
  if (key.isBackward)
    line("backward", true);
  if (key.isJvp)
    line("jvp", true);
  line("device", result.device);
  line("shapes", result.shapes);
  if (result.queries)
    line("queries", *result.queries);
  if (result.rows)
    line("rows_per_multiprocessor", *result.rows);
  os << "   \"plans\": [";
  StringRef separator = "\n";
  for (const MeasuredPlan &measured : result.plans) {
    os << separator
       << "    {\"seconds\": " << llvm::format("%.6g", measured.seconds)
       << ", \"plan\": " << llvm::json::Value(measured.plan) << "}";
    separator = ",\n";
  }
  os << "\n   ]\n  }";
}

std::string Results::print() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "{\n \"" << versionKey << "\": " << version << ",\n \"results\": [";
  StringRef separator = "\n";
  for (const Measurement &result : results) {
    os << separator;
    ::print(result, os);
    separator = ",\n";
  }
  os << "\n ]\n}\n";
  return text;
}

const Measurement *Results::find(const ResultKey &key) const {
  for (const Measurement &result : llvm::reverse(results))
    if (result.key == key && !result.plans.empty())
      return &result;
  return nullptr;
}

/// By the number of blocks; those that do not say how many are last.
static int64_t rowsOf(const Measurement &result) {
  return result.rows.value_or(std::numeric_limits<int64_t>::max());
}

const Measurement *Results::find(const ResultKey &key, StringRef device,
                                 int64_t queries) const {
  const Measurement *found = nullptr;
  for (const Measurement &result : llvm::reverse(results))
    if (result.key == key && result.device == device && !result.plans.empty() &&
        result.queries.value_or(queries) == queries &&
        (!found || rowsOf(result) > rowsOf(*found)))
      found = &result;
  return found;
}

SmallVector<const Measurement *> Results::findLengths(const ResultKey &key,
                                                      StringRef device) const {
  SmallVector<const Measurement *> found;
  for (const Measurement &result : results)
    if (result.key == key && result.device == device && result.queries &&
        !result.plans.empty())
      found.push_back(&result);
  llvm::sort(found, [](const Measurement *a, const Measurement *b) {
    return std::pair(*a->queries, rowsOf(*a)) <
           std::pair(*b->queries, rowsOf(*b));
  });
  return found;
}

bool Results::hasDevice(StringRef device) const {
  return llvm::any_of(results, [&](const Measurement &result) {
    return result.device == device;
  });
}

void Results::insert(Measurement result) {
  llvm::sort(result.plans, [](const MeasuredPlan &a, const MeasuredPlan &b) {
    return std::tie(a.seconds, a.plan) < std::tie(b.seconds, b.plan);
  });
  llvm::erase_if(results, [&](const Measurement &known) {
    return known.key == result.key && known.device == result.device &&
           known.queries == result.queries &&
           (!known.rows || known.rows == result.rows);
  });
  results.push_back(std::move(result));
}

//===----------------------------------------------------------------------===//
// The file that comes with the compiler
//===----------------------------------------------------------------------===//

/// The program or the library that this code is in, as it was loaded.
static std::string findThisFile() {
  static char here;
  Dl_info info;
  SmallString<128> path;
  // Of a program that was found on the PATH only the name is known.
  if (dladdr(&here, &info) && StringRef(info.dli_fname).contains('/') &&
      !llvm::sys::fs::real_path(info.dli_fname, path))
    return path.str().str();
  return llvm::sys::fs::getMainExecutable(nullptr, &here);
}

std::string plan::findShippedResults() {
  // bin/TOOL, lib/TRIPLE/libattn.so, and programs of tests in a build.
  constexpr int maxLevels = 4;
  std::string file = findThisFile();
  StringRef folder = llvm::sys::path::parent_path(file);
  for (int level = 0; level < maxLevels && !folder.empty(); ++level) {
    SmallString<128> path(folder);
    llvm::sys::path::append(path, "share", "attn", "plans.json");
    if (llvm::sys::fs::exists(path))
      return path.str().str();
    folder = llvm::sys::path::parent_path(folder);
  }
  return "";
}

bool plan::isMeasuredDevice(StringRef device) {
  std::string path = findShippedResults(), error;
  if (path.empty())
    return false;
  FailureOr<Results> results = Results::read(path, error);
  return failed(results) || results->hasDevice(device);
}
