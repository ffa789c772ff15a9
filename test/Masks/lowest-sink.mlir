// Every fourth row has the lowest number of f32 as all its scores, every fourth is
// empty; every third key is hidden by the score (-inf).
// A sink joins.
// mask: i % 4 != 2
// score: np.where(j % 3 == 2, -np.inf, np.where(i % 4 == 1, np.float32(-3.4028234663852886e38), x))
// sink: normal : h

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %sink: tensor<?xf32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v sink(%sink)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %none = arith.constant 0xFF7FFFFF : f32
      %hidden = arith.constant 0xFF800000 : f32
      %c3 = arith.constant 3 : i32
      %c4 = arith.constant 4 : i32
      %one = arith.constant 1 : i32
      %two = arith.constant 2 : i32
      %r = arith.remui %i, %c4 : i32
      %isLow = arith.cmpi eq, %r, %one : i32
      %y = arith.select %isLow, %none, %x : f32
      %rj = arith.remui %j, %c3 : i32
      %isTwo = arith.cmpi eq, %rj, %two : i32
      %z = arith.select %isTwo, %hidden, %y : f32
      attn.yield %z : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c4 = arith.constant 4 : i32
      %two = arith.constant 2 : i32
      %r = arith.remui %i, %c4 : i32
      %m = arith.cmpi ne, %r, %two : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
