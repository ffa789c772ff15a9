// Keys lie in pages of eight, in the order of a table: causal by the position
// that a key stands for.
// mask: at(c[0], b, j // 8) * 8 + j % 8 <= i
// capture: permutation : b sk/8

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %table: tensor<?x?xi32>) {
      %c8 = arith.constant 8 : i32
      %page = arith.divui %j, %c8 : i32
      %slot = arith.remui %j, %c8 : i32
      %logical = attn.capture_load %table[%b, %page] : tensor<?x?xi32>
      %start = arith.muli %logical, %c8 : i32
      %position = arith.addi %start, %slot : i32
      %m = arith.cmpi sle, %position, %i : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?x?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
