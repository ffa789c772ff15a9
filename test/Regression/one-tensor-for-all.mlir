// One tensor may be query, key and value. What a call computes was counted by
// the names of arguments, of which it has one: nothing at all.
// RUN: attn-run %s --target=cpu --shape=b=1,h=2,hkv=2,sq=32,sk=32 --check --bench --repeats=1 --json | FileCheck %s
// CHECK-DAG: "flops": 524288
// CHECK-DAG: "pairs": 1024
// CHECK-DAG: "passes": true
// RUN: attn-compile %s -o %t.attn
// RUN: FileCheck %s --check-prefix=ROLES < %t.attn
// ROLES: "name": "v",
// ROLES-NEXT: "roles": [
// ROLES-NEXT: "query",
// ROLES-NEXT: "key",
// ROLES-NEXT: "value"
// ROLES-NEXT: ],

!t = tensor<?x?x?x64xf32>
func.func @f(%x: !t) -> !t {
  %o, %lse = attn.attention %x, %x, %x : (!t, !t, !t) -> (!t, tensor<?x?x?xf32>)
  return %o : !t
}
