"""Agents wait for the turns that their program's phases tell, not for one more each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.compile.candidates import Emitter
from stretto.frontends.triton import read_ttir
from stretto.machine import load_machine
from stretto.prediction.kernel_time import predict_kernel
from stretto.prediction.score import loops_in

H200 = load_machine("h200")
WIDE = Path(__file__).parents[1] / "ttir/wide" / "attention_forward_d64_256_causal.ttir"
HALF, SUM = "tensor<64x64xf16>", "tensor<64x64xf32>"
RESCORED = f"""module {{
  tt.func public @rescored(%q: !tt.ptr<f16>, %w: !tt.ptr<f16>, %k: !tt.ptr<f16>, %out: !tt.ptr<f16>,
      %n: i32, %m: i32) {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : {SUM}
    %c64 = arith.constant 64 : i32
    %c64_i64 = arith.constant 64 : i64
    %c1_i64 = arith.constant 1 : i64
    %rows = arith.muli %n, %c64 : i32
    %all = arith.muli %rows, %m : i32
    %q_desc = tt.make_tensor_descriptor %q, [%c64, %c64], [%c64_i64, %c1_i64] : <f16>, <{HALF}>
    %w_desc = tt.make_tensor_descriptor %w, [%rows, %c64], [%c64_i64, %c1_i64] : <f16>, <{HALF}>
    %k_desc = tt.make_tensor_descriptor %k, [%all, %c64], [%c64_i64, %c1_i64] : <f16>, <{HALF}>
    %o_desc = tt.make_tensor_descriptor %out, [%c64, %c64], [%c64_i64, %c1_i64] : <f16>, <{HALF}>
    %q_tile = tt.descriptor_load %q_desc[%c0, %c0] : !tt.tensordesc<{HALF}> -> {HALF}
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%before = %zero) -> ({SUM}) : i32 {{
      %at = arith.muli %i, %c64 : i32
      %w_tile = tt.descriptor_load %w_desc[%at, %c0] : !tt.tensordesc<{HALF}> -> {HALF}
      %part = tt.dot %q_tile, %w_tile, %zero : {HALF} * {HALF} -> {SUM}
      %half = arith.truncf %part : {SUM} to {HALF}
      %inner = scf.for %j = %c0 to %m step %c1 iter_args(%total = %before) -> ({SUM}) : i32 {{
        %first = arith.muli %i, %m : i32
        %number = arith.addi %first, %j : i32
        %row = arith.muli %number, %c64 : i32
        %k_tile = tt.descriptor_load %k_desc[%row, %c0] : !tt.tensordesc<{HALF}> -> {HALF}
        %next = tt.dot %half, %k_tile, %total : {HALF} * {HALF} -> {SUM}
        scf.yield %next : {SUM}
      }}
      scf.yield %inner : {SUM}
    }}
    %result = arith.truncf %sum : {SUM} to {HALF}
    tt.descriptor_store %o_desc[%c0, %c0], %result : !tt.tensordesc<{HALF}>, {HALF}
    tt.return
  }}
}}
"""
"""A tile is copied once, ahead of a loop, in which alone it is read, as in `path_attention`."""


def test_a_tile_of_one_turn_is_waited_for_as_often_as_a_loop_goes_round() -> None:
    (kernel,) = read_ttir("rescored", RESCORED)
    (made, *_) = Emitter(kernel, H200, effort="quick").candidates(stages=(3,))
    assert made.mode == "specialized"
    assert made.source.count("_full, 0)") > 1

    def seconds(turns: int) -> float:
        return predict_kernel(made.subject, H200, (132,), {"n": turns, "m": 16}).seconds

    one, two, four = map(seconds, (1, 2, 4))
    assert two > one
    assert four - two == pytest.approx(2 * (two - one), rel=0.3)


def test_steps_that_a_mask_hides_hand_back_one_after_the_other() -> None:
    """Each with all of its tiles: rings of one slot have no room for more."""
    made = Emitter(str(WIDE), H200, effort="quick").candidates(2, 1, stages=(3,))[0]
    assert any(loop.hidden for one in made.subject.score for loop in loops_in(one.parts))
    given = {"length": 2048, "total_rows": 2048 * 16}
    assert predict_kernel(made.subject, H200, (8, 16), given).seconds > 0
