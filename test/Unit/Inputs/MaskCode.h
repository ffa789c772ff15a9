//===- MaskCode.h - masks as C++ expressions ------------------ -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Expressions that write the scalar code of a mask region.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INPUTS_MASKCODE_H
#define ATTN_TEST_UNIT_INPUTS_MASKCODE_H

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace attn::test {

/// The lines of a mask region and the tensors it captures.
struct Code {
  std::string lines;
  std::vector<std::string> types;
  std::vector<std::string> contents;
  std::string sorted;
  int numValues = 0;

  std::string add(const std::string &operation) {
    std::string name = "%v" + std::to_string(numValues++);
    lines += "    " + name + " = " + operation + "\n";
    return name;
  }
};

struct Int {
  Code *code;
  std::string name;
};
struct Bool {
  Code *code;
  std::string name;
};

inline Int number(Code *code, int64_t value) {
  return {code,
          code->add("arith.constant " + std::to_string(value) + " : i32")};
}
inline Int binary(const char *op, Int a, Int b) {
  return {a.code, a.code->add(std::string("arith.") + op + " " + a.name + ", " +
                              b.name + " : i32")};
}
inline Bool compare(const char *predicate, Int a, Int b) {
  return {a.code, a.code->add(std::string("arith.cmpi ") + predicate + ", " +
                              a.name + ", " + b.name + " : i32")};
}
inline Bool logical(const char *op, Bool a, Bool b) {
  return {a.code, a.code->add(std::string("arith.") + op + " " + a.name + ", " +
                              b.name + " : i1")};
}
inline Int operator+(Int a, Int b) { return binary("addi", a, b); }
inline Int operator-(Int a, Int b) { return binary("subi", a, b); }
inline Int operator*(Int a, int64_t b) {
  return binary("muli", a, number(a.code, b));
}
inline Int operator+(Int a, int64_t b) { return a + number(a.code, b); }
inline Int operator-(Int a, int64_t b) { return a - number(a.code, b); }
inline Int operator/(Int a, int64_t b) {
  return binary("divsi", a, number(a.code, b));
}
inline Int operator%(Int a, int64_t b) {
  return binary("remsi", a, number(a.code, b));
}
inline Int with(const char *op, Int a, int64_t b) {
  return binary(op, a, number(a.code, b));
}
inline Int abs(Int a) {
  return {a.code, a.code->add("math.absi " + a.name + " : i32")};
}
inline Bool operator<(Int a, Int b) { return compare("slt", a, b); }
inline Bool operator<=(Int a, Int b) { return compare("sle", a, b); }
inline Bool operator>(Int a, Int b) { return compare("sgt", a, b); }
inline Bool operator>=(Int a, Int b) { return compare("sge", a, b); }
inline Bool operator==(Int a, Int b) { return compare("eq", a, b); }
inline Bool operator!=(Int a, Int b) { return compare("ne", a, b); }
inline Bool operator<(Int a, int64_t b) { return a < number(a.code, b); }
inline Bool operator<=(Int a, int64_t b) { return a <= number(a.code, b); }
inline Bool operator>=(Int a, int64_t b) { return a >= number(a.code, b); }
inline Bool operator==(Int a, int64_t b) { return a == number(a.code, b); }
inline Bool operator&(Bool a, Bool b) { return logical("andi", a, b); }
inline Bool operator|(Bool a, Bool b) { return logical("ori", a, b); }
inline Bool operator^(Bool a, Bool b) { return logical("xori", a, b); }
inline Bool operator!(Bool a) {
  Bool yes = {a.code, a.code->add("arith.constant true")};
  return a ^ yes;
}
inline Bool select(Bool c, Bool a, Bool b) {
  return {c.code, c.code->add("arith.select " + c.name + ", " + a.name + ", " +
                              b.name + " : i1")};
}

/// What a mask is written of. A captured tensor has a shape of letters (b: the
/// batch, i: queries, j: keys, digits), and contents: "sorted", "offsets" (from
/// 0, sorted), or a range "lo..hi" of random numbers.
struct Place {
  Code *code;
  Int b, h, i, j;

  Int scalar(const std::string &contents) const {
    code->types.push_back("i32");
    code->contents.push_back(contents);
    return {code, "%c" + std::to_string(code->types.size() - 1)};
  }
  std::string tensor(const std::string &shape, const std::string &contents,
                     const std::string &element = "i32") const {
    std::string type = "tensor<";
    for (size_t n = 0; n < shape.size(); ++n)
      type += "?x";
    std::string number = std::to_string(code->types.size());
    code->types.push_back(type + element + ">");
    code->contents.push_back(shape + ":" + contents);
    if (contents == "sorted")
      code->sorted += (code->sorted.empty() ? "" : ", ") + number;
    return "%c" + number;
  }
  std::string typeOf(const std::string &capture) const {
    return code->types[std::stoi(capture.substr(2))];
  }
  static std::string list(std::initializer_list<Int> indices) {
    std::string text;
    for (const Int &index : indices)
      text += (text.empty() ? "" : ", ") + index.name;
    return text;
  }
  Int load(const std::string &capture,
           std::initializer_list<Int> indices) const {
    return {code, code->add("attn.capture_load " + capture + "[" +
                            list(indices) + "] : " + typeOf(capture))};
  }
  Bool flag(const std::string &capture,
            std::initializer_list<Int> indices) const {
    return {code, load(capture, indices).name};
  }
  Int search(const std::string &capture, std::initializer_list<Int> lead,
             Int value) const {
    return {code,
            code->add("attn.capture_search " + capture + "[" + list(lead) +
                      "], " + value.name + " : " + typeOf(capture))};
  }
};

} // namespace attn::test

#endif // ATTN_TEST_UNIT_INPUTS_MASKCODE_H
