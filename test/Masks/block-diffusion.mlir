// Blocks of eight tokens with noise, and behind the first 96 positions without: a
// block with noise sees itself and the earlier ones without; those see themselves
// and the earlier ones. A table may hide 32 keys at once.
// mask: (((i >= 96) == (j >= 96)) & (np.where(i >= 96, i - 96, i) // 8 == np.where(j >= 96, j - 96, j) // 8) | (j >= 96) & (np.where(i >= 96, i - 96, i) // 8 > np.where(j >= 96, j - 96, j) // 8)) & (at(c[0], b, j // 32) > 0)
// capture: integers 0 3 : b sk/32

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x?xi32>) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %table: tensor<?x?xi32>) {
      %zero = arith.constant 0 : i32
      %c8 = arith.constant 8 : i32
      %c32 = arith.constant 32 : i32
      %c96 = arith.constant 96 : i32
      %iclean = arith.cmpi sge, %i, %c96 : i32
      %jclean = arith.cmpi sge, %j, %c96 : i32
      %ibehind = arith.subi %i, %c96 : i32
      %jbehind = arith.subi %j, %c96 : i32
      %iplace = arith.select %iclean, %ibehind, %i : i32
      %jplace = arith.select %jclean, %jbehind, %j : i32
      %iblock = arith.floordivsi %iplace, %c8 : i32
      %jblock = arith.floordivsi %jplace, %c8 : i32
      %differ = arith.xori %iclean, %jclean : i1
      %true = arith.constant true
      %alike = arith.xori %differ, %true : i1
      %same = arith.cmpi eq, %iblock, %jblock : i32
      %diagonal = arith.andi %alike, %same : i1
      %later = arith.cmpi sgt, %iblock, %jblock : i32
      %before = arith.andi %jclean, %later : i1
      %shown = arith.ori %diagonal, %before : i1
      %page = arith.divui %j, %c32 : i32
      %kept = attn.capture_load %table[%b, %page] : tensor<?x?xi32>
      %is = arith.cmpi sgt, %kept, %zero : i32
      %m = arith.andi %shown, %is : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?x?xi32>) -> (!t, !l)
  return %o, %lse : !t, !l
}
