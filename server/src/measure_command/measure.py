#!/usr/bin/env python3
"""Measures the operators of model training on a device and writes a Planscope profile (JSON).

    python3 measure.py --minutes 10 --out profile.json
    torchrun --nproc-per-node 8 measure.py --minutes 10 --out profile.json   # collectives too

Needs Python 3.9 and PyTorch 2.4 or newer. Layers with linear attention are measured if the packages
fla-core and mamba-ssm are installed. Every section gets a share of the minutes and measures its most
informative cases first. The file is rewritten after every section. A case that the
device or this PyTorch cannot run is listed under `skipped` with the reason.

Times are microseconds of a call: median, 10 % and 90 % quantile of timed spans. A span repeats short
kernels until it takes 200 us, with operands that rotate so that they do not stay in the cache.
"""

from __future__ import annotations

import time

STARTED = time.monotonic()

import argparse
import contextlib
import functools
import gc
import itertools
import json
import logging
import math
import os
import platform
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
import warnings
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Callable, Iterator, Optional, Sequence

try:
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch import Tensor, nn
except ModuleNotFoundError as missing:
    sys.exit(f"This program needs PyTorch, which this Python does not have ({missing}). Install torch, then run it again.")

FORMAT = "planscope-measurements"
VERSION = 1

Row = dict[str, Any]
Run = Callable[[], Any]
Make = Callable[[], Run]

BF16 = torch.bfloat16
FLUSH_BYTES = 256 << 20
MIN_SPAN_US = 200.0
# The launch queue of a device has about 1,000 entries. More calls would wait for the device.
MAX_CALLS = 128
MAX_OPERAND_SETS = 32
TORCH_VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2] if part.isdigit())


class Unsupported(Exception):
    """A case that this device or this PyTorch does not have."""


class OutOfTime(Exception):
    """A case that needs more time than its section has left."""


class DeviceLost(Exception):
    """The device no longer works after an error."""


@dataclass
class Case:
    """A measurement: the fields that describe it, and a function that returns the measured fields."""

    row: Row
    measure: Callable[[], Row]
    # Cases with a low rank run first.
    rank: int = 0
    # Expected seconds. A case does not start with less time left.
    seconds: float = 0.0


@dataclass
class Section:
    """A group of cases and its share of the time (minutes in a run of 28 minutes)."""

    name: str
    minutes: float
    cases: Callable[[Clock], list[Case]]
    results: list[Row] = field(default_factory=list)
    skipped: list[Row] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    budget: float = 0.0
    seconds: float = 0.0


# ---------------------------------------------------------------------------------------------- time


class Clock:
    """The timing primitive and the properties of the device that cases need."""

    def __init__(self, device: str, minutes: float) -> None:
        self.cuda = device.startswith("cuda")
        self.device = torch.device("cuda", torch.cuda.current_device()) if self.cuda else torch.device("cpu")
        self.case_seconds = min(0.3, max(0.05, 0.015 * minutes))
        self.sustained_seconds = (2.0 if minutes >= 8 else 1.0) if self.cuda else 0.05
        self.deadline = math.inf
        self.capability = torch.cuda.get_device_capability() if self.cuda else (0, 0)
        self.memory = torch.cuda.get_device_properties(self.device).total_memory if self.cuda else 1 << 31
        self.cache = int(getattr(torch.cuda.get_device_properties(self.device), "L2_cache_size", 0)) if self.cuda else 0
        self.cache = self.cache or 64 << 20
        self.flush = torch.empty(FLUSH_BYTES if self.cuda else 1 << 20, dtype=torch.int8, device=self.device)

    def axis(self, full: Sequence[Any], tiny: Sequence[Any]) -> Sequence[Any]:
        """Returns the values of a grid: tiny values on a CPU."""
        return full if self.cuda else tiny

    def sync(self) -> None:
        """Waits for the device."""
        if self.cuda:
            torch.cuda.synchronize()

    def remaining(self) -> float:
        """Returns the seconds that the section has left."""
        return self.deadline - time.monotonic()

    def mark(self) -> Any:
        """Marks a point of the stream."""
        if not self.cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, first: Any, second: Any) -> float:
        """Returns the microseconds between two marks that the device has reached."""
        return float(first.elapsed_time(second)) * 1e3 if self.cuda else (second - first) * 1e6

    def delay(self, seconds: float) -> None:
        """Delays the stream, so that the host can queue a span before the device starts it."""
        seconds = min(seconds, 0.1)
        if hasattr(torch.cuda, "_sleep"):
            torch.cuda._sleep(int(seconds * 2e9))
        else:
            for _ in range(math.ceil(seconds / 1e-4)):
                self.flush.zero_()

    def span(self, runs: Sequence[Run], calls: int, launch: float, ahead: bool) -> float:
        """Returns the microseconds of a span of calls. `ahead` queues it before the device starts, after a cache flush."""
        if self.cuda and ahead:
            self.delay(1.5 * launch * calls + 1e-4)
        if ahead:
            self.flush.zero_()
        first = self.mark()
        for call in range(calls):
            runs[call % len(runs)]()
        last = self.mark()
        self.sync()
        return self.between(first, last)

    def time(self, make: Make, touched: int = 0, ahead: bool = True) -> Row:
        """Times a call.

        `make` allocates operands and returns the call; `touched` is the number of their bytes. With `ahead` the times
        are of the device alone, without it of host and device together, as in a training loop.
        """
        runs = [make()]
        for _ in range(2):
            runs[0]()
        self.sync()
        start = time.perf_counter()
        runs[0]()
        launch = time.perf_counter() - start
        self.sync()
        call_us = self.span(runs, 1, launch, ahead)
        low = MIN_SPAN_US if ahead else 20 * MIN_SPAN_US
        if call_us < low:
            call_us = self.span(runs, 8, launch, ahead) / 8
        calls = min(max(math.ceil(low / max(call_us, 0.5)), 1 if ahead else 4), MAX_CALLS)
        sets = min(calls, MAX_OPERAND_SETS, math.ceil(2 * self.cache / touched) if touched else 1)
        for _ in range(1, sets):
            runs.append(make())
            runs[-1]()
        self.sync()
        seconds = 1e-6 * calls * call_us + (2.5 * launch * calls if ahead else 0.0) + 2e-4
        spans = min(max(int(self.case_seconds / seconds), 5), 20)
        if spans * seconds > self.remaining():
            raise OutOfTime
        times = sorted(self.span(runs, calls, launch, ahead) / calls for _ in range(spans))
        return {**quantiles(times), "spans": spans, "calls": calls, "operand_sets": sets}


def quantiles(times: Sequence[float]) -> Row:
    """Returns the median and the 10 % and 90 % quantile of times in microseconds."""
    ordered = sorted(times)

    def at(share: float) -> float:
        position = share * (len(ordered) - 1)
        low, high = math.floor(position), math.ceil(position)
        return round(ordered[low] + (ordered[high] - ordered[low]) * (position - low), 3)

    return {"time_us": at(0.5), "p10_us": at(0.1), "p90_us": at(0.9)}


def ordered_grid(*axes: Sequence[Any]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Returns the points of a grid with their ranks. The axes start with their most informative values."""
    for point in itertools.product(*(enumerate(axis) for axis in axes)):
        yield sum(index for index, _ in point), tuple(value for _, value in point)


def rated(row: Row, operations: float) -> Row:
    """Adds the rate of a timing."""
    return {**row, "tflops": round(operations / row["time_us"] * 1e-6, 2)}


def timed(clock: Clock, make: Make, touched: float = 0, operations: float = 0, size: float = 0) -> Callable[[], Row]:
    """Returns a measurement of a call, with its rate of operations or bytes."""

    def measure() -> Row:
        row = clock.time(make, int(touched))
        if size:
            row["gb_per_s"] = round(size / row["time_us"] * 1e-3, 2)
        return rated(row, operations) if operations else row

    return measure


def backward_run(output: Tensor, inputs: Sequence[Tensor]) -> Run:
    """Returns the backward pass of an output."""
    grad = torch.randn_like(output) if not output.is_nested else output.detach().clone()
    return lambda: torch.autograd.grad(output, inputs, grad, retain_graph=True, allow_unused=True)


# ------------------------------------------------------------------------------------------ products


def product_run(clock: Clock, shape: tuple[int, int, int], product: str, accumulate: str, zero: bool = False) -> Run:
    """Returns a product of a linear layer: shape is (tokens, inputs, outputs)."""
    tokens, inputs, outputs = shape
    fill = torch.zeros if zero else torch.randn

    def tensor(rows: int, columns: int) -> Tensor:
        return fill(rows, columns, device=clock.device, dtype=BF16)

    if product == "forward":
        x, weight, y = tensor(tokens, inputs), tensor(outputs, inputs), tensor(tokens, outputs)
        return lambda: torch.mm(x, weight.t(), out=y)
    if product == "input_grad":
        dy, weight, dx = tensor(tokens, outputs), tensor(outputs, inputs), tensor(tokens, inputs)
        return lambda: torch.mm(dy, weight, out=dx)
    dy, x = tensor(tokens, outputs), tensor(tokens, inputs)
    if accumulate == "none":
        grad = tensor(outputs, inputs)
        return lambda: torch.mm(dy.t(), x, out=grad)
    main_grad = torch.zeros(outputs, inputs, device=clock.device)
    if accumulate == "fp32_add":
        return lambda: main_grad.add_(torch.mm(dy.t(), x))
    if TORCH_VERSION < (2, 8):
        raise Unsupported("addmm has no out_dtype before PyTorch 2.8")
    addmm: Any = torch.addmm
    return lambda: addmm(main_grad, dy.t(), x, out_dtype=torch.float32, out=main_grad)


def product_shapes(clock: Clock) -> list[tuple[int, int, int]]:
    """Returns (rank, inputs, outputs) of linear layers under tensor parallelism."""
    ffn = {4096: 14336, 8192: 28672, 2048: 8192, 1024: 4096, 64: 256}
    shapes: dict[tuple[int, int], int] = {}
    hiddens, degrees = clock.axis([4096, 8192, 2048, 1024], [64]), clock.axis([1, 8, 4, 2], [1, 2])
    layers = ["gate_up", "down", "qkv", "out", 32768, 131072] if clock.cuda else ["gate_up", "down"]
    for rank, (hidden, degree, layer) in ordered_grid(hiddens, degrees, layers):
        heads, wide = hidden // degree, ffn[hidden] // degree
        shape = dict(
            gate_up=(hidden, 2 * wide),
            down=(wide, hidden),
            qkv=(hidden, heads + 2 * max(hidden // 4 // degree, 64)),
            out=(heads, hidden),
        ).get(layer) or (hidden, layer // degree)
        shapes[shape] = min(rank, shapes.get(shape, rank))
    return [(rank, inputs, outputs) for (inputs, outputs), rank in shapes.items()]


def product_row(shape: tuple[int, int, int], product: str, accumulate: str) -> Row:
    """Describes a product by its result rows m, inner size k and result columns n."""
    tokens, inputs, outputs = shape
    m, k, n = dict(
        forward=(tokens, inputs, outputs), input_grad=(tokens, outputs, inputs), weight_grad=(outputs, tokens, inputs)
    )[product]
    return dict(kernel="matmul", op="linear", product=product, format="bf16", accumulate=accumulate, m=m, k=k, n=n)


def product_cases(clock: Clock) -> list[Case]:
    """Forward, input gradient and weight gradient of linear layers, without and with accumulation in fp32."""
    directions = [
        ("forward", "none"),
        ("weight_grad", "none"),
        ("input_grad", "none"),
        ("weight_grad", "fp32_fused"),
        ("weight_grad", "fp32_add"),
    ]
    cases = []
    for index, tokens in enumerate(clock.axis([4096, 1024, 16384, 2048, 8192, 32768], [16, 32])):
        for rank, inputs, outputs in product_shapes(clock):
            for product, accumulate in directions:
                shape = (tokens, inputs, outputs)
                touched = 2 * (tokens * (inputs + outputs) + inputs * outputs)
                make = functools.partial(product_run, clock, shape, product, accumulate)
                measure = timed(clock, make, touched, operations=2 * math.prod(shape))
                # Accumulation follows when the plain products of the same rank are done.
                later = 0 if accumulate == "none" else 2
                cases.append(Case(product_row(shape, product, accumulate), measure, index + rank + later))
    return cases


# --------------------------------------------------------------------------------- burst and sustained


def smi(query: str, device: torch.device) -> list[str]:
    """Returns values of nvidia-smi, an empty list if it is missing."""
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    known = (
        visible[device.index].strip() if len(visible) > (device.index or 0) and visible[0] else str(device.index or 0)
    )
    command = [
        "nvidia-smi",
        f"--id={f'GPU-{uuid}' if uuid else known}",
        f"--query-gpu={query}",
        "--format=csv,noheader,nounits",
    ]
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [value.strip() for value in output.strip().split("\n")[0].split(",")]


class Sampler(threading.Thread):
    """Reads clock, power and temperature of a device until it is stopped."""

    QUERY = ("clocks.sm", "clocks.mem", "power.draw", "temperature.gpu")

    def __init__(self, clock: Clock) -> None:
        super().__init__(daemon=True)
        self.device, self.samples, self.ended = clock.device, [], threading.Event()  # type: ignore[var-annotated]

    def run(self) -> None:
        """Reads samples."""
        start = time.monotonic()
        while not self.ended.is_set():
            values = smi(",".join(self.QUERY), self.device) if self.device.type == "cuda" else []
            if not values:
                return
            sample: Row = {"seconds": round(time.monotonic() - start, 3)}
            for name, value in zip(("sm_mhz", "memory_mhz", "watts", "celsius"), values):
                with contextlib.suppress(ValueError):
                    sample[name] = float(value)
            self.samples.append(sample)
            self.ended.wait(0.1)

    def stop(self) -> list[Row]:
        """Stops and returns the samples."""
        self.ended.set()
        self.join()
        return self.samples


def sustain(clock: Clock, shape: tuple[int, int, int], zero: bool) -> Row:
    """Runs a product back to back. Returns the time of its first window and of the second half."""
    time.sleep(0.3)
    burst = clock.time(lambda: product_run(clock, shape, "forward", "none", zero))
    run = product_run(clock, shape, "forward", "none", zero)
    calls = max(math.ceil(2e4 / burst["time_us"]), 1)
    sampler = Sampler(clock)
    sampler.start()
    marks, end = [clock.mark()], time.monotonic() + clock.sustained_seconds
    while time.monotonic() < end:
        for _ in range(calls):
            run()
        marks.append(clock.mark())
        # Two windows are queued at a time.
        if clock.cuda and len(marks) > 3:
            marks[-3].synchronize()
    clock.sync()
    samples = sampler.stop()
    windows = [clock.between(first, second) / calls for first, second in zip(marks, marks[1:])]
    result = dict(
        **quantiles(windows[len(windows) // 2 :]), burst_us=burst["time_us"], first_window_us=round(windows[0], 3)
    )
    result.update(windows=len(windows), calls=calls, seconds=clock.sustained_seconds, samples=samples)
    operations = 2.0 * math.prod(shape)
    return rated({**result, "burst_tflops": round(operations / burst["time_us"] * 1e-6, 2)}, operations)


def sustained_cases(clock: Clock) -> list[Case]:
    """The same products in a burst and back to back, with random and with zero operands."""
    shapes = [
        (8192, 8192, 8192),
        (4096, 4096, 4096),
        (16384, 4096, 4096),
        (8192, 4096, 512),
        (4096, 14336, 4096),
        (16384, 8192, 2048),
    ]
    cases = []
    for rank, (shape, zero) in ordered_grid(clock.axis(shapes, [(64, 64, 64)]), [False, True]):
        row = {**product_row(shape, "forward", "none"), "op": "sustained", "operands": "zero" if zero else "random"}
        # Not a kernel row: the profile has it in `products` under burst conditions.
        del row["kernel"]
        cases.append(Case(row, functools.partial(sustain, clock, shape, zero), rank, clock.sustained_seconds + 0.5))
    return cases


# ----------------------------------------------------------------------------------------- attention


@dataclass(frozen=True)
class Attention:
    """A case of scaled dot-product attention. `lengths` packs sequences of different lengths."""

    backend: str
    batch: int
    queries: int
    keys: int
    heads: int
    kv_heads: int
    head: int
    causal: bool
    backward: bool
    lengths: tuple[int, ...] = ()

    def row(self) -> Row:
        """Returns the description."""
        squared = sum(length**2 for length in self.lengths) or self.batch * self.queries * self.keys
        tokens = sum(self.lengths) or self.batch * self.queries
        row = {"kernel": "attention", "op": "sdpa", "backend": self.backend, "tokens": tokens, "squared": squared}
        row.update(
            heads=self.heads,
            kv_heads=self.kv_heads,
            qk_dim=self.head,
            v_dim=self.head,
            causal=self.causal,
            backward=self.backward,
        )
        if self.lengths:
            row["lengths"] = list(self.lengths)
        else:
            row.update(batch=self.batch, queries=self.queries, keys=self.keys)
        return row

    def operations(self) -> float:
        """Returns the operations without masked scores."""
        row = self.row()
        return (
            4.0
            * self.heads
            * self.head
            * row["squared"]
            * (0.5 if self.causal else 1.0)
            * (2.5 if self.backward else 1.0)
        )


def attend(query: Tensor, key: Tensor, value: Tensor, causal: bool) -> Tensor:
    """Attention with fewer heads of keys and values, if the tensors have fewer."""
    if query.is_nested or query.shape[1] == key.shape[1]:
        return F.scaled_dot_product_attention(query, key, value, is_causal=causal)
    if TORCH_VERSION >= (2, 5):
        return F.scaled_dot_product_attention(query, key, value, is_causal=causal, enable_gqa=True)
    groups = query.shape[1] // key.shape[1]
    return F.scaled_dot_product_attention(
        query, key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1), is_causal=causal
    )


def backend_context(name: str) -> Callable[[], Any]:
    """Returns a context that selects an attention kernel."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    names = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "math": "MATH"}
    backend = getattr(SDPBackend, names[name], None)
    if backend is None:
        raise Unsupported(f"this PyTorch has no {name} attention")
    return lambda: sdpa_kernel(backend)


def attention_run(clock: Clock, case: Attention) -> Run:
    """Returns the forward or backward pass of an attention case."""
    if case.heads != case.kv_heads and TORCH_VERSION < (2, 5):
        raise Unsupported("scaled_dot_product_attention has no enable_gqa before PyTorch 2.5")
    context = backend_context(case.backend)
    fill = functools.partial(torch.randn, device=clock.device, dtype=BF16, requires_grad=True)
    if case.lengths:
        offsets = torch.tensor([0, *itertools.accumulate(case.lengths)], device=clock.device)
        leaves = [fill(sum(case.lengths), case.heads, case.head) for _ in range(3)]
        inputs = [torch.nested.nested_tensor_from_jagged(leaf, offsets).transpose(1, 2) for leaf in leaves]
    else:
        # Layers compute (batch, tokens, heads, head) and transpose.
        sizes = [(case.queries, case.heads), (case.keys, case.kv_heads), (case.keys, case.kv_heads)]
        leaves = [fill(case.batch, tokens, heads, case.head) for tokens, heads in sizes]
        inputs = [leaf.transpose(1, 2) for leaf in leaves]

    def forward() -> Tensor:
        with context():
            return attend(inputs[0], inputs[1], inputs[2], case.causal)

    return backward_run(forward(), leaves) if case.backward else forward


def attention_grid(clock: Clock) -> Iterator[tuple[int, Attention]]:
    """Returns attention cases with 16,384 tokens and a width of about 2,048, and their ranks."""
    total = clock.axis([16384], [256])[0]
    backends = clock.axis(["flash", "cudnn", "efficient"], ["flash"])
    heads = {64: 32, 72: 24, 80: 24, 96: 16, 128: 16, 192: 8, 256: 8, 16: 4}
    sizes = clock.axis([128, 64, 256, 96, 80, 72, 192], [16])
    lengths = clock.axis([4096, 1024, 16384, 2048, 8192, 512, 32768], [64, 128])
    for rank, (length, head, causal, backend, backward) in ordered_grid(
        lengths, sizes, [True, False], backends, [False, True]
    ):
        yield (
            rank,
            Attention(
                backend, max(total // length, 1), length, length, heads[head], heads[head], head, causal, backward
            ),
        )
    wide = clock.axis([128], [16])[0]
    for rank, (group, length, backend, backward) in ordered_grid([4, 8], lengths[:4], backends[:2], [False, True]):
        count = heads[wide] * (2 if clock.cuda else 1)
        kv_heads = max(count // group, 1)
        yield (
            rank + 2,
            Attention(backend, max(total // length, 1), length, length, count, kv_heads, wide, True, backward),
        )
    skewed = (total // 2, total // 4, *(total // 32,) * 8)
    mixes = [(total // 8,) * 8, skewed, (total // 64,) * 64]
    for rank, (mix, causal, backend, backward) in ordered_grid(mixes, [True, False], backends[:2], [False, True]):
        yield rank + 2, Attention(backend, 0, 0, 0, heads[wide], heads[wide], wide, causal, backward, mix)
    crosses = clock.axis([(2048, 8192), (4096, 32768), (2048, 32768), (8192, 2048)], [(32, 64)])
    for rank, ((queries, keys), backend, backward) in ordered_grid(crosses, backends[:2], [False, True]):
        yield rank + 3, Attention(backend, 1, queries, keys, heads[wide], heads[wide], wide, False, backward)
    for rank, (length, backward) in ordered_grid(clock.axis([1024, 512, 2048], [32]), [False, True]):
        yield rank + 4, Attention("math", 2, length, length, heads[wide], heads[wide], wide, True, backward)


def attention_cases(clock: Clock) -> list[Case]:
    """Forward and backward of the kernels of scaled dot-product attention."""
    cases = []
    for rank, case in attention_grid(clock):
        make = functools.partial(attention_run, clock, case)
        cases.append(Case(case.row(), timed(clock, make, operations=case.operations()), rank))
    return cases


# ---------------------------------------------------------------------------------------------- fp8


def fp8_limit() -> float:
    """Returns the largest number of the fp8 format of forward passes."""
    return torch.finfo(torch.float8_e4m3fn).max


def cast_tensor(x: Tensor, scale: Tensor) -> Tensor:
    """Casts with a known scale."""
    return (x * scale).clamp(-fp8_limit(), fp8_limit()).to(torch.float8_e4m3fn)


def cast_dynamic(x: Tensor) -> tuple[Tensor, Tensor]:
    """Casts with the scale of the tensor."""
    scale = fp8_limit() / x.abs().amax().float().clamp(min=1e-12)
    return cast_tensor(x, scale), scale.reciprocal()


def cast_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """Casts with a scale for every row."""
    scale = fp8_limit() / x.abs().amax(dim=1, keepdim=True).float().clamp(min=1e-12)
    return cast_tensor(x, scale), scale.reciprocal()


def fp8_product(clock: Clock, shape: tuple[int, int, int], scales: str, cast: bool) -> Run:
    """Returns an fp8 product, with the dynamic cast of its left operand if `cast` is set."""
    tokens, inputs, outputs = shape
    if not hasattr(torch, "_scaled_mm"):
        raise Unsupported("this PyTorch has no _scaled_mm")
    convert = cast_rows if scales == "row" else cast_dynamic
    x = torch.randn(tokens, inputs, device=clock.device, dtype=BF16)
    weight, weight_scale = convert(torch.randn(outputs, inputs, device=clock.device, dtype=BF16))
    fixed = convert(x)
    scaled_mm: Any = torch._scaled_mm

    def run() -> Any:
        left, left_scale = convert(x) if cast else fixed
        return scaled_mm(
            left,
            weight.t(),
            scale_a=left_scale,
            scale_b=weight_scale.t() if scales == "row" else weight_scale,
            out_dtype=BF16,
            use_fast_accum=True,
        )

    return run


def cast_run(clock: Clock, rows: int, width: int, kind: str) -> Run:
    """Returns a cast to fp8 or its reduction."""
    x = torch.randn(rows, width, device=clock.device, dtype=BF16)
    scale = torch.ones((), device=clock.device)
    return {
        "amax": lambda: x.abs().amax(),
        "static": lambda: cast_tensor(x, scale),
        "dynamic": lambda: cast_dynamic(x),
        "row": lambda: cast_rows(x),
        "transposed": lambda: cast_tensor(x, scale).t().contiguous(),
    }[kind]


def fp8_cases(clock: Clock) -> list[Case]:
    """Products in fp8 with a scale for the tensor or for rows, with and without casts, and casts alone."""
    rows = clock.axis([8192, 32768, 4096, 16384], [32])
    shapes = clock.axis(
        [
            (4096, 14336),
            (4096, 4096),
            (8192, 8192),
            (2048, 8192),
            (8192, 28672),
            (14336, 4096),
            (4096, 1024),
            (2048, 2048),
        ],
        [(64, 64)],
    )
    cases = []
    for rank, (tokens, (inputs, outputs), scales, cast) in ordered_grid(rows, shapes, ["tensor", "row"], [False, True]):
        shape = (tokens, inputs, outputs)
        name = "linear_fp8_with_cast" if cast else "linear_fp8"
        row = {**product_row(shape, "forward", "none"), "op": name, "format": "fp8", "scales": scales}
        if cast:
            del row["kernel"]
        make = functools.partial(fp8_product, clock, shape, scales, cast)
        cases.append(Case(row, timed(clock, make, (tokens + outputs) * inputs, operations=2 * math.prod(shape)), rank))
    for rank, (count, width, kind) in ordered_grid(
        rows, clock.axis([4096, 8192, 2048, 14336], [64]), ["static", "amax", "dynamic", "row", "transposed"]
    ):
        size = (2 if kind == "amax" else 3) * count * width
        make = functools.partial(cast_run, clock, count, width, kind)
        row = {"op": "cast_fp8", "kind": kind, "rows": count, "width": width, "bytes": size}
        cases.append(Case(row, timed(clock, make, size, size=size), rank))
    return cases


# ------------------------------------------------------------------------------ mixture of experts


def expert_rows(experts: int, rows: int, routing: str) -> list[int]:
    """Returns the rows of each expert, multiples of 16. Power law: shares of 1 / rank ** 0.8."""
    if routing == "balanced":
        return [rows] * experts
    shares = [(index + 1) ** -0.8 for index in range(experts)]
    return [max(round(rows * experts * share / sum(shares) / 16), 1) * 16 for share in shares]


def grouped_run(clock: Clock, rows: Sequence[int], inputs: int, outputs: int, product: str, function: str) -> Run:
    """Returns the product of all experts on a device."""
    experts, total = len(rows), sum(rows)
    fill = functools.partial(torch.randn, device=clock.device, dtype=BF16)
    weight = fill(experts, outputs, inputs)
    left = fill(total, outputs if product == "input_grad" else inputs)
    if function == "bmm":
        x = left.view(experts, rows[0], -1)
        return (
            (lambda: torch.bmm(x, weight))
            if product == "input_grad"
            else (lambda: torch.bmm(x, weight.transpose(1, 2)))
        )
    grouped: Any = getattr(torch, "_grouped_mm", None)
    if grouped is None:
        raise Unsupported("this PyTorch has no _grouped_mm")
    offsets = torch.tensor(list(itertools.accumulate(rows)), device=clock.device, dtype=torch.int32)
    if product == "forward":
        return lambda: grouped(left, weight.transpose(1, 2), offs=offsets)
    if product == "input_grad":
        return lambda: grouped(left, weight, offs=offsets)
    dy = fill(total, outputs)
    return lambda: grouped(dy.t(), left, offs=offsets)


def permutation_run(clock: Clock, tokens: int, width: int, experts: int, top: int, step: str) -> Run:
    """Returns a step of the routing of tokens to experts."""
    x = torch.randn(tokens, width, device=clock.device, dtype=BF16)
    router = torch.randn(experts, width, device=clock.device, dtype=BF16)
    weights, selected = torch.softmax(F.linear(x, router).float(), 1).topk(top, 1)
    flat = selected.reshape(-1)
    order = torch.argsort(flat, stable=True)
    source = order // top
    inverse = torch.argsort(order)
    sent = x[source]
    result = torch.zeros_like(x)
    return {
        "router": lambda: torch.softmax(F.linear(x, router).float(), 1).topk(top, 1),
        "sort": lambda: torch.argsort(flat, stable=True),
        "count": lambda: torch.zeros(experts, device=x.device, dtype=torch.long).scatter_add_(
            0, flat, torch.ones_like(flat)
        ),
        "permute": lambda: x.index_select(0, source),
        "permute_backward": lambda: result.index_add_(0, source, sent),
        "unpermute": lambda: (
            sent.index_select(0, inverse).view(tokens, top, width) * weights.to(BF16).unsqueeze(2)
        ).sum(1),
    }[step]


def expert_cases(clock: Clock) -> list[Case]:
    """Grouped products of experts, and the steps that bring tokens to experts and back."""
    functions = [
        ("_grouped_mm", "forward"),
        ("_grouped_mm", "weight_grad"),
        ("_grouped_mm", "input_grad"),
        ("bmm", "forward"),
        ("bmm", "input_grad"),
    ]
    counts, rows = clock.axis([8, 64, 32, 16], [4]), clock.axis([1024, 256, 4096, 64], [16])
    widths = clock.axis([(4096, 14336), (2048, 768), (7168, 2048), (2048, 2048)], [(64, 64)])
    cases = []
    for rank, (experts, count, (inputs, outputs), routing, (function, product)) in ordered_grid(
        counts, rows, widths, ["balanced", "power"], functions
    ):
        if function == "bmm" and routing == "power":
            continue
        loads = expert_rows(experts, count, routing)
        shape = (count, inputs, outputs)
        details = dict(op="grouped_linear", function=function, batch=experts, routing=routing)
        row = {**product_row(shape, product, "none"), **details}
        if routing == "power":
            # A product of unequal groups has no single shape.
            for name in ("kernel", "m", "k", "n"):
                del row[name]
            row.update(inputs=inputs, outputs=outputs, rows=loads)
        touched = 2 * (sum(loads) * (inputs + outputs) + experts * inputs * outputs)
        make = functools.partial(grouped_run, clock, loads, inputs, outputs, product, function)
        cases.append(Case(row, timed(clock, make, touched, operations=2 * sum(loads) * inputs * outputs), rank))
    steps = ["permute", "unpermute", "router", "sort", "count", "permute_backward"]
    shapes = clock.axis(
        [(16384, 4096, 64, 8), (4096, 2048, 128, 8), (16384, 7168, 256, 8), (8192, 4096, 8, 2)], [(64, 32, 4, 2)]
    )
    for rank, ((tokens, width, experts, top), step) in ordered_grid(shapes, steps):
        row = {"op": "moe_step", "step": step, "tokens": tokens, "width": width, "experts": experts, "top_k": top}
        make = functools.partial(permutation_run, clock, tokens, width, experts, top, step)
        cases.append(Case(row, timed(clock, make, 4 * tokens * top * width), rank))
    return cases


# ----------------------------------------------------------------------------------------- optimizer


def optimizer_run(clock: Clock, count: int, tensors: int, step: str) -> Run:
    """Returns a step of the optimizer of `count` fp32 parameters."""
    fill = functools.partial(torch.zeros, count // tensors, device=clock.device)
    if step in ("clip", "zero_grad"):
        parameters = [nn.Parameter(fill()) for _ in range(tensors)]
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        grads: list[Any] = [parameter.grad for parameter in parameters]
        if step == "zero_grad":
            return lambda: torch._foreach_zero_(grads)
        return lambda: nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
    if step in ("accumulate_bf16", "master_to_bf16"):
        master, half = [fill() for _ in range(tensors)], [fill(dtype=BF16) for _ in range(tensors)]
        if step == "master_to_bf16":
            return lambda: torch._foreach_copy_(half, master)
        return lambda: [to.add_(grad) for to, grad in zip(master, half)]
    if step == "adamw_host":
        return host_run(clock, count // tensors, tensors)
    # Sizes that are no multiple of 128 run slower kernels.
    side = max(math.isqrt(count // tensors) // 128, 1) * 128 if clock.cuda else 16
    shape = (side, side) if step in ("muon", "adafactor") else (count // tensors,)
    parameters = [nn.Parameter(torch.zeros(shape, device=clock.device)) for _ in range(tensors)]
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 1e-3)
    if step in ("muon", "adafactor"):
        form: Any = getattr(torch.optim, step.capitalize(), None)
        if form is None:
            raise Unsupported(f"this PyTorch has no torch.optim.{step.capitalize()}")
        return form(parameters, lr=1e-4).step
    kind = step.split("_")[1]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=kind == "fused", foreach=kind == "foreach")
    return optimizer.step


def host_run(clock: Clock, size: int, tensors: int) -> Run:
    """Returns a step of fused AdamW in host memory: gradients in bf16 move to the host, and weights back."""
    weights, grads = ([torch.zeros(size, device=clock.device, dtype=BF16) for _ in range(tensors)] for _ in range(2))
    received = [torch.zeros(size, dtype=BF16, pin_memory=clock.cuda) for _ in range(tensors)]
    sent = [torch.zeros(size, dtype=BF16, pin_memory=clock.cuda) for _ in range(tensors)]
    masters = [nn.Parameter(torch.zeros(size)) for _ in range(tensors)]
    for master in masters:
        master.grad = torch.zeros_like(master)
    optimizer = torch.optim.AdamW(masters, lr=1e-4, fused=TORCH_VERSION >= (2, 5))

    def step() -> None:
        for host, grad in zip(received, grads):
            host.copy_(grad, non_blocking=True)
        clock.sync()
        for master, host in zip(masters, received):
            master.grad.copy_(host)  # type: ignore[union-attr]
        optimizer.step()
        for host, master, weight in zip(sent, masters, weights):
            host.copy_(master.detach())
            weight.copy_(host, non_blocking=True)

    return step


def optimizer_row(clock: Clock, count: int, tensors: int, step: str) -> Row:
    """Times a step with its launches, and on the device alone."""
    if 24 * count > clock.memory:
        raise Unsupported("the parameters do not fit in memory")
    run = optimizer_run(clock, count, tensors, step)
    result = clock.time(lambda: run, ahead=False)
    # The launch queue does not take the kernels of the plain form.
    if step not in ("adamw_plain", "adamw_host", "muon", "adafactor"):
        result["device_us"] = clock.time(lambda: run)["time_us"]
    return result


def optimizer_cases(clock: Clock) -> list[Case]:
    """AdamW in four forms, Muon, Adafactor, clipping, casts and clearing of gradients."""
    touched = dict(
        adamw_fused=28,
        adamw_foreach=28,
        adamw_plain=28,
        clip=12,
        zero_grad=4,
        accumulate_bf16=10,
        master_to_bf16=6,
        muon=20,
        adafactor=12,
        adamw_host=36,
    )
    cases = []
    sizes = clock.axis([500_000_000, 100_000_000, 2_000_000_000], [10_000])
    for rank, (count, step, tensors) in ordered_grid(sizes, list(touched), clock.axis([200, 10], [10])):
        row = {"op": step, "parameters": count, "tensors": tensors, "bytes": touched[step] * count}
        if step == "adamw_host" and count > 1_000_000_000:
            continue
        cases.append(Case(row, functools.partial(optimizer_row, clock, count, tensors, step), rank))
    return cases


# ----------------------------------------------------------------------- norms, pointwise and losses


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary embedding of (..., tokens, head)."""
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat((-second, first), -1) * sine


def embed_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy of bf16 logits in fp32."""
    return F.cross_entropy(logits.float(), labels)


@dataclass(frozen=True)
class Pointwise:
    """An operator on rows x width: its class, the bytes for an element in each direction, and its inputs."""

    group: str
    forward: float
    backward: float
    function: Callable[..., Tensor]
    build: Callable[[Callable[..., Tensor], int, int], list[Tensor]]


def pointwise_table(clock: Clock) -> dict[str, Pointwise]:
    """Returns the operators. Bytes are the least that an operator must read and write, with bf16 tensors."""

    def tensors(count: int) -> Callable[[Callable[..., Tensor], int, int], list[Tensor]]:
        return lambda fill, rows, width: [fill(rows, width) for _ in range(count)]

    def weighted(fill: Callable[..., Tensor], rows: int, width: int) -> list[Tensor]:
        return [fill(rows, width), fill(width)]

    def angles(fill: Callable[..., Tensor], rows: int, width: int) -> list[Tensor]:
        head = min(128, width)
        return [fill(width // head, rows, head), fill(rows, head).detach(), fill(rows, head).detach()]

    def labels(fill: Callable[..., Tensor], rows: int, width: int) -> list[Tensor]:
        return [fill(rows, width), torch.randint(width, (rows,), device=clock.device)]

    def vocabulary(fill: Callable[..., Tensor], rows: int, width: int) -> list[Tensor]:
        size = clock.axis([131072], [256])[0]
        return [torch.randint(size, (rows,), device=clock.device), fill(size, width)]

    return {
        "rms_norm": Pointwise("norm", 4, 6, lambda x, w: F.rms_norm(x, (x.shape[-1],), w), weighted),
        "swiglu": Pointwise("activation", 6, 10, lambda gate, up: F.silu(gate) * up, tensors(2)),
        "residual": Pointwise("elementwise", 6, 0, torch.add, tensors(2)),
        "rope": Pointwise("elementwise", 4, 4, rotate, angles),
        "layer_norm": Pointwise("norm", 4, 6, lambda x, w: F.layer_norm(x, (x.shape[-1],), w), weighted),
        "gelu": Pointwise("activation", 4, 6, lambda x: F.gelu(x, approximate="tanh"), tensors(1)),
        "embedding": Pointwise("embedding", 4, 4, F.embedding, vocabulary),
        "dropout": Pointwise("elementwise", 5, 5, lambda x: F.dropout(x, 0.1), tensors(1)),
        "softmax": Pointwise("softmax", 4, 6, lambda x: F.softmax(x, -1), tensors(1)),
        "cross_entropy": Pointwise("loss", 2, 4, embed_loss, labels),
    }


def pointwise_run(
    clock: Clock, operator: Pointwise, rows: int, width: int, backward: bool, function: Callable[..., Tensor]
) -> Run:
    """Returns a direction of an operator."""
    fill = functools.partial(torch.randn, device=clock.device, dtype=BF16, requires_grad=True)
    inputs = operator.build(fill, rows, width)
    leaves = [tensor for tensor in inputs if tensor.requires_grad]
    return backward_run(function(*inputs), leaves) if backward else lambda: function(*inputs)


def pointwise_cases(clock: Clock) -> list[Case]:
    """Norms, activations, losses and embeddings, eager."""
    cases = []
    rows, widths = clock.axis([8192, 32768, 2048], [32]), clock.axis([4096, 16384, 1024, 8192], [64])
    for name, operator in pointwise_table(clock).items():
        if name == "cross_entropy":
            widths = clock.axis([32768, 131072], [256])
        for rank, (count, width, backward) in ordered_grid(rows, widths, [False, True]):
            size = (operator.backward if backward else operator.forward) * count * width
            if name == "embedding" and backward:
                size += 2 * clock.axis([131072], [256])[0] * width
            if not size:
                continue
            make = functools.partial(pointwise_run, clock, operator, count, width, backward, operator.function)
            row = {
                "op": name,
                "class": operator.group,
                "variant": "eager",
                "rows": count,
                "width": width,
                "backward": backward,
                "bytes": int(size),
            }
            if name == "residual":
                row["kernel"] = "streaming"
            cases.append(Case(row, timed(clock, make, size, size=size), rank))
    return cases


# -------------------------------------------------------------------------------------------- models


@dataclass(frozen=True)
class Shape:
    """Sizes of a transformer layer. Without kv_heads it has the form of GPT-2."""

    name: str
    hidden: int
    ffn: int
    heads: int
    kv_heads: int = 0

    @property
    def head(self) -> int:
        """Returns the head size."""
        return self.hidden // self.heads

    def row(self) -> Row:
        """Returns the description."""
        return dict(
            model=self.name, hidden=self.hidden, ffn=self.ffn, heads=self.heads, kv_heads=self.kv_heads or self.heads
        )


LLAMA_1B = Shape("llama-1b", 2048, 8192, 32, 8)
LLAMA_8B = Shape("llama-8b", 4096, 14336, 32, 8)
GPT_2 = Shape("gpt-2", 768, 3072, 12)
TINY_LLAMA = Shape("llama-tiny", 64, 128, 4, 2)
TINY_GPT = Shape("gpt-tiny", 64, 256, 4)


class LlamaLayer(nn.Module):
    """A layer with RMSNorm, grouped-query attention with rotary embedding, and SwiGLU."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        width = shape.kv_heads * shape.head
        self.norms = nn.ParameterList([nn.Parameter(torch.ones(shape.hidden)) for _ in range(2)])
        self.qkv = nn.Linear(shape.hidden, shape.hidden + 2 * width, bias=False)
        self.out = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.gate_up = nn.Linear(shape.hidden, 2 * shape.ffn, bias=False)
        self.down = nn.Linear(shape.ffn, shape.hidden, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """Computes (batch, tokens, hidden)."""
        shape, (batch, tokens, hidden) = self.shape, x.shape
        width = shape.kv_heads * shape.head
        parts = self.qkv(F.rms_norm(x, (hidden,), self.norms[0])).split((hidden, width, width), -1)
        query, key, value = (part.view(batch, tokens, -1, shape.head).transpose(1, 2) for part in parts)
        mixed = attend(rotate(query, cosine, sine), rotate(key, cosine, sine), value, True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, hidden))
        gate, up = self.gate_up(F.rms_norm(x, (hidden,), self.norms[1])).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class GptLayer(nn.Module):
    """A layer with LayerNorm, full attention and GELU."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.norms = nn.ModuleList([nn.LayerNorm(shape.hidden) for _ in range(2)])
        self.qkv = nn.Linear(shape.hidden, 3 * shape.hidden)
        self.out = nn.Linear(shape.hidden, shape.hidden)
        self.up = nn.Linear(shape.hidden, shape.ffn)
        self.down = nn.Linear(shape.ffn, shape.hidden)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """Computes (batch, tokens, hidden). The angles are not used: positions are embedded."""
        batch, tokens, hidden = x.shape
        parts = self.qkv(self.norms[0](x)).chunk(3, -1)
        query, key, value = (part.view(batch, tokens, -1, self.shape.head).transpose(1, 2) for part in parts)
        x = x + self.out(attend(query, key, value, True).transpose(1, 2).reshape(batch, tokens, hidden))
        return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))


class Model(nn.Module):
    """A decoder with embedding, layers, output layer and loss in fp32."""

    def __init__(self, shape: Shape, layers: int, vocabulary: int, tokens: int, recompute: str = "none") -> None:
        super().__init__()
        self.recompute = recompute
        self.embedding = nn.Embedding(vocabulary, shape.hidden)
        self.positions = nn.Embedding(tokens, shape.hidden) if not shape.kv_heads else None
        self.layers = nn.ModuleList([LlamaLayer(shape) if shape.kv_heads else GptLayer(shape) for _ in range(layers)])
        self.norm = nn.Parameter(torch.ones(shape.hidden))
        self.head = nn.Linear(shape.hidden, vocabulary, bias=False)
        for index, table in enumerate(angle_tables(tokens, shape.head)):
            self.register_buffer(f"angles_{index}", table, persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Returns the loss of (batch, tokens) identifiers."""
        x = self.embedding(ids)
        if self.positions is not None:
            x = x + self.positions.weight
        for layer in self.layers:
            x = recomputed(layer, self.recompute)(x, self.angles_0, self.angles_1)
        logits = self.head(F.rms_norm(x, (x.shape[-1],), self.norm))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), ids.view(-1))


@functools.lru_cache(maxsize=16)
def angle_tables(tokens: int, head: int, **options: Any) -> tuple[Tensor, Tensor]:
    """Returns cosine and sine of rotary embedding."""
    frequencies = 1e4 ** (-torch.arange(0, head, 2, device=options.get("device")) / head)
    angles = torch.outer(torch.arange(tokens, device=options.get("device")), frequencies).repeat(1, 2)
    return angles.cos().to(**options), angles.sin().to(**options)


def recomputed(layer: nn.Module, recompute: str) -> Callable[..., Tensor]:
    """Returns the layer with recomputation. Selective keeps the results of products and attention."""
    from torch.utils import checkpoint

    if recompute == "none":
        return layer
    options: Row = {}
    if recompute == "selective":
        aten = torch.ops.aten
        names = (
            "_scaled_dot_product_flash_attention",
            "_scaled_dot_product_cudnn_attention",
            "_scaled_dot_product_efficient_attention",
        )
        saved = [aten.mm.default, *(getattr(aten, name).default for name in names if hasattr(aten, name))]
        options["context_fn"] = functools.partial(checkpoint.create_selective_checkpoint_contexts, saved)
    return functools.partial(checkpoint.checkpoint, layer, use_reentrant=False, **options)


def layer_inputs(clock: Clock, shape: Shape, tokens: int) -> tuple[nn.Module, list[Tensor]]:
    """Returns a layer in bf16 and its inputs."""
    with clock.device:
        layer = LlamaLayer(shape).to(BF16)
    x = torch.randn(1, tokens, shape.hidden, device=clock.device, dtype=BF16, requires_grad=True)
    return layer, [x, *angle_tables(tokens, shape.head, device=clock.device, dtype=BF16)]


def fused_choice(query: Tensor, key: Tensor, value: Tensor) -> str:
    """Returns the attention kernel that PyTorch selects."""
    select: Any = getattr(torch, "_fused_sdp_choice", None)
    if select is None:
        return "unknown"
    options = {"enable_gqa": query.shape[1] != key.shape[1]} if TORCH_VERSION >= (2, 5) else {}
    names = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn"}
    return names.get(int(select(query, key, value, is_causal=True, **options)), "unknown")


def attention_backend(clock: Clock, shape: Shape, batch: int, tokens: int) -> str:
    """Returns the attention kernel that PyTorch selects for a layer."""
    query, key = (
        torch.empty(batch, tokens, heads, shape.head, device=clock.device, dtype=BF16).transpose(1, 2).requires_grad_()
        for heads in (shape.heads, shape.kv_heads or shape.heads)
    )
    return fused_choice(query, key, key)


# ---------------------------------------------------------------------------------------- validation


def time_passes(clock: Clock, forward: Run, backward: Run, both: Run) -> Row:
    """Times the passes of a layer. `*_us` includes the host, `*_device_us` is the device alone."""
    result: Row = {}
    for name, run in (("forward", forward), ("backward", backward), ("layer", both)):
        for suffix, ahead in (("us", False), ("device_us", True)):
            timing = clock.time(lambda: run, ahead=ahead)
            result[f"{name}_{suffix}"] = timing["time_us"]
            if name == "layer" and not ahead:
                result.update(timing)
    return result


def phase_times(clock: Clock, steps: Sequence[Sequence[Any]]) -> Row:
    """Returns the times of the phases and of whole steps. A step has four marks."""
    result: Row = {
        f"{name}_us": quantiles([clock.between(marks[index], marks[index + 1]) for marks in steps])["time_us"]
        for index, name in enumerate(("forward", "backward", "optimizer"))
    }
    return {**result, **quantiles([clock.between(marks[0], marks[-1]) for marks in steps])}


def time_layer(clock: Clock, shape: Shape, tokens: int, wrap: Callable[[nn.Module], Any] = lambda layer: layer) -> Row:
    """Times a layer. `*_us` includes the host, `*_device_us` is the device alone."""
    module, inputs = layer_inputs(clock, shape, tokens)
    layer = wrap(module)
    leaves = [inputs[0], *module.parameters()]
    start = time.monotonic()
    output = layer(*inputs)
    backward = backward_run(output, leaves)
    backward()
    clock.sync()
    first = time.monotonic() - start

    def both() -> None:
        torch.autograd.grad(layer(*inputs), leaves, output.detach())

    result: Row = {"attention": attention_backend(clock, shape, 1, tokens), "first_call_seconds": round(first, 3)}
    return {**result, **time_passes(clock, lambda: layer(*inputs), backward, both)}


@dataclass(frozen=True)
class Step:
    """A complete training step. Precision: `autocast` of fp32 parameters, or bf16 with a `master` copy in fp32."""

    shape: Shape
    layers: int
    vocabulary: int
    batch: int
    tokens: int
    precision: str

    def row(self) -> Row:
        """Returns the description."""
        return dict(
            op="training_step",
            **self.shape.row(),
            layers=self.layers,
            vocabulary=self.vocabulary,
            batch=self.batch,
            tokens=self.tokens,
            precision=self.precision,
            optimizer="adamw_fused",
        )


def time_step(clock: Clock, step: Step, compiled: bool = False) -> Row:
    """Times the phases of training steps, as a training loop runs them."""
    with clock.device:
        model = Model(step.shape, step.layers, step.vocabulary, step.tokens)
    if step.precision == "master":
        model.to(BF16)
    parameters = list(model.parameters())
    masters = (
        [nn.Parameter(parameter.detach().float()) for parameter in parameters]
        if step.precision == "master"
        else parameters
    )
    optimizer = torch.optim.AdamW(masters, lr=1e-4, fused=clock.cuda)
    ids = torch.randint(step.vocabulary, (step.batch, step.tokens), device=clock.device)
    forward: Any = torch.compile(model) if compiled else model

    def train() -> list[Any]:
        marks = [clock.mark()]
        with torch.autocast(clock.device.type, BF16, enabled=step.precision == "autocast"):
            loss = forward(ids)
        marks.append(clock.mark())
        loss.backward()
        marks.append(clock.mark())
        if masters is not parameters:
            for master, parameter in zip(masters, parameters):
                master.grad = parameter.grad.float()  # type: ignore[union-attr]
        optimizer.step()
        if masters is not parameters:
            with torch.no_grad():
                torch._foreach_copy_(parameters, masters)
        model.zero_grad(set_to_none=True)
        optimizer.zero_grad(set_to_none=True)
        marks.append(clock.mark())
        return marks

    start = time.monotonic()
    train()
    clock.sync()
    first = time.monotonic() - start
    train()
    clock.sync()
    start = time.monotonic()
    train()
    clock.sync()
    single = time.monotonic() - start
    count = min(max(int(8 * clock.case_seconds / single), 5), 30)
    if count * single > clock.remaining():
        raise OutOfTime
    reset_peaks(clock)
    start = time.monotonic()
    steps = [train() for _ in range(count)]
    clock.sync()
    wall = (time.monotonic() - start) / count * 1e6
    result = phase_times(clock, steps)
    result.update(
        attention=attention_backend(clock, step.shape, step.batch, step.tokens),
        wall_us=round(wall, 3),
        steps=count,
        first_call_seconds=round(first, 3),
        parameters=sum(parameter.numel() for parameter in parameters),
    )
    return {**result, **peaks(clock)}


def validation_steps(clock: Clock) -> list[Step]:
    """Returns the training steps."""
    tiny = [Step(TINY_GPT, 2, 256, 2, 32, "autocast"), Step(TINY_LLAMA, 2, 256, 2, 32, "master")]
    full = [
        Step(GPT_2, 12, 50304, 8, 1024, "autocast"),
        Step(LLAMA_1B, 16, 32768, 2, 2048, "master"),
        Step(GPT_2, 12, 50304, 32, 1024, "autocast"),
        Step(LLAMA_1B, 16, 32768, 1, 8192, "master"),
        Step(GPT_2, 12, 50304, 8, 1024, "master"),
        Step(LLAMA_1B, 16, 32768, 2, 2048, "autocast"),
    ]
    return list(clock.axis(full, tiny))


def validation_cases(clock: Clock) -> list[Case]:
    """Complete layers and training steps, eager. They are compared with predictions and never fitted."""
    cases = []
    for rank, (shape, tokens) in ordered_grid(
        clock.axis([LLAMA_8B, LLAMA_1B], [TINY_LLAMA]), clock.axis([4096, 2048, 8192], [32])
    ):
        row = {"op": "layer", **shape.row(), "tokens": tokens, "variant": "eager"}
        cases.append(Case(row, functools.partial(time_layer, clock, shape, tokens), rank))
    for rank, step in enumerate(validation_steps(clock)):
        row = {**step.row(), "variant": "eager"}
        cases.append(Case(row, functools.partial(time_step, clock, step), rank))
    return cases


# ---------------------------------------------------------------------------------------------- host


def call_time(clock: Clock, run: Run) -> Row:
    """Times a call of the host. The work of the device is negligible."""
    for _ in range(20):
        run()
    clock.sync()
    times = []
    for _ in range(10):
        start = time.perf_counter()
        for _ in range(50):
            run()
        times.append((time.perf_counter() - start) / 50 * 1e6)
        clock.sync()
    return {**quantiles(times), "calls": 50, "spans": 10}


def tiny_operators(clock: Clock) -> dict[str, Callable[[], Run]]:
    """Returns operators on tensors so small that the host limits them."""
    fill = functools.partial(torch.randn, device=clock.device, dtype=BF16)

    def simple(function: Callable[..., Any], *sizes: tuple[int, ...]) -> Callable[[], Run]:
        def make() -> Run:
            operands = [fill(*size) for size in sizes]
            return lambda: function(*operands)

        return make

    def chain() -> Run:
        x = fill(16, requires_grad=True)
        y = x
        for _ in range(10):
            y = y * x
        grad = torch.ones_like(y)
        return lambda: torch.autograd.grad(y, x, grad, retain_graph=True)

    def record_stream() -> Run:
        if not clock.cuda:
            raise Unsupported("a CPU has no streams")
        x, stream = fill(16), torch.cuda.Stream()
        return lambda: x.record_stream(stream)

    def reduce() -> Run:
        single_rank_group(clock)
        x = fill(16)
        return lambda: dist.all_reduce(x)

    return {
        "add": simple(torch.add, (16,), (16,)),
        "linear": simple(F.linear, (16, 64), (64, 64)),
        "sdpa": simple(F.scaled_dot_product_attention, *[(1, 4, 16, 64)] * 3),
        "layer_norm": simple(lambda x: F.layer_norm(x, (64,)), (16, 64)),
        "rms_norm": simple(lambda x: F.rms_norm(x, (64,)), (16, 64)),
        "softmax": simple(lambda x: F.softmax(x, -1), (16, 64)),
        "cat": simple(lambda x, y: torch.cat((x, y)), (16,), (16,)),
        "cast": simple(lambda x: x.float(), (16,)),
        "view": simple(lambda x: x.view(4, 4), (16,)),
        "empty": lambda: lambda: torch.empty(16, device=clock.device),
        "event_record": lambda: clock.mark,
        "record_stream": record_stream,
        "autograd_backward_10_mul": chain,
        "all_reduce_1_rank": reduce,
    }


def single_rank_group(clock: Clock) -> None:
    """Creates a process group of this process."""
    if not dist.is_initialized():
        dist.init_process_group("nccl" if clock.cuda else "gloo", store=dist.HashStore(), rank=0, world_size=1)


def graph_row(clock: Clock, shape: Shape, tokens: int) -> Row:
    """Times forward and backward of a layer as a CUDA graph."""
    if not clock.cuda:
        raise Unsupported("a CPU has no CUDA graphs")
    module, inputs = layer_inputs(clock, shape, tokens)
    leaves, grad = [inputs[0], *module.parameters()], torch.randn_like(inputs[0])
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            torch.autograd.grad(module(*inputs), leaves, grad)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        # The graph keeps the memory of its results.
        torch.autograd.grad(module(*inputs), leaves, grad)
    return clock.time(lambda: graph.replay, ahead=False)


def sharded_row(clock: Clock, shape: Shape, tokens: int) -> Row:
    """Times forward and backward of a layer with the hooks of FSDP2 on a rank."""
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        from torch.distributed._composable.fsdp import fully_shard  # type: ignore[no-redef]
    from torch.distributed.device_mesh import init_device_mesh

    single_rank_group(clock)
    module, inputs = layer_inputs(clock, shape, tokens)
    layer: Any = fully_shard(module, mesh=init_device_mesh(clock.device.type, (1,)))
    grad = torch.randn_like(inputs[0])
    return clock.time(lambda: lambda: layer(*inputs).backward(grad), ahead=False)


def launch_cases(clock: Clock) -> list[Case]:
    """Host time of operators and of a layer with 16 tokens."""
    cases = []
    for shape in clock.axis([LLAMA_1B, LLAMA_8B], [TINY_LLAMA]):
        forms: dict[str, Callable[[], Row]] = dict(
            eager=functools.partial(time_layer, clock, shape, 16),
            graph=functools.partial(graph_row, clock, shape, 16),
            fsdp2_1_rank=functools.partial(sharded_row, clock, shape, 16),
        )
        for rank, (variant, measure) in enumerate(forms.items()):
            cases.append(Case({"op": "layer_launch", **shape.row(), "tokens": 16, "variant": variant}, measure, rank))
    for rank, (name, make) in enumerate(tiny_operators(clock).items(), -20):
        cases.append(Case({"op": "call", "call": name}, lambda make=make: call_time(clock, make()), rank))  # type: ignore[misc]
    return cases


# -------------------------------------------------------------------------------------------- memory


def reset_peaks(clock: Clock) -> None:
    """Starts a new record of peak memory."""
    if clock.cuda:
        torch.cuda.reset_peak_memory_stats()


def peaks(clock: Clock) -> Row:
    """Returns the peak memory since the last reset without the flush buffer; null where a device has no statistics."""
    if not clock.cuda:
        return {"peak_allocated_bytes": None, "peak_reserved_bytes": None}
    size = clock.flush.numel()
    return dict(
        peak_allocated_bytes=torch.cuda.max_memory_allocated() - size,
        peak_reserved_bytes=torch.cuda.max_memory_reserved() - size,
    )


def allocated(clock: Clock) -> Optional[int]:
    """Returns the allocated bytes without the flush buffer."""
    return torch.cuda.memory_allocated() - clock.flush.numel() if clock.cuda else None


def memory_row(
    clock: Clock, shape: Shape, layers: int, vocabulary: int, batch: int, tokens: int, recompute: str, optimizer: bool
) -> Row:
    """Returns the memory before and at the peak of two training steps."""
    with clock.device:
        model = Model(shape, layers, vocabulary, tokens, recompute).to(BF16)
    adam = torch.optim.AdamW(model.parameters(), fused=clock.cuda) if optimizer else None
    ids = torch.randint(vocabulary, (batch, tokens), device=clock.device)
    if clock.cuda:
        torch.cuda.empty_cache()
    start = allocated(clock)
    reset_peaks(clock)
    after_forward: Optional[int] = None
    for _ in range(2):
        loss = model(ids)
        after_forward = allocated(clock)
        loss.backward()
        if adam is not None:
            adam.step()
        model.zero_grad(set_to_none=True)
    clock.sync()
    count = sum(parameter.numel() for parameter in model.parameters())
    return {"parameters": count, "start_bytes": start, "after_forward_bytes": after_forward, **peaks(clock)}


def memory_cases(clock: Clock) -> list[Case]:
    """Peak memory of models with few layers in bf16."""
    cases = []
    shapes, vocabularies = clock.axis([LLAMA_8B, LLAMA_1B], [TINY_LLAMA]), clock.axis([32768, 131072], [256])
    tokens = clock.axis([4096], [32])[0]
    settings = ordered_grid([1, 2, 4], [1, 2, 4], ["none", "full", "selective"], shapes, vocabularies, [False, True])
    for rank, (layers, batch, recompute, shape, vocabulary, optimizer) in settings:
        row = dict(
            op="memory",
            **shape.row(),
            layers=layers,
            vocabulary=vocabulary,
            batch=batch,
            tokens=tokens,
            recompute=recompute,
            optimizer=optimizer,
        )
        cases.append(
            Case(
                row,
                functools.partial(memory_row, clock, shape, layers, vocabulary, batch, tokens, recompute, optimizer),
                rank,
                0.2 if clock.cuda else 0.0,
            )
        )
    return cases


# ---------------------------------------------------------------------------------------- contention


def contend(clock: Clock, measured: str, background: str) -> Row:
    """Times a product or a copy while another stream runs the background."""
    if not clock.cuda:
        raise Unsupported("a CPU has no streams")
    size = 1 << 30
    source, target = (
        torch.empty(size, dtype=torch.int8, device=clock.device),
        torch.empty(size, dtype=torch.int8, device=clock.device),
    )
    runs: dict[str, Run] = {
        "product": product_run(clock, (8192, 8192, 8192), "forward", "none"),
        "device_copy": lambda: target.copy_(source),
    }
    if "pinned_copy" in (measured, background):
        pinned = torch.empty(size >> 2, dtype=torch.int8, pin_memory=True)
        runs["pinned_copy"] = lambda: source[: size >> 2].copy_(pinned, non_blocking=True)
    calls = {"product": 10, "device_copy": 20, "pinned_copy": 2}[measured]
    if background == "none":
        times = [clock.span([runs[measured]], calls, 1e-5, True) / calls for _ in range(7)]
        return {**quantiles(times[2:]), "calls": calls, "spans": 5}
    side, times, finished = torch.cuda.Stream(), [], 0
    repeats = {"product": 100, "device_copy": 150, "pinned_copy": 30}[background]
    for _ in range(6):
        clock.sync()
        with torch.cuda.stream(side):
            for _ in range(repeats):
                runs[background]()
            end = torch.cuda.Event()
            end.record()
        first = clock.mark()
        for _ in range(calls):
            runs[measured]()
        last = clock.mark()
        last.synchronize()
        finished += end.query()
        clock.sync()
        times.append(clock.between(first, last) / calls)
    if finished:
        raise Unsupported(f"the background ended before the measured calls in {finished} spans")
    return {**quantiles(times[1:]), "calls": calls, "spans": 5}


def contention_cases(clock: Clock) -> list[Case]:
    """A product of 8192 x 8192 x 8192 beside copies of 1 GiB on the device and of 256 MiB from the host."""
    pairs = [
        ("product", "none"),
        ("product", "device_copy"),
        ("device_copy", "none"),
        ("device_copy", "product"),
        ("product", "pinned_copy"),
        ("pinned_copy", "none"),
        ("pinned_copy", "product"),
    ]
    return [
        Case(
            {"op": "contention", "measured": measured, "background": background},
            functools.partial(contend, clock, measured, background),
            rank,
        )
        for rank, (measured, background) in enumerate(pairs)
    ]


# ------------------------------------------------------------------------------------------ compiled


@contextlib.contextmanager
def limited(clock: Clock) -> Iterator[None]:
    """Interrupts work that takes longer than the section. Compilation cannot be stopped otherwise."""
    seconds = clock.remaining()
    if not hasattr(signal, "setitimer") or not math.isfinite(seconds):
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        raise OutOfTime

    previous = signal.signal(signal.SIGALRM, interrupt)
    # A compiler may catch the first exception.
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.1), 1.0)
    try:
        yield
    except Exception as error:
        # The compiler wraps exceptions of its callees.
        if clock.remaining() <= 0:
            raise OutOfTime from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def compiled_measure(clock: Clock, measure: Callable[[], Row]) -> Row:
    """Runs a measurement of compiled code within the time of the section."""
    import torch._dynamo
    import torch._functorch.config as settings

    torch._dynamo.reset()
    # A backward pass that runs again needs its inputs.
    if hasattr(settings, "donated_buffer"):
        settings.donated_buffer = False
    with limited(clock):
        return measure()


def compiled_pointwise(clock: Clock, operator: Pointwise, rows: int, width: int) -> Row:
    """Times both directions of a compiled operator."""
    function = torch.compile(operator.function)
    start = time.monotonic()
    pointwise_run(clock, operator, rows, width, True, function)()
    clock.sync()
    result: Row = {"first_call_seconds": round(time.monotonic() - start, 3)}
    result.update(clock.time(lambda: pointwise_run(clock, operator, rows, width, False, function)))
    result["backward_us"] = clock.time(lambda: pointwise_run(clock, operator, rows, width, True, function))["time_us"]
    return result


def compiled_flex(clock: Clock, tokens: int, heads: int, head: int) -> Row:
    """Times causal attention by FlexAttention."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    fill = functools.partial(torch.randn, device=clock.device, dtype=BF16, requires_grad=True)
    inputs = [fill(clock.axis([4], [1])[0], heads, tokens, head) for _ in range(3)]
    mask = create_block_mask(
        lambda batch, index, query, key: query >= key, None, None, tokens, tokens, device=clock.device.type
    )
    function: Any = torch.compile(flex_attention)
    start = time.monotonic()
    backward = backward_run(function(*inputs, block_mask=mask), inputs)
    backward()
    clock.sync()
    result: Row = {"first_call_seconds": round(time.monotonic() - start, 3)}
    result.update(clock.time(lambda: lambda: function(*inputs, block_mask=mask)))
    return {**result, "backward_us": clock.time(lambda: backward)["time_us"]}


def compiled_cases(clock: Clock) -> list[Case]:
    """Compiled operators, layers and training steps. Compilation counts as time of the section."""
    cases = []

    def add(row: Row, measure: Callable[[], Row], rank: int, seconds: float) -> None:
        cases.append(
            Case(
                {**row, "variant": "compiled"},
                functools.partial(compiled_measure, clock, measure),
                rank,
                seconds if clock.cuda else 0.0,
            )
        )

    shape, tokens = clock.axis([(LLAMA_8B, 4096)], [(TINY_LLAMA, 32)])[0]
    add(
        {"op": "layer", **shape.row(), "tokens": tokens},
        lambda: time_layer(clock, shape, tokens, torch.compile),
        1,
        8.0,
    )
    add(
        {"op": "layer_launch", **shape.row(), "tokens": 16}, lambda: time_layer(clock, shape, 16, torch.compile), 4, 8.0
    )
    step = validation_steps(clock)[0]
    add(step.row(), lambda: time_step(clock, step, True), 3, 30.0)
    rows, width = clock.axis([(8192, 4096)], [(32, 64)])[0]
    table = pointwise_table(clock)
    for rank, name in enumerate(["rms_norm", "swiglu", "cross_entropy", "rope", "layer_norm"]):
        columns = width if name != "cross_entropy" else clock.axis([131072], [256])[0]
        row = {
            "op": name,
            "class": table[name].group,
            "rows": rows,
            "width": columns,
            "bytes": int(table[name].forward * rows * columns),
            "backward": False,
        }
        add(row, functools.partial(compiled_pointwise, clock, table[name], rows, columns), 2 * rank, 3.0)
    length, heads, head = clock.axis([(4096, 16, 128)], [(128, 2, 16)])[0]
    row = {"op": "flex", "tokens": length, "heads": heads, "qk_dim": head, "causal": True}
    add(row, lambda: compiled_flex(clock, length, heads, head), 2, 8.0)

    x = torch.randn(rows, width, device=clock.device, dtype=BF16)
    size = 3 * rows * width
    cast = timed(clock, lambda: functools.partial(torch.compile(cast_rows), x), size=size)
    add({"op": "cast_fp8", "kind": "row", "rows": rows, "width": width, "bytes": size}, cast, 5, 3.0)
    return cases


# ----------------------------------------------------------------------------- models people train


def module(name: str, hidden: int, heads: int, kv_heads: int, ffn: int, **more: Any) -> Row:
    """Returns a module with the field names of a Planscope scenario."""
    sizes = dict(layers=1, hidden=hidden, heads=heads, kv_heads=kv_heads, ffn=ffn, gated=True, vocab=0)
    form = dict(mask="causal", norm="rms", bias="none", dropout=False, tied_embeddings=False, learned_positions=0)
    return {"name": name, "role": "backbone", **sizes, **form, **more}


def latent(query_rank: int) -> Row:
    """Returns latent attention with the head sizes of DeepSeek-V2 and V3."""
    return dict(query_rank=query_rank, kv_rank=512, content_size=128, rotary_size=64, value_size=128)


def delta(key_heads: int, value_heads: int, size: int, full_every: int = 0) -> Row:
    """Returns the gated delta rule with equal sizes of keys and values."""
    sizes = dict(key_heads=key_heads, value_heads=value_heads, key_size=size, value_size=size)
    return dict(recurrence="gated_delta", **sizes, convolution=4, full_every=full_every)


def state_space(groups: int, heads: int, state: int, size: int) -> Row:
    """Returns Mamba-2."""
    sizes = dict(key_heads=groups, value_heads=heads, key_size=state, value_size=size)
    return dict(recurrence="state_space", **sizes, convolution=4)


# Sizes of published models, with fewer layers.
QWEN3 = module("qwen3-8b", 4096, 32, 8, 12288, head_size=128)
QWEN3_MOE = module(
    "qwen3-30b-a3b", 2048, 32, 4, 6144, head_size=128, moe=dict(experts=128, top_k=8, expert_width=768)
)
DEEPSEEK_LITE = module(
    "deepseek-v2-lite",
    2048,
    16,
    16,
    10944,
    latent=latent(0),
    moe=dict(experts=64, top_k=6, expert_width=1408, shared_width=2816),
)
DEEPSEEK_DENSE = module("deepseek-v3-dense", 7168, 128, 128, 18432, latent=latent(1536))
GPT_OSS = module(
    "gpt-oss-20b",
    2880,
    64,
    8,
    2880,
    head_size=64,
    window=dict(tokens=128),
    moe=dict(experts=32, top_k=4, expert_width=2880),
)
GEMMA = module("gemma-3-4b", 2560, 8, 4, 10240, head_size=256, window=dict(tokens=1024))
QWEN_LINEAR = module("qwen3-next-dense", 2048, 16, 2, 6144, head_size=256, linear=delta(16, 32, 128))
NEMOTRON = module(
    "nemotron-h-8b", 4096, 32, 8, 21504, head_size=128, gated=False, linear=state_space(8, 128, 128, 64)
)
LORA = module("llama-8b-lora", 4096, 32, 8, 14336, adapters=dict(rank=16, mlp=True))


def narrowed(full: Row) -> Row:
    """Returns the module with tiny sizes of the same form."""
    tiny = {**full, "hidden": 64, "heads": 4, "kv_heads": 4 if "latent" in full else 2, "ffn": 128}
    if "head_size" in full:
        tiny["head_size"] = 16
    if "latent" in full:
        tiny["latent"] = dict(
            query_rank=full["latent"]["query_rank"] and 32, kv_rank=32, content_size=16, rotary_size=8, value_size=16
        )
    if "moe" in full:
        tiny["moe"] = dict(full["moe"], experts=4, top_k=2, expert_width=32)
        if "shared_width" in full["moe"]:
            tiny["moe"]["shared_width"] = 64
    if "window" in full:
        tiny["window"] = dict(full["window"], tokens=8)
    if "linear" in full:
        tiny["linear"] = dict(full["linear"], key_heads=2, value_heads=4, key_size=16, value_size=16)
    return tiny


class Adapted(nn.Module):
    """A linear layer, frozen with low-rank matrices next to it if there is a rank."""

    def __init__(self, inputs: int, outputs: int, rank: int = 0) -> None:
        super().__init__()
        self.base = nn.Linear(inputs, outputs, bias=False)
        self.base.weight.requires_grad_(not rank)
        self.down = nn.Linear(inputs, rank, bias=False) if rank else None
        self.up = nn.Linear(rank, outputs, bias=False) if rank else None

    def forward(self, x: Tensor) -> Tensor:
        """Computes (..., outputs)."""
        if self.down is None or self.up is None:
            return self.base(x)
        return self.base(x) + self.up(self.down(x))


@functools.lru_cache(maxsize=None)
def window_mask(tokens: int, window: int, device: str) -> Any:
    """Returns the blocks of a causal window."""
    from torch.nn.attention.flex_attention import create_block_mask

    def visible(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (query >= key) & (query - key < window)

    return create_block_mask(visible, None, None, tokens, tokens, device=device)


@functools.lru_cache(maxsize=None)
def compiled_flex_attention() -> Any:
    """Returns FlexAttention, compiled once."""
    import torch._functorch.config as settings
    from torch.nn.attention.flex_attention import flex_attention

    # A backward pass that runs again needs its inputs.
    if hasattr(settings, "donated_buffer"):
        settings.donated_buffer = False
    return torch.compile(flex_attention, dynamic=False)


class Mixer(nn.Module):
    """Attention of all kinds, from the normalized input to the branch output."""

    def __init__(self, sizes: Row) -> None:
        super().__init__()
        self.sizes = sizes
        self.kernel = ""
        self.out: nn.Module
        hidden, heads, kv_heads = sizes["hidden"], sizes["heads"], sizes["kv_heads"]
        rank = sizes.get("adapters", {}).get("rank", 0)
        self.window = sizes.get("window", {}).get("tokens", 0)
        ranks = sizes.get("latent")
        if ranks:
            self.head, self.value = ranks["content_size"] + ranks["rotary_size"], ranks["value_size"]
            self.rotary = ranks["rotary_size"]
            self.query_down = nn.Linear(hidden, ranks["query_rank"], bias=False) if ranks["query_rank"] else None
            self.query = nn.Linear(ranks["query_rank"] or hidden, heads * self.head, bias=False)
            self.kv_down = nn.Linear(hidden, ranks["kv_rank"] + self.rotary, bias=False)
            self.kv = nn.Linear(ranks["kv_rank"], heads * (ranks["content_size"] + self.value), bias=False)
            self.out = nn.Linear(heads * self.value, hidden, bias=False)
        else:
            self.head = self.value = self.rotary = sizes.get("head_size") or hidden // heads
            self.qkv = Adapted(hidden, (heads + 2 * kv_heads) * self.head, rank)
            self.out = Adapted(heads * self.head, hidden, rank)

    def projected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns queries, keys and values as (batch, heads, tokens, size)."""
        sizes, (batch, tokens, _) = self.sizes, x.shape
        heads, kv_heads = sizes["heads"], sizes["kv_heads"]
        cosine, sine = angle_tables(tokens, self.rotary, device=x.device, dtype=x.dtype)
        if "latent" not in sizes:
            parts = self.qkv(x).view(batch, tokens, -1, self.head).transpose(1, 2).split((heads, kv_heads, kv_heads), 1)
            return rotate(parts[0], cosine, sine), rotate(parts[1], cosine, sine), parts[2]
        ranks = sizes["latent"]
        content = ranks["content_size"]
        query = x if self.query_down is None else F.rms_norm(self.query_down(x), (ranks["query_rank"],))
        query = self.query(query).view(batch, tokens, heads, self.head).transpose(1, 2)
        low, positions = self.kv_down(x).split((ranks["kv_rank"], self.rotary), -1)
        both = self.kv(F.rms_norm(low, (ranks["kv_rank"],))).view(batch, tokens, heads, -1).transpose(1, 2)
        query = torch.cat((query[..., :content], rotate(query[..., content:], cosine, sine)), -1)
        turned = rotate(positions.unsqueeze(1), cosine, sine).expand(-1, heads, -1, -1)
        return query, torch.cat((both[..., :content], turned), -1), both[..., content:]

    def forward(self, x: Tensor) -> Tensor:
        """Computes (batch, tokens, hidden)."""
        batch, tokens, _ = x.shape
        query, key, value = self.projected(x)
        if self.window and x.is_cuda:
            self.kernel = "flex"
            mask = window_mask(tokens, self.window, x.device.type)
            grouped = query.shape[1] != key.shape[1]
            mixed = compiled_flex_attention()(query, key, value, block_mask=mask, enable_gqa=grouped)
        else:
            self.kernel = self.kernel or fused_choice(query, key, value)
            if self.kernel == "math" and x.is_cuda and self.value < self.head:
                # Fused kernels need one size: frameworks pad the values.
                self.kernel = "padded"
            padded = self.kernel == "padded"
            value = F.pad(value, (0, self.head - self.value)) if padded else value
            mixed = attend(query, key, value, True)[..., : self.value]
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, -1))


class LinearMixer(nn.Module):
    """Gated delta rule or Mamba-2 by Triton kernels of the packages fla-core and mamba-ssm."""

    def __init__(self, sizes: Row) -> None:
        super().__init__()
        self.sizes = sizes["linear"]
        linear = self.sizes
        self.is_delta = linear["recurrence"] == "gated_delta"
        self.keys = linear["key_heads"] * linear["key_size"]
        self.values = linear["value_heads"] * linear["value_size"]
        scalars = (2 if self.is_delta else 1) * linear["value_heads"]
        self.widths = (2 * self.keys + self.values, self.values, scalars)
        self.into = nn.Linear(sizes["hidden"], sum(self.widths), bias=False)
        self.convolution = nn.Parameter(torch.randn(self.widths[0], linear["convolution"]) / 2)
        self.decay = nn.Parameter(torch.zeros(linear["value_heads"]))
        self.out = nn.Linear(self.values, sizes["hidden"], bias=False)
        self.kernel = "fla" if self.is_delta else "mamba_ssm"

    def forward(self, x: Tensor) -> Tensor:
        """Computes (batch, tokens, hidden)."""
        if not x.is_cuda:
            raise Unsupported("the kernels of linear attention need a CUDA device")
        try:
            from fla.modules.convolution import causal_conv1d
            from fla.ops.gated_delta_rule import chunk_gated_delta_rule

            if not self.is_delta:
                from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined
        except ImportError as error:
            raise Unsupported(str(error)) from error
        linear, (batch, tokens, _) = self.sizes, x.shape
        into, gate, scalars = self.into(x).split(self.widths, -1)
        into = causal_conv1d(into, self.convolution, activation="silu")[0]
        query, key, value = into.split((self.keys, self.keys, self.values), -1)
        query, key = (part.reshape(batch, tokens, linear["key_heads"], linear["key_size"]) for part in (query, key))
        value = value.reshape(batch, tokens, linear["value_heads"], linear["value_size"])
        rate = -self.decay.float().exp()
        if self.is_delta:
            step, beta = scalars.chunk(2, -1)
            decay = rate * F.softplus(step.float())
            mixed = chunk_gated_delta_rule(query, key, value, decay, beta.sigmoid(), use_qk_l2norm_in_kernel=True)[0]
        else:
            mixed = mamba_chunk_scan_combined(value, F.softplus(scalars.float()), rate, key, query, chunk_size=256)
        result = F.rms_norm(mixed, (linear["value_size"],))
        return self.out(result.reshape(batch, tokens, self.values) * F.silu(gate))


class Mlp(nn.Module):
    """The MLP of all tokens."""

    def __init__(self, hidden: int, width: int, gated: bool, rank: int = 0) -> None:
        super().__init__()
        self.gated = gated
        self.up = Adapted(hidden, width * (2 if gated else 1), rank)
        self.down = Adapted(width, hidden, rank)

    def forward(self, x: Tensor) -> Tensor:
        """Computes (..., hidden)."""
        inner = self.up(x)
        if not self.gated:
            return self.down(F.relu(inner).square())
        gate, inner = inner.chunk(2, -1)
        return self.down(F.silu(gate) * inner)


class Experts(nn.Module):
    """Routed experts by grouped products, and shared experts."""

    def __init__(self, sizes: Row) -> None:
        super().__init__()
        moe, hidden = sizes["moe"], sizes["hidden"]
        self.top, self.count, width = moe["top_k"], moe["experts"], moe["expert_width"]
        self.router = nn.Linear(hidden, self.count, bias=False)
        self.up = nn.Parameter(torch.randn(self.count, 2 * width, hidden) * 0.02)
        self.down = nn.Parameter(torch.randn(self.count, hidden, width) * 0.02)
        shared = moe.get("shared_width", 0)
        self.shared = Mlp(hidden, shared, True) if shared else None

    def forward(self, x: Tensor) -> Tensor:
        """Computes (batch, tokens, hidden)."""
        grouped: Any = getattr(torch, "_grouped_mm", None)
        if grouped is None:
            raise Unsupported("this PyTorch has no _grouped_mm")
        flat = x.reshape(-1, x.shape[-1])
        weights, selected = torch.softmax(self.router(flat).float(), 1).topk(self.top, 1)
        chosen = selected.reshape(-1)
        order = torch.argsort(chosen, stable=True)
        # bincount would wait for the device.
        counts = torch.zeros(self.count, device=x.device, dtype=torch.int32)
        offsets = counts.scatter_add_(0, chosen, torch.ones_like(chosen, dtype=torch.int32)).cumsum(0, dtype=torch.int32)
        source = order // self.top
        gate, inner = grouped(flat[source], self.up.transpose(1, 2), offs=offsets).chunk(2, -1)
        result = grouped(F.silu(gate) * inner, self.down.transpose(1, 2), offs=offsets)
        result = result * weights.reshape(-1)[order].to(x.dtype).unsqueeze(1)
        output = torch.zeros_like(flat).index_add(0, source, result)
        if self.shared is not None:
            output = output + self.shared(flat)
        return output.view_as(x)


class KindLayer(nn.Module):
    """A layer of a module: norms, a mixer and an MLP. `M`, `*`, `-` and `E` of a pattern have one of both."""

    def __init__(self, sizes: Row, part: str = "") -> None:
        super().__init__()
        hidden, rank = sizes["hidden"], sizes.get("adapters", {}).get("rank", 0)
        self.mixer: Any = None
        if part != "-":
            self.mixer = LinearMixer(sizes) if "linear" in sizes and part != "*" else Mixer(sizes)
        self.mlp: Any = None
        if part in ("", "-"):
            self.mlp = Experts(sizes) if "moe" in sizes else Mlp(hidden, sizes["ffn"], sizes["gated"], rank)
        trained = not rank
        self.norms = nn.ParameterList([nn.Parameter(torch.ones(hidden), trained) for _ in range(2)])

    def forward(self, x: Tensor) -> Tensor:
        """Computes (batch, tokens, hidden)."""
        size = (x.shape[-1],)
        if self.mixer is not None:
            x = x + self.mixer(F.rms_norm(x, size, self.norms[0]))
        if self.mlp is not None:
            x = x + self.mlp(F.rms_norm(x, size, self.norms[1]))
        return x

    @property
    def kernel(self) -> str:
        """Returns the kernel of the mixer after a forward pass."""
        return "" if self.mixer is None else self.mixer.kernel


class KindModel(nn.Module):
    """A decoder of such layers with embedding, output layer and loss in fp32."""

    def __init__(self, sizes: Row) -> None:
        super().__init__()
        hidden, trained = sizes["hidden"], "adapters" not in sizes
        self.embedding = nn.Embedding(sizes["vocab"], hidden)
        parts = list(sizes["pattern"]) if "pattern" in sizes else [""] * sizes["layers"]
        every = (sizes.get("linear") or sizes.get("window") or {}).get("full_every", 0)
        attention = {name: value for name, value in sizes.items() if name not in ("linear", "window")}
        self.layers = nn.ModuleList(
            [
                KindLayer(attention if every and (index + 1) % every == 0 else sizes, part)
                for index, part in enumerate(parts)
            ]
        )
        self.norm = nn.Parameter(torch.ones(hidden), trained)
        self.head = nn.Linear(hidden, sizes["vocab"], bias=False)
        self.embedding.weight.requires_grad_(trained)
        self.head.weight.requires_grad_(trained)

    def forward(self, ids: Tensor) -> Tensor:
        """Returns the loss of (batch, tokens) identifiers."""
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        logits = self.head(F.rms_norm(x, (x.shape[-1],), self.norm))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), ids.view(-1))


def kind_layer_row(clock: Clock, sizes: Row, tokens: int, part: str) -> Row:
    """Times a layer in bf16. `*_us` includes the host, `*_device_us` is the device alone."""
    with clock.device:
        layer = KindLayer(sizes, part).to(BF16)
    x = torch.randn(1, tokens, sizes["hidden"], device=clock.device, dtype=BF16, requires_grad=True)
    leaves = [x, *(parameter for parameter in layer.parameters() if parameter.requires_grad)]
    start = time.monotonic()
    output = layer(x)
    backward = backward_run(output, leaves)
    backward()
    clock.sync()
    result: Row = {"first_call_seconds": round(time.monotonic() - start, 3), "kernels": layer.kernel}

    def both() -> None:
        torch.autograd.grad(layer(x), leaves, output.detach(), allow_unused=True)

    return {**result, **time_passes(clock, lambda: layer(x), backward, both)}


def kind_step_row(clock: Clock, sizes: Row, batch: int, tokens: int) -> Row:
    """Times complete training steps in bf16 with a master copy in fp32 of trained parameters, and their memory."""
    with clock.device:
        model = KindModel(sizes).to(BF16)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    masters = [nn.Parameter(parameter.detach().float()) for parameter in parameters]
    optimizer = torch.optim.AdamW(masters, lr=1e-5, fused=clock.cuda)
    ids = torch.randint(sizes["vocab"], (batch, tokens), device=clock.device)
    after_forward: list[Optional[int]] = []

    def train() -> list[Any]:
        marks = [clock.mark()]
        loss = model(ids)
        after_forward.append(allocated(clock))
        marks.append(clock.mark())
        loss.backward()
        marks.append(clock.mark())
        for master, parameter in zip(masters, parameters):
            master.grad = parameter.grad.float()  # type: ignore[union-attr]
            parameter.grad = None
        optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(parameters, masters)
        optimizer.zero_grad(set_to_none=True)
        marks.append(clock.mark())
        return marks

    for _ in range(2):
        train()
    clock.sync()
    release(clock)
    start_bytes = allocated(clock)
    start = time.monotonic()
    train()
    clock.sync()
    single = time.monotonic() - start
    count = min(max(int(8 * clock.case_seconds / single), 5), 20)
    if count * single > clock.remaining():
        raise OutOfTime
    reset_peaks(clock)
    steps = [train() for _ in range(count)]
    clock.sync()
    result = phase_times(clock, steps)
    result.update(
        kernels=" ".join(sorted({str(layer.kernel) for layer in model.layers} - {""})),
        steps=count,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        start_bytes=start_bytes,
        after_forward_bytes=after_forward[-1],
    )
    return {**result, **peaks(clock)}


def kind_models() -> list[tuple[Row, int, int]]:
    """Returns models of few layers, with sequences and tokens of a step."""
    hybrid = dict(QWEN_LINEAR, layers=8, linear=dict(QWEN_LINEAR["linear"], full_every=4))
    windowed = dict(GEMMA, layers=12, window=dict(GEMMA["window"], full_every=6))
    return [
        (dict(QWEN3_MOE, layers=2), 2, 4096),
        (dict(DEEPSEEK_LITE, layers=3), 2, 4096),
        (dict(QWEN3, layers=6), 1, 8192),
        (dict(LORA, layers=8), 1, 8192),
        (dict(DEEPSEEK_DENSE, layers=2), 1, 4096),
        (windowed, 1, 8192),
        (hybrid, 1, 8192),
        (dict(NEMOTRON, layers=10, pattern="M-M-M-M*-M", ffn=21504), 1, 8192),
        (dict(GPT_OSS, layers=2, window=dict(GPT_OSS["window"], full_every=2)), 1, 8192),
    ]


def kind_cases(clock: Clock) -> list[Case]:
    """Layers and training steps of current models. They are compared with predictions and never fitted.

    Windows run FlexAttention, compiled. Linear attention needs the packages fla-core and mamba-ssm.
    """
    cases = []
    layers = [QWEN3_MOE, DEEPSEEK_LITE, QWEN3, LORA, DEEPSEEK_DENSE, GEMMA, GPT_OSS, QWEN_LINEAR]
    parts = [*((sizes, "") for sizes in layers), (NEMOTRON, "M"), (NEMOTRON, "-")]
    for rank, ((sizes, part), tokens) in ordered_grid(parts, clock.axis([8192, 4096], [32])):
        row = {"op": "layer", "model": sizes["name"], "part": part, "tokens": tokens, "variant": "eager"}
        sizes = sizes if clock.cuda else narrowed(sizes)
        described = dict(sizes, pattern=part) if part else sizes
        measure = functools.partial(kind_layer_row, clock, sizes, tokens, part)
        row["module"] = described
        cases.append(Case(row, functools.partial(limited_measure, clock, measure), rank, kind_seconds(clock, sizes)))
    for rank, (sizes, batch, tokens) in enumerate(kind_models()):
        sizes = dict(sizes, vocab=32768) if clock.cuda else dict(narrowed(sizes), vocab=256)
        tokens = tokens if clock.cuda else 32
        row = {"op": "training_step", "model": sizes["name"], "batch": batch, "tokens": tokens, "variant": "eager"}
        measure = functools.partial(kind_step_row, clock, sizes, batch, tokens)
        row.update(optimizer="adamw_fused", module=sizes)
        limited_run = functools.partial(limited_measure, clock, measure)
        cases.append(Case(row, limited_run, rank + 2, kind_seconds(clock, sizes)))
    return cases


def kind_seconds(clock: Clock, sizes: Row) -> float:
    """Returns the expected seconds of a case: Triton and FlexAttention compile and tune kernels."""
    if not clock.cuda:
        return 0.0
    return 120.0 if "linear" in sizes else 20.0 if "window" in sizes else 2.0


def limited_measure(clock: Clock, measure: Callable[[], Row]) -> Row:
    """Runs a measurement that may compile kernels within the time of the section."""
    with limited(clock):
        return measure()


# --------------------------------------------------------------------------------------- collectives


def collective_run(
    clock: Clock, operation: str, size: int, group: Any, ranks: int, buffers: tuple[Tensor, Tensor]
) -> Run:
    """Returns a collective of `size` bytes: the full vector, or what a rank sends in an all-to-all."""
    count = size // 2 // ranks * ranks
    first, second = buffers[0][:count], buffers[1][:count]
    rank = dist.get_rank()
    if operation == "send_receive":
        return (lambda: dist.send(first, 1)) if rank == 0 else (lambda: dist.recv(first, 0))
    return {
        "all_reduce": lambda: dist.all_reduce(first, group=group),
        "all_gather": lambda: dist.all_gather_into_tensor(first, second[: count // ranks], group=group),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(second[: count // ranks], first, group=group),
        "all_to_all": lambda: dist.all_to_all_single(second, first, group=group),
    }[operation]


def collective_time(clock: Clock, run: Run) -> Row:
    """Times a collective on this rank."""
    for _ in range(3):
        run()
    clock.sync()
    single = max(clock.span([run], 3, 0.0, False) / 3, 1.0)
    # Ranks must make the same calls, so that the number follows from the largest time.
    slowest = torch.tensor([single], device=clock.device)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    calls = min(max(int(2e3 / slowest.item()), 1), 100)
    return {**quantiles([clock.span([run], calls, 0.0, False) / calls for _ in range(7)]), "spans": 7, "calls": calls}


def collective_cases(clock: Clock) -> list[Case]:
    """Collectives by message size. All ranks run the same cases."""
    world = dist.get_world_size()
    local = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    sizes = clock.axis(
        [512 << (2 * index) for index in range(11)] + [1 << 30] + [1024 << (2 * index) for index in range(10)],
        [4096, 65536],
    )
    limit = max(sizes) // 2
    buffers = (torch.zeros(limit, dtype=BF16, device=clock.device), torch.zeros(limit, dtype=BF16, device=clock.device))
    counts = [world, *(1 << power for power in range(world.bit_length() - 1, 0, -1) if 1 << power < world)]
    groups = {count: dist.new_group(list(range(count))) for count in counts}
    cases = []
    for rank, (operation, count, size) in ordered_grid(
        ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"], counts, sizes
    ):
        row = dict(kernel="collective", operation=operation, bytes=size, ranks=count, ranks_per_node=min(count, local))
        cases.append(
            Case(row, functools.partial(shared_collective, clock, operation, size, groups[count], count, buffers), rank)
        )
    for rank, size in enumerate(sizes):
        row = dict(kernel="collective", operation="send_receive", bytes=size, ranks=2, ranks_per_node=min(2, local))
        cases.append(
            Case(row, functools.partial(shared_collective, clock, "send_receive", size, None, 2, buffers), rank)
        )
    return cases


def shared_collective(
    clock: Clock, operation: str, size: int, group: Any, ranks: int, buffers: tuple[Tensor, Tensor]
) -> Row:
    """Times a collective of the first ranks. The time of the slowest rank counts."""
    # All ranks stop at the same case: the clock of rank 0 decides.
    proceeds = torch.tensor([1.0 if clock.remaining() > 0 else 0.0], device=clock.device)
    dist.broadcast(proceeds, 0)
    if not proceeds.item():
        raise OutOfTime
    member = dist.get_rank() < ranks
    run = collective_run(clock, operation, size, group, ranks, buffers) if member else lambda: None
    row = collective_time(clock, run)
    times = torch.tensor([row["time_us"], row["p10_us"], row["p90_us"]] if member else [0.0] * 3, device=clock.device)
    dist.all_reduce(times, dist.ReduceOp.MAX)
    median, low, high = (round(value, 3) for value in times.tolist())
    return {**row, "time_us": median, "p10_us": low, "p90_us": high}


# ----------------------------------------------------------------------------------------------- run


SECTIONS: list[tuple[str, float, Callable[[Clock], list[Case]]]] = [
    ("products", 5, product_cases),
    ("attention", 4, attention_cases),
    ("validation", 3, validation_cases),
    ("sustained", 2, sustained_cases),
    ("fp8", 2, fp8_cases),
    ("experts", 2, expert_cases),
    ("optimizer", 1.5, optimizer_cases),
    ("pointwise", 1.5, pointwise_cases),
    ("memory", 1.5, memory_cases),
    ("contention", 0.5, contention_cases),
    ("launch", 2, launch_cases),
    ("compiled", 3, compiled_cases),
    ("kinds", 4, kind_cases),
]


def reason_text(error: BaseException, caught: Sequence[warnings.WarningMessage]) -> str:
    """Returns the first line of an error, with the last warning: kernels say there why they do not apply."""
    lines = str(error).strip().split("\n")
    text = f"{type(error).__name__}: {lines[0]}"
    if caught and isinstance(error, RuntimeError):
        text += f" ({str(caught[-1].message).strip()})"
    return text[:400]


def release(clock: Clock) -> None:
    """Returns cached memory to the device."""
    if clock.cuda:
        torch.cuda.empty_cache()


def run_case(clock: Clock, section: Section, case: Case) -> None:
    """Runs a case and stores its result, or the reason why there is none."""
    failed = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            section.results.append({**case.row, **case.measure()})
        except OutOfTime:
            leave_out(section, case)
        except Exception as error:  # Any error of a kernel concerns its case only.
            section.skipped.append({**case.row, "reason": reason_text(error, caught)})
            failed = True
    if failed:
        # Tracebacks have references to tensors.
        gc.collect()
        try:
            clock.sync()
        except RuntimeError as error:
            raise DeviceLost(str(error).split("\n")[0]) from error
    release(clock)


def leave_out(section: Section, case: Case) -> None:
    """Counts a case that the time did not allow."""
    parts = [
        str(case.row[name])
        for name in ("op", "operation", "product", "step", "call", "backend", "variant")
        if name in case.row
    ]
    name = " ".join(parts)
    section.left_out[name] = section.left_out.get(name, 0) + 1


def run_section(clock: Clock, section: Section, seconds: float) -> None:
    """Runs the cases of a section until its seconds are over."""
    start = time.monotonic()
    section.budget, clock.deadline = seconds, start + seconds
    try:
        cases = section.cases(clock)
    except Exception as error:  # Another section may still run.
        section.notes.append(reason_text(error, []))
        cases = []
    try:
        for case in sorted(cases, key=lambda case: case.rank):
            # Ranks agree within collectives when to stop.
            if section.name != "collectives" and clock.remaining() <= case.seconds:
                leave_out(section, case)
            else:
                run_case(clock, section, case)
    finally:
        section.seconds = time.monotonic() - start
        gc.collect()
        # A lost device has no memory to return.
        with contextlib.suppress(RuntimeError):
            release(clock)


def header(clock: Clock, arguments: argparse.Namespace) -> Row:
    """Describes device, versions and command."""
    row: Row = dict(
        date=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        arguments={name: value for name, value in vars(arguments).items() if name not in ("token", "upload")},
    )
    row.update(
        python=platform.python_version(),
        system=platform.platform(),
        torch=torch.__version__,
        cuda=torch.version.cuda,
        hip=torch.version.hip,
    )
    row.update(
        cudnn=torch.backends.cudnn.version() if clock.cuda else None,
        ranks=int(os.environ.get("WORLD_SIZE", "1")),
        cpu_count=os.cpu_count(),
    )
    if not clock.cuda:
        return {**row, "device": f"cpu {platform.processor() or platform.machine()}"}
    properties = torch.cuda.get_device_properties(clock.device)
    row.update(
        device=properties.name, multiprocessors=properties.multi_processor_count, memory_bytes=properties.total_memory
    )
    row.update(cache_bytes=clock.cache, capability=f"{clock.capability[0]}.{clock.capability[1]}")
    if dist.is_nccl_available():
        row["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
    queries = dict(
        driver="driver_version",
        max_sm_mhz="clocks.max.sm",
        max_memory_mhz="clocks.max.memory",
        power_limit_watts="power.limit",
        sm_mhz="clocks.sm",
        watts="power.draw",
        celsius="temperature.gpu",
    )
    row.update(zip(queries, smi(",".join(queries.values()), clock.device)))
    row["event_pair_us"] = quantiles([clock.span([lambda: None], 1, 0.0, True) for _ in range(20)])["time_us"]
    return row


def write_profile(path: str, head: Row, sections: Sequence[Section], interrupted: Optional[str] = None) -> None:
    """Writes the profile, so that the file is always complete."""
    document: Row = dict(
        format=FORMAT, version=VERSION, header={**head, "seconds": round(time.monotonic() - STARTED, 3)}
    )
    if interrupted:
        document["interrupted"] = interrupted
    document["sections"] = [
        dict(
            name=section.name,
            fitted=section.name not in ("validation", "kinds"),
            seconds=round(section.seconds, 3),
            budget_seconds=round(section.budget, 3),
            notes=section.notes,
            results=section.results,
            skipped=section.skipped,
            left_out=section.left_out,
        )
        for section in sections
    ]
    temporary = f"{path}.part"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(document, file, separators=(",", ":"))
        file.write("\n")
    os.replace(temporary, path)


def summary(section: Section) -> str:
    """Returns a line about a section."""
    text = f"{section.name}: {len(section.results)} measured, {len(section.skipped)} skipped, {sum(section.left_out.values())} left out, {section.seconds:.1f} s"
    rates = [row["tflops"] for row in section.results if "tflops" in row]
    if rates:
        text += f", up to {max(rates):.0f} TFLOP/s"
    models = [row for row in section.results if "model" in row and "time_us" in row][:8]
    times = [f"{row['model']} {row['tokens']} tokens {row['op']} {row['time_us'] * 1e-3:.2f} ms" for row in models]
    return "; ".join([text, *section.notes, *times])


def upload(path: str, address: str, token: Optional[str]) -> None:
    """Sends the profile to a Planscope server. The address of a server gets the path of profiles."""
    parts = urllib.parse.urlsplit(address)
    if parts.path in ("", "/"):
        query = urllib.parse.urlencode({"name": os.path.basename(path)})
        parts = parts._replace(path="/api/v1/profiles", query="&".join(filter(None, (parts.query, query))))
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    with open(path, "rb") as file:
        request = urllib.request.Request(parts.geturl(), data=file.read(), headers=headers, method="POST")
    with urllib.request.urlopen(request, timeout=120) as response:
        print(f"uploaded: {response.status}")


def parse_arguments() -> argparse.Namespace:
    """Parses the command line."""
    names = ["collectives", *(name for name, *_ in SECTIONS)]
    parser = argparse.ArgumentParser(description="Measures the operators of model training on a device.")
    parser.add_argument("--minutes", type=float, default=10.0, help="time for all sections together (default 10)")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu runs a tiny grid")
    parser.add_argument("--out", default="profile.json", help="file to write (default profile.json)")
    parser.add_argument(
        "--sections",
        nargs="+",
        choices=names,
        default=names,
        metavar="NAME",
        help=f"sections to run: {', '.join(names)}",
    )
    parser.add_argument("--upload", metavar="URL", help="server that gets the profile")
    parser.add_argument("--token", help="token for the server")
    parsed = parser.parse_args()
    if not (math.isfinite(parsed.minutes) and parsed.minutes > 0):
        parser.error("--minutes must be a positive number")
    return parsed


def measure_all(clock: Clock, arguments: argparse.Namespace, leads: bool) -> Optional[str]:
    """Runs the sections. Returns why it stopped early, if it did."""
    end = STARTED + 60 * arguments.minutes
    head = header(clock, arguments)
    pending = [Section(name, minutes, cases) for name, minutes, cases in SECTIONS if name in arguments.sections]
    if "collectives" in arguments.sections:
        pending.insert(0, Section("collectives", 2.0, collective_cases))
    if not leads:
        pending = pending[:1]
    complete: list[Section] = []
    while pending:
        section = pending.pop(0)
        share = section.minutes / (section.minutes + sum(later.minutes for later in pending))
        seconds = max((end - time.monotonic()) * share, 0.0)
        complete.append(section)
        stopped = None
        try:
            if section.name == "collectives" and not dist.is_initialized():
                section.notes.append("collectives need several devices: start with torchrun")
            else:
                run_section(clock, section, seconds)
        except (DeviceLost, KeyboardInterrupt) as error:
            stopped = f"{type(error).__name__} in {section.name}: {error}"
        if leads:
            write_profile(arguments.out, head, complete, stopped)
            print(summary(section), flush=True)
        if stopped:
            return stopped
        if section.name == "collectives" and dist.is_initialized():
            dist.destroy_process_group()
    return None


def main() -> int:
    """Measures, writes and uploads."""
    arguments = parse_arguments()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("measure: this PyTorch finds no CUDA device (--device cpu runs a tiny grid)", file=sys.stderr)
        return 1
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if arguments.device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    leads = int(os.environ.get("RANK", "0")) == 0
    if ranks > 1 and "collectives" in arguments.sections:
        dist.init_process_group("nccl" if arguments.device == "cuda" else "gloo")
    elif not leads:
        return 0
    torch.manual_seed(0)
    logging.disable(logging.WARNING)
    # Collections after skipped cases need not search what exists from now on.
    gc.freeze()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    stopped = measure_all(Clock(arguments.device, arguments.minutes), arguments, leads)
    if dist.is_initialized():
        dist.destroy_process_group()
    if stopped:
        print(f"measure: {stopped}", file=sys.stderr)
        return 1
    if leads and arguments.upload:
        try:
            upload(arguments.out, arguments.upload, arguments.token)
        except (OSError, urllib.error.HTTPError) as error:
            detail = error.read().decode(errors="replace")[:400] if isinstance(error, urllib.error.HTTPError) else ""
            print(f"measure: the upload failed: {error} {detail}; the profile is in {arguments.out}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
