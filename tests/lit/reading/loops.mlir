// What is said of loops as they are read: unknown operations, and loops left alone.

// RUN: stretto-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect -p tileas-generate-schedule > %t.mlir
// RUN: filecheck %s --input-file %t.mlir

// CHECK-LABEL: func.func @unknown
func.func @unknown(%n: index, %x: f32) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    // CHECK: "foo.bar"(%x) {nv_tile.aws.stage = 0
    // expected-warning @below {{blackwell does not know `foo.bar`; `a` takes slot `unknown`}}
    %a = "foo.bar"(%x) : (f32) -> f32
  }
  func.return
}

// -----

// CHECK-LABEL: func.func @outer
func.func @outer(%n: index, %m: index, %x: f32) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-warning @below {{loop `outer.0` is left alone: an inner loop whose trip count is not constant}}
  scf.for %i = %zero to %n step %one {
    // expected-note @below {{state `stretto.trip_count`, or its cycles as `stretto.length`}}
    scf.for %j = %zero to %m step %one {
      // CHECK: arith.negf %x {nv_tile.aws.stage = 0
      %a = arith.negf %x : f32
    }
  }
  func.return
}

// -----

func.func @refused(%n: index, %x: f32) {
  %zero = arith.constant 0 : index
  scf.for %i = %zero to %n step %n {
    // expected-error @below {{`a` (foo.bar): b200-pipes does not know this operation; it has no encoding}}
    %a = "foo.bar"(%x) : (f32) -> f32
  } {stretto.machine = "b200-pipes"}
  func.return
}
