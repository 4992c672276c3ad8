// A loop that gets no schedule is left alone, and says why; `strict` makes that an error.

// RUN: stretto-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect -p 'tileas-generate-schedule{max-ii=7}' --remarks-filter='^(Passed|Missed)' | filecheck %s
// RUN: not stretto-opt %s --split-input-file --allow-unregistered-dialect -p 'tileas-generate-schedule{max-ii=7 strict}' 2>&1 | filecheck %s --check-prefix=STRICT
// RUN: not stretto-opt %s --split-input-file --allow-unregistered-dialect -p 'tileas-generate-schedule{max-ii=7 machine=b200-pipes}' 2>&1 | filecheck %s --check-prefix=B200

// The copy holds its slot for 8 cycles, so no II up to 7 can do.

// CHECK-LABEL: func.func @too_slow
// CHECK-NOT:     nv_tile.aws
func.func @too_slow(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-warning@+2 {{too_slow: left alone: no schedule exists up to II 7: below the MII 8 (resource bound: slot tma)}}
  // expected-remark@+1 {{too_slow: left alone: no schedule exists up to II 7}}
  scf.for %i = %c0 to %n step %c1 {
    %a = nv_tileas.generic "copy"() {nv_tile.aws.start = 3 : i64, stretto.uses = [{slot = "tma", duration = 8}], stretto.latency = 8} : () -> i32
    %b = nv_tileas.generic "use"(%a) {stretto.uses = [{slot = "tp_smem_rd", duration = 2}], stretto.latency = 2} : (i32) -> i32
  } {nv_tile.aws.ii = 99 : i64}
  func.return
}
// STRICT: left_alone.mlir:16:3: error: too_slow: left alone: no schedule exists up to II 7

// -----

// One that has a schedule, so that remarks have something good to say.

// CHECK-LABEL: func.func @fine
// CHECK:         nv_tile.aws.ii = 4 : i64
func.func @fine(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-remark@+1 {{fine: scheduled on blackwell: II 4 is the MII, limited by slot tma}}
  scf.for %i = %c0 to %n step %c1 {
    %a = nv_tileas.generic "copy"() {stretto.uses = [{slot = "tma", duration = 4}], stretto.latency = 4} : () -> i32
    %b = nv_tileas.generic "use"(%a) {stretto.uses = [{slot = "tp_smem_rd", duration = 2}], stretto.latency = 2} : (i32) -> i32
  }
  func.return
}

// -----

// CHECK-LABEL: func.func @not_a_for
// CHECK-NOT:     nv_tile.aws
func.func @not_a_for(%go: i1, %x: i32) {
  // expected-warning@+2 {{loop `not_a_for` is left alone: scf.while: how often it goes round is not known before; only scf.for is pipelined}}
  // expected-remark@+1 {{left alone: loop `not_a_for` is left alone}}
  %r = scf.while (%y = %x) : (i32) -> i32 {
    scf.condition(%go) %y : i32
  } do {
  ^bb0(%z: i32):
    %a = nv_tileas.generic "copy"() {nv_tile.aws.start = 3 : i64} : () -> i32
    scf.yield %a : i32
  }
  func.return
}
// STRICT: left_alone.mlir:48:8: error: loop `not_a_for` is left alone

// -----

// An operation that the machine has no encoding for: blackwell has a slot for those and warns,
// b200-pipes has none and refuses.

// CHECK-LABEL: func.func @unknown
func.func @unknown(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-remark@+1 {{unknown: scheduled on blackwell}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-warning@+1 {{blackwell does not know `nobody.knows`}}
    %a = "nobody.knows"() : () -> i32
    %b = nv_tileas.generic "use"(%a) {stretto.uses = [{slot = "tp_smem_rd", duration = 2}], stretto.latency = 2} : (i32) -> i32
  }
  func.return
}
// B200: left_alone.mlir:71:10: error: {{.*}}b200-pipes does not know this operation
