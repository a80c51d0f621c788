"""Several processes on the same files."""
import os
import re
import time

from support import TINY, differences, read, run_bytes, set_of_series


def outcomes(processes):
    """Exit statuses and errors, once all have ended."""
    ends = [process.communicate(timeout=120) for process in processes]
    return [process.returncode for process in processes], [err.decode("utf-8", "replace") for _, err in ends]


def same_run(attack, number, train, reference):
    """Two trainings into one folder: one trains, the other is refused, or finds a run that is there."""
    folder = attack.path(f"both-{number}")
    codes, errors = outcomes([attack.start(*train, folder) for _ in range(2)])
    attack.expect(sorted(codes) == [0, 1] and all("terminate" not in e for e in errors),
                  f"two trainings into one folder ended with {codes}: {errors}")
    difference = differences(run_bytes(folder), reference)
    attack.expect(not difference, f"two trainings into one folder: {difference}")


def running(attack, number, train, reference):
    """A run is resumed while it is running: refused, and the run is as without it."""
    folder = attack.path(f"running-{number}")
    first = attack.start(*train, folder)
    for _ in range(3000):
        if os.path.exists(os.path.join(folder, "checkpoint.safetensors")) or first.poll() is not None:
            break
        time.sleep(0.005)
    alive = first.poll() is None
    second = attack.run("train", "--resume", folder, "--threads", "1")
    codes, _ = outcomes([first])
    # the run may have ended just before the second one began
    epochs = re.search(r"resuming after (\d+) of (\d+) epochs", second.out)
    if alive and second.code == 0 and (not epochs or epochs[1] != epochs[2]):
        attack.find("a run that was running was resumed")
    attack.expect(codes == [0], f"a run ended with {codes} while another process resumed it")
    difference = differences(run_bytes(folder), reference)
    attack.expect(not difference, f"resuming a running run: {difference}")
    report = attack.run("report", folder)
    attack.expect(report.code == 0, f"report after resuming a running run: {report}")


def one_file(attack, table, reference):
    """Several conversions into one file."""
    out = attack.path("converted", "a.csv")
    os.makedirs(os.path.dirname(out), exist_ok=True)
    codes, errors = outcomes([attack.start("data", "convert", table, "--out", out) for _ in range(3)])
    attack.expect(codes == [0, 0, 0], f"three conversions into one file ended with {codes}: {errors}")
    attack.expect(read(out) == reference, "three conversions into one file: another file than of one")
    left = sorted(set(os.listdir(os.path.dirname(out))) - {"a.csv", "a.csv.rows"})
    attack.expect(not left, f"three conversions into one file left {left}")


def one_cache(attack, table, expected):
    """Several commands that fill one cache, then one that uses it."""
    cache = {"FASTWEIGHTS_CACHE": attack.path(f"cache-{attack.tries}")}
    processes = [attack.start("data", "info", table, environment=cache) for _ in range(3)]
    outputs = [process.communicate(timeout=120)[0].decode() for process in processes]
    outputs.append(attack.run("data", "info", table, environment=cache).out)
    attack.expect(outputs == [expected] * 4, "four commands with one cache: different answers")
    left = [name for name in os.listdir(cache["FASTWEIGHTS_CACHE"]) if "part" in name or "tmp" in name]
    attack.expect(not left, f"a shared cache has {left}")


def concurrency(attack):
    table = set_of_series(attack.path("table.csv"))
    train = ["train", "spirals:samples=40", "--epochs", "40", *TINY, "--quiet", "--out"]
    attack.works(*train, attack.path("alone"))
    attack.works("data", "convert", table, "--out", attack.path("alone.csv"))
    reference, converted = run_bytes(attack.path("alone")), read(attack.path("alone.csv"))
    info = attack.works("data", "info", table, "--no-cache").out
    number = 0
    while number == 0 or (attack.time_left() > 0 and not attack.options.short):
        same_run(attack, number, train, reference)
        running(attack, number, train, reference)
        one_file(attack, table, converted)
        one_cache(attack, table, info)
        number += 1
    attack.notes.append(f"{number} rounds")
