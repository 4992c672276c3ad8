// RUN: stretto-opt %s -p canonicalize,cse --mlir-print-ir-before=cse --mlir-print-ir-after=canonicalize,cse 2>&1 >/dev/null | filecheck %s --check-prefix=SOME
// RUN: stretto-opt %s -p canonicalize,cse --mlir-print-ir-before-all --mlir-print-ir-after-all 2> %t.all >/dev/null && filecheck %s --check-prefix=ALL --input-file %t.all
// RUN: stretto-opt --mlir-print-ir-before --mlir-print-ir-after %s -p canonicalize,cse 2>&1 >/dev/null | diff - %t.all
// RUN: stretto-opt %s -p cse --mlir-print-ir-after --mlir-print-op-generic 2>&1 >/dev/null | filecheck %s --check-prefix=GENERIC
// RUN: stretto-opt %s -p cse --mlir-timing 2>&1 >/dev/null | filecheck %s --check-prefix=TIMING
// RUN: not stretto-opt %s --mlir-print-ir-after=cze 2>&1 | filecheck %s --check-prefix=UNKNOWN

func.func @twice(%a: i32) -> (i32, i32) {
  %b = arith.addi %a, %a : i32
  %c = arith.addi %a, %a : i32
  func.return %b, %c : i32, i32
}

// SOME-NOT: Before CanonicalizePass
// SOME:      // -----// IR Dump After CanonicalizePass (canonicalize) //----- //
// SOME-NEXT: builtin.module
// SOME:      // -----// IR Dump Before CommonSubexpressionElimination (cse) //----- //
// SOME:      %c = arith.addi
// SOME:      // -----// IR Dump After CommonSubexpressionElimination (cse) //----- //
// SOME-NOT:  %c = arith.addi
// SOME:      func.return %b, %b

// ALL: IR Dump Before CanonicalizePass (canonicalize)
// ALL: IR Dump After CanonicalizePass (canonicalize)
// ALL: IR Dump Before CommonSubexpressionElimination (cse)
// ALL: IR Dump After CommonSubexpressionElimination (cse)

// GENERIC: "func.return"(%b, %b)

// TIMING:      Execution time report
// TIMING:      Total Execution Time: {{[0-9.]+}} seconds
// TIMING:      ----Wall Time----  ----Name----
// TIMING-NEXT: {{[0-9.]+}} ({{ *[0-9.]+}}%)  Parser
// TIMING-NEXT: Verifier
// TIMING-NEXT: cse
// TIMING-NEXT: Output
// TIMING-NEXT: Rest
// TIMING-NEXT: (100.0%)  Total

// UNKNOWN: stretto-opt: error: no pass `cze` to print the IR around
