// RUN: stretto-opt %s | filecheck %s --check-prefix=CUSTOM
// RUN: stretto-opt %s --mlir-print-op-generic -o %t.generic && filecheck %s --check-prefix=GENERIC --input-file %t.generic
// RUN: stretto-opt - < %t.generic > %t.custom && stretto-opt < %s | diff - %t.custom
// RUN: stretto-opt --mlir-print-debuginfo %s | filecheck %s --check-prefix=DEBUG

func.func @add(%a: i32) -> i32 {
  %b = "arith.addi"(%a, %a) <{overflowFlags = #arith.overflow<none>}> {note = "kept"} : (i32, i32) -> i32 loc("elsewhere.py":3:4)
  func.return %b : i32
}

// CUSTOM:      builtin.module {
// CUSTOM-NEXT:   func.func @add(%a: i32) -> i32 {
// CUSTOM-NEXT:     %b = arith.addi %a, %a {note = "kept"} : i32
// CUSTOM-NEXT:     func.return %b : i32
// CUSTOM-NOT:    loc(

// GENERIC:     "builtin.module"() ({
// GENERIC:       "func.func"()
// GENERIC:         %b = "arith.addi"(%a, %a) <{overflowFlags = #arith.overflow<none>}> {note = "kept"} : (i32, i32) -> i32
// GENERIC:         "func.return"(%b) : (i32) -> ()

// DEBUG: loc("elsewhere.py":3:4)
