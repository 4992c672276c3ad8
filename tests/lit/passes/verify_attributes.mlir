// Attributes that make no schedule: missing, mistyped, negative, unknown; each at its place.

// RUN: stretto-opt %s --split-input-file --verify-diagnostics --tileas-verify-schedule
// RUN: not stretto-opt %s --split-input-file --tileas-verify-schedule 2>&1 | filecheck %s

func.func @missing(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{`nv_tile.aws.ii` is missing; expected an integer of at least 1}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-error@+1 {{`nv_tile.aws.start` is missing; expected an integer of at least 0}}
    %a = nv_tileas.generic "a"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, stretto.uses = [], stretto.latency = 1} : () -> i32
    // expected-error@+2 {{`nv_tile.aws.stage` is missing}}
    // expected-error@+1 {{`nv_tile.aws.order` is missing}}
    %b = nv_tileas.generic "b"() {nv_tile.aws.start = 0, stretto.uses = [], stretto.latency = 1} : () -> i32
  }
  func.return
}
// CHECK: verify_attributes.mlir:10:3: error: `nv_tile.aws.ii` is missing
// CHECK: verify_attributes.mlir:12:10: error: `nv_tile.aws.start` is missing

// -----

func.func @zero(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = nv_tileas.generic "a"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0, stretto.uses = [], stretto.latency = 1} : () -> i32
    // expected-error@+1 {{`nv_tile.aws.ii` is 0 : i64; expected a whole number of at least 1}}
  } {nv_tile.aws.ii = 0}
  func.return
}
// CHECK: verify_attributes.mlir:30:6: error: `nv_tile.aws.ii` is 0
// CHECK-NEXT: } {nv_tile.aws.ii = 0}
// CHECK-NEXT: ^

// -----

// Places are verified with the module, whatever pass runs.

func.func @negative(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    // expected-error@+1 {{`nv_tile.aws.start` is -1}}
    %a = nv_tileas.generic "a"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = -1, stretto.uses = [], stretto.latency = 1} : () -> i32
    // expected-error@+1 {{`nv_tile.aws.order` is "first"}}
    %b = nv_tileas.generic "b"() {nv_tile.aws.stage = 0, nv_tile.aws.order = "first", nv_tile.aws.start = 0, stretto.uses = [], stretto.latency = 1} : () -> i32
  } {nv_tile.aws.ii = 1}
  func.return
}

// -----

func.func @mistyped(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = nv_tileas.generic "a"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0, stretto.uses = [], stretto.latency = 1} : () -> i32
    // expected-error@+4 {{`nv_tile.aws.ii` is "soon"; expected a whole number of at least 1}}
    // expected-error@+3 {{`nv_tile.aws.stage_count` is true; expected a whole number of at least 1}}
    // expected-error@+2 {{`nv_tile.aws.machine` is 7 : i64; expected a string}}
    // expected-error@+1 {{`nv_tile.aws.generator` is ""; expected a string}}
  } {nv_tile.aws.ii = "soon", nv_tile.aws.stage_count = true, nv_tile.aws.machine = 7, nv_tile.aws.generator = ""}
  func.return
}

// -----

func.func @misshapen(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = nv_tileas.generic "a"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0, stretto.uses = [], stretto.latency = 1} : () -> i32
    // expected-error@+2 {{`nv_tile.aws.fused` is ["a"]; expected [["a", "b"], ...]}}
    // expected-error@+1 {{`nv_tile.aws.bounds` is 3 : i64; expected {resource, recurrence, fine, dependence, group, mii, limiter}}}
  } {nv_tile.aws.ii = 1, nv_tile.aws.fused = ["a"], nv_tile.aws.bounds = 3}
  func.return
}

// -----

func.func @strangers(%n: index) {
  // expected-error@+2 {{`nv_tile.aws.start` stands on `arith.constant`, which takes no part in a schedule}}
  scf.for %i = %n to %n step %n {
    %c0 = arith.constant {nv_tile.aws.start = 0} 0 : index
    %a = nv_tileas.generic "a"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0, stretto.uses = [], stretto.latency = 1} : () -> i32
  } {nv_tile.aws.ii = 1}
  func.return
}

// -----

func.func @unknown(%n: index) {
  scf.for %i = %n to %n step %n {
    // expected-error@+2 {{unknown attribute `nv_tile.aws.ring`; known: nv_tile.aws.stage}}
    // expected-error@+1 {{`nv_tile.aws.machine` belongs on a loop, not on `nv_tileas.generic`}}
    %a = nv_tileas.generic "a"() {nv_tile.aws.ring = 2, nv_tile.aws.machine = "m", stretto.uses = [], stretto.latency = 1} : () -> i32
    // expected-error@+1 {{unknown attribute `nv_tile.aws.iii`; did you mean `nv_tile.aws.ii`?}}
  } {nv_tile.aws.iii = 1}
  func.return
}

// -----

func.func @bounds_of_their_own(%n: index) {
  scf.for %i = %n to %n step %n {
    %a = nv_tileas.generic "a"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0, stretto.uses = [], stretto.latency = 1} : () -> i32
    // expected-error@+1 {{`nv_tile.aws.bounds` mii is 4; the largest of them is 3 (recurrence)}}
  } {nv_tile.aws.ii = 4, nv_tile.aws.bounds = {resource = 2, recurrence = 3, fine = 1, dependence = 1, mii = 4, limiter = "recurrence"}}
  scf.for %i = %n to %n step %n {
    %a = nv_tileas.generic "a"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0, stretto.uses = [], stretto.latency = 1} : () -> i32
    // expected-error@+1 {{`nv_tile.aws.bounds` limiter is "resource"; they say recurrence}}
  } {nv_tile.aws.ii = 4, nv_tile.aws.bounds = {resource = 2, recurrence = 3, fine = 1, dependence = 1, mii = 3, limiter = "resource"}}
  scf.for %i = %n to %n step %n {
    %a = nv_tileas.generic "a"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0, stretto.uses = [], stretto.latency = 1} : () -> i32
    // expected-error@+1 {{`nv_tile.aws.ii` is 2, below the MII 3 (recurrence bound)}}
  } {nv_tile.aws.ii = 2, nv_tile.aws.bounds = {resource = 2, recurrence = 3, fine = 1, dependence = 1, mii = 3, limiter = "recurrence"}}
  scf.for %i = %n to %n step %n {
    %a = nv_tileas.generic "a"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0, stretto.uses = [], stretto.latency = 1} : () -> i32
    // expected-error@+1 {{`nv_tile.aws.bounds` fine is 0; expected an integer of at least 1}}
  } {nv_tile.aws.ii = 4, nv_tile.aws.bounds = {resource = 2, recurrence = 3, fine = 0, dependence = 1, mii = 3, limiter = "recurrence"}}
  func.return
}
