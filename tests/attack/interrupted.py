"""Commands that die or fail in the middle: kills at random moments, faults at single file-system calls."""
import itertools
import os
import shutil
import time

from support import TINY, differences, is_killed, is_sentence, read, run_bytes, set_of_series

# as the library names them
KINDS = ["kill", "ENOSPC", "EIO", "full", "short"]


class Command:
    """A command that writes below a folder, how it is repeated after its death, and what it must leave. One that
    can be resumed writes runs."""

    def __init__(self, attack, name, words, prepare=None, resume=None):
        self.attack, self.name, self.words, self.prepare, self.resume = attack, name, words, prepare, resume
        self.folder = attack.path(name)
        self.fresh()
        begin = time.monotonic()
        attack.works(*words)
        self.seconds = time.monotonic() - begin
        self.reference = self.state()

    def fresh(self):
        """The folder as it is before the command."""
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        shutil.rmtree(self.attack.path("cache"), ignore_errors=True)
        if self.prepare:
            self.prepare(self.folder)
        self.before = self.state()

    def state(self):
        """Bytes of all that is written, without times."""
        if self.resume:
            run = os.path.join(self.folder, "run")
            return run_bytes(run) if os.path.exists(run) else {}
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(self.folder) for name in names]
        state = {os.path.relpath(path, self.folder): read(path) for path in paths}
        return {**state, "files": sorted(state)}

    def again(self):
        """The command that a user would type next."""
        run = os.path.join(self.folder, "run")
        if self.resume and any(os.path.exists(os.path.join(run, name)) for name in ("config.json", "folds.json")):
            return self.resume
        return self.words

    def check_between(self, how):
        """A file that was there before is the old or the new one."""
        if self.resume:
            return
        for name, old in self.before.items():
            path = os.path.join(self.folder, name)
            if name != "files" and (not os.path.exists(path) or read(path) not in (old, self.reference[name])):
                self.attack.find(f"{self.name}: {how}: the older {name} is lost")

    def finish(self, how):
        outcome = self.attack.run(*self.again())
        if outcome.code != 0:
            self.attack.find(f"{self.name}: {how}: the next command fails: {outcome}")
            return
        difference = differences(self.state(), self.reference)
        if difference:
            self.attack.find(f"{self.name}: {how}: not as without it: {difference}")

    def count(self, library):
        """The number of calls at which each kind of fault can happen."""
        self.fresh()
        log = self.attack.path("calls")
        self.attack.works(*self.words, environment=fault(library, self.folder, "", 0, log))
        counts = {kind: int(count) for kind, count in (line.split() for line in read(log).decode().splitlines())}
        os.remove(log)
        return counts


def fault(library, folder, kind, call, log):
    return {"LD_PRELOAD": library, "FAULTS_FOLDER": folder, "FAULTS_KIND": kind, "FAULTS_CALL": str(call),
            "FAULTS_LOG": log}


def commands(attack, epochs):
    """Trainings, and the commands that replace a file."""
    table = set_of_series(attack.path("table.csv"))
    options = ["spirals:samples=40", "--epochs", str(epochs), *TINY, "--out"]
    train = ["train", "--quiet", *options]
    attack.works(*train, attack.path("model"))

    def older(name):
        def prepare(folder):
            with open(os.path.join(folder, name), "w") as file:
                file.write("an older file\n")
        return prepare
    def resume(run):
        return ["train", "--resume", run, "--threads", "1", "--quiet"]
    run = attack.path("train", "run")
    yield Command(attack, "train", [*train, run], resume=resume(run))
    run = attack.path("folds", "run")
    yield Command(attack, "folds", [*train, run, "--folds", "3"], resume=resume(run))
    # repeated, a comparison is resumed
    compare = ["compare", "--models", "delta-cde,oja-cde", *options, attack.path("compare", "run")]
    yield Command(attack, "compare", compare, resume=compare)
    yield Command(attack, "convert-csv", ["data", "convert", table, "--out", attack.path("convert-csv", "a.csv")],
                  older("a.csv"))
    yield Command(attack, "convert-npz", ["data", "convert", table, "--out", attack.path("convert-npz", "a.npz")],
                  older("a.npz"))
    yield Command(attack, "convert-folder", ["data", "convert", table, "--to", "csv-folder", "--out",
                                             attack.path("convert-folder", "a")])
    yield Command(attack, "predict", ["predict", attack.path("model"), "spirals:samples=20", "--threads", "1", "--out",
                                      attack.path("predict", "p.csv")], older("p.csv"))


def inject(attack, command, kind, call):
    """One fault, and the same command again."""
    command.fresh()
    log = attack.path("fault")
    if os.path.exists(log):
        os.remove(log)
    outcome = attack.run(*command.words, environment=fault(attack.options.faults, command.folder, kind, call, log))
    attack.tries += 1
    where = read(log).decode().strip().replace(attack.work + "/", "") if os.path.exists(log) else "nowhere"
    how = f"{kind} at call {call} ({where})"
    if kind == "kill" and not is_killed(outcome.code):
        attack.find(f"{command.name}: {how}: {outcome}, not killed")
    if kind == "short" and outcome.code != 0:
        attack.find(f"{command.name}: {how}: {outcome}")
    if kind not in ("kill", "short") and outcome.code != 0 and not is_sentence(outcome):
        attack.find(f"{command.name}: {how}: no plain message: {outcome}")
    if outcome.code == 0:
        # the file of a lock that could not be removed is free for the next command
        state = {name: [file for file in value if not file.endswith("lock")] if name.endswith("files") else value
                 for name, value in command.state().items()}
        difference = differences(state, command.reference)
        if difference:
            attack.find(f"{command.name}: {how}: exit 0, but not as without it: {difference}")
    command.check_between(how)
    # an error leaves less to clean up than a death
    command.finish(how)


def planned(attack, epochs, kinds):
    """Every file-system call of every command, in random order, one command after another; those that there is
    time for, or twelve in the short version."""
    plans = []
    for command in commands(attack, epochs):
        counts = command.count(attack.options.faults)
        plans.append([(command, kind, call) for kind in kinds for call in range(1, counts[kind] + 1)])
        attack.random.shuffle(plans[-1])
    plan = [entry for turn in itertools.zip_longest(*plans) for entry in turn if entry]
    for command, kind, call in plan[:12] if attack.options.short else plan:
        if attack.time_left() < 0 and not attack.options.short:
            break
        inject(attack, command, kind, call)
    attack.notes.append(f"{attack.tries} of {len(plan)} calls")


def faults(attack):
    # in the short version deaths at calls are those of the part kills
    planned(attack, 2, KINDS[1:] if attack.options.short else KINDS)


def kills(attack):
    """At random moments; in the short version at calls, which are the same each time."""
    if attack.options.short:
        planned(attack, 3, ["kill"])
    else:
        random_kills(attack)


def random_kills(attack):
    """Random kills, one after another until the command has finished."""
    some = list(commands(attack, epochs=30))
    # most of the kills hit what can be resumed
    weights = [6 if command.resume else 2 for command in some]
    start = min(command.seconds for command in some) * 0.6
    while attack.time_left() > 0:
        command = attack.random.choices(some, weights)[0]
        command.fresh()
        how = []
        for _ in range(attack.random.randint(1, 4)):
            process = attack.start(*command.again())
            delay = start + attack.random.random() * (command.seconds - start) * 1.1
            try:
                process.wait(timeout=delay)
            except Exception:
                process.kill()
                attack.tries += 1
                how.append(f"{delay:.2f} s")
            process.communicate()
            if not is_killed(process.returncode) and process.returncode != 0:
                attack.find(f"{command.name}: after kills at {', '.join(how)}: exit {process.returncode}")
            if not is_killed(process.returncode):
                break
            command.check_between(f"killed after {how[-1]}")
        command.finish(f"killed after {', '.join(how)}")
