func.func @unmet(%a: i32) -> i32 {
  // expected-error@+1 {{another text}}
  %c = arith.addi %a, %b : i32
  // expected-note@below {{is defined here}}
  %b = arith.addi %a, %a : i32
  func.return %c : i32
}
// -----
func.func @too_many(%a: i32) -> i32 {
  // expected-error@+1 3 {{uses `%b`}}
  %c = arith.addi %b, %b : i32
  %b = arith.addi %a, %a : i32  // expected-note 2 {{here}}
  func.return %c : i32
}
// -----
func.func @wrong_kind(%a: i32) -> i32 {
  // expected-warning@+1 {{uses `%b`}}
  %c = arith.addi %a, %b : i32
  %b = arith.addi %a, %a : i32
  func.return %c : i32
}
// -----
// expected-eror {{a slip of the pen}}
func.func @fine() {
  func.return
}
// -----
// expected-error@+1 {{nothing is wrong here}}
func.func @fine() {
  func.return
}
