//===- AttnAttrs.td - attributes of the attn dialect -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNATTRS_TD
#define ATTN_DIALECT_ATTN_IR_ATTNATTRS_TD

include "attn/Dialect/Attn/IR/AttnDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Attn_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Attn_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

//===----------------------------------------------------------------------===//
// Numerics contract
//===----------------------------------------------------------------------===//

def Attn_F32Products : I32EnumAttr<"F32Products", "how kernels for GPUs multiply f32", [
    I32EnumAttrCase<"TF32x3", 0, "tf32x3">,
    I32EnumAttrCase<"IEEE", 1, "ieee">]> {
  let cppNamespace = "::attn";
  let genSpecializedAttr = 0;
}

def Attn_NumericsAttr : Attn_Attr<"Numerics", "numerics"> {
  let summary = "the parts of the numerics contract that a program may choose";
  let description = [{
    Everything else that could be chosen is fixed by the constraints of
    `attn.attention`; a program without this attribute has the defaults: both
    flags true, and `tf32x3`.

    `fast_math`: a kernel may compute exp(x - m) as exp2(c x - c m) with
    c = log2(e) times the scale folded into one fused multiply-add, where scores
    are small enough for that, and may use approximate exp2 and division of the
    target (C19). Where it is false, exp sees the scaled score. Either way the
    error rule holds.

    `deterministic`: one plan on one target gives the same bits every time also
    where atomics would be faster (C25). Forward kernels are always so.

    `f32_products`: with `tf32x3`, a GPU's tensor cores multiply f32 inputs, each
    product as three of numbers rounded to 11 bits; what that may cost is part of
    the error rule (C20). With `ieee` products are f32 multiply-adds that round to
    nearest, without tensor cores; exp sees the scaled score,
    as without `fast_math`, and the RMSE is no larger than that of the unfused
    evaluation in f32. The CPU always multiplies so. Only programs with f32
    inputs may ask for `ieee`.
  }];
  let parameters = (ins
    DefaultValuedParameter<"bool", "true">:$fast_math,
    DefaultValuedParameter<"bool", "true">:$deterministic,
    DefaultValuedParameter<"::attn::F32Products", "::attn::F32Products::TF32x3">:$f32_products);
  let assemblyFormat = "(`<` struct(params)^ `>`)?";
}

//===----------------------------------------------------------------------===//
// Sugar: named variants that expand into the score and mask regions
//===----------------------------------------------------------------------===//

def Attn_Alignment : I32EnumAttr<"Alignment", "which corners a position offset joins", [
    I32EnumAttrCase<"BottomRight", 0, "bottom_right">,
    I32EnumAttrCase<"TopLeft", 1, "top_left">]> {
  let cppNamespace = "::attn";
  let genSpecializedAttr = 0;
}

def Attn_CausalAttr : Attn_Attr<"Causal", "causal"> {
  let summary = "key j is visible to query i iff j <= i + offset";
  let description = [{
    offset = Sk - Sq for `bottom_right` (the last query sees the last key; C21,
    the default), 0 for `top_left`.
  }];
  let parameters = (ins
    DefaultValuedParameter<"::attn::Alignment", "::attn::Alignment::BottomRight">:$alignment);
  let assemblyFormat = "(`<` $alignment^ `>`)?";
}

def Attn_WindowAttr : Attn_Attr<"Window", "window"> {
  let summary = "key j is visible to query i iff -left <= j - (i + offset) <= right";
  let description = [{
    `left` and `right` count keys beside the diagonal, 2^30 at most; -1 means
    unbounded. offset as in `#attn.causal`.
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "-1">:$left,
    DefaultValuedParameter<"int64_t", "-1">:$right,
    DefaultValuedParameter<"::attn::Alignment", "::attn::Alignment::BottomRight">:$alignment);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Attn_SoftcapAttr : Attn_Attr<"Softcap", "softcap"> {
  let summary = "x' = cap * tanh(x / cap)";
  let description = [{
    `cap` is an f32 or f64 literal, positive and finite in f32. The division is
    a multiplication by 1/cap rounded to f32.
  }];
  let parameters = (ins "::mlir::FloatAttr":$cap);
  let assemblyFormat = "`<` custom<Cap>($cap) `>`";
  let genVerifyDecl = 1;
}

def Attn_AlibiAttr : Attn_Attr<"Alibi", "alibi"> {
  let summary = "x' = x - 2^(-8 (h + 1) / H) * |i + offset - j|";
  let description = [{
    Attention with linear biases (Press et al., "Train Short, Test Long",
    section 3), slopes of the geometric sequence for H query heads; offset as
    in `#attn.causal`.
  }];
  let parameters = (ins
    DefaultValuedParameter<"::attn::Alignment", "::attn::Alignment::BottomRight">:$alignment);
  let assemblyFormat = "(`<` $alignment^ `>`)?";
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

def Attn_Target : I32EnumAttr<"TargetKind", "what a kernel is compiled for", [
    I32EnumAttrCase<"CPU", 0, "cpu">,
    I32EnumAttrCase<"SM80", 80, "sm_80">,
    I32EnumAttrCase<"SM90A", 90, "sm_90a">]> {
  let cppNamespace = "::attn";
  let genSpecializedAttr = 0;
}

def Attn_Scheduler : I32EnumAttr<"SchedulerKind", "who gives a thread block its tiles", [
    I32EnumAttrCase<"Auto", 0, "auto">,
    I32EnumAttrCase<"Grid", 1, "grid">,
    I32EnumAttrCase<"Static", 2, "static">,
    I32EnumAttrCase<"Dynamic", 3, "dynamic">]> {
  let cppNamespace = "::attn";
  let genSpecializedAttr = 0;
}

def Attn_PassListParameter : OptionalArrayRefParameter<"::attn::OptionalPass"> {
  let parser = "parsePassList($_parser)";
  let printer = "$_printer << printPassList($_self)";
}

def Attn_PlanAttr : Attn_Attr<"Plan", "plan"> {
  let summary = "the variant of the kernel: every choice that changes speed and never the result";
  let description = [{
    `target`: `cpu`, `sm_80` or `sm_90a`. `block_q`: query rows per thread block.
    `block_k`: keys per step. (Of gradients: rows of the tile that a thread block
    keeps, of queries or keys, and of the blocks that pass by it.) `warps`: warps per thread block (1 on cpu).
    `stages`: key/value tiles in flight (1 = no pipelining).
    `q_in_registers`: keep the query fragment in registers for the whole loop.
    `scheduler` (sm_90a): `grid` is one tile for each thread block; with `static`
    blocks stay, and each goes on by as many tiles as there are blocks, with
    `dynamic` it takes the next one that nobody has; `auto` is static where all tiles have equal work, else dynamic.
    `consumer_registers` (sm_90a): registers of each thread that computes beside
    a producer, which has those that are left; 0: as many as leave the producer
    what it has use for.
    `blocks_per_sm` (sm_90a, with `scheduler = grid`): how many thread blocks with
    roles share the registers and the shared memory of a multiprocessor, 1 to 8:
    while one begins or ends, another computes.
    `split_keys` (of attention and of d_query, not of tangents): how many thread
    blocks share the keys of a query block, 1 to 64. With more than one each
    writes what it has summed to a workspace, and a second kernel merges the
    parts: for few queries with many keys.
    `packed_heads` (of attention): of how many query heads that share a key head a
    tile holds rows, 1 to 64: `block_q / packed_heads` queries of each, on GPUs a
    multiple of 8. Keys and values are then read once for all of these heads:
    for few queries, which fill no tile alone.
    `scores` (of gradients): how many programs compute the scores, as `scores` of
    `#attn.recompute`; `auto`: attn-recompute decides.
    `without`: optional passes that the target runs by default and this kernel
    does not; `with`: those that it runs although the target does not, or does
    only where it gains. Both are lists of names in the order in which the passes
    run, as in `without = ["tile-lazy-max"]`, and name nothing that the target
    does in any case: plans that mean the same are the same.
    Legality is checked by `attn::plan::verify`, in bytes and in words.
  }];
  let parameters = (ins
    "::attn::TargetKind":$target,
    "int64_t":$block_q,
    "int64_t":$block_k,
    DefaultValuedParameter<"int64_t", "1">:$warps,
    DefaultValuedParameter<"int64_t", "1">:$stages,
    DefaultValuedParameter<"bool", "false">:$q_in_registers,
    DefaultValuedParameter<"::attn::SchedulerKind", "::attn::SchedulerKind::Auto">:$scheduler,
    DefaultValuedParameter<"int64_t", "0">:$consumer_registers,
    DefaultValuedParameter<"int64_t", "1">:$blocks_per_sm,
    DefaultValuedParameter<"int64_t", "1">:$split_keys,
    DefaultValuedParameter<"int64_t", "1">:$packed_heads,
    DefaultValuedParameter<"::attn::RecomputedScores", "::attn::RecomputedScores::Auto">:$scores,
    Attn_PassListParameter:$without,
    Attn_PassListParameter:$with);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The same plan for one warp, with other tiles, with another scheduler, with so many
    /// registers for consumers, with so many blocks for a multiprocessor, with keys shared out in
    /// so many parts, with rows of so many heads in a tile, or with scores computed so often.
    PlanAttr withOneWarp() const;
    PlanAttr withTiles(int64_t blockQ, int64_t blockK, int64_t warps,
                       int64_t stages) const;
    PlanAttr withScheduler(SchedulerKind scheduler) const;
    PlanAttr withConsumerRegisters(int64_t registers) const;
    PlanAttr withBlocksPerSM(int64_t blocks) const;
    PlanAttr withSplitKeys(int64_t parts) const;
    PlanAttr withPackedHeads(int64_t heads) const;
    PlanAttr withScores(RecomputedScores scores) const;
    /// Which optional passes run, and the same plan with others.
    PassSelection getPasses() const;
    PlanAttr withPasses(const PassSelection &passes) const;
  }];
}

//===----------------------------------------------------------------------===//
// What gradients compute again
//===----------------------------------------------------------------------===//

def Attn_RecomputedScores : I32EnumAttr<"RecomputedScores", "how many programs of gradients compute the scores", [
    I32EnumAttrCase<"Auto", 0, "auto">,
    I32EnumAttrCase<"Once", 1, "once">,
    I32EnumAttrCase<"Twice", 2, "twice">,
    I32EnumAttrCase<"Thrice", 3, "thrice">]> {
  let cppNamespace = "::attn";
  let genSpecializedAttr = 0;
}

def Attn_RecomputedLse : I32EnumAttr<"RecomputedLse", "whose lse is computed again", [
    I32EnumAttrCase<"Auto", 0, "auto">,
    I32EnumAttrCase<"Never", 1, "never">,
    I32EnumAttrCase<"FarRows", 2, "far_rows">,
    I32EnumAttrCase<"Always", 3, "always">]> {
  let cppNamespace = "::attn";
  let genSpecializedAttr = 0;
}

def Attn_RecomputeAttr : Attn_Attr<"Recompute", "recompute"> {
  let summary = "what gradients compute again, where memory could keep it";
  let description = [{
    `scores`: the programs that compute the scores, and what goes back to the
    weights, from query, key, value and d_output; products count for all three
    gradients. `once`: one program, five products, and the parts of d_query that
    each block of keys gives are added up in memory, in any order. `twice`: one
    for d_query, one for d_key and d_value, seven products, nothing in memory.
    `thrice`: one for each, eight products, where lanes have no registers for two
    sums. A program that nobody asks for is left out. Gradients of captures have
    programs of their own.

    `lse`: `never`: it is what the forward saved, one number for each row.
    `far_rows`: where a row has an lse of 512 or more (16 or more where elements
    are f32), of either sign, f32 may not hold the fraction of it that weights
    need, and the row gets a maximum and the logarithm of a sum, from its scores. `always`: every row with a key
    gets its lse from its scores; what was saved says only which rows have one.

    `auto`, the default of both: `attn-recompute` decides.
  }];
  let parameters = (ins
    DefaultValuedParameter<"::attn::RecomputedScores", "::attn::RecomputedScores::Auto">:$scores,
    DefaultValuedParameter<"::attn::RecomputedLse", "::attn::RecomputedLse::Auto">:$lse);
  let assemblyFormat = "(`<` struct(params)^ `>`)?";
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNATTRS_TD
