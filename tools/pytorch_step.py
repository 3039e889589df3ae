#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time PyTorch's training step of LSTM problems on the CPU: zero_grad, forward, backward with
weight gradients, as a training loop runs them. Prints version, threads and the median in ms.

  tools/pytorch_step.py --threads 1 lstm:L2,T35,B20,I650,H650,f32 lstm:L1,T25,B32,I512,H512,f32

PyTorch may carry an OpenMP pool beside that of its BLAS, which fight over the cores: run with
--threads 1, or with OPENBLAS_NUM_THREADS=1 as well, and quote the best.
"""
import argparse
import json
import re
import statistics
import sys
import time


def parse_problem(text):
    """-> {"L":.., "T":.., ..., "bias": bool}; what nn.LSTM cannot run is refused"""
    match = re.fullmatch(r"lstm:(.+)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}': only lstm problems are timed here")
    sizes = {"L": 1, "bias": True, "text": text}
    for part in match.group(1).split(","):
        if part == "f32":
            continue
        if part == "nobias":
            sizes["bias"] = False
        elif re.fullmatch(r"[LTBIHP][1-9][0-9]*", part):
            sizes[part[0]] = int(part[1:])
        else:
            raise argparse.ArgumentTypeError(f"'{text}': nn.LSTM here has no '{part}'")
    missing = [name for name in "TBIH" if name not in sizes]
    if missing:
        raise argparse.ArgumentTypeError(f"'{text}': {', '.join(missing)} missing")
    return sizes


def step_times(torch, problem, seconds, repeats):
    """-> seconds of each step, after warming up"""
    torch.manual_seed(1)
    layers, time_steps, batch = problem["L"], problem["T"], problem["B"]
    projection = problem.get("P", 0)
    width = projection or problem["H"]
    net = torch.nn.LSTM(problem["I"], problem["H"], layers, bias=problem["bias"],
                        proj_size=projection)
    x = torch.randn(time_steps, batch, problem["I"], requires_grad=True)
    h_0 = torch.randn(layers, batch, width, requires_grad=True)
    c_0 = torch.randn(layers, batch, problem["H"], requires_grad=True)
    dy = torch.randn(time_steps, batch, width)
    dh_n, dc_n = torch.randn_like(h_0), torch.randn_like(c_0)
    inputs = (x, h_0, c_0)

    def step():
        net.zero_grad(set_to_none=False)
        for tensor in inputs:
            tensor.grad = None
        y, (h_n, c_n) = net(x, (h_0, c_0))
        torch.autograd.backward((y, h_n, c_n), (dy, dh_n, dc_n))

    for _ in range(3):
        step()
    times = []
    while len(times) < repeats or sum(times) < seconds:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="+", type=parse_problem, metavar="PROBLEM")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5, help="fewest timed steps (default 5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="least timed time (default 1)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("this Python has no PyTorch (Debian: python3-torch, for /usr/bin/python3)")
    torch.set_num_threads(options.threads)
    rows = []
    for problem in options.problems:
        times = step_times(torch, problem, options.seconds, options.repeats)
        rows.append({"problem": problem["text"], "median_ms": statistics.median(times) * 1e3,
                     "best_ms": min(times) * 1e3, "samples": len(times)})
    if options.json:
        print(json.dumps({"library": "PyTorch", "version": torch.__version__,
                          "threads": options.threads, "steps": rows}, indent=1))
        return
    print(f"PyTorch {torch.__version__}, {options.threads} threads")
    for row in rows:
        print(f"{row['problem']:40} median {row['median_ms']:10.3f} ms, "
              f"best {row['best_ms']:.3f} ms of {row['samples']}")


if __name__ == "__main__":
    main()
