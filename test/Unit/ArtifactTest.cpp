//===- ArtifactTest.cpp - the artifact file -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Support/Artifact.h"

#include "gtest/gtest.h"

#include <cinttypes>

using namespace attn;

static LaunchExpr dim(int64_t argument, int64_t dimension) {
  LaunchExpr expr;
  expr.kind = LaunchExpr::Kind::Dim;
  expr.argument = argument;
  expr.value = dimension;
  return expr;
}

static LaunchExpr constant(int64_t value) {
  LaunchExpr expr;
  expr.value = value;
  return expr;
}

static LaunchExpr binary(LaunchExpr::Kind kind, LaunchExpr lhs,
                         LaunchExpr rhs) {
  LaunchExpr expr;
  expr.kind = kind;
  expr.operands = {std::move(lhs), std::move(rhs)};
  return expr;
}

static Artifact sample() {
  Artifact artifact;
  artifact.name = "attention";
  artifact.target = "sm_80";
  artifact.compilerVersion = "attn 0.1.0";
  artifact.variants[0].plan =
      "#attn.plan<target = sm_80, block_q = 64, block_k = 64>";
  artifact.ptx = std::string(".version 7.0\n\0tail", 18);
  artifact.cubin = {0x7f, 'E', 'L', 'F', 0, 255, 10};
  ArgumentInfo q;
  q.name = "q \"quoted\" \xc3\xa9";
  q.roles = {ArgumentRole::Query, ArgumentRole::Key};
  q.element = ElementKind::BF16;
  q.shape = {-1, 8, -1, 64};
  q.alignment = 16;
  ArgumentInfo cap;
  cap.name = "cap";
  cap.roles = {ArgumentRole::Capture};
  cap.element = ElementKind::I32;
  cap.isTensor = false;
  ArgumentInfo o = q;
  o.name = "o";
  o.roles = {ArgumentRole::Output};
  o.isOutput = true;
  artifact.arguments = {q, cap, o};
  LaunchExpr scalar;
  scalar.kind = LaunchExpr::Kind::Scalar;
  scalar.argument = 1;
  KernelInfo &kernel = artifact.variants[0].kernels.emplace_back();
  kernel.entry = "attention_kernel";
  kernel.plan = artifact.variants[0].plan;
  kernel.results = {2};
  kernel.grid = {binary(LaunchExpr::Kind::CeilDiv, dim(0, 2), constant(64)),
                 dim(0, 1),
                 binary(LaunchExpr::Kind::Max, dim(0, 0), std::move(scalar))};
  artifact.checks = {{dim(0, 0), dim(2, 0), "batch of o and q differ"}};
  kernel.threads = 128;
  kernel.sharedBytes = 49152;
  kernel.registers = 255;
  return artifact;
}

// The bytes with a fresh checksum, so that what lies after it is read.
static std::string sealed(std::string body) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : body)
    hash = (hash ^ byte) * 0x100000001b3u;
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016" PRIx64, hash);
  return body + digits;
}

static std::string replaced(std::string text, const std::string &from,
                            const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

static std::string parseError(std::string_view bytes) {
  std::string error;
  EXPECT_FALSE(Artifact::parse(bytes, error).has_value());
  EXPECT_FALSE(error.empty());
  return error;
}

// The sample as a file whose manifest has `from` replaced by `to`.
static std::string parseErrorOfManifest(const std::string &from,
                                        const std::string &to) {
  Artifact artifact = sample();
  std::string json = replaced(artifact.manifest(), from, to);
  std::string body = "attn-artifact 7\n" + std::to_string(json.size()) + "\n" +
                     json + artifact.ptx;
  body.append(artifact.cubin.begin(), artifact.cubin.end());
  return parseError(sealed(body));
}

TEST(Artifact, KeepsTensorMaps) {
  Artifact artifact = sample();
  artifact.variants[0].kernels[0].tensorMaps = {{0, 128, 64, 128, 2},
                                                {2, 64, 32, 64}};
  std::string error;
  std::optional<Artifact> read = Artifact::parse(artifact.serialize(), error);
  ASSERT_TRUE(read.has_value()) << error;
  EXPECT_EQ(read->variants[0].kernels[0].tensorMaps,
            artifact.variants[0].kernels[0].tensorMaps);
  // A row of a workspace, which there is none of.
  int64_t count = artifact.arguments.size();
  artifact.variants[0].workspaces = {{ElementKind::F32, {LaunchExpr()}, false}};
  artifact.variants[0].kernels[0].tensorMaps = {{count, 1, 64, 0}};
  EXPECT_TRUE(Artifact::parse(artifact.serialize(), error).has_value())
      << error;
  // Two panels of rows whose length is known.
  artifact.variants[0].workspaces[0].sizes = {LaunchExpr(), LaunchExpr()};
  artifact.variants[0].workspaces[0].sizes[1].value = 64;
  artifact.variants[0].kernels[0].tensorMaps = {{count, 64, 32, 128, 2}};
  EXPECT_TRUE(Artifact::parse(artifact.serialize(), error).has_value())
      << error;
  artifact.variants[0].kernels[0].tensorMaps = {{count + 1, 1, 64, 0}};
  EXPECT_FALSE(Artifact::parse(artifact.serialize(), error).has_value());
  EXPECT_NE(error.find("and 1 workspaces"), std::string::npos) << error;
  artifact.variants[0].kernels[0].tensorMaps = {{1, 128, 64, 128}};
  EXPECT_FALSE(Artifact::parse(artifact.serialize(), error).has_value());
  EXPECT_EQ(error, "artifact manifest: tensor map of 'cap', which is no tensor "
                   "of rank 2 to 4 of f16, bf16 or f32");
  artifact.variants[0].kernels[0].tensorMaps = {{0, 512, 64, 128}};
  EXPECT_FALSE(Artifact::parse(artifact.serialize(), error).has_value());
}

TEST(Artifact, KeepsWorkspacesAndKernelsInOrder) {
  Artifact artifact = sample();
  KernelInfo first = artifact.variants[0].kernels[0];
  first.entry = "attention_prepare";
  LaunchExpr multiprocessors;
  multiprocessors.kind = LaunchExpr::Kind::Multiprocessors;
  first.grid[0] = binary(LaunchExpr::Kind::Min, dim(0, 2), multiprocessors);
  artifact.variants[0].kernels.insert(artifact.variants[0].kernels.begin(),
                                      first);
  artifact.variants[0].workspaces = {
      {ElementKind::I32, {dim(0, 0), constant(1), constant(2)}, false},
      {ElementKind::I8, {}, true, true}};
  std::string error;
  std::optional<Artifact> read = Artifact::parse(artifact.serialize(), error);
  ASSERT_TRUE(read.has_value()) << error;
  EXPECT_EQ(read->variants[0].kernels, artifact.variants[0].kernels);
  EXPECT_EQ(read->variants[0].kernels[0].entry, "attention_prepare");
  EXPECT_EQ(read->variants[0].workspaces, artifact.variants[0].workspaces);

  artifact.variants[0].workspaces[0].sizes[0] = dim(7, 0);
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact manifest: launch expression names argument 7 of 3");
}

TEST(Artifact, KeepsViews) {
  Artifact artifact = sample();
  artifact.arguments[0].view = {{{0, -1, 1}, {1, 8, 1}}, {}, {{3, 64, 1}}};
  std::string error;
  std::optional<Artifact> read = Artifact::parse(artifact.serialize(), error);
  // The launch rule is about what the kernel sees.
  EXPECT_EQ(error, "");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->arguments, artifact.arguments);
  EXPECT_EQ(read->arguments[0].rank(), 3);
  for (ViewPart part : {ViewPart{4, 1, 1}, ViewPart{0, -1, 1},
                        ViewPart{1, -2, 1}, ViewPart{1, 2, 0}}) {
    artifact.arguments[0].view[1] = {part};
    EXPECT_NE(
        parseError(artifact.serialize()).find("has a part that its shape"),
        std::string::npos);
  }
}

TEST(Artifact, KeepsRelayouts) {
  Artifact artifact = sample();
  artifact.relayouts = {{"copy16", 2, 256, 4096}, {"copy32", 4, 128, 1}};
  std::string error;
  std::optional<Artifact> read = Artifact::parse(artifact.serialize(), error);
  ASSERT_TRUE(read.has_value()) << error;
  EXPECT_EQ(read->relayouts, artifact.relayouts);
  artifact.relayouts[1].elements = 0;
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact manifest: relayout 'copy32' has elements 0, wanted 1 to "
            "2147483647");
  artifact.relayouts[1] = {"copy32", 3, 128, 1};
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact manifest: relayout 'copy32' has element_bytes 3, wanted "
            "1, 2, 4 or 8");
}

TEST(Artifact, RoundTrips) {
  Artifact artifact = sample();
  std::string error;
  std::optional<Artifact> read = Artifact::parse(artifact.serialize(), error);
  ASSERT_TRUE(read.has_value()) << error;
  EXPECT_EQ(read->name, artifact.name);
  EXPECT_EQ(read->target, artifact.target);
  EXPECT_EQ(read->compilerVersion, artifact.compilerVersion);
  EXPECT_EQ(read->variants[0].plan, artifact.variants[0].plan);
  EXPECT_EQ(read->ptx, artifact.ptx);
  EXPECT_EQ(read->cubin, artifact.cubin);
  EXPECT_EQ(read->arguments, artifact.arguments);
  EXPECT_EQ(read->variants[0].kernels, artifact.variants[0].kernels);
  EXPECT_EQ(read->checks, artifact.checks);
  EXPECT_EQ(read->variants[0].kernels[0].threads, 128);
  EXPECT_EQ(read->variants[0].kernels[0].sharedBytes, 49152);
  EXPECT_EQ(read->variants[0].kernels[0].registers, 255);
  EXPECT_EQ(read->variants[0].kernels[0].spillStoreBytes, -1);
  EXPECT_TRUE(*read == artifact);
}

TEST(Artifact, WhatHoldsNothingIsRefused) {
  EXPECT_EQ(parseError(Artifact().serialize()),
            "artifact manifest: 'name' is empty");
  Artifact artifact = sample();
  artifact.ptx.clear();
  artifact.cubin.clear();
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact holds no code: neither PTX nor a cubin");
  artifact = sample();
  artifact.variants[0].kernels.clear();
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact manifest: there is no kernel");
  artifact = sample();
  artifact.arguments.pop_back();
  artifact.checks.clear();
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact manifest: no argument is an output");
  artifact = sample();
  artifact.target.clear();
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact manifest: 'target' is empty");
}

// The checksum is right, the numbers are not.
TEST(Artifact, SenselessNumbersAreRefused) {
  auto kernelError = [](auto change) {
    Artifact artifact = sample();
    change(artifact.variants[0].kernels[0]);
    return parseError(artifact.serialize());
  };
  std::string prefix = "artifact manifest: kernel 'attention_kernel' has ";
  for (int64_t threads : {int64_t(-128), int64_t(0), int64_t(1025), INT64_MAX})
    EXPECT_EQ(kernelError([&](KernelInfo &k) { k.threads = threads; }),
              prefix + "threads " + std::to_string(threads) +
                  ", wanted 1 to 1024");
  for (int64_t bytes : {int64_t(-1), int64_t(1) << 40})
    EXPECT_EQ(kernelError([&](KernelInfo &k) { k.sharedBytes = bytes; }),
              prefix + "shared_bytes " + std::to_string(bytes) +
                  ", wanted 0 to 1048576");
  EXPECT_EQ(kernelError([&](KernelInfo &k) { k.registers = -2; }),
            prefix + "registers or spills -2, wanted -1 to 2147483647");
  EXPECT_EQ(kernelError([&](KernelInfo &k) { k.grid[1] = constant(0); }),
            prefix + "a grid of 0, wanted 1 to 2147483647");
  for (const char *entry : {"", "7up", "a b", "a;exit"})
    EXPECT_EQ(kernelError([&](KernelInfo &k) { k.entry = entry; }),
              "artifact manifest: kernel '" + std::string(entry) +
                  "' has no name that PTX knows");

  Artifact artifact = sample();
  artifact.variants[0].kernels.push_back(artifact.variants[0].kernels[0]);
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact manifest: kernel 'attention_kernel' is there twice");
  artifact = sample();
  artifact.variants[0].workspaces = {{ElementKind::I32, {constant(-1)}, false}};
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact manifest: a workspace has size -1, wanted 0 to "
            "281474976710656");
  artifact = sample();
  prefix = "artifact manifest: argument 'o' ";
  ArgumentInfo &o = artifact.arguments[2];
  o.name = "o";
  for (int64_t alignment : {-16, 3, 8192}) {
    o.alignment = alignment;
    EXPECT_EQ(parseError(artifact.serialize()),
              prefix + "has alignment " + std::to_string(alignment) +
                  ", wanted 0 or a power of two up to 4096");
  }
  o.alignment = 16;
  o.shape[3] = INT64_MAX;
  EXPECT_EQ(parseError(artifact.serialize()),
            prefix + "has size 9223372036854775807, wanted 0 to "
                     "281474976710656");
  o.shape.assign(17, 1);
  EXPECT_EQ(parseError(artifact.serialize()),
            prefix + "has more than 16 dimensions");
}

TEST(Artifact, ViewsCountEachElementOnce) {
  auto viewError = [](std::vector<ViewPart> parts) {
    Artifact artifact = sample(); // o: ?x8x?x64
    artifact.arguments[2].name = "o";
    artifact.arguments[2].view = {std::move(parts), {}, {}, {}};
    std::string error;
    (void)Artifact::parse(artifact.serialize(), error);
    return error;
  };
  auto fault = [](int dim) {
    return "artifact manifest: argument 'o' has a view that does not count "
           "each element of dimension " +
           std::to_string(dim) + " once";
  };
  std::vector<ViewPart> eight = {{1, 2, 4}, {1, 4, 1}}, all = {{3, 64, 1}};
  auto with = [&](std::vector<ViewPart> more) {
    for (const auto *parts : {&eight, &all})
      more.insert(more.end(), parts->begin(), parts->end());
    return more;
  };
  EXPECT_EQ(viewError(with({})), "");
  EXPECT_EQ(viewError(with({{0, -1, 6}, {0, 3, 2}, {0, 2, 1}, {2, 1, 77}})),
            "");
  EXPECT_EQ(viewError(with({{0, -1, 5}, {0, 3, 1}})), fault(0)); // a gap
  EXPECT_EQ(viewError(with({{0, 3, 1}, {0, 3, 1}})), fault(0));  // twice
  EXPECT_EQ(viewError(with({{0, -1, 1}, {0, 3, 1}})), fault(0));
  EXPECT_EQ(viewError(with({{0, int64_t(1) << 31, 1},
                            {0, int64_t(1) << 31, int64_t(1) << 31}})),
            fault(0)); // overflows
  eight = {{1, 4, 1}};
  EXPECT_EQ(viewError(with({})), fault(1)); // not all
}

TEST(Artifact, EveryTruncationIsRefused) {
  std::string bytes = sample().serialize();
  for (size_t size = 0; size < bytes.size(); ++size)
    parseError(std::string_view(bytes).substr(0, size));
}

TEST(Artifact, EveryChangedByteIsRefused) {
  std::string bytes = sample().serialize();
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x20);
    parseError(changed);
  }
}

TEST(Artifact, SaysWhatIsWrong) {
  EXPECT_EQ(parseError("ELF"), "not an attn artifact (wanted a file that "
                               "starts with 'attn-artifact 7')");
  EXPECT_EQ(parseError("attn-artifact 7\n"), "artifact is truncated");
  EXPECT_EQ(parseError("attn-artifact 7\n0123456789abcdef"),
            "artifact is truncated or corrupted (checksum differs)");
  EXPECT_EQ(parseError(sealed("attn-artifact 7\n12x\n")),
            "artifact has no valid manifest size");
  EXPECT_EQ(parseError(sealed("attn-artifact 7\n99\n{}")),
            "artifact has no valid manifest size");
  EXPECT_EQ(parseError(sealed("attn-artifact 7\n2\n[]")),
            "artifact manifest: not a JSON object");
  EXPECT_EQ(parseError(sealed("attn-artifact 7\n2\n{}")),
            "artifact manifest: no 'name'");
}

TEST(Artifact, OtherFormsAreRefused) {
  std::string bytes =
      replaced(sample().serialize(), "attn-artifact 7", "attn-artifact 5");
  EXPECT_EQ(parseError(bytes), "artifact of another form (got 'attn-artifact "
                               "5', wanted 'attn-artifact 7'): compile it "
                               "again");
}

// A function, and another one with images of its own.
static Artifact twoFunctions() {
  Artifact artifact = sample();
  Artifact other = sample();
  other.name = "other";
  other.ptx = "// other PTX";
  other.cubin = {7, 8, 9};
  artifact.companions = {other};
  return artifact;
}

TEST(Artifact, KeepsCompanionsAndTheirImages) {
  Artifact artifact = twoFunctions();
  std::string error;
  std::optional<Artifact> read = Artifact::parse(artifact.serialize(), error);
  ASSERT_TRUE(read.has_value()) << error;
  EXPECT_TRUE(*read == artifact);
  std::vector<const Artifact *> functions = read->functions();
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[0]->name, artifact.name);
  EXPECT_EQ(functions[0]->ptx, artifact.ptx);
  EXPECT_EQ(functions[0]->cubin, artifact.cubin);
  EXPECT_EQ(functions[1]->name, "other");
  EXPECT_EQ(functions[1]->ptx, "// other PTX");
  EXPECT_EQ(functions[1]->cubin, artifact.companions[0].cubin);
  // Alone it is an artifact like another.
  EXPECT_TRUE(Artifact::parse(functions[1]->serialize(), error).has_value())
      << error;
}

TEST(Artifact, SenselessCompanionsAreRefused) {
  std::string prefix = "artifact manifest: ";
  Artifact artifact = twoFunctions();
  artifact.companions[0].name = artifact.name;
  EXPECT_EQ(parseError(artifact.serialize()),
            prefix + "companion '" + artifact.name +
                "' has the name of another function");
  artifact = twoFunctions();
  artifact.companions[0].target = "sm_90a";
  EXPECT_EQ(parseError(artifact.serialize()),
            prefix + "companion 'other' is for sm_90a, '" + artifact.name +
                "' for " + artifact.target);
  artifact = twoFunctions();
  artifact.companions[0].companions = {sample()};
  EXPECT_EQ(parseError(artifact.serialize()),
            prefix + "companion 'other' has companions of its own");
  artifact = twoFunctions();
  artifact.companions[0].variants[0].kernels.clear();
  EXPECT_EQ(parseError(artifact.serialize()), prefix + "there is no kernel");
  artifact = twoFunctions();
  artifact.companions[0].ptx = "";
  artifact.companions[0].cubin.clear();
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact holds no code: neither PTX nor a cubin");
  EXPECT_EQ(parseErrorOfManifest("\"companions\": []", "\"companions\": 1"),
            prefix + "'companions' is not an array");
  // More images than there are.
  artifact = twoFunctions();
  std::string json = replaced(artifact.manifest(), "\"cubin_bytes\": 3",
                              "\"cubin_bytes\": 9223372036854775807");
  std::string images = artifact.ptx;
  images.append(artifact.cubin.begin(), artifact.cubin.end());
  images += "// other PTX\a\b\t";
  EXPECT_EQ(
      parseError(sealed("attn-artifact 7\n" + std::to_string(json.size()) +
                        "\n" + json + images)),
      "artifact holds " + std::to_string(images.size()) +
          " bytes of images, its manifest says " +
          std::to_string(artifact.ptx.size()) + " + " +
          std::to_string(artifact.cubin.size()) +
          " + 12 + 9223372036854775807");
}

// Two variants, the second one for long queries.
static Artifact twoVariants() {
  Artifact artifact = sample();
  artifact.arguments[2].name = "o";
  VariantInfo other = artifact.variants[0];
  other.plan = "#attn.plan<target = sm_80, block_q = 128, block_k = 64>";
  other.kernels[0].entry = "attention_variant1";
  other.kernels[0].registers = 40;
  other.workspaces = {{ElementKind::I32, {dim(0, 2)}, true, true}};
  artifact.variants.push_back(other);
  std::string error;
  artifact.rule = *VariantRule::parse("query_length <= 1024 -> 0; 1", error);
  return artifact;
}

TEST(Artifact, KeepsVariantsAndTheirRule) {
  Artifact artifact = twoVariants();
  std::string error;
  std::optional<Artifact> read = Artifact::parse(artifact.serialize(), error);
  ASSERT_TRUE(read.has_value()) << error;
  EXPECT_EQ(read->variants, artifact.variants);
  EXPECT_EQ(read->rule, artifact.rule);
  EXPECT_TRUE(*read == artifact);
  EXPECT_NE(
      artifact.manifest().find("\"rule\": \"query_length <= 1024 -> 0; 1\""),
      std::string::npos);
  EXPECT_EQ(artifact.variants[0].figures().registers, 255);
  EXPECT_EQ(artifact.variants[1].figures().registers, 40);
}

TEST(Artifact, SenselessRulesAreRefused) {
  auto ruleError = [](const char *text) {
    Artifact artifact = twoVariants();
    std::string json =
        replaced(artifact.manifest(), "query_length <= 1024 -> 0; 1", text);
    std::string body = "attn-artifact 7\n" + std::to_string(json.size()) +
                       "\n" + json + artifact.ptx;
    body.append(artifact.cubin.begin(), artifact.cubin.end());
    return parseError(sealed(body));
  };
  std::string prefix = "artifact manifest: ";
  EXPECT_EQ(ruleError("query_length <= 1024 -> 0; 2"),
            prefix + "the rule names variant 2 of 2");
  EXPECT_EQ(ruleError("query_length <= 1024 -> 1; 1"),
            prefix + "the rule never takes variant 0 of 2");
  EXPECT_EQ(ruleError("query_length <= 1024 -> 0"),
            prefix + "'rule': case 0 is the last one and has a condition, "
                     "wanted a variant for all other sizes");
  EXPECT_EQ(ruleError(""),
            prefix + "'rule': case 0 is '', wanted a condition, -> and a "
                     "variant");
  // The sample's query is of rank 4, and the key's, too.
  EXPECT_EQ(parseErrorOfManifest("\"0\"", "1"),
            prefix + "'rule' is not a string");
  Artifact artifact = twoVariants();
  artifact.arguments[0].roles = {ArgumentRole::Key};
  EXPECT_EQ(parseError(artifact.serialize()),
            prefix + "the rule names query_length, but no argument of rank 4 "
                     "has role 'query'");
  artifact = twoVariants();
  artifact.variants[1].kernels[0].entry = "attention_kernel";
  EXPECT_EQ(parseError(artifact.serialize()),
            prefix + "kernel 'attention_kernel' is there twice");
  artifact = twoVariants();
  artifact.variants[1].kernels[0].results = {};
  EXPECT_EQ(parseError(artifact.serialize()),
            prefix + "no kernel writes the output 'o'");
  artifact.variants.clear();
  EXPECT_EQ(parseError(artifact.serialize()),
            prefix + "the rule names variant 0 of 0");
}

TEST(Artifact, MayBeAPartOfARule) {
  Artifact artifact = sample();
  artifact.arguments[2].name = "o";
  std::string error;
  VariantRule rule = *VariantRule::parse("query_length <= 1024 -> 0; 1", error);
  artifact.partOf = RulePart{rule, 1};
  std::optional<Artifact> read = Artifact::parse(artifact.serialize(), error);
  ASSERT_TRUE(read.has_value()) << error;
  EXPECT_EQ(read->partOf, artifact.partOf);
  EXPECT_NE(artifact.manifest().find("\"variant_of_rule\": 1"),
            std::string::npos);
  std::string prefix = "artifact manifest: ";
  artifact.partOf->variant = 2;
  EXPECT_EQ(parseError(artifact.serialize()),
            prefix + "'variant_of_rule' is 2, wanted 0 to 1");
  artifact.partOf = RulePart();
  EXPECT_EQ(parseError(artifact.serialize()),
            prefix + "the rule in 'of_rule' has one variant");
  rule = *VariantRule::parse("query_length <= 1024 -> 0; 2", error);
  artifact.partOf = RulePart{rule, 0};
  EXPECT_EQ(parseError(artifact.serialize()),
            prefix + "the rule in 'of_rule' never takes variant 1 of 3");
}

TEST(Artifact, AVariantMayBeFixed) {
  Artifact artifact = twoVariants();
  EXPECT_EQ(artifact.fixVariant(2),
            "artifact 'attention' has no variant 2, its variants are 0 to 1");
  EXPECT_EQ(artifact.fixVariant(-1),
            "artifact 'attention' has no variant -1, its variants are 0 to 1");
  EXPECT_EQ(artifact.rule.print(), "query_length <= 1024 -> 0; 1");
  EXPECT_EQ(artifact.fixVariant(1), "");
  EXPECT_EQ(artifact.rule.print(), "1");
}

TEST(Artifact, RolesAreThoseOfAnAttention) {
  EXPECT_EQ(parseErrorOfManifest("\"capture\"", "\"bias\""),
            "artifact manifest: argument 'cap' has unknown role 'bias'");
  EXPECT_EQ(parseErrorOfManifest("\"capture\"", "7"),
            "artifact manifest: argument 'cap' has unknown role (no string)");
  EXPECT_EQ(parseErrorOfManifest("\"capture\"", "\"value\""),
            "artifact manifest: argument 'cap' has role 'value', but is a "
            "scalar");
  EXPECT_EQ(parseErrorOfManifest("\"capture\"", "\"lse\""),
            "artifact manifest: argument 'cap' has role 'lse', but is no "
            "output");
  EXPECT_EQ(parseErrorOfManifest("\"output\"\n", "\"key\"\n"),
            "artifact manifest: argument 'o' has role 'key', but is an "
            "output");
  EXPECT_EQ(parseErrorOfManifest("\"key\"", "\"query\""),
            "artifact manifest: role 'query' is there twice");
}

TEST(Artifact, GradientsReadWhatTheForwardGives) {
  Artifact artifact = sample();
  ArgumentInfo gradient = artifact.arguments.back();
  gradient.name = "d_q";
  gradient.roles = {ArgumentRole::QueryGradient};
  artifact.arguments.back().isOutput = false;
  artifact.arguments.push_back(artifact.arguments.back());
  artifact.arguments.back().name = "d_o";
  artifact.arguments.back().roles = {ArgumentRole::OutputGradient};
  artifact.arguments.push_back(gradient);
  artifact.variants[0].kernels[0].results = {4};
  std::string error;
  EXPECT_EQ(Artifact::parse(artifact.serialize(), error), artifact) << error;
  artifact.arguments[3].roles.clear();
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact manifest: argument 'o' has role 'output', but is no "
            "output");
  artifact.arguments[2].roles = {ArgumentRole::QueryGradient};
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact manifest: argument 'o' has role 'd_query', but is no "
            "output");
}

TEST(Artifact, EveryResultIsWritten) {
  Artifact artifact = sample();
  artifact.arguments[2].name = "o";
  artifact.variants[0].kernels[0].results = {};
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact manifest: no kernel writes the output 'o'");
  for (int64_t number : {-1, 0, 3}) {
    artifact.variants[0].kernels[0].results = {number, 2};
    EXPECT_EQ(parseError(artifact.serialize()),
              "artifact manifest: kernel 'attention_kernel' writes argument " +
                  std::to_string(number) + ", which is no output");
  }
}

TEST(Artifact, FiguresAreThoseOfAllKernels) {
  Artifact artifact = sample();
  artifact.variants[0].kernels.push_back(artifact.variants[0].kernels[0]);
  artifact.variants[0].kernels[0].registers = -1;
  artifact.variants[0].kernels[1].registers = -1;
  EXPECT_EQ(artifact.variants[0].figures().registers, -1);
  EXPECT_EQ(artifact.variants[0].figures().spillStoreBytes, -1);
  artifact.variants[0].kernels[0].registers = 255;
  artifact.variants[0].kernels[0].spillStoreBytes = 8;
  artifact.variants[0].kernels[1].registers = 40;
  artifact.variants[0].kernels[1].spillStoreBytes = 4;
  EXPECT_EQ(artifact.variants[0].figures().registers, 255);
  EXPECT_EQ(artifact.variants[0].figures().spillStoreBytes, 12);
}

TEST(Artifact, ManifestIsStrict) {
  EXPECT_EQ(parseErrorOfManifest("\"threads\": 128", "\"threads\": 1.5"),
            "artifact manifest: 'threads' is not an integer");
  EXPECT_EQ(parseErrorOfManifest("\"threads\": 128",
                                 "\"threads\": 9223372036854775808"),
            "artifact manifest: 'threads' does not fit 64 bits");
  EXPECT_EQ(parseErrorOfManifest("\"sm_80\"", "80"),
            "artifact manifest: 'target' is not a string");
  EXPECT_EQ(parseErrorOfManifest("\"bf16\"", "\"f8\""),
            "artifact manifest: argument 'q \"quoted\" \xc3\xa9' has unknown "
            "element type 'f8'");
  EXPECT_EQ(parseErrorOfManifest("\"ceildiv\"", "\"ceil\""),
            "artifact manifest: unknown launch expression 'ceil'");
  EXPECT_EQ(parseErrorOfManifest("\"ptx_bytes\": 18", "\"ptx_bytes\": 19"),
            "artifact holds 25 bytes of images, its manifest says 19 + 7");
  EXPECT_EQ(parseErrorOfManifest("\"ptx_bytes\": 18", "\"ptx_bytes\": -1"),
            "artifact manifest: 'ptx_bytes' is negative");
}

TEST(Artifact, LaunchExpressionsNameWhatExists) {
  Artifact artifact = sample();
  artifact.variants[0].kernels[0].grid[1] = dim(3, 0);
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact manifest: launch expression names argument 3 of 3");
  artifact.variants[0].kernels[0].grid[1] = dim(0, 4);
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact manifest: launch expression names dimension 4 of "
            "'q \"quoted\" \xc3\xa9'");
  artifact.variants[0].kernels[0].grid[1] = dim(1, 0);
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact manifest: launch expression takes argument 'cap' for a "
            "tensor");
  artifact.variants[0].kernels[0].grid[1] = constant(1);
  artifact.arguments[1].element = ElementKind::F32;
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact manifest: launch expression uses 'cap', which is not an "
            "integer");
  artifact.arguments[1].element = ElementKind::I32;
  for (int i = 0; i < 100; ++i)
    artifact.variants[0].kernels[0].grid[1] =
        binary(LaunchExpr::Kind::Add,
               std::move(artifact.variants[0].kernels[0].grid[1]), constant(1));
  EXPECT_EQ(parseError(artifact.serialize()),
            "artifact manifest: launch expression is nested too deeply");
}

TEST(Artifact, ElementNamesAndSizes) {
  EXPECT_EQ(elementName(ElementKind::BF16), "bf16");
  EXPECT_EQ(elementBytes(ElementKind::BF16), 2);
  EXPECT_EQ(elementName(ElementKind::I64), "i64");
  EXPECT_EQ(elementBytes(ElementKind::F64), 8);
  EXPECT_EQ(elementBytes(ElementKind::I1), 1);
}
