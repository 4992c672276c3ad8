// Schedules edited by hand: every way to be wrong, with its position, and notes at the others.

// RUN: stretto-opt %s --split-input-file --verify-diagnostics --tileas-verify-schedule
// RUN: not stretto-opt %s --split-input-file --tileas-verify-schedule 2>&1 | filecheck %s

// Legal, and not what the generator would have made: the reader is three cycles late.

func.func @legal(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %load = nv_tileas.generic "load"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0, stretto.uses = [{slot = "tma", duration = 4}], stretto.latency = 6} : () -> i32
    %read = nv_tileas.generic "read"(%load) {nv_tile.aws.stage = 1, nv_tile.aws.order = 0, nv_tile.aws.start = 9, stretto.uses = [{slot = "tp_smem_rd", duration = 2}], stretto.latency = 2} : (i32) -> i32
  } {nv_tile.aws.ii = 5}
  func.return
}

// -----

func.func @dependence(%n: index) {
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

// CHECK:      verify_errors.mlir:27:13: error: dependence: `read` starts at 5
// CHECK-NEXT:   %read = nv_tileas.generic
// CHECK-NEXT:   ^
// CHECK-NEXT: verify_errors.mlir:25:13: note: `load` starts at 0
// CHECK-NEXT:   %load = nv_tileas.generic
// CHECK-NEXT:   ^

// -----

func.func @slot(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    // expected-error@+1 {{slot: of slot `tma` (capacity 1), 2 is held}}
    %a = nv_tileas.generic "load"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0, stretto.uses = [{slot = "tma", duration = 4}], stretto.latency = 6} : () -> i32
    // expected-note@+1 {{`b` starts at 3}}
    %b = nv_tileas.generic "load"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 1, nv_tile.aws.start = 3, stretto.uses = [{slot = "tma", duration = 4}], stretto.latency = 6} : () -> i32
  } {nv_tile.aws.ii = 8}
  func.return
}

// -----

func.func @order(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{order: order: the stage count is said to be 4; the last stage is 1}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-error@+1 {{order: `load` is said to be number 1 of its stage; start 0 makes it number 0 of stage 0}}
    %load = nv_tileas.generic "load"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 3, nv_tile.aws.start = 0, stretto.uses = [{slot = "tma", duration = 4}], stretto.latency = 6} : () -> i32
    // expected-error@+1 {{order: `late` is said to be number 0 of its stage; start 4 makes it number 1 of stage 0}}
    %late = nv_tileas.generic "load"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 1, nv_tile.aws.start = 4, stretto.uses = [], stretto.latency = 1} : () -> i32
    // expected-error@+1 {{order: `read` is said to be in stage 2; start 9 is in stage 1 at II 5}}
    %read = nv_tileas.generic "read"(%load) {nv_tile.aws.stage = 2, nv_tile.aws.order = 0, nv_tile.aws.start = 9, stretto.uses = [{slot = "tp_smem_rd", duration = 2}], stretto.latency = 2} : (i32) -> i32
  } {nv_tile.aws.ii = 5, nv_tile.aws.stage_count = 4}
  func.return
}

// -----

func.func @depth_and_group(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    // expected-error@+1 {{group: one group must share a stage at II 5: `load` in stage 0 (start 0), `read` in stage 1 (start 9)}}
    %load = nv_tileas.generic "load"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0, tileas.schedule.constraint.gid = 1, stretto.uses = [{slot = "tma", duration = 4}], stretto.latency = 6} : () -> i32
    // expected-error@+2 {{depth: `read` is in stage 1 (start 9, II 5); its max_depth is 0}}
    // expected-note@+1 {{`read` starts at 9}}
    %read = nv_tileas.generic "read"(%load) {nv_tile.aws.stage = 1, nv_tile.aws.order = 0, nv_tile.aws.start = 9, tileas.schedule.constraint.gid = 1, tileas.schedule.constraint.max_depth = 0, stretto.uses = [{slot = "tp_smem_rd", duration = 2}], stretto.latency = 2} : (i32) -> i32
  } {nv_tile.aws.ii = 5}
  func.return
}

// -----

// Two reads of different banks cannot be one hold.

func.func @fusion(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{fusion: `nobody` is fused, but loop `fusion` has no such operation}}
  scf.for %i = %c0 to %n step %c1 {
    // expected-error@+2 {{fusion: `r0` is in 2 fused groups; one operation is in at most one}}
    // expected-error@+1 {{fusion: fused operations need the same bank, stated: `r0` 0; `r1` 1}}
    %r0 = nv_tileas.generic "read"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0, stretto.facts = {bank = 0}, stretto.uses = [{slot = "tp_smem_rd", duration = 2}], stretto.latency = 2} : () -> i32
    // expected-note@+1 {{`r1` starts at 0}}
    %r1 = nv_tileas.generic "read"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 1, nv_tile.aws.start = 0, stretto.facts = {bank = 1}, stretto.uses = [{slot = "tp_smem_rd", duration = 2}], stretto.latency = 2} : () -> i32
  } {nv_tile.aws.ii = 2, nv_tile.aws.fused = [["r0", "r1"], ["nobody", "r0"]]}
  func.return
}

// -----

func.func @storage(%n: index, %A: !nv_tileas.tensor<4096x4096xf16, global>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0 : i32
  scf.for %i = %c0 to %n step %c1 {
    %big = nv_tileas.alloc_tensor : !nv_tileas.smem_ref<256x256xf16>
    // expected-error@+1 {{storage: smem holds 232,448 bytes; the schedule needs 262,144 (`big` 2 × 131,072, II 8)}}
    %load = nv_tileas.async.tiled_tma_load %A[%z, %z] into %big {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0} : !nv_tileas.tensor<4096x4096xf16, global> -> !nv_tileas.smem_ref<256x256xf16>
    // expected-note@+1 {{`read` starts at 8}}
    %read = nv_tileas.async.smem_read %load {nv_tile.aws.stage = 1, nv_tile.aws.order = 0, nv_tile.aws.start = 8} : !nv_tileas.smem_ref<256x256xf16> -> tensor<256x256xf16>
  } {nv_tile.aws.ii = 8}
  func.return
}

// -----

func.func @machine(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = nv_tileas.generic "load"() {nv_tile.aws.stage = 0, nv_tile.aws.order = 0, nv_tile.aws.start = 0, stretto.uses = [], stretto.latency = 6} : () -> i32
    // expected-error@+1 {{no machine `cray-1`}}
  } {nv_tile.aws.ii = 8, nv_tile.aws.machine = "cray-1"}
  func.return
}

// -----

func.func @unscheduled(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-warning@+1 {{unscheduled: it has no schedule to verify}}
  scf.for %i = %c0 to %n step %c1 {
    %a = nv_tileas.generic "load"() {stretto.uses = [], stretto.latency = 6} : () -> i32
  }
  func.return
}
