// A window of its own size for each query, and a last key for each batch entry,
// in 64 bits as PyTorch has them.
// mask: (i - j <= c[0][i]) & (j < c[1][b])
// capture: integers -5 70 : sq
// capture: integers 1 sk : b

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi64>, %c1: tensor<?xi64>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %windows: tensor<?xi64>, %ends: tensor<?xi64>) {
      %window = attn.capture_load %windows[%i] : tensor<?xi64>
      %end = attn.capture_load %ends[%b] : tensor<?xi64>
      %distance = arith.subi %i, %j : i32
      %d = arith.extsi %distance : i32 to i64
      %key = arith.extsi %j : i32 to i64
      %near = arith.cmpi sle, %d, %window : i64
      %inside = arith.cmpi sgt, %end, %key : i64
      %m = arith.andi %near, %inside : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi64>, tensor<?xi64>) -> (!t, !l)
  return %o, %lse : !t, !l
}
