// A sink that outweighs every key.
// mask: j <= i
// sink: uniform 20 30 : h

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %sink: tensor<?xf32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v sink(%sink)
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi sle, %j, %i : i32
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xf32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
