// Offsets per batch entry, and a window inside each document.
// mask: (upto(c[0][b], i) == upto(c[0][b], j)) & (j <= i) & (i - j < 20)
// capture: offsets : b 9

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x9xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0) {sorted_captures = array<i64: 0>}
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %offsets: tensor<?x9xi32>) {
      %c20 = arith.constant 20 : i32
      %r = attn.capture_search %offsets[%b], %i : tensor<?x9xi32>
      %s = attn.capture_search %offsets[%b], %j : tensor<?x9xi32>
      %same = arith.cmpi eq, %r, %s : i32
      %d = arith.subi %i, %j : i32
      %near = arith.cmpi ult, %d, %c20 : i32
      %m = arith.andi %same, %near : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?x9xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
