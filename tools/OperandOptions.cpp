//===- OperandOptions.cpp - what a tool calls a function on -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OperandOptions.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace attn;
namespace cl = llvm::cl;

OperandOptions::OperandOptions(cl::OptionCategory &category)
    : shape("shape",
            cl::desc("Sizes that the types leave open: b, h, hkv, sq, sk, or "
                     "whole shapes by name"),
            cl::value_desc("b=2,sq=128,c0=8x128,..."), cl::cat(category)),
      layout("layout",
             cl::desc("q, k, v and o in memory: bhsd (default), bshd, ..."),
             cl::init("bhsd"), cl::cat(category)),
      padding("padding",
              cl::desc("Elements between the rows of tensors and around them"),
              cl::init(0), cl::cat(category)),
      inputs("input", cl::desc("Read an argument from a file"),
             cl::value_desc("name=file.npy"), cl::cat(category)),
      scalars("scalar", cl::desc("The value of a scalar"),
              cl::value_desc("name=value"), cl::cat(category)),
      seed("seed", cl::desc("Of the random inputs"), cl::init(0),
           cl::cat(category)) {}

LogicalResult attn::splitItem(const ToolOptions &tool, StringRef item,
                              StringRef flag,
                              std::map<std::string, std::string> &into) {
  auto [name, value] = item.split('=');
  if (name.empty() || value.empty())
    return tool.fail("--" + flag + "=" + item + ": wanted NAME=VALUE");
  into[name.str()] = value.str();
  return success();
}

LogicalResult OperandOptions::read(const ToolOptions &tool,
                                   OperandRequest &request) const {
  constexpr StringLiteral letters = "bhsd";
  std::string sorted = layout;
  llvm::sort(sorted);
  if (sorted != "bdhs")
    return tool.fail("unknown --layout=" + layout +
                     ", expected b, h, s and d in some order");
  for (char letter : layout)
    request.order.push_back(letters.find(letter));
  request.padding = padding;
  request.shape = shape;
  request.seed = seed;
  for (StringRef item : inputs)
    if (failed(splitItem(tool, item, "input", request.files)))
      return failure();
  std::map<std::string, std::string> values;
  for (StringRef item : scalars)
    if (failed(splitItem(tool, item, "scalar", values)))
      return failure();
  for (auto &[name, text] : values)
    if (StringRef(text).getAsDouble(request.scalars[name]))
      return tool.fail("--scalar=" + name + "=" + text + ": wanted a number");
  return success();
}
