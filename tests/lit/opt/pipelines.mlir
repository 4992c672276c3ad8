// Every way to say which passes run; what is wrong with a pipeline is shown in it.

// RUN: stretto-opt %s -p canonicalize,cse > %t.expected
// RUN: stretto-opt %s --passes 'builtin.module(canonicalize, cse)' | diff - %t.expected
// RUN: stretto-opt %s --pass-pipeline='any(canonicalize,cse)' | diff - %t.expected
// RUN: stretto-opt --canonicalize %s -cse | diff - %t.expected
// RUN: filecheck %s --input-file %t.expected

// RUN: not stretto-opt %s -p 'cse,canonicalise' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not stretto-opt %s --cse -p cse 2>&1 | filecheck %s --check-prefix=BOTH
// RUN: not stretto-opt %s --tileas-generate-schedule='max-ii=none' 2>&1 | filecheck %s --check-prefix=TYPE

// CHECK-LABEL: func.func @twice
// CHECK-NEXT:    %b = arith.addi %a, %a : i32
// CHECK-NEXT:    func.return %b, %b : i32, i32
func.func @twice(%a: i32) -> (i32, i32) {
  %unused = arith.constant 1 : i32
  %b = arith.addi %a, %a : i32
  %c = arith.addi %a, %a : i32
  func.return %b, %c : i32, i32
}

// UNKNOWN:      stretto-opt: error: pass pipeline: no pass `canonicalise`; did you mean `canonicalize`?
// UNKNOWN-NEXT:   cse,canonicalise
// UNKNOWN-NEXT:       ^

// BOTH: usage: stretto-opt
// BOTH: stretto-opt: error: a pass pipeline and --cse: give one or the other

// TYPE:      pass pipeline: option `max-ii` is `none`; expected
// TYPE-NEXT:   tileas-generate-schedule{max-ii=none}
// TYPE-NEXT:                            ^
