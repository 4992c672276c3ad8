// What is refused, what is left alone, and where that is said.

// RUN: stretto-opt %s --split-input-file --verify-diagnostics --tileas-materialize-schedule=mode=specialized
// RUN: not stretto-opt %s --split-input-file --tileas-materialize-schedule=mode=specialized 2>&1 | filecheck %s
// RUN: not stretto-opt %s --tileas-materialize-schedule=mode=sideways 2>&1 | filecheck %s --check-prefix=MODE
// RUN: not stretto-opt %s --split-input-file --tileas-materialize-schedule --remarks-filter=unscheduled 2>&1 | filecheck %s --check-prefix=REMARK

// MODE: mode is sideways; known: unspecialized, specialized

// A tile of 96 rows does not divide 4,096, and a cluster of 3 not the 32 tiles along the columns.

func.func @shapes(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %t = %c0 to %n step %c1 : i32 {
    // expected-error@+2 {{shapes.1: the schedule is invalid: axis 0: the problem's 4096 is no multiple of the tile's 96}}
    // expected-error@+1 {{shapes.1: the schedule is invalid: axis 1: 32 tiles (4096 / 128) are no multiple of the cluster's 3}}
    %m, %k, %valid = nv_tileas.work_tile_info %t {problem = array<i64: 4096, 4096>, tile = array<i64: 96, 128>, cluster = array<i64: 1, 3>, blocks = 3} : i32 -> i32, i32, i1
    scf.for %i = %c0 to %n step %c1 : i32 {
      %a = nv_tileas.generic "load"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0, stretto.uses = [], stretto.latency = 6} : () -> i32
    } {nv_tile.aws.ii = 8}
  }
  func.return
}

// CHECK: errors.mlir:18:22: error: shapes.1: the schedule is invalid: axis 0
// CHECK-NEXT: work_tile_info
// CHECK-NEXT: ^

// -----

func.func @illegal(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    // expected-note@+1 {{`load` starts at 0}}
    %load = nv_tileas.generic "load"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0, stretto.uses = [{slot = "tma", duration = 4}], stretto.latency = 6} : () -> i32
    // expected-error@+1 {{dependence: `read` starts at 5; `load` is ready at 6 (start 0 + latency 6, distance 0, II 5)}}
    %read = nv_tileas.generic "read"(%load) {nv_tile.aws.stage = 1, nv_tile.aws.order = 0, nv_tile.aws.start = 5, stretto.uses = [{slot = "tp_smem_rd", duration = 2}], stretto.latency = 2} : (i32) -> i32
  } {nv_tile.aws.ii = 5}
  func.return
}

// -----

func.func @part(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    // expected-error@+1 {{`nv_tile.aws.order` is missing; expected an integer of at least 0}}
    %a = nv_tileas.generic "load"() {nv_tile.aws.stage = 0, nv_tile.aws.start = 0, stretto.uses = [], stretto.latency = 6} : () -> i32
  } {nv_tile.aws.ii = 5}
  func.return
}

// -----

// REMARK: remark: unscheduled: left alone: it has no schedule to materialize

func.func @unscheduled(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-warning@+1 {{unscheduled: it has no schedule to materialize}}
  scf.for %i = %c0 to %n step %c1 {
    %a = nv_tileas.generic "load"() {stretto.uses = [], stretto.latency = 6} : () -> i32
  }
  func.return
}

// -----

// Of a nest, the inner loop is pipelined; the outer one is left as it is, without its schedule.

func.func @nest(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  // expected-warning@+1 {{nest.0: it cannot be written as a program: `for_0` is a loop inside it}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-note@+1 {{`for_0` is a loop inside it}}
    scf.for %j = %c0 to %c9 step %c1 {
      %a = nv_tileas.generic "load"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0, stretto.uses = [], stretto.latency = 6} : () -> i32
    } {nv_tile.aws.ii = 8, nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0}
  } {nv_tile.aws.ii = 80}
  func.return
}

// -----

func.func @agent(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    // expected-error@+1 {{`stretto.agent` is 3; expected a string that is not empty}}
    %a = nv_tileas.generic "load"() {stretto.agent = 3, stretto.uses = [], stretto.latency = 6} : () -> i32
  }
  func.return
}
