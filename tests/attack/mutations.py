"""Mutated files of every format."""
import os
import re
import subprocess


def mutations(attack):
    """The fuzzers, or in the short version the same formats without sanitizers and a simple mutator."""
    options = attack.options
    corpus = os.path.join(options.root, "tests", "fuzz", "corpus")
    if options.short:
        command = [os.path.join(options.tests, "fuzz_replay"), corpus, str(options.seed), "1500",
                   attack.work]
    else:
        seconds = max(2, int(attack.time_left() * options.jobs / len(os.listdir(corpus))))
        command = [os.path.join(options.root, "tests", "fuzz", "run"), os.path.join(options.root, "build", "fuzz"),
                   f"{seconds}s", str(options.jobs)]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(result.stdout, end="")
    total = re.search(r"^all +(\d+)", result.stdout, re.MULTILINE)
    attack.tries = int(total.group(1)) if total else 0
    for line in result.stdout.splitlines():
        row = re.match(r"(\S+) +(\d+) .* ([1-9]\d*)$", line)
        if row and row.group(1) != "all":
            attack.find(f"format {row.group(1)}: {row.group(3)} inputs")
    if result.returncode != 0 and not attack.findings:
        attack.find(f"'{command[0]}' ended with {result.returncode}")
