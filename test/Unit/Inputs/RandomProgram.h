//===- RandomProgram.h - random attention as a program ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INPUTS_RANDOMPROGRAM_H
#define ATTN_TEST_UNIT_INPUTS_RANDOMPROGRAM_H

#include "attn/Execute/Operands.h"
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

namespace attn {

class Choice {
public:
  explicit Choice(unsigned seed) : engine(seed) {}
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % (high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  template <typename T> T of(std::initializer_list<T> values) {
    return values.begin()[between(0, values.size() - 1)];
  }

private:
  std::mt19937 engine;
};

inline std::string text(int64_t size) {
  return size < 0 ? "?" : std::to_string(size);
}

/// What a program leaves open is -1.
struct Sizes {
  int64_t batch, heads, keyHeads, queries, keys;
};

/// A captured value: its type, and its shape for given sizes.
struct Capture {
  std::string type, shape;
};

/// What programs may have beside types, shapes, variants and regions.
struct ProgramParts {
  bool hasSinks = false, hasDropout = false;
  /// A bias by query and by pair of keys: its gradient has no kernel.
  bool hasBiasOfPairs = true;
};

/// A random attention, without a plan.
class Program {
public:
  explicit Program(Choice &choice, ProgramParts parts = {})
      : choice(choice), parts(parts) {
    element = choice.of<const char *>({"f16", "bf16", "f32"});
    headDim = 8 * choice.of<int64_t>({1, 2, 2, 3, 4, 5, 8});
    valueDim = choice.chance(60) ? headDim : 8 * choice.between(1, 6);
    fixed.batch = choice.chance(30) ? choice.between(1, 2) : -1;
    group = choice.of<int64_t>({1, 1, 2, 4, 8});
    bool fixedHeads = choice.chance(50);
    int64_t keyHeads = group == 8 ? 1 : choice.between(1, 2);
    fixed.keyHeads = fixedHeads ? keyHeads : -1;
    fixed.heads = fixedHeads ? keyHeads * group : -1;
    fixed.queries = choice.chance(20) ? length() : -1;
    fixed.keys = choice.chance(20) ? length() : -1;
    chooseVariants();
    chooseScore();
    chooseMask();
    chooseAttributes();
    if (parts.hasSinks && choice.chance(25))
      sink = choice.of<const char *>({"f16", "bf16", "f32"});
    if (parts.hasDropout && choice.chance(25)) {
      isDropped = true;
      attributes += attributes.empty() ? "" : ", ";
      attributes += "dropout_p = 0.2 : f64";
    }
  }

  /// The program with a plan; empty: none.
  std::string source(const std::string &plan) const {
    std::string b = text(fixed.batch), h = text(fixed.heads),
                g = text(fixed.keyHeads), m = text(fixed.queries),
                n = text(fixed.keys), d = std::to_string(headDim),
                e = std::to_string(valueDim);
    auto tensor = [](std::initializer_list<std::string> sizes,
                     const std::string &element) {
      std::string type = "tensor<";
      for (const std::string &size : sizes)
        type += size + "x";
      return type + element + ">";
    };
    std::string q = tensor({b, h, m, d}, element),
                k = tensor({b, g, n, d}, element),
                v = tensor({b, g, n, e}, element),
                o = tensor({b, h, m, e}, element), l = tensor({b, h, m}, "f32");
    std::string arguments = "%q: " + q + ", %k: " + k + ", %v: " + v, names,
                types, regionArguments;
    for (size_t i = 0; i < captures.size(); ++i) {
      std::string number = std::to_string(i);
      arguments += ", %a" + number + ": " + captures[i].type;
      names += (i ? ", %a" : "%a") + number;
      types += ", " + captures[i].type;
      regionArguments += ", %c" + number + ": " + captures[i].type;
    }
    std::string extras, extraTypes;
    if (!sink.empty()) {
      std::string type = tensor({h}, sink);
      arguments += ", %sink: " + type;
      extras += " sink(%sink)";
      extraTypes += ", " + type;
    }
    if (isDropped) {
      arguments += ", %seed: i32, %offset: i32";
      extras += " dropout(%seed, %offset)";
      extraTypes += ", i32, i32";
    }
    std::string indices =
        "%b: i32, %h: i32, %i: i32, %j: i32" + regionArguments;
    std::string text = "func.func @f(" + arguments + ") -> (" + o + ", " + l +
                       ") {\n  %o, %lse = attn.attention %q, %k, %v" + extras;
    if (!names.empty())
      text += " captures(" + names + ")";
    text += " {" + attributes;
    if (!plan.empty())
      text += (attributes.empty() ? "plan = " : ", plan = ") + plan;
    text += "}";
    if (!score.empty())
      text += "\n  score(%x: f32, " + indices + ") {\n" + score + "  }";
    if (!mask.empty())
      text += "\n  mask(" + indices + ") {\n" + mask + "  }";
    return text + "\n  : (" + q + ", " + k + ", " + v + extraTypes + types +
           ") -> (" + o + ", " + l + ")\n  return %o, %lse : " + o + ", " + l +
           "\n}\n";
  }

  /// Random arguments for it.
  OperandRequest request() {
    OperandRequest request;
    int64_t batch = fixed.batch < 0 ? choice.between(1, 2) : fixed.batch;
    int64_t keyHeads =
        fixed.keyHeads < 0 ? choice.between(1, 2) : fixed.keyHeads;
    int64_t heads = fixed.heads < 0 ? keyHeads * group : fixed.heads;
    int64_t queries = fixed.queries < 0 ? length() : fixed.queries;
    int64_t keys = fixed.keys < 0 ? length() : fixed.keys;
    request.shape = "b=" + text(batch) + ",h=" + text(heads) +
                    ",hkv=" + text(keyHeads) + ",sq=" + text(queries) +
                    ",sk=" + text(keys);
    for (size_t i = 0; i < captures.size(); ++i) {
      if (captures[i].shape.empty()) {
        request.scalars["c" + std::to_string(i)] = choice.between(-3, 9);
        continue;
      }
      request.shape += ",c" + std::to_string(i) + "=";
      for (char letter : captures[i].shape)
        request.shape += letter == 'b'   ? text(batch)
                         : letter == 'h' ? text(heads)
                         : letter == 'i' ? text(queries)
                         : letter == 'j' ? text(keys)
                         : letter == 's' ? text((keys + 1) / 2)
                                         : std::string(1, letter);
    }
    if (isDropped)
      for (const char *name : {"seed", "offset"})
        request.scalars[name] = choice.between(0, 1 << 20);
    if (choice.chance(50))
      request.order = {0, 2, 1, 3};
    request.padding = choice.of<int64_t>({0, 1, 8});
    request.seed = choice.between(0, 1 << 20);
    return request;
  }

private:
  int64_t length() {
    return choice.chance(8)    ? 0
           : choice.chance(15) ? choice.between(1, 3)
                               : choice.between(1, 70);
  }

  void chooseVariants() {
    std::string list;
    auto add = [&](int percent, const std::string &variant) {
      if (choice.chance(percent))
        list += (list.empty() ? "" : ", ") + variant;
    };
    add(25, "#attn.causal");
    add(10, "#attn.causal<top_left>");
    add(12, "#attn.window<left = " + std::to_string(choice.between(0, 20)) +
                ", right = " + std::to_string(choice.between(0, 20)) + ">");
    add(8, "#attn.window<left = " + std::to_string(choice.between(0, 9)) +
               ", right = -1, alignment = top_left>");
    add(12, "#attn.softcap<5.0 : f32>");
    add(10, "#attn.alibi");
    add(5, "#attn.alibi<top_left>");
    if (!list.empty())
      attributes = "variants = [" + list + "]";
  }

  std::string capture(const std::string &type, const std::string &shape) {
    captures.push_back({type, shape});
    return "%c" + std::to_string(captures.size() - 1);
  }

  void chooseScore() {
    int64_t number = choice.between(0, 10);
    if (number == 1 && !parts.hasBiasOfPairs)
      return;
    switch (number) {
    case 4: // what the C library does not have
      score = "    %lo = arith.constant -0.5 : f32\n"
              "    %hi = arith.constant 0.75 : f32\n"
              "    %a = math.clampf %x to [%lo, %hi] : f32\n"
              "    %two = arith.constant 2 : i32\n"
              "    %b2 = math.ipowi %h, %two : i32\n"
              "    %f = arith.sitofp %b2 : i32 to f32\n"
              "    %t = math.tanh %f : f32\n"
              "    %y = arith.addf %a, %t : f32\n"
              "    attn.yield %y : f32\n";
      return;
    case 0: { // a bias per head, query and key
      std::string c = capture("tensor<?x?x?xf32>", "hxixj");
      score = "    %t = attn.capture_load " + c +
              "[%h, %i, %j] : tensor<?x?x?xf32>\n"
              "    %y = arith.addf %x, %t : f32\n    attn.yield %y : f32\n";
      return;
    }
    case 1: { // a bias in the input type, one for two keys
      std::string type = std::string("tensor<?x?x") + element + ">";
      std::string c = capture(type, "ixs");
      bool isF32 = std::string(element) == "f32";
      score = "    %one = arith.constant 1 : i32\n"
              "    %pair = arith.shrui %j, %one : i32\n"
              "    %t = attn.capture_load " +
              c + "[%i, %pair] : " + type + "\n";
      if (!isF32)
        score +=
            std::string("    %u = arith.extf %t : ") + element + " to f32\n";
      score += std::string("    %y = arith.addf %x, ") + (isF32 ? "%t" : "%u") +
               " : f32\n    attn.yield %y : f32\n";
      return;
    }
    case 2: { // a scalar, and code of several steps
      std::string c = capture("f32", "");
      score = "    %f = arith.sitofp %j : i32 to f32\n"
              "    %s = arith.constant 0.01 : f32\n"
              "    %t = arith.mulf %f, %s : f32\n"
              "    %u = math.sin %t : f32\n"
              "    %w = arith.mulf %u, " +
              c +
              " : f32\n    %y = arith.addf %w, %x : f32\n"
              "    attn.yield %y : f32\n";
      return;
    }
    case 3: // -inf from the score
      score = "    %n = arith.constant 0xFF800000 : f32\n"
              "    %z = arith.constant 0.5 : f32\n"
              "    %g = arith.cmpf ogt, %x, %z : f32\n"
              "    %y = arith.select %g, %n, %x : f32\n"
              "    attn.yield %y : f32\n";
      return;
    default:
      return;
    }
  }

  void chooseMask() {
    switch (choice.between(0, 13)) {
    case 0: { // documents
      std::string c = capture("tensor<?x?xi32>", "bx99");
      mask = "    %s = arith.constant 2 : i32\n"
             "    %p = attn.capture_load " +
             c + "[%b, %i] : tensor<?x?xi32>\n    %r = attn.capture_load " + c +
             "[%b, %j] : tensor<?x?xi32>\n"
             "    %t = arith.shrui %p, %s : i32\n"
             "    %u = arith.shrui %r, %s : i32\n"
             "    %m = arith.cmpi eq, %t, %u : i32\n"
             "    attn.yield %m : i1\n";
      return;
    }
    case 1: { // lengths per batch
      std::string c = capture("tensor<?xi32>", "b");
      mask = "    %n = attn.capture_load " + c +
             "[%b] : tensor<?xi32>\n    %m = arith.cmpi slt, %j, %n : i32\n"
             "    attn.yield %m : i1\n";
      return;
    }
    case 2: // a pattern, and rows without a key
      mask = "    %one = arith.constant 1 : i32\n"
             "    %three = arith.constant 3 : i32\n"
             "    %x = arith.xori %i, %j : i32\n"
             "    %p = arith.andi %x, %one : i32\n"
             "    %r = arith.andi %i, %three : i32\n"
             "    %a = arith.cmpi eq, %p, %one : i32\n"
             "    %c = arith.cmpi ne, %r, %one : i32\n"
             "    %m = arith.andi %a, %c : i1\n    attn.yield %m : i1\n";
      return;
    case 3: { // affine by hand, with a scalar
      std::string c = capture("i32", "");
      mask = "    %l = arith.addi %i, " + c +
             " : i32\n    %m = arith.cmpi sge, %l, %j : i32\n"
             "    attn.yield %m : i1\n";
      return;
    }
    case 4: { // flags
      std::string c = capture("tensor<?x?xi1>", "ixj");
      mask = "    %m = attn.capture_load " + c +
             "[%i, %j] : tensor<?x?xi1>\n    attn.yield %m : i1\n";
      return;
    }
    case 5: // nothing
      mask = "    %m = arith.constant false\n    attn.yield %m : i1\n";
      return;
    case 6: // a block of keys and a set of heads
      mask = "    %lo = arith.constant 7 : i32\n"
             "    %hi = arith.constant 41 : i32\n"
             "    %a = arith.cmpi sge, %j, %lo : i32\n"
             "    %c = arith.cmpi slt, %j, %hi : i32\n"
             "    %one = arith.constant 1 : i32\n"
             "    %e = arith.cmpi ne, %h, %one : i32\n"
             "    %m = arith.andi %a, %c : i1\n"
             "    %n = arith.andi %m, %e : i1\n    attn.yield %n : i1\n";
      return;
    default:
      return;
    }
  }

  void chooseAttributes() {
    auto add = [&](int percent, const std::string &attribute) {
      if (choice.chance(percent))
        attributes += (attributes.empty() ? "" : ", ") + attribute;
    };
    add(30, "scale = " + choice.of<std::string>({"0.5", "0.0", "-0.3", "1.0"}) +
                " : f64");
    add(15, "numerics = #attn.numerics<fast_math = false>");
  }

  Choice &choice;
  ProgramParts parts;
  const char *element;
  int64_t headDim, valueDim, group;
  Sizes fixed;
  bool isDropped = false;
  std::string attributes, score, mask, sink; // of which element; empty: none
  std::vector<Capture> captures;
};

inline std::string randomPlan(Choice &choice) {
  auto size = [&] {
    return std::to_string(choice.chance(30) ? choice.of<int64_t>({16, 32, 64})
                                            : choice.between(1, 64));
  };
  return "#attn.plan<target = cpu, block_q = " + size() +
         ", block_k = " + size() + ">";
}

} // namespace attn

#endif // ATTN_TEST_UNIT_INPUTS_RANDOMPROGRAM_H
