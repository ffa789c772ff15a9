// Blocks of keys that are chosen for blocks of queries, in each head, and the last
// 24 keys.
// mask: ((at(c[0], h, i // 64, j // 64) != 0) | (i - j < 24)) & (j <= i)
// capture: integers 0 1 : h sq/64 sk/64

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x?x?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %chosen: tensor<?x?x?xi32>) {
      %zero = arith.constant 0 : i32
      %c24 = arith.constant 24 : i32
      %c64 = arith.constant 64 : i32
      %iblock = arith.floordivsi %i, %c64 : i32
      %jblock = arith.floordivsi %j, %c64 : i32
      %number = attn.capture_load %chosen[%h, %iblock, %jblock] : tensor<?x?x?xi32>
      %is = arith.cmpi ne, %number, %zero : i32
      %distance = arith.subi %i, %j : i32
      %near = arith.cmpi slt, %distance, %c24 : i32
      %either = arith.ori %is, %near : i1
      %causal = arith.cmpi sle, %j, %i : i32
      %m = arith.andi %either, %causal : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?x?x?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
