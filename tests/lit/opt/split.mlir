// Chunks are modules of their own; the one that is wrong does not stop the others, and what is said
// of it has the line of the file. A file is written only when all is well.

// RUN: not stretto-opt %s --split-input-file > %t.out 2> %t.err
// RUN: filecheck %s --input-file %t.out
// RUN: filecheck %s --input-file %t.err --check-prefix=ERROR
// RUN: rm -f %t.file && not stretto-opt %s --split-input-file -o %t.file && not ls %t.file
// RUN: not stretto-opt %s 2>&1 | filecheck %s --check-prefix=WHOLE

// CHECK: func.func @first
func.func @first() {
  func.return
}

// -----

// ERROR:      split.mlir:20:8: error: `arith.addi` uses `%b` where its definition does not reach
// ERROR:      split.mlir:21:8: note: `%b` is defined here
func.func @second(%a: i32) -> i32 {
  %c = arith.addi %a, %b : i32
  %b = arith.addi %a, %a : i32
  func.return %c : i32
}

// -----

// CHECK: // -----
// CHECK: // -----
// CHECK: func.func @third
func.func @third() {
  func.return
}

// -----

// Nothing but a comment is an empty module.
// CHECK: // -----
// CHECK-NEXT: builtin.module {
// CHECK-NEXT: }

// ERROR-NOT: error

// WHOLE: error
