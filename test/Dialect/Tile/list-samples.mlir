// Whether lists of blocks pay is told from some tiles: none of them is the one
// that a period begins with, a length of each batch entry is taken for five
// eighths of the sequence, and a mask that asks much is worth leaving out. Where
// ranges leave many blocks open, each pair of those is evaluated.
//
// RUN: attn-compile %s --function=every_512th --emit=tile --target=sm_90a --plan='#attn.plan<target = sm_90a, block_q = 128, block_k = 128, warps = 8, stages = 2>' | FileCheck %s
// RUN: attn-compile %s --function=drafts --emit=tile --target=sm_90a | FileCheck %s
// RUN: attn-compile %s --function=streams --emit=tile --target=sm_90a --plan='#attn.plan<target = sm_90a, block_q = 192, block_k = 96, warps = 12, stages = 3>' | FileCheck %s
// RUN: attn-compile %s --function=short_streams --emit=tile --target=sm_90a | FileCheck %s --check-prefix=NONE
//
// RUN: attn-compile %s --function=centres --emit=tile --target=sm_90a | FileCheck %s --check-prefix=PAIRS
// RUN: attn-compile %s --function=drafts --emit=tile --target=sm_90a | FileCheck %s --check-prefix=RANGES
//
// CHECK: tile.kernel @{{.*}}_block_states
// NONE-NOT: _block_states
// PAIRS: tile.kernel @{{.*}}_block_states
// PAIRS: scf.if %{{.*}} -> (i1, i1)
// PAIRS: scf.for
// PAIRS: tile.kernel @{{.*}}_block_lists
// RANGES: tile.kernel @{{.*}}_block_states
// RANGES-NOT: scf.for
// RANGES: tile.kernel @{{.*}}_block_lists

!q = tensor<?x?x?x64xbf16>
!l = tensor<?x?x?xf32>

// Every fourth tile of 128 queries sees all keys.
func.func @every_512th(%q: !q, %k: !q, %v: !q) -> !q {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %reach = arith.constant 64 : i32
      %step = arith.constant 512 : i32
      %zero = arith.constant 0 : i32
      %distance = arith.subi %i, %j : i32
      %far = math.absi %distance : i32
      %near = arith.cmpi sle, %far, %reach : i32
      %rest = arith.remsi %j, %step : i32
      %key = arith.cmpi eq, %rest, %zero : i32
      %other = arith.remsi %i, %step : i32
      %query = arith.cmpi eq, %other, %zero : i32
      %one = arith.ori %near, %key : i1
      %m = arith.ori %one, %query : i1
      attn.yield %m : i1
    } : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

func.func @drafts(%q: !q, %k: !q, %v: !q, %c0: tensor<?xi64>) -> !q {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %lengths: tensor<?xi64>) {
      %step = arith.constant 2730 : i32
      %zero = arith.constant 0 : i32
      %length = attn.capture_load %lengths[%b] : tensor<?xi64>
      %past = arith.cmpi sge, %i, %j : i32
      %key = arith.extsi %j : i32 to i64
      %inside = arith.cmpi slt, %key, %length : i64
      %target = arith.andi %past, %inside : i1
      %distance = arith.subi %j, %i : i32
      %rest = arith.remsi %distance, %step : i32
      %own = arith.cmpi eq, %rest, %zero : i32
      %m = arith.ori %target, %own : i1
      attn.yield %m : i1
    } : (!q, !q, !q, tensor<?xi64>) -> (!q, !l)
  return %o : !q
}

// Blocks of 12 tokens of two streams, of which the later one sees the earlier.
func.func @streams(%q: !q, %k: !q, %v: !q) -> !q {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %size = arith.constant 12 : i32
      %half = arith.constant 4095 : i32
      %own_late = arith.cmpi sge, %i, %half : i32
      %other_late = arith.cmpi sge, %j, %half : i32
      %own_place = arith.subi %i, %half : i32
      %other_place = arith.subi %j, %half : i32
      %own = arith.select %own_late, %own_place, %i : i32
      %other = arith.select %other_late, %other_place, %j : i32
      %own_block = arith.floordivsi %own, %size : i32
      %other_block = arith.floordivsi %other, %size : i32
      %same = arith.cmpi eq, %own_block, %other_block : i32
      %after = arith.cmpi sgt, %own_block, %other_block : i32
      %apart = arith.xori %own_late, %other_late : i1
      %true = arith.constant true
      %together = arith.xori %apart, %true : i1
      %self = arith.andi %same, %together : i1
      %from_late = arith.andi %after, %other_late : i1
      %both = arith.andi %from_late, %own_late : i1
      %late = arith.xori %own_late, %true : i1
      %across = arith.andi %from_late, %late : i1
      %some = arith.ori %self, %both : i1
      %m = arith.ori %some, %across : i1
      attn.yield %m : i1
    } : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// The same question alone: blocks of 12 tokens that see those before.
func.func @short_streams(%q: !q, %k: !q, %v: !q) -> !q {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %size = arith.constant 12 : i32
      %own_block = arith.floordivsi %i, %size : i32
      %other_block = arith.floordivsi %j, %size : i32
      %m = arith.cmpi sge, %own_block, %other_block : i32
      attn.yield %m : i1
    } : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// Windows of rows about centres that are no integers, of which each tile has
// all five: its range of centres is the whole image.
func.func @centres(%q: !q, %k: !q, %v: !q) -> !q {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %group = arith.constant 12 : i32
      %five = arith.constant 5 : i32
      %width = arith.constant 15 : i32
      %half = arith.constant 0.5 : f32
      %height = arith.constant 108.8 : f32
      %reach = arith.constant 3.4 : f32
      %number = arith.divui %i, %group : i32
      %place = arith.remui %number, %five : i32
      %f = arith.sitofp %place : i32 to f32
      %middle = arith.addf %f, %half : f32
      %centre = arith.mulf %middle, %height : f32
      %row = arith.divui %j, %width : i32
      %y = arith.sitofp %row : i32 to f32
      %distance = arith.subf %y, %centre : f32
      %far = math.absf %distance : f32
      %m = arith.cmpf ole, %far, %reach : f32
      attn.yield %m : i1
    } : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}
