#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Style is a test: sizes, include direction, dead files, leftovers and licence lines of the tree.

Usage: tidy_test.py [ROOT]. First the rules are proved on small bad trees that they must flag, then
they judge ROOT (default: the tree this file is in).
"""

import ast
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path, PurePosixPath

COLUMNS, FUNCTION_LINES, FILE_LINES = 100, 70, 400

CPP = {".cpp", ".hpp", ".c", ".h", ".cuh", ".cu"}
SCRIPTS = {".py", ".sh"}
LEFTOVER = re.compile(r"\b(" + "|".join(["TO" "DO", "FIX" "ME", "XX" "X"]) + r")\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')

# Who may include whom, along the arrows: a room not listed may include nothing of ours. `kernels`
# and `tuner` are their top levels; the folders below see only what that level holds for them.
CONTRACTS = {"kernels/plan.hpp", "kernels/plan_memory.hpp", "kernels/variants.hpp",
             "kernels/checked.hpp"}
LIBRARY = {"kernels", "kernels/include", "kernels/database", "kernels/device", "kernels/cpu",
           "kernels/cuda", "kernels/simt"}
ASIDE = {"tuner/command.hpp", "tuner/interrupt.hpp", "tuner/options.hpp", "tuner/progress.hpp"}
ROOMS = {
    "kernels/include": {"kernels/include"},
    "kernels/cell": {"kernels/cell"},
    "kernels/device": {"kernels/include", "kernels/device"},
    "kernels/cpu": {"kernels/include", "kernels/cell", "kernels/device", "kernels/cpu"} | CONTRACTS,
    "kernels/cuda": {"kernels/include", "kernels/cell", "kernels/device",
                     "kernels/cuda", "kernels/simt/device_text.hpp"} | CONTRACTS,
    "kernels/simt": {"kernels/include", "kernels/cell", "kernels/device", "kernels/cuda",
                     "kernels/simt"},
    "kernels/database": {"kernels/include", "kernels/database", "kernels/space.hpp"} | CONTRACTS,
    "kernels": {"kernels", "kernels/include", "kernels/database", "kernels/device", "kernels/cpu",
                "kernels/cuda"},
    "reference": {"reference", "kernels/include", "kernels/device"},
    "reports": {"reports"},
    "tuner/measure": {"tuner/measure"} | LIBRARY | ASIDE,
    "tuner/gpu": {"tuner/gpu", "tuner/measure", "reports"} | LIBRARY | ASIDE,
    "tuner/records": {"tuner/records", "tuner/gpu", "tuner/measure", "reports"} | LIBRARY | ASIDE,
    "tuner/contenders": {"tuner/contenders", "tuner/records", "tuner/measure", "reference",
                         "reports"} | LIBRARY | ASIDE,
    "tuner/search": {"tuner/search", "tuner/contenders", "tuner/records", "tuner/gpu",
                     "tuner/measure", "reports"} | LIBRARY | ASIDE,
    "tuner/inspect": {"tuner/inspect", "tuner/contenders", "tuner/gpu", "tuner/measure",
                      "reference", "reports"} | LIBRARY | ASIDE,
    "tuner/commands": {"tuner/commands", "tuner/search", "tuner/inspect", "tuner/contenders",
                       "tuner/records", "tuner/gpu", "tuner/measure", "reference",
                       "reports"} | LIBRARY | ASIDE,
    "tuner": {"tuner", "tuner/records", "tuner/measure"} | LIBRARY,
    "examples": {"examples", "kernels/include"},
    "tests": {"*"},
}
# Steps of the library's own chain: a file may include its own step and the later ones. The
# database stands between rnn and space.
CHAIN = ["c_api", "rnn", "database", "space", "variants", "plan"]


def room_of(path):
    parts = PurePosixPath(path).parts
    if parts[0] in ("kernels", "tuner") and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0] if len(parts) > 1 else ""


class Tree:
    """The files of a checkout: what git knows of, or everything but build output without git."""

    def __init__(self, root):
        self.root = Path(root)
        self.files = {}
        for name in sorted(self._names()):
            path = self.root / name
            if path.is_file() and (path.suffix in CPP | SCRIPTS | {".md", ".txt", ".build"}
                                   or path.name in ("meson_options.txt", "run")):
                self.files[name] = path.read_text(encoding="utf-8")

    def _names(self):
        git = ["git", "-c", "safe.directory=*", "-C", str(self.root), "ls-files", "-z", "--cached",
               "--others", "--exclude-standard"]
        try:
            out = subprocess.run(git, check=True, capture_output=True).stdout.decode()
            return [name for name in out.split("\0") if name]
        except (OSError, subprocess.CalledProcessError):
            names = []
            for folder, folders, files in os.walk(self.root):
                folders[:] = [f for f in folders
                              if not f.startswith(("build", ".venv", ".git", "__pycache__"))]
                names += [os.path.relpath(os.path.join(folder, f), self.root) for f in files]
            return names

    def sources(self):
        """Name and text of what the size rules hold for."""
        for name, text in self.files.items():
            kind = PurePosixPath(name)
            if kind.suffix in CPP | SCRIPTS or kind.name == "meson.build" or name == ".ci/run":
                yield name, text


def blank_out(text):
    """C++ with comments, literals and preprocessor lines blanked, line structure kept."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
    return token.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def is_function(header):
    header = re.sub(r"\btemplate\s*<[^{}]*>\s*(?=[\w\[:])", " ", header)
    if header.rstrip().endswith(("=", ",", "(", "return")) or "(" not in header:
        return False
    return not re.match(r"\s*(?:inline\s+)?(?:namespace|class|struct|union|enum)\b[^()]*$", header)


def cpp_functions(text):
    """(first line, last line) of every outermost function body, signature included."""
    text = blank_out(text)
    scopes, header_start, found, begun, ended = [], 0, [], None, None
    for i, char in enumerate(text):
        if char not in "{};":
            continue
        inside = any(start is not None for start in scopes)
        if char == "{":
            header = text[header_start:i]
            first = header_start + len(header) - len(header.lstrip())
            if ended == header_start and re.fullmatch(r"\s*(,\s*\w+\s*(\(.*\))?\s*)?", header):
                first = begun  # the brace before was a member initializer: x{1} {
            elif inside or not is_function(header):
                first = None
            scopes.append(first)
        elif char == "}" and scopes:
            start = scopes.pop()
            if start is not None:
                found.append((text.count("\n", 0, start) + 1, text.count("\n", 0, i) + 1))
                begun, ended = start, i + 1
        header_start = i + 1
    return found


def python_functions(text):
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [(n.lineno, n.end_lineno) for n in ast.walk(ast.parse(text)) if isinstance(n, kinds)]


def shell_functions(text):
    found, start = [], None
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"(function\s+)?[\w-]+\s*\(\)\s*[{(]", line):
            start = number
        elif start and line[:1] in ("}", ")"):
            found.append((start, number))
            start = None
    return found


def check_sizes(tree):
    for name, text in tree.sources():
        lines = text.splitlines()
        if len(lines) > FILE_LINES:
            yield name, len(lines), f"file of {len(lines)} lines, at most {FILE_LINES}"
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS:
                yield name, number, f"line of {len(line)} columns, at most {COLUMNS}"
            if line != line.rstrip() or "\t" in line:
                yield name, number, "trailing space or tab"
        suffix = PurePosixPath(name).suffix
        functions = (cpp_functions if suffix in CPP else python_functions if suffix == ".py"
                     else shell_functions)(text)
        for first, last in functions:
            if last - first + 1 > FUNCTION_LINES:
                yield name, first, f"function of {last - first + 1} lines, at most {FUNCTION_LINES}"


def check_leftovers(tree):
    for name, text in tree.sources():
        for number, line in enumerate(text.splitlines(), 1):
            if LEFTOVER.search(line):
                yield name, number, "a leftover note; finish it or file an issue"


def check_licence(tree):
    for name, text in tree.sources():
        if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(text.splitlines()[:3]):
            yield name, 1, "no line 'SPDX-License-Identifier: Apache-2.0' at the top"


def resolve(tree, name, target):
    """The file of ours that an include means, or None."""
    folder = str(PurePosixPath(name).parent)
    for base in (folder, ".", "kernels", "kernels/include"):
        path = os.path.normpath(f"{base}/{target}")
        if path in tree.files:
            return path
    return None


def includes(tree):
    """(file, line, text of the include, quoted, file meant or None)."""
    for name, text in tree.files.items():
        if PurePosixPath(name).suffix in CPP:
            for number, line in enumerate(text.splitlines(), 1):
                match = INCLUDE.match(line)
                if match:
                    target = match.group(1) or match.group(2)
                    yield name, number, target, bool(match.group(1)), resolve(tree, name, target)


def step_of(path):
    """Its step in the library's chain, or None."""
    room = room_of(path)
    step = {"kernels": PurePosixPath(path).stem, "kernels/database": "database"}.get(room)
    return CHAIN.index(step) if step in CHAIN else None


def allowed(name, target):
    """Whether the arrows of the house permit `name` to include `target`."""
    rules, other = ROOMS.get(room_of(name), set()), room_of(target)
    ours, theirs = step_of(name), step_of(target)
    if ours is not None and theirs is not None and ours > theirs:
        return False
    return "*" in rules or other in rules or target in rules


def check_includes(tree):
    generated = "\n".join(t for n, t in tree.files.items() if n.endswith("meson.build"))
    for name, number, target, quoted, meant in includes(tree):
        if meant is None:
            if quoted and PurePosixPath(target).name not in generated:
                yield name, number, f'no file of ours answers "{target}"; use <> for others'
        elif not allowed(name, meant):
            yield name, number, f"{room_of(name)} must not include {meant}"


def check_dead(tree):
    builds = "\n".join(t for n, t in tree.files.items() if n.endswith("meson.build"))
    reached = {meant for name, _, _, _, meant in includes(tree) if meant != name}
    for name in tree.files:
        path = PurePosixPath(name)
        others = (t for n, t in tree.files.items() if n != name)
        named = re.search(rf"['/]({re.escape(path.name)}|{re.escape(path.stem)})'", builds)
        if path.suffix in CPP:
            if name not in reached and not named:
                yield name, 1, "dead file: in no meson.build and included by nothing"
        elif path.suffix in SCRIPTS and not named and not any(path.name in t for t in others):
            yield name, 1, "dead file: nothing names this script"


CHECKS = [check_sizes, check_leftovers, check_licence, check_includes, check_dead]


def problems(root):
    tree = Tree(root)
    found = [p for check in CHECKS for p in check(tree)]
    return len(tree.files), [f"{name}:{line}: {what}" for name, line, what in sorted(found)]


SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
BAD = [  # name, files, what the one complaint must contain
    ("wide line", {"kernels/a.cpp": SPDX + "// " + "x" * 98}, "line of 101 columns"),
    ("long file", {"kernels/a.cpp": SPDX + "int x;\n" * 400}, "file of 401 lines"),
    ("long function", {"kernels/a.cpp": SPDX + "namespace n {\nint f(int a) {\n" + "a++;\n" * 69 +
                       "}\n}\n"}, "function of 71 lines"),
    ("long template", {"kernels/a.cpp": SPDX + "template <class T>\nvoid f() {\n" + "g('{');\n" * 68
                       + "}\n"}, "function of 71 lines"),
    ("long member", {"kernels/a.cpp": SPDX + "struct S {\n int x = 0;\n S() : x{1} {\n" +
                     "  if (x) { x = 2; }\n" * 69 + " }\n};\n"}, "function of 71 lines"),
    ("long lambda in a table", {"kernels/a.cpp": SPDX + "const R k = {\"x\", [](int a) {\n" +
                                "a++;\n" * 69 + "}};\n"}, "function of 71 lines"),
    ("long python function", {"kernels/a.cpp": SPDX, "tests/t.py": "# SPDX-License-Identifier: "
                              "Apache-2.0\ndef f():\n" + "    pass\n" * 70,
                              "tests/meson.build": SPDX[3:].join(["# ", "f('t.py')\n"])},
     "function of 71 lines"),
    ("leftover", {"kernels/a.cpp": SPDX + "// TO" "DO: later\n"}, "leftover note"),
    ("no licence", {"kernels/a.cpp": "int x;\n"}, "SPDX"),
    ("tab", {"kernels/a.cpp": SPDX + "\tint x;\n"}, "trailing space or tab"),
    ("kernels on tuner", {"kernels/a.cpp": SPDX + '#include "tuner/b.hpp"\n',
                          "tuner/b.hpp": SPDX}, "kernels must not include tuner/b.hpp"),
    ("reports on kernels", {"reports/a.cpp": SPDX + '#include "rnntune/b.hpp"\n',
                            "kernels/include/rnntune/b.hpp": SPDX}, "reports must not include"),
    ("reference on kernels", {"reference/a.cpp": SPDX + '#include "kernels/b.hpp"\n',
                              "kernels/b.hpp": SPDX}, "reference must not include"),
    ("cell on cpu", {"kernels/cell/a.cpp": SPDX + '#include "cpu/b.hpp"\n',
                     "kernels/cpu/b.hpp": SPDX}, "kernels/cell must not include"),
    ("cpu on space", {"kernels/cpu/a.cpp": SPDX + '#include "space.hpp"\n',
                      "kernels/space.hpp": SPDX}, "kernels/cpu must not include"),
    ("plan on rnn", {"kernels/plan.cpp": SPDX + '#include "rnn.hpp"\n',
                     "kernels/rnn.hpp": SPDX}, "kernels must not include kernels/rnn.hpp"),
    ("space on database", {"kernels/space.cpp": SPDX + '#include "database/b.hpp"\n',
                           "kernels/database/b.hpp": SPDX}, "kernels must not include"),
    ("database on rnn", {"kernels/database/a.cpp": SPDX + '#include "rnn.hpp"\n',
                         "kernels/rnn.hpp": SPDX}, "kernels/database must not include"),
    ("measure on search", {"tuner/measure/a.cpp": SPDX + '#include "tuner/search/b.hpp"\n',
                           "tuner/search/b.hpp": SPDX}, "tuner/measure must not include"),
    ("records on options' room", {"tuner/records/a.cpp": SPDX + '#include "tuner/b.hpp"\n',
                                  "tuner/b.hpp": SPDX}, "tuner/records must not include"),
    ("anything on tests", {"tuner/a.cpp": SPDX + '#include "tests/b.hpp"\n',
                           "tests/b.hpp": SPDX}, "tuner must not include"),
    ("unknown include", {"tuner/a.cpp": SPDX + '#include "elsewhere.hpp"\n'}, "no file of ours"),
    ("dead source", {"kernels/dead.cpp": SPDX}, "dead file"),
    ("dead header", {"kernels/dead.hpp": SPDX}, "dead file"),
    ("dead script", {"tools/dead.sh": "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"},
     "dead file"),
]


class Rules(unittest.TestCase):
    def complaints(self, files):
        build = "# SPDX-License-Identifier: Apache-2.0\nf('a.cpp', 'plan.cpp', 'space.cpp')\n"
        with tempfile.TemporaryDirectory() as root:
            for name, text in {"meson.build": build, **files}.items():
                path = Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return problems(root)[1]

    def test_flags_each_bad_tree_once(self):
        for name, files, expected in BAD:
            with self.subTest(name):
                found = self.complaints(files)
                self.assertEqual(len(found), 1, found)
                self.assertIn(expected, found[0])

    def test_accepts_a_good_tree(self):
        table = 'const T k[] = {\n' + '  {"x", 1},\n' * 90 + '};\n'
        good = {"kernels/a.cpp": SPDX + '#include <vector>\n#include "b.hpp"\n' + table,
                "kernels/b.hpp": SPDX + "struct S {\n" + "  void f() {}\n" * 90 + "};\n"}
        self.assertEqual(self.complaints(good), [])

    def test_this_tree(self):
        count, found = problems(ROOT)
        self.assertGreater(count, 10, f"{ROOT} is not the tree")
        self.assertFalse(found, "\n" + "\n".join(found))


if __name__ == "__main__":
    ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    unittest.main(argv=sys.argv[:1])
