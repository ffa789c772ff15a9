// The places of an image around that of the query, whose width is a number of each
// sequence: quotients by way of a reciprocal, one off at most, and put right.
// mask: (np.abs(i // c[0][b] - j // c[0][b]) <= 2) & (np.abs(i % c[0][b] - j % c[0][b]) <= 6)
// capture: integers 7 32 : b

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %widths: tensor<?xi32>) {
      %less = arith.constant -1 : i32
      %zero = arith.constant 0 : i32
      %more = arith.constant 1 : i32
      %rows = arith.constant 2 : i32
      %columns = arith.constant 6 : i32
      %one = arith.constant 1.0 : f32
      %width = attn.capture_load %widths[%b] : tensor<?xi32>
      %divisor = arith.sitofp %width : i32 to f32
      %reciprocal = arith.divf %one, %divisor : f32

      %if = arith.sitofp %i : i32 to f32
      %iratio = arith.mulf %if, %reciprocal : f32
      %ifloor = math.floor %iratio : f32
      %iabout = arith.fptosi %ifloor : f32 to i32
      %istart = arith.muli %iabout, %width : i32
      %irest = arith.subi %i, %istart : i32
      %itoo = arith.cmpi slt, %irest, %zero : i32
      %ibelow = arith.addi %iabout, %less : i32
      %ilower = arith.select %itoo, %ibelow, %iabout : i32
      %inot = arith.cmpi sge, %irest, %width : i32
      %iabove = arith.addi %ilower, %more : i32
      %irow = arith.select %inot, %iabove, %ilower : i32

      %jf = arith.sitofp %j : i32 to f32
      %jratio = arith.mulf %jf, %reciprocal : f32
      %jfloor = math.floor %jratio : f32
      %jabout = arith.fptosi %jfloor : f32 to i32
      %jstart = arith.muli %jabout, %width : i32
      %jrest = arith.subi %j, %jstart : i32
      %jtoo = arith.cmpi slt, %jrest, %zero : i32
      %jbelow = arith.addi %jabout, %less : i32
      %jlower = arith.select %jtoo, %jbelow, %jabout : i32
      %jnot = arith.cmpi sge, %jrest, %width : i32
      %jabove = arith.addi %jlower, %more : i32
      %jrow = arith.select %jnot, %jabove, %jlower : i32

      %down = arith.subi %irow, %jrow : i32
      %vertical = math.absi %down : i32
      %near = arith.cmpi sle, %vertical, %rows : i32
      %ifirst = arith.muli %irow, %width : i32
      %icolumn = arith.subi %i, %ifirst : i32
      %jfirst = arith.muli %jrow, %width : i32
      %jcolumn = arith.subi %j, %jfirst : i32
      %right = arith.subi %icolumn, %jcolumn : i32
      %horizontal = math.absi %right : i32
      %beside = arith.cmpi sle, %horizontal, %columns : i32
      %m = arith.andi %near, %beside : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
