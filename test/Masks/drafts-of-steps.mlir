// Steps of a draft (EAGLE-3, Li et al., 2025): the target's tokens up to two
// before a query, and its own place in each of the later steps; lengths of 64
// bits.
// mask: ((i - 2 >= j) & (j < c[0][b])) | ((j >= 50) & (j % 50 < c[0][b]) & ((j - i) % 50 == 0))
// capture: integers 1 50 : b

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi64>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %lengths: tensor<?xi64>) {
      %two = arith.constant 2 : i32
      %step = arith.constant 50 : i32
      %zero = arith.constant 0 : i32
      %length = attn.capture_load %lengths[%b] : tensor<?xi64>
      %before = arith.subi %i, %two : i32
      %past = arith.cmpi sge, %before, %j : i32
      %key = arith.extsi %j : i32 to i64
      %inside = arith.cmpi slt, %key, %length : i64
      %target = arith.andi %past, %inside : i1
      %late = arith.cmpi sge, %j, %step : i32
      %number = arith.floordivsi %j, %step : i32
      %start = arith.muli %number, %step : i32
      %place = arith.subi %j, %start : i32
      %place64 = arith.extsi %place : i32 to i64
      %there = arith.cmpi slt, %place64, %length : i64
      %distance = arith.subi %j, %i : i32
      %steps = arith.floordivsi %distance, %step : i32
      %whole = arith.muli %steps, %step : i32
      %rest = arith.subi %distance, %whole : i32
      %own = arith.cmpi eq, %rest, %zero : i32
      %draft = arith.andi %late, %there : i1
      %drafted = arith.andi %draft, %own : i1
      %m = arith.ori %target, %drafted : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi64>) -> (!t, !l)
  return %o, %lse : !t, !l
}
