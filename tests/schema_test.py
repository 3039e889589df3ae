#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Validates files against docs/schemas/.

schema_test.py                      the schemas themselves, and every suite in suites/
schema_test.py SCHEMA FILE ...      pairs; SCHEMA is the name of a file in docs/schemas;
                                    a journal is validated line by line
Ends 0 when all are valid, 1 with one line per fault, 77 (skipped) without python3-jsonschema.
"""
import copy
import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed (apt-get install python3-jsonschema)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "docs" / "schemas"

CONFIG = {"variant": "cell", "params": {"layout": "tbh", "threads": "2"}}
TIME = {"median": 812.4, "low": 809.9, "high": 815.0, "samples": 41, "noise": 0.006,
        "stop": "converged"}
VALIDATION = {"reference": "oracle", "error": 1e-7, "bound": 2e-5, "tensor": "dW_hh[0]"}
DEVICE = {"backend": "cpu", "name": "a CPU", "architecture": "x86_64/avx512", "key": "k",
          "properties": {"vendor": "v"}}
AGAINST = {"opponent": "onednn", "version": "2.6.3", "algorithm": "ref:any", "time_us": TIME,
           "ratio": {"median": 1.2, "low": 1.18, "high": 1.22}}
COUNTERS = {"contender": "cudnn", "chip": "GH100", "passes": 5,
            "values": {"dram_read_bytes": 1e9, "tensor_pipe_percent": 0}}
STAMP = "2026-11-30T10:00:00Z"
PROBLEM = "lstm:L1,T2,B3,I4,H5,f32"
SIZES = {"workspace_bytes": 1, "reserve_bytes": 2, "packed_bytes": 3}
OUTCOME = {"type": "outcome", "problem": PROBLEM, "config": CONFIG, "kernel_hash": "h",
           "outcome": "ok", "reason": "", "repeatable": True, "time_us": TIME, **SIZES,
           "validation": VALIDATION, "cost_us": {"prepare": 1}}
ENTRY = {"problem": PROBLEM, "objective": "step", "config": CONFIG, "kernel_hash": "h",
         "time_us": TIME, **SIZES, "validation": VALIDATION, "against": [AGAINST], "tied": [CONFIG],
         "environment": 0, "policy": "warm", "seed": 1, "budget_s": 60, "evaluations": 120,
         "complete": True, "time": STAMP}

INSPECTED = {"problem": PROBLEM, "config": CONFIG, "rung": "given", "notes": [], **SIZES}
LINE = {"line": "cell.cuh:35", "memory": "global", "access": "read", "requests": 1, "bytes": 512,
        "sectors": 16, "least": 16}
KERNEL = {"file": "pointwise.cuh", "kernel": "k<4>", "launches": 70, "largest_grid": [4, 16, 1],
          "block": [32, 4, 1], "dynamic_shared_bytes": 0}
RESOURCES = {"architecture": "sm_90", "registers": 32, "static_shared_bytes": 0, "stack_bytes": 0,
             "spill_store_bytes": 0, "spill_load_bytes": 0, "resident_blocks": 4,
             "occupancy": 0.25, "resident_limit": "registers"}
PRODUCT = {"m": 8, "n": 4, "k": 2, "transpose_a": True, "transpose_b": False, "adds": True,
           "count": 3, "flops": 128.0, "bytes": 1.0}
GPU = {"name": "h100", "product": "H100", "architecture": "sm_90", "multiprocessors": 132,
       "max_threads_per_multiprocessor": 2048, "registers_per_multiprocessor": 65536,
       "shared_bytes_per_multiprocessor": 233472}
MOVED = {"count": 4, "bytes": 1}

# Per schema: documents that are valid as docs/formats.md describes them.
VALID = {
    "suite": [{"format": "rnntune-suite", "version": 1, "name": "s", "description": "d",
               "source": "o", "problems": [
                   {"name": "a", "problem": PROBLEM, "weight": 1},
                   {"name": "b", "problem": PROBLEM, "sweep": {"G": [1, 2, "4/8"], "R": [0, 8]}}]}],
    "journal-record": [
        {"format": "rnntune-journal", "version": 1, "type": "session", "time": STAMP,
         "library": "0.1.0", "device": DEVICE, "environment": {}, "seed": 1,
         "strategy": "exhaustive", "budget_s": 60, "problems": [{"name": "a", "problem": PROBLEM}]},
        {"type": "start", "problem": PROBLEM, "config": CONFIG, "kernel_hash": "h"},
        OUTCOME,
        {**OUTCOME, "time_us": {"median": 1e6, "samples": 3, "stop": "budget"}},
        {"type": "final", "problem": PROBLEM, "config": CONFIG, "time_us": TIME, "tied": [],
         "against": [AGAINST], "counters": [COUNTERS],
         "notes": {"cudnn": ["persist_static packed: refused"]},
         "evaluations": 120, "space": 480, "complete": True}],
    "database": [{"format": "rnntune-database", "version": 1, "devices": [
        {"device": DEVICE, "environments": [{"compiler": "c"}], "entries": [ENTRY]}]}],
    "results": [{"context": {"date": STAMP, "rnntune_device": "{}", "rnntune_environment": "{}",
                             "rnntune_library": "0.1.0"},
                 "benchmarks": [
                     {"name": "a/rnntune", "run_name": "a/rnntune", "run_type": "iteration",
                      "real_time": 1.5, "time_unit": "us", "gflops": 3.0, "gpu_l2_bytes": 1e9,
                      "label": "{}"},
                     {"name": "a/onednn", "run_name": "a/onednn", "run_type": "iteration",
                      "error_occurred": True, "error_message": "not found"}]}],
    "inspection": [
        {"format": "rnntune-inspection", "version": 1, "gpu": GPU, "results": [
            {**INSPECTED, "products_workspace_included": False, "step_flops": 1e9,
             "host_calls": 9, "graph_launches": 3, "copies": MOVED, "fills": MOVED,
             "products": [PRODUCT],
             "kernels": [{**KERNEL, "resources": RESOURCES, "counted_share": 1.0, "lines": [LINE]},
                         {**KERNEL, "resources": {"architecture": "sm_70", "error": "no"},
                          "not_counted": "too many"}]}]},
        {"format": "rnntune-inspection", "version": 1, "device": DEVICE, "results": [INSPECTED]}],
    "limits": [{"format": "rnntune-limits", "version": 1, "device": "k", "time": STAMP, "limits": [
        {"threads": 1, "fma_peak_f32_gflops": 206.0,
         "read_bandwidth": [{"working_set_bytes": 393216, "gbytes_per_s": 159.0}]}]}],
}

# Per schema: (index of a valid document, path to a field, its new value; None removes the field).
BROKEN = {
    "suite": [(0, ["version"], 2), (0, ["source"], None), (0, ["problems"], []),
              (0, ["problems", 0, "wieght"], 1), (0, ["problems", 0, "weight"], 0),
              (0, ["problems", 0, "name"], "a b"), (0, ["problems", 0, "problem"], "lstm"),
              (0, ["problems", 1, "sweep"], {"H": [1]})],
    "journal-record": [(0, ["type"], "other"), (0, ["device"], None), (1, ["config"], None),
                       (2, ["outcome"], "fine"), (2, ["time_us"], None),
                       (2, ["time_us", "median"], 0), (2, ["validation"], None),
                       (2, ["outcome"], "crashed"), (2, ["config", "params", "chunk"], 4),
                       (3, ["time_us", "samples"], None),
                       (4, ["tied"], None), (4, ["against", 0, "ratio"], None),
                       (4, ["counters"], []), (4, ["counters", 0, "chip"], None),
                       (4, ["counters", 0, "values", "l2_bytes"], "many"),
                       (4, ["notes", "cudnn"], "refused")],
    "database": [(0, ["format"], "other"), (0, ["devices", 0, "device", "key"], None),
                 (0, ["devices", 0, "entries", 0, "time_us", "low"], -1),
                 (0, ["devices", 0, "entries", 0, "validation"], None),
                 (0, ["devices", 0, "entries", 0, "environment"], "x")],
    "results": [(0, ["context", "rnntune_device"], None), (0, ["benchmarks", 0, "name"], "a"),
                (0, ["benchmarks", 0, "real_time"], None),
                (0, ["benchmarks", 0, "gpu_l2_bytes"], "many"),
                (0, ["benchmarks", 1, "error_message"], None)],
    "inspection": [(0, ["gpu"], None), (0, ["results"], []), (0, ["results", 0, "kernels"], None),
                   (0, ["results", 0, "kernels", 0, "lines"], None),
                   (0, ["results", 0, "kernels", 0, "lines", 0, "memory"], "shared"),
                   (0, ["results", 0, "kernels", 0, "resources", "registers"], None),
                   (0, ["results", 0, "kernels", 1, "not_counted"], None),
                   (0, ["results", 0, "products", 0, "m"], 0), (1, ["device"], None),
                   (1, ["results", 0, "rung"], "guess")],
    "limits": [(0, ["limits"], []), (0, ["limits", 0, "fma_peak_f32_gflops"], 0),
               (0, ["limits", 0, "read_bandwidth", 0, "gbytes_per_s"], None)],
}


def validator(name):
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def faults_of(check, document, where):
    return [f"{where}: {'/'.join(map(str, fault.absolute_path)) or 'top level'}: {fault.message}"
            for fault in sorted(check.iter_errors(document), key=lambda f: list(map(str, f.path)))]


def mutated(document, path, value):
    result = copy.deepcopy(document)
    target = result
    for key in path[:-1]:
        target = target[key]
    if value is None:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    return result


def check_schemas():
    faults = []
    for name, documents in VALID.items():
        check = validator(name)
        for index, document in enumerate(documents):
            faults += faults_of(check, document, f"{name} sample {index}")
        for index, path, value in BROKEN[name]:
            if check.is_valid(mutated(documents[index], path, value)):
                faults.append(f"{name}: accepts sample {index} with {path} = {value!r}")
    unknown = {p.name.removesuffix(".schema.json") for p in SCHEMAS.glob("*.json")} - set(VALID)
    return faults + [f"docs/schemas/{name}.schema.json has no samples here" for name in unknown]


def check_file(schema, path):
    check = validator(schema)
    text = pathlib.Path(path).read_text()
    if schema != "journal-record":
        return faults_of(check, json.loads(text), path)
    lines = [line for line in text.splitlines() if line.strip()]
    faults = [] if lines else [f"{path}: no records"]
    for number, line in enumerate(lines, 1):
        faults += faults_of(check, json.loads(line), f"{path}:{number}")
    return faults


def check_suites():
    faults = []
    paths = sorted((ROOT / "suites").glob("*.json"))
    if not paths:
        return ["suites/: no suite found"]
    for path in paths:
        faults += check_file("suite", str(path))
        suite = json.loads(path.read_text())
        names = [problem["name"] for problem in suite["problems"]]
        faults += [f"{path}: problem name {n} twice" for n in set(names) if names.count(n) > 1]
        if suite["name"] != path.stem:
            faults.append(f"{path}: name is '{suite['name']}', expected '{path.stem}'")
    return faults


def main(arguments):
    if len(arguments) % 2:
        print(__doc__)
        return 2
    if arguments:
        faults = []
        for schema, path in zip(arguments[::2], arguments[1::2]):
            faults += check_file(schema, path)
    else:
        faults = check_schemas() + check_suites()
    print("\n".join(faults) or "all valid")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
