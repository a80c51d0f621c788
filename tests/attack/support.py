"""What all parts of the attack share: commands under limits, reference runs, findings, time."""
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time

TINY = ["--set", "model.hidden_size=8", "--set", "model.heads=2", "--set", "model.feed_forward_size=16",
        "--threads", "1"]
GIGABYTE = 1 << 30


class Outcome:
    """How a command ended."""

    def __init__(self, code, out, err, seconds, peak):
        self.code, self.out, self.err, self.seconds, self.peak = code, out, err, seconds, peak

    def __str__(self):
        return f"exit {self.code}, {self.err.strip()[:200]!r}"


class Attack:
    """One part of the attack: counts attempts, collects findings, knows when its time is over."""

    def __init__(self, options, part, seconds):
        self.options, self.part = options, part
        self.end = time.monotonic() + seconds
        self.begin = time.monotonic()
        self.random = random.Random(f"{options.seed} {part}")
        self.work = os.path.join(options.work, part)
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)
        self.tries = 0
        self.findings = []
        self.notes = []

    def time_left(self):
        return self.end - time.monotonic()

    def path(self, *names):
        return os.path.join(self.work, *names)

    def find(self, text):
        print(f"  {self.part}: FINDING {text}", flush=True)
        self.findings.append(text)

    def expect(self, condition, text):
        """An attempt with a condition that must hold."""
        self.tries += 1
        if not condition:
            self.find(text)
        return condition

    def environment(self, extra=None):
        return {**os.environ, "FASTWEIGHTS_CACHE": self.path("cache"), "FASTWEIGHTS_DATA": self.path("data"),
                "OMP_WAIT_POLICY": "passive", **(extra or {})}

    def start(self, *words, environment=None, **options):
        """The program in the background, output in pipes."""
        return subprocess.Popen([self.options.program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, env=self.environment(environment), cwd=self.work, **options)

    def run(self, *words, environment=None, limit=120, out=None, sizes=None):
        """Runs the program. `out`: a file for the standard output; `sizes`: limit of the size of files."""
        def prepare():
            if sizes:
                resource.setrlimit(resource.RLIMIT_FSIZE, (sizes, sizes))
        begin = time.monotonic()
        process = subprocess.Popen([self.options.program, *words], stdin=subprocess.DEVNULL,
                                   stdout=out or subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.work,
                                   env=self.environment(environment), preexec_fn=prepare if sizes else None)
        peak = Peak(process.pid)
        try:
            output, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
            errors += b" (no end in sight)"
        return Outcome(process.returncode, (output or b"").decode("utf-8", "replace"),
                       errors.decode("utf-8", "replace"), time.monotonic() - begin, peak.bytes())

    def works(self, *words, **options):
        outcome = self.run(*words, **options)
        if outcome.code != 0:
            raise RuntimeError(f"{' '.join(words)}: {outcome}")
        return outcome


class Peak:
    """The most memory that a process has used, read until it ends."""

    def __init__(self, pid):
        import threading
        self.pid, self.most = pid, 0
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while True:
            try:
                with open(f"/proc/{self.pid}/status") as status:
                    found = re.search(r"VmHWM:\s+(\d+)", status.read())
            except OSError:
                return
            if not found:
                return
            self.most = max(self.most, int(found.group(1)) * 1024)
            time.sleep(0.02)

    def bytes(self):
        self.thread.join(timeout=1)
        return self.most


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


# files of a run, of folds and of a comparison that do not depend on the clock or the machine, but for the seconds
LASTING = ["model.safetensors", "config.json", "data.json", "metrics.jsonl", "result.json", "folds.json",
           "predictions.csv", "comparison.json"]


def without_times(metrics):
    """metrics.jsonl or comparison.json as bytes, without the seconds of each epoch."""
    return re.sub(rb'"seconds[a-z_]*":[^,}]*,?', b"", metrics)


def run_bytes(folder):
    """What two runs, or folders of runs, with the same settings have in common."""
    paths = [os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names]
    found = {os.path.relpath(path, folder): without_times(read(path)) for path in paths
             if os.path.basename(path) in LASTING}
    return {**found, "files": sorted(os.path.relpath(path, folder) for path in paths)}


def differences(found, expected):
    """Names of what differs; for lists of files, the files."""
    texts = []
    for name, value in expected.items():
        if found.get(name) == value:
            continue
        extra = ""
        if name.endswith("files") and name in found:
            extra = f" (more {sorted(set(found[name]) - set(value))}, fewer {sorted(set(value) - set(found[name]))})"
        texts.append(name + extra)
    return ", ".join(texts)


def is_sentence(outcome):
    """An error as a user should see it: one short line that begins with the program's name."""
    lines = outcome.err.strip().splitlines()
    inside = re.search(r"terminate called|Exception raised|frame #|json\.exception|std::bad_alloc", outcome.err)
    return outcome.code == 1 and bool(lines) and lines[-1].startswith("fastweights: ") and not inside and \
        len(outcome.err) < 4096


def is_killed(code):
    return code == -signal.SIGKILL


def set_of_series(path, series=30):
    """A small table: the sign of x's slope is the label."""
    rows = ["id,time,x,y,label"]
    for i in range(1, series + 1):
        for k in range(5 + i % 4):
            sign = 1 if i % 2 else -1
            rows.append(f"s{i},{k + 0.1 * (i % 3):g},{sign * k / 4 + (i * k % 7) / 50:g},{(i * k % 11) / 5:g},"
                        f"{'up' if i % 2 else 'down'}")
    return write(path, "\n".join(rows) + "\n")


def read_json(path):
    return json.loads(read(path))
