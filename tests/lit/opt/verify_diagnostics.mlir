// RUN: stretto-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

func.func @here(%a: i32) -> i32 {
  %c = arith.addi %a, %b : i32  // expected-error {{uses `%b`}}
  // expected-note@+1 {{defined here}}
  %b = arith.addi %a, %a : i32
  func.return %c : i32
}

// -----

func.func @above_and_below(%a: i32) -> i32 {
  %c = arith.addi %a, %b : i32
  // expected-error@above {{does not reach}}
  // expected-note@below {{is defined here}}
  %b = arith.addi %a, %a : i32
  func.return %c : i32
}

// -----

func.func @far(%a: i32) -> i32 {
  %c = arith.muli %b, %b : i32
  %b = arith.addi %a, %a : i32
  func.return %c : i32
  // expected-error@-3 2 {{`arith.muli` uses}}
  // expected-note-re@-3 2 {{`%{{[a-z]}}` is}}
}

// -----

// expected-error@33 {{`%nobody` is not defined}}
"test.op"(%nobody) : (i32) -> ()
