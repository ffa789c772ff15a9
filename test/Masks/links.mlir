// Five links of each query, in 64 bits: it sees the keys that one of them names,
// and those of its own number. What one row of numbers is compared with is known
// before the next one is gathered.
// mask: (at(c[0], b, j) == at(c[0], b, i)) | (at(c[1], b, i, 0) == at(c[0], b, j)) | (at(c[1], b, i, 1) == at(c[0], b, j)) | (at(c[1], b, i, 2) == at(c[0], b, j)) | (at(c[1], b, i, 3) == at(c[0], b, j)) | (at(c[1], b, i, 4) == at(c[0], b, j))
// capture: integers 0 40 : b l
// capture: integers -1 40 : b sq 5

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x?xi64>, %c1: tensor<?x?x5xi64>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %numbers: tensor<?x?xi64>, %links: tensor<?x?x5xi64>) {
      %n0 = arith.constant 0 : i32
      %n1 = arith.constant 1 : i32
      %n2 = arith.constant 2 : i32
      %n3 = arith.constant 3 : i32
      %n4 = arith.constant 4 : i32
      %own = attn.capture_load %numbers[%b, %i] : tensor<?x?xi64>
      %key = attn.capture_load %numbers[%b, %j] : tensor<?x?xi64>
      %l0 = attn.capture_load %links[%b, %i, %n0] : tensor<?x?x5xi64>
      %l1 = attn.capture_load %links[%b, %i, %n1] : tensor<?x?x5xi64>
      %l2 = attn.capture_load %links[%b, %i, %n2] : tensor<?x?x5xi64>
      %l3 = attn.capture_load %links[%b, %i, %n3] : tensor<?x?x5xi64>
      %l4 = attn.capture_load %links[%b, %i, %n4] : tensor<?x?x5xi64>
      %same = arith.cmpi eq, %key, %own : i64
      %is0 = arith.cmpi eq, %l0, %key : i64
      %is1 = arith.cmpi eq, %l1, %key : i64
      %is2 = arith.cmpi eq, %l2, %key : i64
      %is3 = arith.cmpi eq, %l3, %key : i64
      %is4 = arith.cmpi eq, %l4, %key : i64
      %or0 = arith.ori %same, %is0 : i1
      %or1 = arith.ori %or0, %is1 : i1
      %or2 = arith.ori %or1, %is2 : i1
      %or3 = arith.ori %or2, %is3 : i1
      %m = arith.ori %or3, %is4 : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?x?xi64>, tensor<?x?x5xi64>) -> (!t, !l)
  return %o, %lse : !t, !l
}
