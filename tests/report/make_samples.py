#!/usr/bin/env python3
"""Writes the JSON files that the tests of the report read, beside this script or into a folder that is given.

The numbers are made up, but the fast weights follow a true delta rule, so that the pages look like real ones.
With --large also the largest shapes the page is meant for: one head of 64 x 64, 32 heads of 4 x 4, 144 channels.
"""
import json
import math
import pathlib
import random
import sys


def rounded(values, digits=4):
    if isinstance(values, list):
        return [rounded(value, digits) for value in values]
    return values if values is None else float(f"%.{digits}g" % values)


def signal(rng, channels, length, step, missing):
    times, now = [], 0.0
    for _ in range(length):
        times.append(round(now, 3))
        now += step * rng.uniform(0.6, 1.4)
    phases = [rng.uniform(0, 6) for _ in range(channels)]
    speeds = [rng.uniform(0.15, 0.6) / step for _ in range(channels)]
    scales = [10 ** rng.uniform(-1, 2) for _ in range(channels)]
    values = [[None if rng.random() < missing else s * (math.sin(w * t + p) + 0.15 * rng.gauss(0, 1) + 1.5)
               for p, w, s in zip(phases, speeds, scales)] for t in times]
    return times, rounded(values)


def delta_rule(rng, heads, rows, columns, steps):
    """W <- W + beta (v - W k) k^T with keys that drift, as one list of numbers per step."""
    frames, norms = [], []
    ws = [[[0.0] * columns for _ in range(rows)] for _ in range(heads)]
    drift = [[rng.uniform(0, 6) for _ in range(rows + columns)] for _ in range(heads)]
    for n in range(steps):
        for h, w in enumerate(ws):
            k = [math.exp(1.5 * math.sin(0.25 * n + a)) for a in drift[h][:columns]]
            total = sum(k)
            k = [x / total for x in k]
            v = [math.cos(0.17 * n + a) * (1 + 0.3 * h / heads) for a in drift[h][columns:]]
            for r in range(rows):
                wk = sum(x * y for x, y in zip(w[r], k))
                for c in range(columns):
                    w[r][c] += 0.6 * (v[r] - wk) * k[c]
        frames.append(rounded([x for w in ws for row in w for x in row], 3))
        norms.append([math.sqrt(sum(x * x for row in w for x in row)) for w in ws])
    return frames, norms


def fast_weights(rng, shapes, channels, length, steps, names, missing=0.1, unit="second"):
    times, values = signal(rng, channels, length, 0.1, missing)
    moments = rounded([times[-1] * i / (steps - 1) for i in range(steps)])
    layers, norms, labels = [], [[] for _ in range(steps)], []
    for i, (heads, rows, columns) in enumerate(shapes):
        w, norm = delta_rule(rng, heads, rows, columns, steps)
        layers.append({"heads": heads, "rows": rows, "columns": columns, "w": w})
        labels += [f"layer {i + 1} head {h + 1}" for h in range(heads)]
        norms = [a + b for a, b in zip(norms, norm)]
    logits = [0.0] * len(names)
    outputs = []
    for n in range(steps):
        logits = [x + rng.gauss(0, 0.25) + (0.15 if i == 1 else 0) for i, x in enumerate(logits)]
        total = sum(math.exp(x) for x in logits)
        outputs.append([math.exp(x) / total for x in logits] if len(names) > 1 else [2 * math.tanh(n / steps) + 0.1 * logits[0]])
    importance = [[None if x is None else rng.gauss(0, 0.2) * math.sin(0.3 * i) for x in row] for i, row in enumerate(values)]
    total = sum(x or 0 for row in importance for x in row)
    return {"id": "test-3", "importance": {"of": "log-odds of " + names[min(1, len(names) - 1)], "values": rounded(importance),
                                           "output": round(total - 1, 4), "baseline": -1.0}, "label": names[min(1, len(names) - 1)], "predicted": names[min(1, len(names) - 1)],
            "channels": [f"cepstrum {c + 1}" for c in range(channels)], "times": times, "values": values, "time_unit": unit,
            "frames": {"times": moments, "layers": layers},
            "outputs": {"label": "probability", "names": names, "times": moments, "values": rounded(outputs)},
            "norms": {"names": labels, "values": rounded(norms)}}


def curve(rng, epochs, start, end, speed, noise):
    return rounded([end + (start - end) * math.exp(-speed * e) + noise * rng.gauss(0, 1) for e in range(epochs)])


def curves(rng, epochs, best, second):
    x = list(range(1, epochs + 1))
    return [{"title": "Loss", "x_label": "epoch", "y_label": "loss", "log": True, "best_x": best,
             "lines": [{"name": "train", "x": x, "y": curve(rng, epochs, 2.2, 0.03, 0.12, 0.004)},
                       {"name": "validation", "x": x, "y": curve(rng, epochs, 2.2, 0.14, 0.12, 0.012)}]},
            {"title": second, "x_label": "epoch", "y_label": second.lower(), "log": False, "best_x": best,
             "lines": [{"name": "train", "x": x, "y": curve(rng, epochs, 0.2, 0.99, 0.14, 0.004)},
                       {"name": "validation", "x": x, "y": curve(rng, epochs, 0.2, 0.96, 0.14, 0.009)}]},
            {"title": "Learning rate", "x_label": "epoch", "y_label": "rate", "log": False,
             "lines": [{"name": "rate", "x": x,
                        "y": rounded([0.003 * (0.5 + 0.5 * math.cos(math.pi * e / epochs)) for e in range(epochs)])}]}]


def confusion(rng, classes, per_class):
    counts = [[0] * len(classes) for _ in classes]
    for i in range(len(classes)):
        for _ in range(per_class + rng.randint(-6, 6)):
            counts[i][i if rng.random() < 0.95 else rng.randrange(len(classes))] += 1
    return {"part": "test", "classes": classes, "counts": counts}


def classes_of(confusion):
    names, counts = confusion["classes"], confusion["counts"]
    rows = []
    for i, name in enumerate(names):
        right, samples, taken = counts[i][i], sum(counts[i]), sum(row[i] for row in counts)
        rows.append({"name": name, "precision": rounded(right / taken), "recall": rounded(right / samples),
                     "f1": rounded(2 * right / (samples + taken)), "samples": samples, "predicted": taken})
    return {"part": "test", "note": "The 9 of 12 classes with the most errors.", "rows": rows}


def roc_of(classes, grid):
    curves = [{"name": name, "auc": round(0.9 + 0.01 * i, 4), "false_positive": grid,
               "true_positive": rounded([x ** (0.2 - 0.02 * i) if x else 0.0 for x in grid])} for i, name in enumerate(classes[:8])]
    return {"part": "test", "note": "The 8 of 9 classes with the smallest area.", "curves": curves}


def forecast(rng, sample, channel):
    times = [0.5 * i for i in range(60)]
    truth = rounded([10 + 3 * math.sin(0.4 * t) + 0.4 * rng.gauss(0, 1) for t in times])
    predicted = rounded([10 + 3 * math.sin(0.4 * t + 0.1) for t in times[45:]])
    return {"id": sample, "channel": channel, "time_unit": "hour", "history_times": times[:45], "history": truth[:45],
            "times": times[45:], "truth": truth[45:], "predicted": predicted,
            "low": rounded([x - 0.8 for x in predicted]), "high": rounded([x + 0.8 for x in predicted])}


def model(rng):
    parameters = [["layers.0.input.weight", "[32, 12]", 384], ["layers.0.input.bias", "[32]", 32],
                  ["layers.0.field.slow.weight", "[100, 32]", 3200], ["layers.0.output.weight", "[32, 32]", 1024],
                  ["layers.1.field.slow.weight", "[100, 32]", 3200], ["layers.1.output.weight", "[32, 32]", 1024],
                  ["head.weight", "[9, 32]", 288], ["head.bias", "[9]", 9]]
    config = {"channels": 12, "outputs": 9, "layers": 2, "hidden_size": 32, "heads": 4, "rule": "delta_pre",
              "control": {"kind": "natural_cubic"}, "solver": {"method": "rk4", "step_size": 0.1}}
    return {"summary": [["rule", "delta_pre"], ["drive", "x"], ["control", "natural cubic"], ["layers", 2],
                        ["hidden size", 32], ["heads", 4], ["solver", "rk4, step 0.1"], ["gradient", "adjoint"]],
            "changed": [{"key": "model.layers", "value": "2", "default": "1"}],
            "parameters": parameters, "config": json.dumps(config, indent=2)}


def classification():
    rng = random.Random(7)
    speakers = [f"speaker {i + 1}" for i in range(9)]
    grid = [i / 20 for i in range(21)]
    confused, observed = confusion(rng, speakers, 41), rounded([min(1, max(0, 0.05 + 0.1 * i + rng.gauss(0, 0.05))) for i in range(10)])
    first, second = fast_weights(rng, [(4, 8, 8), (4, 8, 8)], 12, 29, 25, speakers), fast_weights(rng, [(4, 8, 8), (4, 8, 8)], 12, 20, 8, speakers)
    return {
        "version": 1, "title": "JapaneseVowels, delta rule", "subtitle": "Nine speakers told apart by two vowels",
        "finished": "2026-11-15 14:00 UTC",
        "facts": [["Data", "JapaneseVowels (UEA .ts)"], ["Samples", "216 train, 54 validation, 370 test"],
                  ["Length", "7 to 29 points, 12 channels"], ["Missing", "none"], ["Epochs", "60, best at 37"],
                  ["Seed", "1"], ["Machine", "8 threads, AVX2"], ["Version", "fastweights 0.1.0"]],
        "headline": [{"name": "test accuracy", "value": 0.973, "format": "percent"},
                     {"name": "test loss", "value": 0.1183}, {"name": "parameters", "value": 9161, "format": "integer"},
                     {"name": "time of training", "value": 187.4, "format": "seconds"}],
        "data": [["path", "data/JapaneseVowels"], ["channels", "cepstrum 1, cepstrum 2, ... (12 in all)"]],
        "curves": curves(rng, 60, 37, "Accuracy"),
        "advice": ["Overfitting: the validation loss was lowest in epoch 37 (0.14) and then rose by 21 % to 0.17.",
                   "More series help most. Otherwise try a smaller model."],
        "metrics": {"columns": ["train", "validation", "test"],
                    "rows": [{"name": "accuracy", "format": "percent", "values": [0.9954, 0.963, 0.973], "intervals": [[0.99, 1.0], [0.92, 0.99], [0.95, 0.985]]},
                             {"name": "F1, mean over classes", "format": "number", "values": [0.9951, 0.9622, 0.9718]},
                             {"name": "loss", "format": "number", "values": [0.0312, 0.1401, 0.1183]},
                             {"name": "calibration error", "format": "percent", "values": [0.0041, 0.021, None]}]},
        "confusion": confused, "classes": classes_of(confused), "class_roc": roc_of(speakers, grid),
        "roc": {"part": "test", "auc": 0.9134, "false_positive": grid,
                "true_positive": rounded([x ** 0.16 if x else 0.0 for x in grid]),
                "threshold": {"value": 0.4, "false_positive": 0.1, "true_positive": round(0.1 ** 0.16, 4)}},
        "calibration": {"part": "test", "of": "probability of the predicted class", "predicted": rounded([0.05 + 0.1 * i for i in range(10)]),
                        "observed": observed, "low": rounded([max(0, x - 0.1) for x in observed]),
                        "high": rounded([min(1, x + 0.1) for x in observed]),
                        "count": [41, 22, 17, 11, 12, 9, 14, 25, 48, 171]},
        "mistakes": [{"id": f"test-{rng.randint(1, 370)}", "true": rng.choice(speakers), "predicted": rng.choice(speakers),
                      "probability": round(rng.uniform(0.5, 0.99), 3), "loss": round(2.9 - 0.2 * i, 3)} for i in range(9)]
        + [{"id": "a-recording-with-a-very-long-name/session-00017/segment-000000042.wav", "true": speakers[2],
            "predicted": speakers[5], "probability": 0.51, "loss": 0.71}],
        "model": model(rng),
        "fast_weights": first, "series": [{**second, "id": "a-recording-with-a-very-long-name/session-00017/segment-000000042.wav", "predicted": speakers[5]}],
        "forecasts": [forecast(rng, "test-3", "cepstrum 1"), forecast(rng, "test-9", "cepstrum 2")],
        "warnings": ["The validation part has 54 samples: an accuracy on it is known to about 3 percent."],
        "commands": ["fastweights train data/JapaneseVowels --rule delta_pre --epochs 60 --seed 1 --out runs/vowels",
                     "fastweights evaluate runs/vowels data/JapaneseVowels"]}


def regression():
    rng = random.Random(8)
    true = rounded([rng.gauss(60, 14) for _ in range(160)])
    return {
        "version": 1, "title": "Heart rate from a pulse signal", "finished": "2026-11-15 14:00 UTC",
        "facts": [["Data", "BIDMC32HR (CSV)"], ["Samples", "90 train, 30 validation, 160 test"]],
        # hours from 2024-02-29 21:00 on
        "calendar": {"zero": 1709240400000, "unit": 3600000},
        "headline": [{"name": "test RMSE", "value": 4.213}, {"name": "parameters", "value": 2113, "format": "integer"}],
        "curves": curves(rng, 40, 31, "Share of variance explained")[:2],
        "metrics": {"columns": ["validation", "test"],
                    "rows": [{"name": "RMSE", "values": [4.02, 4.213]}, {"name": "R squared", "values": [0.91, None]}]},
        "scatter": {"part": "test", "target": "beats per minute", "true": true,
                    "predicted": rounded([y + rng.gauss(0, 4) for y in true])},
        "mistakes": [{"id": f"test-{i}", "true": true[i], "predicted": rounded(true[i] + 12.0 - i), "loss": (12.0 - i) ** 2}
                     for i in range(5)],
        "fast_weights": {**fast_weights(rng, [(1, 12, 12)], 2, 80, 20, ["beats per minute"], 0.0, "hour"), "label": 61.3, "predicted": 60.2}}


def large():
    report = classification()
    classes = ["word %02d" % i for i in range(35)]
    report["title"] = "The largest shapes"
    report["confusion"] = confusion(random.Random(9), classes, 100)
    report["fast_weights"] = fast_weights(random.Random(9), [(32, 4, 4), (1, 64, 64)], 144, 400, 50, classes, 0.4, "hour")
    return report


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--large"]
    folder = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).parent
    reports = {"sample": classification(), "regression": regression()}
    if "--large" in sys.argv:
        reports["large"] = large()
    for name, report in reports.items():
        (folder / f"{name}.json").write_text(json.dumps(report, separators=(",", ":")) + "\n")


main()
