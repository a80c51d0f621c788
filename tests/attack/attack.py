#!/usr/bin/env python3
"""Attacks the program as SECURITY.md and docs/reliability.md promise it is attacked; ends with a table.

    attack.py --program build/release/fastweights --tests build/release/tests [--minutes 10] [--seed 1] [part...]

Exit 0: no finding. The folder of --work keeps what was found. scripts/attack builds what is needed and calls this.
"""
import argparse
import os
import shutil
import sys
import tempfile
import time

import concurrency
import crafted
import growth
import interrupted
import mutations
import pages
from support import Attack

# parts with their share of the time; those with 0 take what they need
PARTS = {"crafted": (crafted.crafted, 0), "concurrency": (concurrency.concurrency, 1), "growth": (growth.growth, 1),
         "pages": (pages.pages, 0), "kills": (interrupted.kills, 3), "faults": (interrupted.faults, 3),
         "mutations": (mutations.mutations, 4)}


def arguments():
    parser = argparse.ArgumentParser(description="Attacks the program; ends with a table.")
    parser.add_argument("parts", nargs="*", metavar="part", help="of " + ", ".join(PARTS))
    parser.add_argument("--program", required=True, type=os.path.abspath)
    parser.add_argument("--tests", required=True, type=os.path.abspath, help="folder of the built tests")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--short", action="store_true", help="the version of the tests: no clang, and the same attempts each time")
    parser.add_argument("--work", type=os.path.abspath, help="default: a temporary folder, removed if nothing is found")
    options = parser.parse_args()
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"no part '{part}'; there are {', '.join(PARTS)}")
    options.parts = options.parts or list(PARTS)
    options.root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    options.faults = os.path.join(options.tests, "libattack_faults.so")
    return options


def main():
    options = arguments()
    temporary = options.work is None
    options.work = options.work or tempfile.mkdtemp(prefix="fastweights-attack-")
    end = time.monotonic() + 60 * options.minutes
    rows = []
    for number, name in enumerate(options.parts):
        function, share = PARTS[name]
        # what parts before it have left over is divided again
        shares = sum(PARTS[part][1] for part in options.parts[number:])
        attack = Attack(options, name, max(1, (end - time.monotonic()) * share / shares) if shares else 0)
        print(f"== {name}", flush=True)
        try:
            function(attack)
        except Exception as error:
            attack.find(f"the part could not be completed: {error}")
        rows.append(attack)
        rows[-1].seconds = time.monotonic() - attack.begin
        if not attack.findings:
            shutil.rmtree(attack.work, ignore_errors=True)

    print(f"\n{'part':<12} {'attempts':>9} {'seconds':>8} {'findings':>9}")
    for row in rows:
        print(f"{row.part:<12} {row.tries:>9} {row.seconds:>8.0f} {len(row.findings):>9}  {'; '.join(row.notes)}")
    found = [(row.part, text) for row in rows for text in row.findings]
    for part, text in found:
        print(f"{part}: {text}")
    if temporary and not found:
        shutil.rmtree(options.work, ignore_errors=True)
    elif found:
        print(f"seed {options.seed}; files in {options.work}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
