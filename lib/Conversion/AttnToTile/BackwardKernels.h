//===- BackwardKernels.h - kernels of gradients of attention --*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_BACKWARDKERNELS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_BACKWARDKERNELS_H

#include "CaptureSums.h"
#include "ClampedDistance.h"
#include "KernelBuilder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {

/// Builds the kernels of one function, in the order in which they run. `b`
/// stands before its return, and does so again after each.
class BackwardKernels : public KernelValues {
public:
  BackwardKernels(OpBuilder &b, AttentionBackwardOp op, IRMapping &mapping,
                  StringRef name);

  /// lse and delta of each query, for the others; `withQueries`: the kernel of
  /// d_query comes next, and may compute delta. With `hasQuerySums` a workspace
  /// of zeros, in which blocks of keys add up the gradients of queries.
  void buildRows(bool withQueries, bool hasQuerySums);
  void buildQueryGradient(Value output);
  /// Gradients of keys and of values; null where nobody asks for one. With
  /// `queryOutput` those of queries, too, whose parts the blocks of keys add
  /// up.
  void buildKeyGradients(Value keyOutput, Value valueOutput, Value queryOutput);
  void buildSinkGradient(Value output);
  /// Says which gradients of captures there will be; null where nobody asks for
  /// one. Before all others, some of which add up parts of them.
  void matchCaptures(ArrayRef<Value> outputs);
  /// Those gradients, after the others.
  void buildCaptureGradients(ArrayRef<Value> outputs);

private:
  /// What a kernel accumulates over the blocks of queries.
  struct Sum {
    Value output;
    int64_t numColumns;
    double factor;
    bool isKey;
    Value workspace = {}; // of all heads, where a key head has several
    Value isShared = {};  // whether it does, where that is seen at launch
  };
  /// Tiles of f32 that are added up in their order: of query heads that share
  /// a key head, or of blocks that share the keys of a block of queries.
  struct SummedParts {
    const char *suffix; // of the kernel
    Value workspace, output;
    int64_t numColumns;
    double factor;
    /// Heads of the output, parts of each, which lie behind one another in the
    /// dimension of heads or of batch entries, and rows.
    Value heads, parts, length;
    bool areOfBatches;
    /// Columns of a tile, and how many parts are read before the first is
    /// added, so that one does not wait for another.
    int64_t width, atOnce;
  };
  /// The numbers of a block as indices and as coordinates.
  struct BlockNumbers {
    Value batch, head, keyHead, number, first;
    Value batch32, head32;
  };
  /// Scores of a block, what they are made of and what goes back through them.
  struct Step {
    ScoreCoordinates at;
    Value products;
    Value scores = {}, weights = {};
    std::pair<Value, Value> shifted = {}; // shiftFar
    Value adjoint = {};                   // dy, where captures have gradients
    Value slope = {}; // of the score by x, where the pullback multiplies by it
  };

  // BackwardQuerySums.cpp
  void allocateQuerySums();
  void clearQuerySums(const BlockNumbers &block);
  Value multiplyKeys(OpBuilder &outer, Value dScores, Value keyTile);
  void addQueryGradient(const BlockNumbers &block, Value number, Value part);
  void buildRoundedQueryGradient(Value output);

  /// Of queries that lie along an axis, and whether one of their head is far.
  struct RowNumbers {
    Value lse, offset, delta, isFar;
  };
  /// Where a block shows less than the queries and keys that there are: the
  /// first ones, and those, at most their numbers, that follow the last ones.
  struct ShownBox {
    Value firstQuery, queryEnd, firstKey, keyEnd;
  };
  /// What a block of sums by element has: of so many rows, so many elements.
  struct TableBlock {
    Value firstRow;
    int64_t rows;
    Value firstElement;
    int64_t count;
  };
  /// How sums by distance cut scores into blocks (CaptureDistances.cpp).
  struct DistanceBlocks {
    SmallVector<int64_t> scales;
    int64_t width;      // columns of a block
    int64_t step;       // queries from a block to the next one that is added
    int64_t rowBlocks;  // blocks of rows in a step
    Value numSteps;     // that hold all queries
    Value shift;        // the most that a key is before the step of a query
    Value numDiagonals; // blocks of keys, for each block of rows

    int64_t getPeriod() const { return scales.back(); }
  };
  /// What is added to a capture, and its sums by batch entry, head and, but for
  /// sums over all queries, query, key, distance or element.
  struct CapturePart {
    CaptureSum sum;
    Value workspace;
    DistanceBlocks blocks = {}; // of sums by distance
    /// Of sums over all queries: in a workspace of several.
    std::optional<int64_t> place = {};
  };
  /// Bins for the elements of a table, and what is added to them.
  struct BinSet {
    SmallVector<CapturePart *, 1> parts; // the first one has the sums then
    std::string suffix;                  // of kernels
    int64_t count = 0;                   // of bins, for a chunk of the elements
    SmallVector<Value> sizes = {};       // of the table
    Value firstElement = {}, bins = {};  // of a block
    Value sums = {};
  };
  /// A kernel that makes all scores for each chunk of elements, for all sets at
  /// a time, and how long that takes.
  struct BinPass {
    SmallVector<BinSet, 1> sets;
    PlanAttr plan;
    int64_t time = 0;

    bool hasOneRead() const {
      return sets.size() == 1 && sets.front().parts.size() == 1;
    }
  };
  /// Sums by query, by key, and others; and whether a kernel has added up those
  /// by query, or by key, already.
  SmallVector<CapturePart, 2> rowSums, keySums, otherSums;
  bool hasRowSums = false, hasKeySums = false;
  /// A tile of query or key, and what meets it where weights go back.
  struct Factors {
    Value product, dWeights;
  };

  // GradientKernelPlans.cpp
  PlanAttr getQueryPlan();
  PlanAttr getKeyPlan();
  PlanAttr getSumPlan(size_t numSums);

  // BackwardRows.cpp
  int64_t getRowsOfWarp() const;
  Value allocate(Type type, ArrayRef<Value> sizes);
  Value sumColumns(Value matrix);
  Value readSavedLse(const BlockNumbers &block, Value rows);
  Value findEmptyRows(Value rows, Value savedLse);
  Value replaceNone(Value numbers, Value isNone, double other);
  Value replaceEmpty(Value rows, Value savedLse);
  Value computeDelta(const BlockNumbers &block, Value rows);
  void storeRows(const BlockNumbers &block, Value numbers, Value view);
  void sumHeads(const Sum &sum, Value numBatches);
  void sumParts(const SummedParts &parts, Value numBatches);

  // FarRows.cpp
  Value findFarRows(Value logSum);
  Value getNearRest(Value offset);
  void storeFarRows(const BlockNumbers &block, Value logSum, Value offset);
  void buildFarRows();
  Value readFarHead(const BlockNumbers &block);
  Value readRest(const ScoreCoordinates &at);
  Value raiseFar(Value scores, Value offset, function_ref<Value()> readRest);
  std::pair<Value, Value> shiftFar(const Step &step, Value isFar, Value offset);
  Value weigh(const Step &step, Value isFar, Value offset,
              function_ref<Value()> getNear);
  Value weighNear(Value scores, Value lse);

  // BackwardCaptures.cpp
  SmallVector<Value> splitNumber(Value number, ArrayRef<Value> sizes);
  Value multiplySizes(ArrayRef<Value> sizes);
  scf::ForOp beginLoop(Value first, Value end, ValueRange initial);
  void endLoop(scf::ForOp loop, ValueRange results);
  Value readIndex(Value index, const ScoreCoordinates &at,
                  ArrayRef<int64_t> shape);
  Factors loadFactors(const BlockNumbers &block, bool isKey, Value row,
                      int64_t rows);
  Step buildAdjoints(OpBuilder &outer, const Factors &lhs, const Factors &rhs,
                     const ScoreCoordinates &at, const RowNumbers &rows,
                     const ShownBox &shown = {});
  Step buildPassing(OpBuilder &outer, const BlockNumbers &block, bool isKey,
                    Value own, const Factors &lhs, RowNumbers numbers,
                    Value number, const ShownBox &shown = {});
  Value buildAddition(OpBuilder &outer, const Step &step,
                      const CapturePart &part);
  Value readQueries(Value view, const BlockNumbers &block, Value queries);
  RowNumbers readRowNumbers(const BlockNumbers &block, Value queries);
  PlanAttr getPlanWithoutRings(int64_t columns = 0);
  void expandAllScores(tile::KernelOp kernel);
  void allocateSums(bool isKey, MutableArrayRef<CapturePart> parts);
  void beginSums(ArrayRef<CapturePart> parts, int64_t rows,
                 SmallVectorImpl<Value> &initial);
  SmallVector<Value> addSums(OpBuilder &outer, const Step &step,
                             ArrayRef<CapturePart> parts, ValueRange before);
  void storeSums(const BlockNumbers &block, ArrayRef<CapturePart> parts,
                 ValueRange sums);
  bool areBesideOthers(ArrayRef<CapturePart> parts);
  MutableArrayRef<CapturePart> takeRowSums(PlanAttr plan);
  MutableArrayRef<CapturePart> takeKeySums();
  void sumBlocks(bool isKey, MutableArrayRef<CapturePart> parts);
  void sumBlocks(bool isKey, ArrayRef<CapturePart> parts, const Twine &suffix);
  void sumQueries();
  Value limitNumber(Value number, Value size, Value &exists);
  void buildPairGradient(Value output, const Twine &suffix,
                         ArrayRef<CapturePart> parts);

  // CaptureDistances.cpp
  DistanceBlocks cutScores(ArrayRef<int64_t> scales);
  Value sumDiagonals(CapturePart &part, const Twine &suffix,
                     const DistanceBlocks &blocks);
  int64_t countDiagonalColumns();
  SmallVector<Value> countDistances(const DistanceBlocks &blocks);
  Value readDiagonals(Value stored, const BlockNumbers &block,
                      const DistanceBlocks &blocks, ArrayRef<Value> distances,
                      Value firstRow);
  void sumDistances(CapturePart &part, const Twine &suffix);
  Value getDistanceShift(const DistanceBlocks &blocks, unsigned digit);
  ScoreCoordinates placeDistances(ScoreCoordinates at,
                                  const DistanceBlocks &blocks,
                                  ArrayRef<Value> distances);
  Value readOwnDistance(const CaptureSum &sum, const DistanceBlocks &blocks,
                        unsigned dim, Value place, const ScoreCoordinates &at);

  // CaptureTables.cpp
  Value joinIndices(ArrayRef<Value> indices, ArrayRef<Value> sizes);
  SmallVector<Value> getTableSizes(const CaptureSum &sum);
  Value readElement(OpBuilder &outer, const Step &step, const CaptureSum &sum,
                    ArrayRef<Value> sizes);
  ShownBox findShownByQuotient(const PositionQuotient &quotient, Value chunk,
                               int64_t count);
  ShownBox findShownByDistance(const ClampedDistance &distance,
                               const TableBlock &block, bool isKey);
  ShownBox findShown(const CaptureSum &sum, Value chunk,
                     const TableBlock &block);
  void sumElements(BinPass &pass);
  Value sumPartsOfRows(const BinSet &set);
  void sumTables();

  // CaptureBins.cpp
  int64_t countBins(PlanAttr plan, bool hasRows);
  static int64_t shareBins(MutableArrayRef<BinSet> sets, int64_t bins);
  void planBins(BinPass &pass);
  static bool isOfFewScores(const BinPass &pass);
  SmallVector<BinPass, 2> planBinPasses();

  // CaptureGradients.cpp
  static bool isNumbered(const CapturePart &part);
  static bool isOfAllHeads(const CapturePart &part);
  Value sumPart(const CapturePart &part, ArrayRef<Value> places,
                const BlockNumbers *own);
  Value sumHeadsOf(Value workspace, ArrayRef<Value> places);
  void storeNumber(Value workspace, Value output, const Twine &suffix);
  void buildCaptureGradient(Value output, const Twine &suffix,
                            ArrayRef<CapturePart> parts);

  // Backward.cpp
  /// With `getPlanOfRows`, unless there is another one.
  tile::KernelOp beginKernel(const Twine &suffix, ValueRange grid,
                             PlanAttr plan = {});
  /// The plan of kernels whose warps have whole rows, all but that of both sums
  /// of keys.
  PlanAttr getPlanOfRows();
  /// Of blocks of as many rows as the plan says, or of `rows`. `fromTheEnd`:
  /// the first one has the last rows of the last head, which the kernel before
  /// has left in the cache, and what is left there is what the next one reads
  /// first.
  /// `partsOfBatch`: so many blocks are of one batch entry.
  BlockNumbers readNumbers(tile::KernelOp kernel, Value rows = {},
                           bool fromTheEnd = false, Value partsOfBatch = {});
  Value coordinates(Value first, int64_t size, int64_t axis);
  Value gather(Value view, ValueRange indices, ArrayRef<int64_t> shape);
  Value load(Value view, const BlockNumbers &block, Value head, Value row,
             int64_t rows, int64_t columns);
  Value multiply(Value lhs, double factor);
  Value broadcast(Value value, Type type);
  Value multiplyTransposed(OpBuilder &outer, Value lhs, Value rhs);
  Value stretch(Value value, Type type);
  Value raise(Value scores, Value offset);
  void addScores(OpBuilder &outer, Step &step, bool withSlope = false);
  bool hasScoresFirst();
  void beginWeights(OpBuilder &outer, Step &step, Value isFar, Value offset);
  void endWeights(OpBuilder &outer, Step &step, Value isFar, Value offset);
  Value keepScaled(OpBuilder &outer, const Step &step, Value weights);
  Value buildExcess(OpBuilder &outer, const Step &step, Value dWeights,
                    Value delta);
  Value buildAdjoint(OpBuilder &outer, const Step &step, Value dWeights,
                     Value delta);
  Value readPullback(OpBuilder &outer, const Step &step, Value adjoint,
                     Value root);
  Value goBack(OpBuilder &outer, const Step &step, Value adjoint, Value root);
  Value buildScoreGradient(OpBuilder &outer, const Step &step, Value dWeights,
                           Value delta);
  void storeKeySum(const BlockNumbers &block, const Sum &sum, Value result);
  void buildKeyGradient(StringRef suffix, ArrayRef<Sum> sums);
  void hideQueriesPastEnd(const Step &step, const ShownBox &shown = {});

  OpBuilder &b;
  AttentionBackwardOp op;
  std::string name;
  Type f32;
  Value output, lse, dOutput, dLse; // dLse null where there is none
  Value queryLength32;
  /// What is added to scores * log2(e), and delta - d_lse by batch entry, head
  /// and query, up to the end of the last block: a query past the end, or
  /// without keys, has an offset of -inf, with which every weight is 0.
  Value rowOffset, rowDelta, paddedQueries;
  bool hasDelta = false; // from the kernel of rows
  /// What `rowOffset` lacks in a head with far rows (FarRows.cpp), for each
  /// query whether it or one beside it may be one, and for each head whether it
  /// has one; null where no query can be.
  Value rowRest, rowFar, farHeads;
  /// Packed, by batch entry, head and block of queries; null where nobody adds
  /// up.
  Value querySums;
};

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_BACKWARDKERNELS_H
