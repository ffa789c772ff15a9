//===- InputTextTest.cpp - texts that a parser would not survive ---------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/InputText.h"
#include "attn/Execute/Session.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace attn;

static std::string repeat(StringRef text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i)
    result += text;
  return result;
}

/// What is said of a text; empty: nothing.
static std::string faultOf(StringRef text) {
  std::optional<TextFault> fault = findTextFault(text);
  if (fault)
    EXPECT_LE(fault->offset, text.size());
  return fault ? fault->message : "";
}

TEST(InputText, Nesting) {
  for (const char *pair : {"[]", "{}", "()", "<>"}) {
    std::string open(1, pair[0]), close(1, pair[1]);
    EXPECT_EQ(faultOf(repeat(open, 256) + repeat(close, 256)), "");
    EXPECT_EQ(faultOf(repeat(open, 257) + repeat(close, 257)),
              "brackets nest deeper than 256");
    EXPECT_EQ(faultOf(repeat(open + close, 1000)), "");
  }
  // An arrow and a comparison close nothing.
  EXPECT_EQ(faultOf(repeat("(i32) -> (i32)\n", 1000)), "");
  EXPECT_EQ(faultOf(repeat("<", 250) + repeat("->>=", 100) + repeat("<", 10)),
            "brackets nest deeper than 256");
  EXPECT_EQ(faultOf("\"" + repeat("[", 1000) + "\""), "");
  EXPECT_EQ(faultOf("// " + repeat("[", 1000) + "\n"), "");
  EXPECT_EQ(faultOf("\"\\\"" + repeat("[", 1000) + "\""), "");
}

TEST(InputText, Terms) {
  EXPECT_EQ(faultOf("(d0) -> (d0" + repeat(" + d0", 1000) + ")"), "");
  for (const char *term : {" + d0", " - d0", " * 2"})
    EXPECT_EQ(faultOf("(d0) -> (d0" + repeat(term, 1100) + ")"),
              "a sum or product has more than 1024 terms");
  EXPECT_EQ(faultOf(repeat("%c = arith.constant -1 : i32\n", 2000)), "");
  EXPECT_EQ(faultOf("dense<[" + repeat("-1.0e+2, ", 2000) + "0.0]>"), "");
}

TEST(InputText, ResultNumbers) {
  EXPECT_EQ(faultOf("return %a#65535 : i32"), "");
  EXPECT_EQ(faultOf("return %a#65536 : i32"),
            "result number 65536 is larger than 65535");
  EXPECT_EQ(faultOf("return %a#99999999999999999999999 : i32"),
            "result number 99999999999999999999999 is larger than 65535");
  EXPECT_EQ(faultOf("%a#"), "");
  EXPECT_EQ(faultOf("%"), "");
}

TEST(InputText, IteratorTypes) {
  const char *wanted = "iterator types are expected to be strings";
  std::string pretty = "%s = vector.contract {iterator_types = ";
  EXPECT_EQ(faultOf(pretty + "[\"parallel\", \"reduction\"]}"), "");
  EXPECT_EQ(faultOf(pretty + "[]}"), "");
  EXPECT_EQ(faultOf(pretty + "3}"), ""); // the parser says what is wrong
  EXPECT_EQ(faultOf(pretty + "[1]}"), wanted);
  EXPECT_EQ(faultOf(pretty + "[\"parallel\", 1]}"), wanted);
  EXPECT_EQ(faultOf(pretty + "[#vector.kind<add>]}"), wanted);
  EXPECT_EQ(faultOf(pretty + "[\"parallel"), "");
  EXPECT_EQ(faultOf("\"vector.contract\"(%a) <{iterator_types = "
                    "[#vector.iterator_type<parallel>]}>"),
            "");
}

TEST(InputText, Permutations) {
  const char *wanted =
      "permutations and dimensions are expected to be lists of "
      "numbers, as in [1, 0]";
  std::string pretty = "%t = linalg.transpose ins(%a : f32) permutation";
  EXPECT_EQ(faultOf(pretty + " = [1, 0]"), "");
  EXPECT_EQ(faultOf(pretty + " = array<i64: 1, 0>"), "");
  EXPECT_EQ(faultOf(pretty), "");
  EXPECT_EQ(faultOf(pretty + " ="), wanted);
  EXPECT_EQ(faultOf(pretty + " = %a"), wanted);
  EXPECT_EQ(faultOf(pretty + " = []"), "");
  for (const char *list :
       {"[", "[1, ", "[1,]", "[1, , 0]", "[1, a]", "[a]", "[1 0]", "[i64: 1]"})
    EXPECT_EQ(faultOf(pretty + " = " + list), wanted);
  EXPECT_EQ(faultOf("%b = linalg.broadcast ins(%a : f32) dimensions ="),
            wanted);
  EXPECT_EQ(faultOf("%b = linalg.broadcast ins(%a : f32) dimensions = [0]"),
            "");
  EXPECT_EQ(faultOf("\"linalg.transpose\"(%a) <{permutation = 3}>"), "");
}

TEST(InputText, IndexingMaps) {
  std::string aliases = "#map = affine_map<(m) -> (m)>\n"
                        "#plan = #attn.plan<target = sm_80>\n";
  std::string pretty = aliases + "vector.contract {indexing_maps = ";
  EXPECT_EQ(faultOf(pretty + "[#map, affine_map<(m) -> (m)>]}"), "");
  EXPECT_EQ(faultOf(pretty + "[#later, #map]}"), "");
  EXPECT_EQ(faultOf(pretty + "[#map, #plan]}"),
            "indexing maps are expected to be affine maps, #plan is none");
  EXPECT_EQ(faultOf(pretty + "[#map, affine_map<(m, n) -> (m)>, #plan]}"),
            "indexing maps are expected to be affine maps, #plan is none");
  EXPECT_EQ(faultOf(pretty + "[#map, #attn.causal<top_left>]}"),
            "indexing maps are expected to be affine maps, #attn.causal is "
            "none");
  EXPECT_EQ(faultOf(pretty + "[1 : i64]}"),
            "indexing maps are expected to be affine maps, 1 is none");
  EXPECT_EQ(faultOf(pretty + "[affine_map<(m"), "");
  EXPECT_EQ(faultOf("#map=affine_map<()->()>#plan=#attn.plan<target=cpu>\n"
                    "indexing_maps=[#plan, #map]"),
            "indexing maps are expected to be affine maps, #plan is none");
}

TEST(InputText, Reassociations) {
  std::string of = "%t = tensor.collapse_shape %a ";
  EXPECT_EQ(faultOf(of + "[[0, 1], [2]] : tensor<2x3x4xf32>"), "");
  EXPECT_EQ(faultOf(of + "[] : tensor<1xf32>"), "");
  EXPECT_EQ(faultOf(of + "[[0, 1], [9223372036854775808]] : tensor<2xf32>"),
            "9223372036854775808 is not the number of a dimension");
  EXPECT_EQ(faultOf("%t = memref.expand_shape %a [[-1], [1]] : f32"),
            "-1 is not the number of a dimension");
  EXPECT_EQ(faultOf(of + "[[0, 1"), "");
}

TEST(InputText, Elements) {
  std::string of = "%t = tensor.from_elements %a, %b : ";
  EXPECT_EQ(faultOf(of + "tensor<2xf32>"), "");
  EXPECT_EQ(faultOf(of + "tensor<1024x1024xf32>"), "");
  EXPECT_EQ(faultOf("%t = tensor.empty() : tensor<4294967296xf32>"), "");
  const char *wanted = "a tensor is made of 4294967296 operands, expected at "
                       "most 1048576";
  EXPECT_EQ(faultOf(of + "tensor<4294967296x1xf32>"), wanted);
  EXPECT_EQ(faultOf(of + "tensor<65536x?x65536xf32>"), wanted);
  EXPECT_EQ(
      faultOf("vector.from_elements {a = 1 : i32} : vector<4294967296xf32>"),
      wanted);
  EXPECT_EQ(faultOf("!t = tensor<4294967296xf32>\n" + of + "!t"), wanted);
}

TEST(InputText, Arrays) {
  const char *wanted = "an array is expected to be of integers or floats, as "
                       "in array<i64: 0>";
  for (const char *type : {"i1", "i64", "si8", "ui32", "f32", "f8E5M2", "bf16"})
    EXPECT_EQ(faultOf(std::string("{a = array<") + type + ": 0>}"), "");
  for (const char *type : {"index", "!t", "vector<4xi32>", "i", "none", ""})
    EXPECT_EQ(faultOf(std::string("{a = array<") + type + ": 0>}"), wanted);
  EXPECT_EQ(faultOf("array : index"), "");
}

TEST(InputText, Numbers) {
  const char *wanted = "a number has more than 1024 digits";
  EXPECT_EQ(faultOf("{a = " + repeat("9", 1024) + " : i32}"), "");
  EXPECT_EQ(faultOf("{a = " + repeat("9", 1025) + " : i32}"), wanted);
  EXPECT_EQ(faultOf("{a = 0." + repeat("1", 1025) + "}"), wanted);
  EXPECT_EQ(faultOf("{a = 0x" + repeat("f", 1025) + " : i32}"), wanted);
  EXPECT_EQ(faultOf("tensor<" + repeat("1x", 2000) + "f32>"), "");
  EXPECT_EQ(faultOf("dense<\"0x" + repeat("f", 4096) + "\">"), "");
}

TEST(InputText, Resources) {
  auto resource = [](StringRef bytes) {
    return faultOf(
        ("{-# dialect_resources: {builtin: {r: \"" + bytes + "\"}} #-}").str());
  };
  EXPECT_EQ(resource("0x0800000001020304"), "");
  EXPECT_EQ(resource("0x0100000001020304"), "");
  EXPECT_EQ(resource("0x01"), ""); // the parser says what is wrong
  const char *rest = ", expected a power of two up to 4096";
  auto wrong = [&](StringRef number) {
    return ("the alignment of a resource is " + number + rest).str();
  };
  EXPECT_EQ(resource("0x0000000001020304"), wrong("0"));
  EXPECT_EQ(resource("0x0300000001020304"), wrong("3"));
  EXPECT_EQ(resource("0x0000008001020304"), wrong("2147483648"));
  // Elsewhere it is a string.
  EXPECT_EQ(faultOf("dense<\"0x00000000\"> : tensor<1xi32>"), "");
  EXPECT_EQ(faultOf("{-# #-} \"0x00000000\""), "");
}

TEST(InputText, Aliases) {
  auto chain = [](int length, StringRef next) {
    std::string text = "#a0 = [1]\n";
    for (int i = 1; i < length; ++i) {
      std::string number = std::to_string(i - 1);
      text += "#a" + std::to_string(i) + " = [\n#a" + number +
              (next.empty() ? std::string() : ", #a" + number) + "]\n";
    }
    return faultOf(text);
  };
  EXPECT_EQ(chain(256, ""), "");
  EXPECT_EQ(chain(300, ""), "aliases nest deeper than 256");
  EXPECT_EQ(chain(20, "twice"), "");
  EXPECT_EQ(chain(40, "twice"), "an alias stands for more than 1048576 others");
  EXPECT_EQ(faultOf("!t = tensor<4xf32>\n!u = tuple<!t, !t>\n"), "");
}

// The parser frees a block, or a region, but not the uses of its values
// elsewhere. The library reads such a text to its error and no further.
TEST(InputText, ValuesThatAreFreed) {
  auto errorOf = [](const std::string &text) {
    MLIRContext context;
    context.allowUnregisteredDialects();
    context.loadDialect<func::FuncDialect, scf::SCFDialect>();
    std::string error;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (error.empty())
        error = diagnostic.str();
    });
    std::optional<TextFault> fault = findEscapedValue(text, &context);
    EXPECT_EQ(error, "");
    OwningOpRef<ModuleOp> module = parseInput(text, "text", &context);
    EXPECT_EQ(!module, !error.empty());
    if (fault)
      error =
          text.substr(fault->offset, 4) + ": " + fault->message + "; " + error;
    return error;
  };
  const char *fault =
      "^bb0: a value of this block is used outside of its region; ";
  std::string use = "func.func @f(%c : i1) {\n\"t.use\"(%s) : (f32) -> ()\n";
  std::string op = "\"t.op\"() ({\n^bb0(%s : f32):\n";
  std::string end = "\"t.end\"() : () -> ()\n";
  // A later block is wrong, a later region, or what follows.
  EXPECT_EQ(errorOf(use + op + end + "^bb1:\n?"),
            fault + std::string("expected operation name in quotes"));
  EXPECT_EQ(errorOf(use + op + end + "}, ?"),
            fault + std::string("expected '{' to begin a region"));
  EXPECT_EQ(errorOf(use + op + end + "}) : ?"),
            fault + std::string("expected non-function type"));
  EXPECT_EQ(errorOf(use + "scf.if %c {\n^bb0:\n%s = \"t.s\"() : () -> f32\n" +
                    end + "} else ?"),
            fault + std::string("expected '{' to begin a region"));
  // In the block that is being read; the parser looks after that.
  EXPECT_EQ(errorOf(use + op + "?"), "expected operation name in quotes");
  // In another function.
  EXPECT_EQ(errorOf("func.func @g(%s : f32) { return }\nfunc.func @h() {\n" +
                    op + end + "}) ?"),
            "expected ':' followed by operation type");
  // The use is inside, in operations that are not finished.
  EXPECT_EQ(errorOf("func.func @h() {\n" + op +
                    "\"t.op\"() ({\n"
                    "\"t.use\"(%s) : (f32) -> ()\n" +
                    end + "}) ?"),
            "expected ':' followed by operation type");
  // A later block of the region has the value.
  EXPECT_EQ(errorOf("func.func @h() {\n\"t.use\"(%s) : (f32) -> ()\n" + end +
                    "^bb1(%s : f32):\n" + end + "^bb2:\n?"),
            "expected operation name in quotes");
  // What is right is read.
  EXPECT_EQ(errorOf("func.func @h() {\n" + op + end + "}) : () -> ()\n" + op +
                    end + "}) : () -> ()\nreturn\n}"),
            "");
}

TEST(InputText, Bytecode) {
  EXPECT_EQ(faultOf(StringRef("ML\xefR\x01\x02", 6)),
            "this is MLIR bytecode, expected text");
}

// Any cut through a text is read to its end.
TEST(InputText, Prefixes) {
  StringRef text = "#m = affine_map<(d0) -> (d0 + 1)> // \"\n"
                   "%r:2 = \"a.b\"(%x#1) {iterator_types = [\"p\\\"\"]} : "
                   "(i32) -> (i32, i32)";
  for (size_t size = 0; size <= text.size(); ++size)
    for (size_t from = 0; from <= size; ++from)
      EXPECT_EQ(faultOf(text.slice(from, size)), "") << from << " " << size;
}

// The library says it as a value, with the place.
TEST(InputText, Session) {
  Session session;
  auto module =
      session.parse("module {}\nmodule attributes {a = " + repeat("[", 9999));
  ASSERT_FALSE(module.ok());
  EXPECT_NE(module.message().find("error: brackets nest deeper than 256"),
            std::string::npos)
      << module.message();
  EXPECT_EQ(module.message().find("2:"), 0u) << module.message();
  EXPECT_TRUE(session.parse("module {}").ok());
}
