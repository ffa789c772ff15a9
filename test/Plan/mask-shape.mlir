// RUN: attn-opt %s --attn-plan=target=sm_90a | FileCheck %s
// At d = 64 a mask that shows keys here and there has smaller tiles; at d = 128
// one that shows some of every few keys has more keys in a block. Tiles divide
// the blocks of a map.

!t = tensor<2x8x?x64xbf16>
!l = tensor<2x8x?xf32>
!wide = tensor<2x8x?x128xbf16>

// Both ends of the interval move with the query: groups of queries do not wait
// for each other's turn.
// CHECK-LABEL: func.func @window
// CHECK: block_q = 256, block_k = 64, warps = 16, stages = 4, without = ["warp-insert-turns"]>
func.func @window(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %left = arith.constant 100 : i32
      %first = arith.subi %i, %left : i32
      %above = arith.cmpi sle, %j, %i : i32
      %below = arith.cmpi sle, %first, %j : i32
      %m = arith.andi %above, %below : i1
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// The same said by name.
// CHECK-LABEL: func.func @named_window
// CHECK: block_q = 256, block_k = 64, warps = 16, stages = 4, without = ["warp-insert-turns"]>
func.func @named_window(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.window<left = 100, right = 0>]}
    : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// One end by name, the other in the mask.
// CHECK-LABEL: func.func @half_named_window
// CHECK: block_q = 256, block_k = 64, warps = 16, stages = 4, without = ["warp-insert-turns"]>
func.func @half_named_window(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.window<left = 100, right = -1>]}
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi sle, %j, %i : i32
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// The last key of a row is the last there is.
// CHECK-LABEL: func.func @left_alone
// CHECK: block_q = 256, block_k = 64, warps = 16, stages = 4>
func.func @left_alone(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.window<left = 100, right = -1>]}
    : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// CHECK-LABEL: func.func @wide_window
// CHECK: block_q = 192, block_k = 64, warps = 12, stages = 4, without = ["warp-insert-turns"]>
func.func @wide_window(%q: !wide, %k: !wide) -> !wide {
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.window<left = 100, right = 0>]}
    : (!wide, !wide, !wide) -> (!wide, !l)
  return %o : !wide
}

// Both conditions bound the keys from above: one interval.
// CHECK-LABEL: func.func @prefix
// CHECK: block_q = 256, block_k = 64
func.func @prefix(%q: !t, %k: !t, %lengths: tensor<?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%lengths)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %ends: tensor<?xi32>) {
      %end = attn.capture_load %ends[%b] : tensor<?xi32>
      %causal = arith.cmpi sge, %i, %j : i32
      %within = arith.cmpi slt, %j, %end : i32
      %m = arith.ori %causal, %within : i1
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o : !t
}

// One condition bounds them from above, the other from below.
// CHECK-LABEL: func.func @first_and_near
// CHECK: block_q = 192, block_k = 96
func.func @first_and_near(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %left = arith.constant 100 : i32
      %count = arith.constant 4 : i32
      %distance = arith.subi %i, %j : i32
      %near = arith.cmpi slt, %distance, %left : i32
      %first = arith.cmpi slt, %j, %count : i32
      %m = arith.ori %near, %first : i1
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// CHECK-LABEL: func.func @every_fourth
// CHECK: block_q = 192, block_k = 96
func.func @every_fourth(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %four = arith.constant 4 : i32
      %zero = arith.constant 0 : i32
      %distance = arith.subi %i, %j : i32
      %rest = arith.remsi %distance, %four : i32
      %m = arith.cmpi eq, %rest, %zero : i32
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// The same remainder, as Python's // gives it.
// CHECK-LABEL: func.func @every_fourth_by_division
// CHECK: block_q = 192, block_k = 96
func.func @every_fourth_by_division(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %four = arith.constant 4 : i32
      %quarter = arith.floordivsi %j, %four : i32
      %multiple = arith.muli %quarter, %four : i32
      %m = arith.cmpi eq, %multiple, %j : i32
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// A chunk is one interval.
// CHECK-LABEL: func.func @chunks
// CHECK: block_q = 256, block_k = 64
func.func @chunks(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %size = arith.constant 512 : i32
      %own = arith.divsi %i, %size : i32
      %other = arith.divsi %j, %size : i32
      %m = arith.cmpi eq, %own, %other : i32
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// Data that are read by position.
// CHECK-LABEL: func.func @documents
// CHECK: block_q = 192, block_k = 96
func.func @documents(%q: !t, %k: !t, %ids: tensor<?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%ids)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %d: tensor<?xi32>) {
      %own = attn.capture_load %d[%i] : tensor<?xi32>
      %other = attn.capture_load %d[%j] : tensor<?xi32>
      %m = arith.cmpi eq, %own, %other : i32
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o : !t
}

// Documents whose data are sorted: one interval, with an end on each side.
// CHECK-LABEL: func.func @sorted_documents
// CHECK: block_q = 192, block_k = 96
func.func @sorted_documents(%q: !t, %k: !t, %ids: tensor<?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%ids) {sorted_captures = array<i64: 0>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %d: tensor<?xi32>) {
      %own = attn.capture_load %d[%i] : tensor<?xi32>
      %other = attn.capture_load %d[%j] : tensor<?xi32>
      %m = arith.cmpi eq, %own, %other : i32
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o : !t
}

// CHECK-LABEL: func.func @documents_by_offsets
// CHECK: block_q = 192, block_k = 96
func.func @documents_by_offsets(%q: !t, %k: !t, %offsets: tensor<?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%offsets)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %ends: tensor<?xi32>) {
      %own = attn.capture_search %ends[], %i : tensor<?xi32>
      %other = attn.capture_search %ends[], %j : tensor<?xi32>
      %m = arith.cmpi eq, %own, %other : i32
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o : !t
}

// Beside an alternative a document is one interval of several.
// CHECK-LABEL: func.func @documents_or_first
// CHECK: block_q = 192, block_k = 96
func.func @documents_or_first(%q: !t, %k: !t, %ids: tensor<?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%ids) {sorted_captures = array<i64: 0>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %d: tensor<?xi32>) {
      %count = arith.constant 4 : i32
      %own = attn.capture_load %d[%i] : tensor<?xi32>
      %other = attn.capture_load %d[%j] : tensor<?xi32>
      %same = arith.cmpi eq, %own, %other : i32
      %first = arith.cmpi slt, %j, %count : i32
      %m = arith.ori %same, %first : i1
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o : !t
}

// Two remainders of both positions: a tile of queries sees all columns.
// CHECK-LABEL: func.func @neighbourhood
// CHECK: block_q = 192, block_k = 96
func.func @neighbourhood(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %columns = arith.constant 128 : i32
      %six = arith.constant 6 : i32
      %x = arith.remui %i, %columns : i32
      %otherX = arith.remui %j, %columns : i32
      %distance = arith.subi %x, %otherX : i32
      %far = math.absi %distance : i32
      %m = arith.cmpi sle, %far, %six : i32
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// CHECK-LABEL: func.func @wide_neighbourhood
// CHECK: block_q = 128, block_k = 128
func.func @wide_neighbourhood(%q: !wide, %k: !wide) -> !wide {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %columns = arith.constant 128 : i32
      %six = arith.constant 6 : i32
      %x = arith.remui %i, %columns : i32
      %otherX = arith.remui %j, %columns : i32
      %distance = arith.subi %x, %otherX : i32
      %far = math.absi %distance : i32
      %m = arith.cmpi sle, %far, %six : i32
      attn.yield %m : i1
    } : (!wide, !wide, !wide) -> (!wide, !l)
  return %o : !wide
}

// CHECK-LABEL: func.func @wide_half_of_eight
// CHECK: block_q = 128, block_k = 128
func.func @wide_half_of_eight(%q: !wide, %k: !wide) -> !wide {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %seven = arith.constant 7 : i32
      %four = arith.constant 4 : i32
      %distance = arith.subi %i, %j : i32
      %rest = arith.andi %distance, %seven : i32
      %m = arith.cmpi slt, %rest, %four : i32
      attn.yield %m : i1
    } : (!wide, !wide, !wide) -> (!wide, !l)
  return %o : !wide
}

// The last keys of every 128: half of the blocks of 64 show none.
// CHECK-LABEL: func.func @wide_last_of_128
// CHECK: block_q = 192, block_k = 64
func.func @wide_last_of_128(%q: !wide, %k: !wide) -> !wide {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %size = arith.constant 128 : i32
      %start = arith.constant 120 : i32
      %rest = arith.remui %j, %size : i32
      %m = arith.cmpi sge, %rest, %start : i32
      attn.yield %m : i1
    } : (!wide, !wide, !wide) -> (!wide, !l)
  return %o : !wide
}

// CHECK-LABEL: func.func @map_of_128
// CHECK: block_q = 128, block_k = 128
func.func @map_of_128(%q: !t, %k: !t, %map: tensor<?x?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%map)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %shown: tensor<?x?xi32>) {
      %zero = arith.constant 0 : i32
      %queries = arith.constant 128 : i32
      %keys = arith.constant 128 : i32
      %row = arith.floordivsi %i, %queries : i32
      %column = arith.floordivsi %j, %keys : i32
      %entry = attn.capture_load %shown[%row, %column] : tensor<?x?xi32>
      %m = arith.cmpi ne, %entry, %zero : i32
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?x?xi32>) -> (!t, !l)
  return %o : !t
}

// CHECK-LABEL: func.func @map_of_64
// CHECK: block_q = 64, block_k = 64
func.func @map_of_64(%q: !t, %k: !t, %map: tensor<?x?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%map)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %shown: tensor<?x?xi32>) {
      %zero = arith.constant 0 : i32
      %queries = arith.constant 64 : i32
      %keys = arith.constant 64 : i32
      %row = arith.floordivsi %i, %queries : i32
      %column = arith.floordivsi %j, %keys : i32
      %entry = attn.capture_load %shown[%row, %column] : tensor<?x?xi32>
      %m = arith.cmpi ne, %entry, %zero : i32
      %causal = arith.cmpi sge, %i, %j : i32
      %both = arith.andi %m, %causal : i1
      attn.yield %both : i1
    } : (!t, !t, !t, tensor<?x?xi32>) -> (!t, !l)
  return %o : !t
}

// CHECK-LABEL: func.func @map_of_64_keys
// CHECK: block_q = 128, block_k = 64
func.func @map_of_64_keys(%q: !t, %k: !t, %map: tensor<?x?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%map)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %shown: tensor<?x?xi32>) {
      %zero = arith.constant 0 : i32
      %queries = arith.constant 128 : i32
      %keys = arith.constant 64 : i32
      %row = arith.floordivsi %i, %queries : i32
      %column = arith.floordivsi %j, %keys : i32
      %entry = attn.capture_load %shown[%row, %column] : tensor<?x?xi32>
      %m = arith.cmpi ne, %entry, %zero : i32
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?x?xi32>) -> (!t, !l)
  return %o : !t
}

// CHECK-LABEL: func.func @map_of_32
// CHECK: block_q = 128, block_k = 64
func.func @map_of_32(%q: !t, %k: !t, %map: tensor<?x?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%map)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %shown: tensor<?x?xi32>) {
      %zero = arith.constant 0 : i32
      %queries = arith.constant 32 : i32
      %keys = arith.constant 32 : i32
      %row = arith.floordivsi %i, %queries : i32
      %column = arith.floordivsi %j, %keys : i32
      %entry = attn.capture_load %shown[%row, %column] : tensor<?x?xi32>
      %m = arith.cmpi ne, %entry, %zero : i32
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?x?xi32>) -> (!t, !l)
  return %o : !t
}

// CHECK-LABEL: func.func @wide_map_of_64
// CHECK: block_q = 64, block_k = 64
func.func @wide_map_of_64(%q: !wide, %k: !wide, %map: tensor<?x?xi32>) -> !wide {
  %o, %lse = attn.attention %q, %k, %k captures(%map)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %shown: tensor<?x?xi32>) {
      %zero = arith.constant 0 : i32
      %queries = arith.constant 64 : i32
      %keys = arith.constant 128 : i32
      %row = arith.floordivsi %i, %queries : i32
      %column = arith.floordivsi %j, %keys : i32
      %entry = attn.capture_load %shown[%row, %column] : tensor<?x?xi32>
      %m = arith.cmpi ne, %entry, %zero : i32
      attn.yield %m : i1
    } : (!wide, !wide, !wide, tensor<?x?xi32>) -> (!wide, !l)
  return %o : !wide
}

// Blocks of queries begin at 32, 96, 160.
// CHECK-LABEL: func.func @moved_map
// CHECK: block_q = 128, block_k = 64
func.func @moved_map(%q: !t, %k: !t, %map: tensor<?x?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%map)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %shown: tensor<?x?xi32>) {
      %zero = arith.constant 0 : i32
      %six = arith.constant 6 : i32
      %half = arith.constant 96 : i32
      %moved = arith.addi %i, %half : i32
      %row = arith.shrsi %moved, %six : i32
      %column = arith.shrsi %j, %six : i32
      %entry = attn.capture_load %shown[%row, %column] : tensor<?x?xi32>
      %m = arith.cmpi ne, %entry, %zero : i32
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?x?xi32>) -> (!t, !l)
  return %o : !t
}

// Keys one by one: nothing is alike.
// CHECK-LABEL: func.func @map_of_keys
// CHECK: block_q = 128, block_k = 128
func.func @map_of_keys(%q: !t, %k: !t, %map: tensor<?x?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%map)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %shown: tensor<?x?xi32>) {
      %zero = arith.constant 0 : i32
      %size = arith.constant 64 : i32
      %row = arith.divsi %i, %size : i32
      %column = arith.addi %j, %zero : i32
      %entry = attn.capture_load %shown[%row, %column] : tensor<?x?xi32>
      %m = arith.cmpi ne, %entry, %zero : i32
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?x?xi32>) -> (!t, !l)
  return %o : !t
}

// Differences of several remainders: a neighbourhood in three dimensions.
// CHECK-LABEL: func.func @neighbourhood_3d
// CHECK: block_q = 192, block_k = 96
func.func @neighbourhood_3d(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.attention %q, %k, %k
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c8 = arith.constant 8 : i32
      %c2 = arith.constant 2 : i32
      %iz = arith.divui %i, %c8 : i32
      %jz = arith.divui %j, %c8 : i32
      %iy = arith.remui %iz, %c8 : i32
      %jy = arith.remui %jz, %c8 : i32
      %ix = arith.remui %i, %c8 : i32
      %jx = arith.remui %j, %c8 : i32
      %dz = arith.subi %iz, %jz : i32
      %dy = arith.subi %iy, %jy : i32
      %dx = arith.subi %ix, %jx : i32
      %az = math.absi %dz : i32
      %ay = math.absi %dy : i32
      %ax = math.absi %dx : i32
      %mz = arith.cmpi sle, %az, %c8 : i32
      %my = arith.cmpi sle, %ay, %c2 : i32
      %mx = arith.cmpi sle, %ax, %c2 : i32
      %myx = arith.andi %my, %mx : i1
      %m = arith.andi %mz, %myx : i1
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o : !t
}

// At d = 128 what data tell of pairs has 128 keys, sorted documents have 64.
// CHECK-LABEL: func.func @wide_pairs
// CHECK: block_q = 128, block_k = 128
func.func @wide_pairs(%q: !wide, %k: !wide, %seen: tensor<?x?xi1>) -> !wide {
  %o, %lse = attn.attention %q, %k, %k captures(%seen)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %at: tensor<?x?xi1>) {
      %m = attn.capture_load %at[%i, %j] : tensor<?x?xi1>
      attn.yield %m : i1
    } : (!wide, !wide, !wide, tensor<?x?xi1>) -> (!wide, !l)
  return %o : !wide
}

// CHECK-LABEL: func.func @wide_sorted_documents
// CHECK: block_q = 128, block_k = 64
func.func @wide_sorted_documents(%q: !wide, %k: !wide, %ids: tensor<?xi32>) -> !wide {
  %o, %lse = attn.attention %q, %k, %k captures(%ids) {sorted_captures = array<i64: 0>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %of: tensor<?xi32>) {
      %mine = attn.capture_load %of[%i] : tensor<?xi32>
      %other = attn.capture_load %of[%j] : tensor<?xi32>
      %m = arith.cmpi eq, %mine, %other : i32
      attn.yield %m : i1
    } : (!wide, !wide, !wide, tensor<?xi32>) -> (!wide, !l)
  return %o : !wide
}

// A number of each key and one of each query, compared: more queries share what
// is read. So with one of each pair.
// CHECK-LABEL: func.func @one_number
// CHECK: block_q = 192, block_k = 96, warps = 12, stages = 3>
func.func @one_number(%q: !t, %k: !t, %numbers: tensor<?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%numbers)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %n: tensor<?xi32>) {
      %of_query = attn.capture_load %n[%i] : tensor<?xi32>
      %of_key = attn.capture_load %n[%j] : tensor<?xi32>
      %later = arith.cmpi sge, %i, %j : i32
      %alike = arith.cmpi eq, %of_query, %of_key : i32
      %m = arith.ori %later, %alike : i1
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o : !t
}

// CHECK-LABEL: func.func @one_truth_of_each_pair
// CHECK: block_q = 192, block_k = 96, warps = 12, stages = 3>
func.func @one_truth_of_each_pair(%q: !t, %k: !t, %shown: tensor<?x?xi1>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%shown)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xi1>) {
      %m = attn.capture_load %t[%i, %j] : tensor<?x?xi1>
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?x?xi1>) -> (!t, !l)
  return %o : !t
}

// Those of 64 bits take twice the registers, and so do two.
// CHECK-LABEL: func.func @wide_number
// CHECK: block_q = 128, block_k = 128, warps = 8, stages = 2>
func.func @wide_number(%q: !t, %k: !t, %numbers: tensor<?xi64>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%numbers)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %n: tensor<?xi64>) {
      %of_query = attn.capture_load %n[%i] : tensor<?xi64>
      %of_key = attn.capture_load %n[%j] : tensor<?xi64>
      %m = arith.cmpi sge, %of_query, %of_key : i64
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?xi64>) -> (!t, !l)
  return %o : !t
}

// CHECK-LABEL: func.func @two_numbers_of_keys
// CHECK: block_q = 128, block_k = 128, warps = 8, stages = 2>
func.func @two_numbers_of_keys(%q: !t, %k: !t, %numbers: tensor<?x2xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%numbers)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %n: tensor<?x2xi32>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %begin = attn.capture_load %n[%j, %c0] : tensor<?x2xi32>
      %end = attn.capture_load %n[%j, %c1] : tensor<?x2xi32>
      %before = arith.cmpi slt, %i, %begin : i32
      %behind = arith.cmpi sge, %i, %end : i32
      %m = arith.ori %before, %behind : i1
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?x2xi32>) -> (!t, !l)
  return %o : !t
}

// A window whose first key data say moves with the query, as other windows do.
// CHECK-LABEL: func.func @first_key
// CHECK: block_q = 128, block_k = 128, warps = 8, stages = 2>
func.func @first_key(%q: !t, %k: !t, %numbers: tensor<?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%numbers)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %n: tensor<?xi32>) {
      %first = attn.capture_load %n[%i] : tensor<?xi32>
      %of_key = attn.capture_load %n[%j] : tensor<?xi32>
      %c3 = arith.constant 3 : i32
      %begins = arith.cmpi sge, %j, %first : i32
      %seen = arith.cmpi ne, %of_key, %c3 : i32
      %m = arith.andi %begins, %seen : i1
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o : !t
}

// A number that is read where another one says.
// CHECK-LABEL: func.func @indirect
// CHECK: block_q = 128, block_k = 128, warps = 8, stages = 2>
func.func @indirect(%q: !t, %k: !t, %numbers: tensor<?xi32>) -> !t {
  %o, %lse = attn.attention %q, %k, %k captures(%numbers)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %n: tensor<?xi32>) {
      %of_key = attn.capture_load %n[%j] : tensor<?xi32>
      %further = attn.capture_load %n[%of_key] : tensor<?xi32>
      %m = arith.cmpi sge, %i, %further : i32
      attn.yield %m : i1
    } : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o : !t
}
