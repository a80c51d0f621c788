#!/usr/bin/env python3
"""Trains each set with defaults and prints a table of test metrics before and after calibration.

usage: calibration_table.py [--folds N] FASTWEIGHTS DATA OUT SET...

DATA contains folders SET with SET_TRAIN.ts and SET_TEST.ts. Runs are kept in OUT and not trained again; their
calibration is. With --folds the models are folds of the training file, and the test file is predicted by their mean.
"""
import argparse
import csv
import json
import math
import os
import random
import shutil
import struct
import subprocess

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


def raw_copy(folder, members):
    """A copy of a run without its calibration, and the calibrations."""
    raw = folder + "-raw"
    shutil.rmtree(raw, ignore_errors=True)
    os.makedirs(raw)
    if not members:
        return raw + "/model.safetensors", [without_calibration(folder + "/model.safetensors",
                                                                raw + "/model.safetensors")]
    shutil.copy(folder + "/folds.json", raw)
    for member in members:
        os.makedirs(f"{raw}/{member}")
        for file in ("config.json", "data.json"):
            shutil.copy(f"{folder}/{member}/{file}", f"{raw}/{member}")
        without_calibration(f"{folder}/{member}/model.safetensors", f"{raw}/{member}/model.safetensors")
    with open(folder + "/calibration.json", encoding="utf-8") as file:
        return raw, json.load(file)["members"]


def shown_temperature(calibrations):
    """Of the typical series; the geometric mean over folds."""
    logs = [-math.log(one.get("scale", 1)) for one in calibrations]
    temperature = math.exp(sum(logs) / len(logs))
    # a scale near 0: nothing but class frequencies is left
    return f"{temperature:.2f}" if temperature < 1000 else "frequencies"


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


def row(program, data, out, name, folds):
    folder, test, train = os.path.join(out, name), f"{data}/{name}/{name}_TEST.ts", f"{data}/{name}/{name}_TRAIN.ts"
    if os.path.exists(folder + "/result.json"):
        run(program, "train", "--resume", folder, "--quiet")
    else:
        run(program, "train", *([train, "--folds", str(folds)] if folds else [f"{data}/{name}"]), "--out", folder,
            "--quiet")
    raw, calibrations = raw_copy(folder, [f"fold-{fold + 1}" for fold in range(folds)])
    before, after = (json.loads(run(program, "evaluate", m, test, "--part", "all", "--json")) for m in (raw, folder))
    table = list(csv.DictReader(run(program, "predict", folder, test).splitlines()))
    low, high = expected_range([max(float(v) for k, v in one.items() if k.startswith("p(")) for one in table])
    with open(folder + "/result.json", encoding="utf-8") as file:
        result = json.load(file)
    series = (result["out_of_fold"] if folds else result["validation"])["samples"]
    guess = guessing(labels(train), labels(test))
    inside = "yes" if after["ece"] <= high else "no"
    power = sum(one.get("power", 0) for one in calibrations) / len(calibrations)
    return (f"| {name} | {series} | {len(table)} | {shown_temperature(calibrations)} | {power:.2f} "
            f"| {100 * before['accuracy']:.1f} | {100 * after['accuracy']:.1f} "
            f"| {before['ece']:.3f} | {after['ece']:.3f} | {low:.3f} to {high:.3f} | {inside} "
            f"| {before['log_loss']:.3f} | {after['log_loss']:.3f} | {guess:.3f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("program")
    parser.add_argument("data")
    parser.add_argument("out")
    parser.add_argument("sets", nargs="+")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    print("| set | series of the calibration | test series | temperature | power | accuracy before | after "
          "| ECE before | after | 95 % if calibrated | not above | log loss before | after | guessing |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name in options.sets:
        print(row(options.program, options.data, options.out, name, options.folds), flush=True)


if __name__ == "__main__":
    main()
