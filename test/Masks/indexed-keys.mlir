// Four keys that each query names, some of which are none, and not itself unless
// it is named.
// mask: (at(c[0], b, i, 0) == j) | (at(c[0], b, i, 1) == j) | (at(c[0], b, i, 2) == j) | ((at(c[0], b, i, 3) != i - j) & (j < i) & (j % 3 != 0))
// capture: integers -3 140 : b sq 4

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x?x4xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t0: tensor<?x?x4xi32>) {
      %n0 = arith.constant 0 : i32
      %n1 = arith.constant 1 : i32
      %n2 = arith.constant 2 : i32
      %n3 = arith.constant 3 : i32
      %x0 = attn.capture_load %t0[%b, %i, %n0] : tensor<?x?x4xi32>
      %x1 = attn.capture_load %t0[%b, %i, %n1] : tensor<?x?x4xi32>
      %x2 = attn.capture_load %t0[%b, %i, %n2] : tensor<?x?x4xi32>
      %x3 = attn.capture_load %t0[%b, %i, %n3] : tensor<?x?x4xi32>
      %e0 = arith.cmpi eq, %x0, %j : i32
      %e1 = arith.cmpi eq, %j, %x1 : i32
      %e2 = arith.cmpi eq, %x2, %j : i32
      %d = arith.subi %i, %j : i32
      %other = arith.cmpi ne, %x3, %d : i32
      %before = arith.cmpi slt, %j, %i : i32
      %rest = arith.remsi %j, %n3 : i32
      %some = arith.cmpi ne, %rest, %n0 : i32
      %a0 = arith.andi %other, %before : i1
      %a1 = arith.andi %a0, %some : i1
      %o0 = arith.ori %e0, %e1 : i1
      %o1 = arith.ori %o0, %e2 : i1
      %m = arith.ori %o1, %a1 : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?x?x4xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
