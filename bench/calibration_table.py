#!/usr/bin/env python3
"""Trains each set with defaults and prints a table of test metrics before and after calibration.

usage: calibration_table.py FASTWEIGHTS DATA OUT SET...

DATA contains folders SET with SET_TRAIN.ts and SET_TEST.ts. Runs are kept in OUT and not repeated.
"""
import csv
import json
import math
import os
import random
import struct
import subprocess
import sys

BINS = 15
SIMULATIONS = 1000


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def labels(path):
    """The last field of each series."""
    with open(path, encoding="utf-8", errors="replace") as lines:
        rows = [line.strip() for line in lines]
    start = next(i for i, row in enumerate(rows) if row.lower() == "@data")
    return [row.rsplit(":", 1)[1] for row in rows[start + 1:] if row]


def guessing(train, test):
    """Log loss of the class frequencies of the training part."""
    classes = set(train) | set(test)
    share = {c: (train.count(c) + 1) / (len(train) + len(classes)) for c in classes}
    return -sum(math.log(share[c]) for c in test) / len(test)


def without_calibration(model, out):
    """A copy of a model file without its calibration (and checksum, which no longer fits)."""
    with open(model, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, body = json.loads(file.read(size)), file.read()
    calibration = header["__metadata__"].pop("calibration", "{}")
    header["__metadata__"].pop("fastweights.checksum", None)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(out, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)
    return json.loads(calibration)


def expected_range(confidences):
    """The middle 95 % of the calibration error of a model that is right as often as it says."""
    generator = random.Random(1)
    errors = []
    for _ in range(SIMULATIONS):
        gaps = [0.0] * BINS
        for p in confidences:
            gaps[min(BINS - 1, int(p * BINS))] += p - (generator.random() < p)
        errors.append(sum(map(abs, gaps)) / len(confidences))
    errors.sort()
    return errors[int(0.025 * SIMULATIONS)], errors[int(0.975 * SIMULATIONS)]


def row(program, data, out, name):
    folder, test = os.path.join(out, name), f"{data}/{name}/{name}_TEST.ts"
    if not os.path.exists(folder + "/result.json"):
        run(program, "train", f"{data}/{name}", "--out", folder, "--quiet")
    model, raw = folder + "/model.safetensors", os.path.join(out, name + "-raw.safetensors")
    calibration = without_calibration(model, raw)
    before, after = (json.loads(run(program, "evaluate", m, test, "--part", "all", "--json")) for m in (raw, model))
    table = list(csv.DictReader(run(program, "predict", model, test).splitlines()))
    low, high = expected_range([max(float(v) for k, v in one.items() if k.startswith("p(")) for one in table])
    with open(folder + "/result.json", encoding="utf-8") as file:
        series = json.load(file)["validation"]["samples"]
    guess = guessing(labels(f"{data}/{name}/{name}_TRAIN.ts"), labels(test))
    inside = "yes" if after["ece"] <= high else "no"
    temperature = 1 / calibration.get("scale", 1)
    # a scale near 0: nothing but class frequencies is left
    shown = f"{temperature:.2f}" if temperature < 1000 else "frequencies"
    return (f"| {name} | {series} | {len(table)} | {shown} "
            f"| {100 * before['accuracy']:.1f} | {100 * after['accuracy']:.1f} "
            f"| {before['ece']:.3f} | {after['ece']:.3f} | {low:.3f} to {high:.3f} | {inside} "
            f"| {before['log_loss']:.3f} | {after['log_loss']:.3f} | {guess:.3f} |")


def main():
    program, data, out, *names = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    print("| set | validation series | test series | temperature | accuracy before | after | ECE before | after "
          "| 95 % if calibrated | not above | log loss before | after | guessing |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name in names:
        print(row(program, data, out, name), flush=True)


if __name__ == "__main__":
    main()
