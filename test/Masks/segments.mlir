// Segments, where number 0 marks padding that nobody sees; eight bits.
// mask: (at(c[0], b, i) == at(c[1], b, j)) & (at(c[1], b, j) != 0)
// capture: integers 0 4 : b sq
// capture: integers 0 4 : b sk

!t = tensor<?x?x?x32xbf16>
!l = tensor<?x?x?xf32>

func.func @attention(%q: !t, %k: !t, %v: !t, %c0: tensor<?x?xi8>, %c1: tensor<?x?xi8>)
    -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v captures(%c0, %c1)
    mask(%b: i32, %h: i32, %i: i32, %j: i32,
         %queries: tensor<?x?xi8>, %keys: tensor<?x?xi8>) {
      %zero = arith.constant 0 : i8
      %r = attn.capture_load %queries[%b, %i] : tensor<?x?xi8>
      %s = attn.capture_load %keys[%b, %j] : tensor<?x?xi8>
      %same = arith.cmpi eq, %r, %s : i8
      %real = arith.cmpi ne, %s, %zero : i8
      %m = arith.andi %same, %real : i1
      attn.yield %m : i1
    }
    : (!t, !t, !t, tensor<?x?xi8>, tensor<?x?xi8>) -> (!t, !l)
  return %o, %lse : !t, !l
}
