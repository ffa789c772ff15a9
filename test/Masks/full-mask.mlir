// Pairs one by one, by a captured flag.
// mask: at(c[0], b, i, j)
// capture: integers 0 1 : b sq sk

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x?x?xi1>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0)
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %flags: tensor<?x?x?xi1>) {
      %m = attn.capture_load %flags[%b, %i, %j] : tensor<?x?x?xi1>
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?x?x?xi1>) -> (!t, !l)
  return %o, %lse : !t, !l
}
