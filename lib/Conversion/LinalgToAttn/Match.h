//===- Match.h - attention found in a function -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_LINALGTOATTN_MATCH_H
#define ATTN_LIB_CONVERSION_LINALGTOATTN_MATCH_H

#include "Levels.h"
#include "llvm/ADT/SetVector.h"

namespace attn::raise {

/// exp(score - reference) / sum of exp(score - reference), over `key`.
struct SoftmaxMatch {
  ExprRef key;     // the variable that numbers keys
  ExprRef weight;  // exp(…) at `key`
  ExprRef scores;  // what exp sees, without the reference
  ExprRef maximum; // null: nothing was subtracted
  ExprRef sum;     // with the sink's exponential, if there is one
  ExprRef value;   // the other factor of the product, an element
  ExprRef sink;    // a logit that joins the sum; null: none
  bool hidesMore;  // the scores hide what only the weights of the graph do
};

/// The scores taken apart.
struct ScoreMatch {
  ExprRef product; // the sum over the head dimension
  ExprRef score;   // with `product` in it
  ExprRef mask;    // null: none
  bool keepsFiniteMask = false;
};

/// The operands at all their levels.
struct OperandLevels {
  ExprRef queryElement = nullptr, keyElement = nullptr;
  ExprRef factor = nullptr; // of the product, beside them
  SmallVector<OperandLevel> queries, keys, values;
};

/// Everything that building needs.
struct AttentionMatch {
  Value root;
  SmallVector<ExprRef> rootIndices; // atoms of its dimensions
  OperandLevel query, key, value;
  // Free variables: the dimensions of the operation.
  SmallVector<ExprRef> batch, keyHeads, groups, rows;
  ExprRef column = nullptr, headDim = nullptr, valueDim = nullptr;
  double scale = 1;
  ExprRef x = nullptr;     // the scaled product, as a name
  ExprRef score = nullptr; // of x and `positions`; x itself: none
  ExprRef mask = nullptr;  // null: none
  ExprRef sink = nullptr;  // null: none; an element for each head or a number
  ExprRef positions[4];    // batch, head, query, key, as regions see them
  FloatType element;
  Value lse; // of the graph, if it computes one
  SmallVector<ExprRef> lseIndices;
  SmallVector<Operation *> replaced; // users first
  std::string found;                 // "scale, mask, …"
};

/// Why not: a reason and where. An empty reason says that it does not look like
/// attention at all.
struct Miss {
  std::string reason;
  Location loc;
};

/// Finds attention whose output is `root`.
class Matcher {
public:
  Matcher(Expressions &expressions, Extents &extents, Reader &reader)
      : e(expressions), extents(extents), reader(reader) {}

  std::optional<AttentionMatch> match(Value root, Miss &miss);

private:
  std::nullopt_t fail(Twine reason);
  std::optional<SoftmaxMatch> matchSoftmax(ExprRef output);
  std::optional<LinearSum> takeGate(ExprRef divisor, ExprRef key,
                                    LinearSum weight);
  bool matchReference(SoftmaxMatch &softmax, LinearSum arguments,
                      std::optional<LinearSum> sink);
  bool matchSink(SoftmaxMatch &softmax, LinearSum sink, ExprRef reference,
                 double coefficient, ExprRef inMaximum);
  bool isSinkOfHeads(const AttentionMatch &match);
  bool isMaximumOf(ExprRef maximum, const SoftmaxMatch &softmax,
                   const LinearSum &scores, LinearSum &others);
  bool checkGuards(SoftmaxMatch &softmax);
  bool hideByGuard(SoftmaxMatch &softmax, ExprRef condition);
  /// What stands under guards: a result, a weight or a factor of one.
  enum class Guarded { Result, Weight, Factor };
  ExprRef withoutGuards(ExprRef expr, Guarded what);
  ExprRef takeExponential(ExprRef expr);
  bool isMaximumOfSummed(ExprRef body, const LinearSum &scores);
  bool hideUnsummed(SoftmaxMatch &softmax);
  SmallVector<ScoreMatch> matchScores(const SoftmaxMatch &softmax);
  bool captureReductions(ScoreMatch &scores);
  std::optional<AttentionMatch> matchOperands(const SoftmaxMatch &softmax,
                                              ScoreMatch scores);
  void refinePositions(AttentionMatch &match, OperandLevels &operands,
                       ExprRef &product);
  bool matchDimensions(AttentionMatch &match, const OperandLevels &operands);
  bool chooseLevels(AttentionMatch &match, const OperandLevels &operands);
  void placeDimensions(AttentionMatch &match, ArrayRef<ExprRef> queryOnly,
                       ArrayRef<ExprRef> shared);
  void matchScale(AttentionMatch &match, ExprRef product, ExprRef factor);
  void renamePositions(AttentionMatch &match);
  bool checkUses(AttentionMatch &match, const SoftmaxMatch &softmax,
                 Value query, Value key);
  bool replaceLse(AttentionMatch &match, const SoftmaxMatch &softmax,
                  Operation *user, llvm::SetVector<Operation *> &replaced);
  std::optional<bool> computesLse(AttentionMatch &match,
                                  const SoftmaxMatch &softmax, Operation *user);

  Expressions &e;
  Extents &extents;
  Reader &reader;
  Value root;
  SmallVector<ExprRef> rootIndices;
  SmallVector<ExprRef> guards;   // conditions under which the weights are 0
  SmallVector<ExprRef> unsummed; // under which the sum leaves a key out
  bool isSumAtLeastOne;          // where a row sees a key
  std::string reason;
};

bool isExponential(ExprRef expr);

/// A sum or a maximum without what takes its place in rows that see no key.
ExprRef guarded(ExprRef expr);

/// Empty if `reduction` runs over the keys; else what it does.
std::string overAnother(ExprRef reduction, ExprRef key);

/// Scores with a mask split off, and what is left.
struct MaskedScore {
  ExprRef score;
  ExprRef mask; // null: none
  bool isFinite = false;
};
/// Which numbers hide a key: -inf alone, those that no score comes near, or
/// those of which a softmax leaves nothing beside a key that is seen.
enum class Hides { Infinite, Lowest, Far };

/// Takes conditions that hide keys out of `scores`: choices of such numbers.
MaskedScore splitMask(Expressions &e, ExprRef scores, Hides which);

/// True if every row certainly sees a key: `mask` holds at key 0, at the key of
/// the row's number or at the last key, whatever the other variables are.
bool everyRowSees(Expressions &e, ExprRef mask, ExprRef row, ExprRef key);

/// Empty if `expr`, of x and the positions in `variables`, can be the body of
/// a region; else what in it cannot.
std::string whyNoRegion(ExprRef expr, ExprRef x, ArrayRef<ExprRef> positions);

} // namespace attn::raise

#endif // ATTN_LIB_CONVERSION_LINALGTOATTN_MATCH_H
