#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a copy of a text with faults: every OLD is replaced by its NEW.

usage: break_text.py IN OUT OLD NEW [OLD NEW]...

An OLD that the text does not hold is an error, so that a fault is not lost when the text changes.
"""
import pathlib
import sys


def main(source, target, *faults):
    text = pathlib.Path(source).read_text(encoding="utf-8")
    for old, new in zip(faults[::2], faults[1::2]):
        if old not in text:
            sys.exit(f"break_text.py: {source} does not hold '{old}'")
        text = text.replace(old, new)
    pathlib.Path(target).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
