// What is not met and what is not expected are both failures, each at its line.

// RUN: not stretto-opt %S/Inputs/expectations.mlir --split-input-file --verify-diagnostics 2>&1 | filecheck %s

// CHECK:      expectations.mlir:2:6: error: expected error "another text" on line 3 was not produced
// CHECK-NEXT:   // expected-error@+1 {{[{][{]another text[}][}]}}
// CHECK-NEXT: ^
// CHECK-NEXT: expectations.mlir:3:8: error: unexpected error: `arith.addi` uses `%b` where its definition does not reach
// CHECK-NEXT:   %c = arith.addi %a, %b : i32
// CHECK-NEXT: ^
// CHECK-NEXT: expectations.mlir:10:6: error: expected error "uses `%b`" on line 11 was not produced
// CHECK:      expectations.mlir:17:6: error: expected warning "uses `%b`" on line 18 was not produced
// CHECK:      expectations.mlir:18:8: error: unexpected error: `arith.addi` uses {{.*}} (a warning is expected there)
// CHECK:      expectations.mlir:19:8: error: unexpected note: `%b` is defined here
// CHECK:      expectations.mlir:23:4: error: this expectation cannot be read
// CHECK:      expectations.mlir:28:4: error: expected error "nothing is wrong here" on line 29 was not produced
// CHECK-NOT:  : error:
