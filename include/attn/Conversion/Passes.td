//===- Passes.td - passes -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_PASSES_TD
#define ATTN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// LinalgToAttn
//===----------------------------------------------------------------------===//

def AttnNormalizeInput : Pass<"attn-normalize-input", "::mlir::func::FuncOp"> {
  let summary = "graphs that compute attention, however spelled, in one spelling";
  let description = [{
    Needs: anything.

    Gives: the graphs that `convert-linalg-to-attn` takes in one form, on
    tensors batch x heads x length x dimension: a product of query and key in
    f32; scores in one `linalg.generic`, which multiplies with the scale,
    applies what else the graph does to scores, and selects -inf where a mask
    hides a key; their maximum, exponentials, sum and quotient, rounded to the
    type of the values; a product with the values. Casts, transpositions and
    repeated heads are in the indexing maps, or ahead of them where no map can say
    them. Factors are sorted, constants last.

    A graph that is no attention stays as it is, letter by letter; so does one
    whose groups of heads have unknown sizes, which the conversion takes as it
    stands.

    Example: (* example filepath=test/Conversion/LinalgToAttn/normalize-input.mlir *)
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def ConvertLinalgToAttn
    : Pass<"convert-linalg-to-attn", "::mlir::func::FuncOp"> {
  let summary = "softmax(Q K^T) V in linalg, tensor and arith to attn.attention";
  let description = [{
    Needs: anything.

    Gives: an `attn.attention` in place of every graph that computes one, with
    `linalg.transpose`, `tensor.expand_shape` and `tensor.collapse_shape` around
    it where the graph has another layout. A graph is recognised by what it
    computes, element by element, not by how it is spelled: structured
    operations, named or generic, elementwise operations on tensors, views and
    casts are read back to tensors that nothing is known of.

    A mask is taken out of the scores where it hides keys with -inf, or with a
    number near the lowest of f32 and every row certainly sees a key; any other
    choice, bias or function of the scores is part of the score region. A row
    that sees no key has output 0 where the graph may have had NaN. Weights that
    become 0 where they are NaN are taken for a guard of such rows: a NaN that
    comes from query or key stays one (C23).

    A graph that only looks like attention stays as it is: another dimension of
    the softmax, another reduction, a factor after the exponential, scores or
    weights that something else reads too. A remark says what was recognised
    (passed), or which edge failed (missed).

    Example: (* example filepath=test/Conversion/LinalgToAttn/raise.mlir *)
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect",
    "::attn::AttnDialect"];
}

//===----------------------------------------------------------------------===//
// AttnToLinalg
//===----------------------------------------------------------------------===//

def ConvertAttnToLinalg : Pass<"convert-attn-to-linalg", "::mlir::ModuleOp"> {
  let summary = "attention to its unfused definition in linalg: the oracle";
  let description = [{
    Needs: `attn.attention` without variants (`attn-expand-variants`), and
    `attn.attention_backward` or `attn.attention_jvp`.

    Gives: neither; scores, probabilities, their gradients and results are whole
    tensors, computed one after the other by `linalg.generic`. A pullback is
    evaluated in loops over all positions, as it may add to any element of a
    capture's gradient. The gradients make output and lse again (C8 of
    `attn.attention_backward`): those of the operands are not read, except for
    output by `saved` and `input`, in delta.

    `precision=f64` (r of rule C20) evaluates everything in f64, the f32 code of
    the regions included. Where a function returns a result of one of these
    operations, its result becomes f64, in its type and in its calls; every
    other use sees the value rounded to the type it had.

    `precision=score` (s of rule C20) does the same, but rounds the scaled score
    to f32 and evaluates the score region in f32, and the pullback too.

    `precision=saved` (r' of C16 there) does what `f64` does, but takes delta of
    the gradients from the operand output.

    `precision=input` (t0 of rule C20) is what an eager framework does: f32
    accumulation, and the scores after the scale, the scores after the score
    region, the probabilities after an f32 softmax, and the output each rounded
    to the input type. A score that the input type cannot hold stays f32. Of the
    gradients (g0 of C16 there), those of weights, of scores after and before the
    score region, and of products, are rounded to the input type, and sums taken
    in f32.

    Example: (* example filepath=test/Conversion/AttnToLinalg/f64.mlir *)
  }];
  let options = [
    Option<"precision", "precision", "::attn::OraclePrecision",
           "::attn::OraclePrecision::F64", "what the definition is evaluated in",
           [{::llvm::cl::values(
               clEnumValN(::attn::OraclePrecision::F64, "f64",
                          "everything in f64"),
               clEnumValN(::attn::OraclePrecision::Score, "score",
                          "the score region in f32, all else in f64"),
               clEnumValN(::attn::OraclePrecision::Saved, "saved",
                          "everything in f64, from output as it was saved"),
               clEnumValN(::attn::OraclePrecision::Input, "input",
                          "every step rounded to the input type"))}]>];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// AttnToTile
//===----------------------------------------------------------------------===//

def ConvertAttnToTile : Pass<"convert-attn-to-tile", "::mlir::ModuleOp"> {
  let summary = "planned attention on tensors to a sequential kernel on memrefs";
  let description = [{
    Needs: functions whose body is one `attn.attention` with a plan and without
    variants (`attn-expand-variants`, `attn-plan`); its query, key, value and
    captured tensors are arguments of the function, its captured scalars are
    arguments or scalar code over arguments and `tensor.dim`.

    Gives: the same functions as kernels of the tile dialect. A tensor argument
    becomes a strided memref, a result an additional memref argument at the end;
    the body is one `tile.kernel` with the function's name and its plan, over
    batch, head and query block, with one loop over all key blocks, in which
    `tile.scores` holds the score and mask regions, and an online softmax; nothing
    of the size of the score matrix is stored.

    An `attn.attention_jvp` becomes one kernel of this form: the loop carries the
    sums of output and its tangents, and the mean of the scores' tangents.

    An `attn.attention_backward` becomes several kernels, which run one after
    the other: `_rows` (delta and lse per query), `_d_query` (like the forward),
    `_d_key_value`, over blocks of keys, with a loop over blocks of queries (two
    kernels where a lane cannot hold both sums), `_sum_key` and `_sum_value`
    where query heads share a key head, `_sink_parts` and `_d_sink`. Each sum has
    one owner and a fixed order. Nobody computes a gradient that the function
    does not return.

    Gradients of captures come last: sums by query and key (`_capture_queries`,
    `_capture_keys`, `_capture_N_rows` over all queries), sums by distance of
    query and key (`_capture_N_diagonals`, `_capture_N_distances`), sums by element
    where nothing is known of an index, over all scores or those of each query or
    key (`_capture_N_elements`, `_capture_N_table`; all scores once for as many
    elements as have bins, at most 136), and `_d_cN`, which puts these where the
    indices of `attn.capture_add` say, or stores the gradient of an element for
    each query and key block by block. An index that none of these serves is
    an error.

    Functions without attention are left alone.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::attn::tile::TileDialect"
  ];
}

def AttnPrintVisitSet : Pass<"attn-print-visit-set", "::mlir::ModuleOp"> {
  let summary = "print which key blocks a kernel visits, and which it masks";
  let description = [{
    Needs: what `convert-attn-to-tile` needs. Gives: the same, and on standard
    output the visit set of each attention: bounds of the number n of a key
    block, of integers that are known before the loop, for the blocks that are
    visited and for those among them that carry the mask. The others are full.

    ```
    // @causal
    // visit set, 128 queries by 64 keys, block n of [0, blocks)
    //   visited: n <= 2 block + 1
    //   masked:  n >= 2 block
    ```
    `block` is the number of the query block, `keys` the number of keys. Where
    all lengths are known, the pairs of blocks are counted.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::attn::tile::TileDialect"];
}

//===----------------------------------------------------------------------===//
// CopyToLoops
//===----------------------------------------------------------------------===//

def ConvertCopyToLoops : Pass<"convert-copy-to-loops"> {
  let summary = "copies between strided memrefs as loops";
  let description = [{
    Needs: anything. Gives: no `memref.copy` of known rank. Upstream calls a
    function of a runtime library for copies that are not contiguous; a
    compiled function of this project calls the C library only.

    Example: `test/Conversion/CopyToLoops/copy-to-loops.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

//===----------------------------------------------------------------------===//
// TileToLoops
//===----------------------------------------------------------------------===//

def ConvertTileToLoops
    : Pass<"convert-tile-to-loops", "::mlir::func::FuncOp"> {
  let summary = "tile kernels as loops over buffers, for the CPU";
  let description = [{
    Needs: `tile-flat`.

    Gives: `scf` loops over `memref`s and scalar `arith` and `math`; no vector
    is left. Each vector value becomes a buffer of its shape, allocated once at
    the entry of the function and shared by values whose lives do not overlap;
    a value with one user is computed inside the loop nest of that user. Loops
    over a tile stay loops, so code size and compile time do not depend on the
    block sizes. A box or a gather never touches memory outside its memref.
    Products of `f16` and `bf16` are extended first and accumulated in `f32`.

    Example: `test/Conversion/TileToLoops/tile-to-loops.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

//===----------------------------------------------------------------------===//
// TileToWarp
//===----------------------------------------------------------------------===//

def ConvertTileToWarp : Pass<"convert-tile-to-warp", "::mlir::func::FuncOp"> {
  let summary = "tile kernels spread over the lanes of warps";
  let description = [{
    Needs: `tile-flat`, with GPU plans.

    Gives: `warp.kernel` in place of each `tile.kernel`; the query block is the
    block number that varies fastest. A vector becomes an `acc` fragment, a tile
    that is loaded becomes a slot of shared memory, filled by a synchronous
    `warp.copy` where it was loaded (the query tile goes on to registers if the
    plan says so), `vector.contract` becomes `warp.mma`. Elementwise operations
    stay what they are, on fragments. One role does everything in the order of
    the tile program: correct, and slow until `warp-buffer`.

    Functions without `tile.kernel` are left alone.

    Example: `test/Conversion/TileToWarp/tile-to-warp.mlir`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::attn::warp::WarpDialect"];
}

//===----------------------------------------------------------------------===//
// WarpToGPU
//===----------------------------------------------------------------------===//

def ConvertWarpToGPU : Pass<"convert-warp-to-gpu", "::mlir::ModuleOp"> {
  let summary = "warp kernels to gpu.module, one lane's program";
  let description = [{
    Needs: `warp-placed`, with the sizes that kernels capture computed by pure
    operations.

    Gives: for function `@f` a `gpu.module @f_kernels` with a kernel `@f` that
    has the arguments of the function, and `gpu.launch_func` in place of the
    `warp.kernel`. Fragments become one value per register, slots and rings
    addresses in dynamic shared memory. The work is done by mma.sync, ldmatrix
    and cp.async, and on sm_90a by wgmma, TMA and mbarriers. Arguments that are read or written in blocks of 16 bytes pass through
    `memref.assume_alignment`: base and outer strides must be multiples.

    Example: `test/Conversion/WarpToGPU/kernel.mlir`.
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"\"sm_80\"",
           "The oldest GPU the kernels must run on">,
    Option<"features", "features", "std::string", /*default=*/"\"+ptx80\"",
           "PTX version, as LLVM spells it">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def GPUShareWarpNumber : Pass<"gpu-share-warp-number", "::mlir::gpu::GPUModuleOp"> {
  let summary = "the number of the warp, once for a kernel";
  let description = [{
    Needs: kernels (`convert-warp-to-gpu`), whose blocks have one dimension.

    Gives: where a kernel asks for the number of its warp more than once, by
    shuffles of thread / 32 from lane 0, one such shuffle at its start for all.
    No compiler moves or joins shuffles, as what they give depends on the lanes
    that take part; here it does not.

    Example: (* example filepath=test/Conversion/WarpToGPU/share-warp-number.mlir *)
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::NVVM::NVVMDialect"];
}

def GPUHideInductions : Pass<"gpu-hide-inductions", "::mlir::gpu::GPUModuleOp"> {
  let summary = "loops whose numbers of iterations LLVM takes for no sequence";
  let description = [{
    Needs: kernels with `scf.for` (`convert-warp-to-gpu`).

    Gives: the body of each loop over indices reads the number of the iteration
    after a move of which LLVM knows nothing. Its loop strength reduction keeps a
    running value for each address and each row count that depends on the
    number; computing them again costs less than the registers. ptxas drops the
    move.

    Example: (* example filepath=test/Conversion/WarpToGPU/hide-inductions.mlir *)
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect"];
}

def GPUOrderIntegers : Pass<"gpu-order-integers", "::mlir::gpu::GPUModuleOp"> {
  let summary = "integers are computed where they are used";
  let description = [{
    Needs: kernels (`convert-warp-to-gpu`).

    Gives: in blocks of at least 1024 integer operations, each right before its
    first use, together with what it is computed from: one element of a
    fragment after the other, and not one step of all elements after the
    other, which keeps all of them alive. Random numbers are such chains. What
    has an effect stays where it is, and nothing is computed twice.

    Example: (* example filepath=test/Conversion/WarpToGPU/order-integers.mlir *)
  }];
}

//===----------------------------------------------------------------------===//
// AddRelayouts
//===----------------------------------------------------------------------===//

def GPUAddRelayouts : Pass<"gpu-add-relayouts", "::mlir::ModuleOp"> {
  let summary = "kernels that copy tensors from one layout into another";
  let description = [{
    Needs: functions that launch kernels (`convert-warp-to-gpu`).

    Gives: beside the kernels of `@f`, for each size of elements that a tensor
    argument of `@f` has, a kernel `@f_relayout16` of two strided tensors of
    rank 4 that copies the first into the second. The runtime launches it for
    arguments whose layout the kernels of `@f` cannot take (a base or strides
    that are no multiples of 16 bytes, rows that are not contiguous); `@f`
    itself does not. Without it such a launch is refused.

    Example: `test/Conversion/AddRelayouts/add-relayouts.mlir`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

#endif // ATTN_CONVERSION_PASSES_TD
