// Tokens of a coarse image see those of a fine one about their centres, which
// are no integers: ranges of blocks say little, each pair does.
// mask: (j < 5) | (lambda f: ((j - 5) % 15 >= np.floor(np.maximum((i // 3 % 4 + f(0.5)) * f(3.75) - f(2.6), 0))) & ((j - 5) % 15 < np.ceil((i // 3 % 4 + f(0.5)) * f(3.75) + f(2.6))) & (np.abs((j - 5) // 15 - (i // 12 % 5 + f(0.5)) * f(9.5)) <= f(3.4)))(np.float32)

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %three = arith.constant 3 : i32
      %four = arith.constant 4 : i32
      %five = arith.constant 5 : i32
      %width = arith.constant 15 : i32
      %half = arith.constant 0.5 : f32
      %zero = arith.constant 0.0 : f32
      %scale = arith.constant 3.75 : f32
      %reach = arith.constant 2.6 : f32
      %height = arith.constant 9.5 : f32
      %rows = arith.constant 3.4 : f32
      %third = arith.divui %i, %three : i32
      %x = arith.remui %third, %four : i32
      %row = arith.divui %third, %four : i32
      %y = arith.remui %row, %five : i32
      %xf = arith.sitofp %x : i32 to f32
      %xc = arith.addf %xf, %half : f32
      %cx = arith.mulf %xc, %scale : f32
      %yf = arith.sitofp %y : i32 to f32
      %yc = arith.addf %yf, %half : f32
      %cy = arith.mulf %yc, %height : f32
      %place = arith.subi %j, %five : i32
      %key_row = arith.floordivsi %place, %width : i32
      %start = arith.muli %key_row, %width : i32
      %column = arith.subi %place, %start : i32
      %u = arith.sitofp %column : i32 to f32
      %w = arith.sitofp %key_row : i32 to f32
      %left = arith.subf %cx, %reach : f32
      %inner = arith.maximumf %left, %zero : f32
      %first = math.floor %inner : f32
      %right = arith.addf %cx, %reach : f32
      %last = math.ceil %right : f32
      %after = arith.cmpf oge, %u, %first : f32
      %before = arith.cmpf olt, %u, %last : f32
      %distance = arith.subf %w, %cy : f32
      %far = math.absf %distance : f32
      %near = arith.cmpf ole, %far, %rows : f32
      %text = arith.cmpi slt, %j, %five : i32
      %columns = arith.andi %after, %before : i1
      %seen = arith.andi %columns, %near : i1
      %m = arith.ori %text, %seen : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
