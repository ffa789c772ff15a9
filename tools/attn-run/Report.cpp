//===- Report.cpp - what a trial gave, as text or JSON -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace attn;

static double teraflops(const TrialReport &report) {
  return report.work.flops / report.timing->median * 1e-12;
}

static double terabytes(const TrialReport &report) {
  return report.work.bytes / report.timing->median * 1e-12;
}

static std::string number(double value, const char *format = "%.3g") {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(format, value);
  return text;
}

static std::string duration(double seconds) {
  return seconds < 1e-3 ? number(seconds * 1e6, "%.4g") + " us"
         : seconds < 1  ? number(seconds * 1e3, "%.4g") + " ms"
                        : number(seconds, "%.4g") + " s";
}

static const VariantInfo &variantOf(const TrialReport &report) {
  return report.manifest.variants[report.variant.variant];
}

/// Why that variant ran.
static std::string reasonOf(const TrialReport &report) {
  const std::string &reason = report.variant.reason;
  return reason.empty() ? "as asked for" : reason;
}

static void printWhole(const TrialReport &report, llvm::raw_ostream &os) {
  auto line = [&](const char *key) -> llvm::raw_ostream & {
    return os << llvm::left_justify(key, 10);
  };
  const Artifact &manifest = report.manifest;
  line("function") << manifest.name << "\n";
  line("target") << manifest.target;
  if (!report.device.empty())
    os << " (" << report.device << ")";
  os << "\n";
  if (manifest.variants.size() > 1)
    line("variant") << report.variant.variant << " of "
                    << manifest.variants.size() << ": " << reasonOf(report)
                    << "\n";
  line("plan") << variantOf(report).plan << "\n";
  line("shapes") << llvm::join(report.shapes, ", ") << "\n";
  StringRef relayouts = report.relayouts;
  while (!relayouts.empty()) {
    auto [first, rest] = relayouts.split('\n');
    line("relayout") << first << "\n";
    relayouts = rest;
  }
  line("compiled") << "in " << duration(report.compileSeconds);
  VariantInfo::CodeFigures figures = variantOf(report).figures();
  if (figures.registers >= 0)
    os << ", " << figures.registers << " registers, " << figures.spillStoreBytes
       << " bytes of spills";
  os << "\n";
  if (const auto &timing = report.timing) {
    line("time") << duration(timing->median) << " (median of "
                 << timing->samples << ", best " << duration(timing->best)
                 << ")\n";
    line("speed") << number(teraflops(report)) << " TFLOP/s, "
                  << number(terabytes(report)) << " TB/s ("
                  << report.work.countedPairs << " of " << report.work.pairs
                  << " pairs per head counted)\n";
  }
  if (report.launches > 1)
    line("launches") << report.launches << ": "
                     << (report.difference.empty() ? "all bits the same"
                                                   : report.difference)
                     << "\n";
  if (const auto &check = report.check) {
    for (const GradientReport &gradient : check->gradients)
      line("error") << gradient.name << " " << number(gradient.error)
                    << ", bound " << number(gradient.bound)
                    << " (unfused in the input type: "
                    << number(gradient.referenceError)
                    << (gradient.isFromSaved ? "; from the output as saved"
                                             : "")
                    << ")\n";
    if (check->hasOutput)
      line("error") << "o " << number(check->error) << ", bound "
                    << number(check->bound) << " (unfused in the input type: "
                    << number(check->referenceError) << "); rmse "
                    << number(check->rmse) << ", bound "
                    << number(check->rmseBound) << "; lse "
                    << number(check->lseError) << ", bound "
                    << number(check->lseBound) << "\n";
    line("check") << (check->passes() ? "PASS" : "FAIL: " + check->failure)
                  << "\n";
  }
}

/// What matters of one function among others.
static void printLine(const TrialReport &report, llvm::raw_ostream &os) {
  os << report.manifest.name << ": " << llvm::join(report.shapes, ", ");
  if (const auto &check = report.check) {
    os << ": " << (check->passes() ? "PASS" : "FAIL: " + check->failure);
    for (const GradientReport &gradient : check->gradients)
      os << ", " << gradient.name << " " << number(gradient.error) << " of "
         << number(gradient.bound);
    if (check->hasOutput)
      os << ", o " << number(check->error) << " of " << number(check->bound)
         << ", lse " << number(check->lseError) << " of "
         << number(check->lseBound);
  }
  if (!report.difference.empty())
    os << ": " << report.difference;
  if (const auto &timing = report.timing)
    os << ": " << duration(timing->median) << ", " << number(teraflops(report))
       << " TFLOP/s";
  os << "\n";
}

void attn::printText(ArrayRef<TrialReport> reports, llvm::raw_ostream &os) {
  for (const TrialReport &report : reports)
    reports.size() == 1 ? printWhole(report, os) : printLine(report, os);
}

/// JSON has no infinity.
static llvm::json::Value finiteOrNull(double value) {
  if (std::isfinite(value))
    return value;
  return nullptr;
}

static llvm::json::Object describeCheck(const ErrorReport &check) {
  llvm::json::Object object{
      {"passes", check.passes()},
      {"failure", check.failure},
      {"empty_rows", static_cast<int64_t>(check.emptyRows)}};
  if (check.hasOutput) {
    object["error"] = finiteOrNull(check.error);
    object["bound"] = finiteOrNull(check.bound);
    object["unfused_error"] = finiteOrNull(check.referenceError);
    object["rmse"] = finiteOrNull(check.rmse);
    object["rmse_bound"] = finiteOrNull(check.rmseBound);
    object["unfused_rmse"] = finiteOrNull(check.referenceRmse);
    object["lse_error"] = finiteOrNull(check.lseError);
    object["lse_bound"] = finiteOrNull(check.lseBound);
  }
  if (check.gradients.empty())
    return object;
  llvm::json::Object gradients;
  for (const GradientReport &gradient : check.gradients)
    gradients[gradient.name] = llvm::json::Object{
        {"error", finiteOrNull(gradient.error)},
        {"bound", finiteOrNull(gradient.bound)},
        {"unfused_error", finiteOrNull(gradient.referenceError)}};
  object["gradients"] = std::move(gradients);
  return object;
}

static llvm::json::Object describeReport(const TrialReport &report) {
  const Artifact &manifest = report.manifest;
  llvm::json::Object object{
      {"function", manifest.name},
      {"target", manifest.target},
      {"plan", variantOf(report).plan},
      {"compiler", manifest.compilerVersion},
      {"shapes", llvm::json::Array(report.shapes)},
      {"compile_s", report.compileSeconds},
  };
  if (manifest.variants.size() > 1) {
    object["variant"] = static_cast<int64_t>(report.variant.variant);
    object["variant_reason"] = reasonOf(report);
    object["variants"] = static_cast<int64_t>(manifest.variants.size());
    object["rule"] = manifest.rule.print();
  }
  if (!report.relayouts.empty())
    object["relayouts"] = report.relayouts;
  if (!report.device.empty())
    object["device"] = report.device;
  if (VariantInfo::CodeFigures figures = variantOf(report).figures();
      figures.registers >= 0) {
    object["registers"] = figures.registers;
    object["spill_store_bytes"] = figures.spillStoreBytes;
    object["spill_load_bytes"] = figures.spillLoadBytes;
  }
  if (const auto &timing = report.timing) {
    object["median_s"] = timing->median;
    object["best_s"] = timing->best;
    object["samples"] = timing->samples;
    object["calls_per_sample"] = timing->callsPerSample;
    object["flops"] = report.work.flops;
    object["bytes"] = report.work.bytes;
    object["pairs"] = report.work.pairs;
    object["counted_pairs"] = report.work.countedPairs;
    object["tflops"] = teraflops(report);
    object["tbps"] = terabytes(report);
  }
  if (report.launches > 1) {
    object["launches"] = report.launches;
    object["difference"] = report.difference;
  }
  if (const auto &check = report.check)
    object["check"] = describeCheck(*check);
  return object;
}

void attn::printJSON(ArrayRef<TrialReport> reports, llvm::raw_ostream &os) {
  llvm::json::Array list;
  for (const TrialReport &report : reports)
    list.push_back(describeReport(report));
  llvm::json::Value value = reports.size() == 1
                                ? std::move(list.front())
                                : llvm::json::Value(std::move(list));
  os << llvm::formatv("{0:2}\n", value);
}
