// One of each operation on integers that a mask may have, and a table of 32 keys.
// mask: ((at(c[0], j // 32) > 1) | (np.where(i // 32 % 3 == 1, np.abs(i - j), 2 * np.maximum(j, 50) - np.minimum(i, 90)) < 45)) ^ (((j * 3 + 5) % 128 < 40) & (np.fmod(i - j, 64) != 7)) & ((i // 4) * (i // 4 - j // 4) >= -60)
// capture: integers 0 3 : sk/32

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %table: tensor<?xi32>) {
      %one = arith.constant 1 : i32
      %two = arith.constant 2 : i32
      %three = arith.constant 3 : i32
      %five = arith.constant 5 : i32
      %seven = arith.constant 7 : i32
      %least = arith.constant -60 : i32
      %c4 = arith.constant 4 : i32
      %c32 = arith.constant 32 : i32
      %c40 = arith.constant 40 : i32
      %c45 = arith.constant 45 : i32
      %c50 = arith.constant 50 : i32
      %c64 = arith.constant 64 : i32
      %c90 = arith.constant 90 : i32
      %c127 = arith.constant 127 : i32
      %page = arith.shrui %j, %five : i32
      %number = attn.capture_load %table[%page] : tensor<?xi32>
      %kept = arith.cmpi ugt, %number, %one : i32
      %group = arith.divsi %i, %c32 : i32
      %third = arith.remui %group, %three : i32
      %isSecond = arith.cmpi eq, %third, %one : i32
      %distance = arith.subi %i, %j : i32
      %near = math.absi %distance : i32
      %right = arith.maxsi %j, %c50 : i32
      %twice = arith.muli %right, %two : i32
      %left = arith.minsi %i, %c90 : i32
      %other = arith.subi %twice, %left : i32
      %reach = arith.select %isSecond, %near, %other : i32
      %within = arith.cmpi slt, %reach, %c45 : i32
      %first = arith.ori %kept, %within : i1
      %tripled = arith.muli %j, %three : i32
      %moved = arith.addi %tripled, %five : i32
      %low = arith.andi %moved, %c127 : i32
      %isLow = arith.cmpi ult, %low, %c40 : i32
      %rest = arith.remsi %distance, %c64 : i32
      %isOther = arith.cmpi ne, %rest, %seven : i32
      %both = arith.andi %isLow, %isOther : i1
      %i4 = arith.divui %i, %c4 : i32
      %j4 = arith.floordivsi %j, %c4 : i32
      %apart = arith.subi %i4, %j4 : i32
      %product = arith.muli %i4, %apart : i32
      %isMore = arith.cmpi sge, %product, %least : i32
      %second = arith.andi %both, %isMore : i1
      %m = arith.xori %first, %second : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
