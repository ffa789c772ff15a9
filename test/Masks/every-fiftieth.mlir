// A band, and every fiftieth token, which sees all and is seen by all.
// mask: (abs(i - j) <= 6) | (j % 50 == 0) | (i % 50 == 0)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %reach = arith.constant 6 : i32
      %step = arith.constant 50 : i32
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
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
