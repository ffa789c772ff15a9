//===- Meetings.cpp - where warps wait for each other -----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Meetings.h"

using namespace attn::simulator;

static std::string number(int64_t n) { return std::to_string(n); }

Answer Barrier::pass(int64_t warp, mlir::Operation *op) {
  Warp &own = warps[warp];
  if (!own.isHere) {
    if (here != 0 && place != op)
      return Answer::wrong("is a barrier at which other warps do not meet");
    place = op;
    own.isHere = true;
    if (++here == int64_t(warps.size())) {
      ++meetings;
      here = 0;
    }
  }
  if (own.passed == meetings)
    return Answer::wait("the other warps at this barrier");
  own.isHere = false;
  ++own.passed;
  return Answer::go();
}

Answer Turns::enter(int64_t warp, mlir::Operation *turn) {
  int64_t groups = int64_t(warps.size()) / groupWarps;
  if (groups < 2) {
    ++warps[warp].entered;
    return Answer::go();
  }
  Warp &own = warps[warp];
  if (own.come == own.entered)
    ++own.come;
  auto wanted = size_t(own.entered);
  if (order.size() == wanted)
    order.push_back(turn);
  if (order[wanted] != turn)
    return Answer::wrong("is turn " + number(wanted) +
                         " of this group, another group takes another turn");
  int64_t group = warp / groupWarps;
  for (int64_t peer = group * groupWarps; peer < (group + 1) * groupWarps;
       ++peer)
    if (warps[peer].come <= own.entered)
      return Answer::wait("the other warps of group " + number(group));
  int64_t before = (group + groups - 1) % groups;
  int64_t turns = group == 0 ? own.entered : own.entered + 1;
  for (int64_t peer = before * groupWarps; peer < (before + 1) * groupWarps;
       ++peer)
    if (warps[peer].left < turns)
      return Answer::wait("the turn of group " + number(before));
  ++own.entered;
  return Answer::go();
}

std::string Turns::checkEnd() const {
  for (size_t warp = 0; warp < warps.size(); ++warp)
    if (warps[warp].left != warps[0].left)
      return "ends with " + number(warps[warp].left) + " turns of warp " +
             number(warp) + ", and " + number(warps[0].left) + " of warp 0";
  return "";
}

std::string Issues::issue(int64_t warp, mlir::Operation *product) {
  std::vector<mlir::Operation *> &order = orders[warp / groupWarps];
  auto place = size_t(counts[warp]++);
  if (order.size() == place)
    order.push_back(product);
  if (order[place] != product)
    return "is product " + number(place) + " of warp " + number(warp) +
           ", the other warps of its group issue another";
  return "";
}

std::string Issues::checkEnd() const {
  for (size_t warp = 0; warp < counts.size(); ++warp)
    if (counts[warp] != int64_t(orders[warp / groupWarps].size()))
      return "ends with fewer products of warp " + number(warp) +
             " than of its group";
  return "";
}
