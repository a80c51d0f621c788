"""Memory and file descriptors of a long training."""
import os
import re
import statistics
import time

from support import TINY


def sample(pid):
    """Resident bytes and open files of a process; None once it has ended."""
    try:
        with open(f"/proc/{pid}/status") as status:
            found = re.search(r"VmRSS:\s+(\d+)", status.read())
        return (int(found.group(1)) * 1024, len(os.listdir(f"/proc/{pid}/fd"))) if found else None
    except OSError:
        return None


def growth(attack):
    """The second half of a run must not need more than the first."""
    epochs = 400 if attack.options.short else max(1000, int(attack.time_left() * 60))
    process = attack.start("train", "spirals:samples=40", "--epochs", str(epochs), *TINY, "--quiet", "--out",
                           attack.path("run"))
    samples = []
    while process.poll() is None:
        found = sample(process.pid)
        if found and os.path.exists(attack.path("run", "metrics.jsonl")):
            samples.append(found)
        time.sleep(0.02)
    if process.returncode != 0:
        attack.find(f"{epochs} epochs ended with {process.returncode}: {process.stderr.read().decode()[:200]}")
        return
    # without the first epochs, which allocate, and the end, which writes the report
    samples = samples[len(samples) // 5: -max(1, len(samples) // 20)]
    half = len(samples) // 2
    first, second = samples[:half], samples[half:]
    attack.expect(half >= 10, f"only {len(samples)} samples of a run of {epochs} epochs")
    memory = [statistics.median(m for m, _ in part) for part in (first, second)]
    # a file that is being written is open for a moment; one that is never closed raises the smallest count
    files = [min(f for _, f in part) for part in (first, second)]
    attack.expect(memory[1] < memory[0] * 1.05, f"memory grew from {memory[0]} to {memory[1]} bytes in {epochs} epochs")
    attack.expect(files[1] <= files[0], f"open files grew from {files[0]} to {files[1]} in {epochs} epochs")
    attack.notes.append(f"{epochs} epochs, {memory[0] / 2**20:.0f} and {memory[1] / 2**20:.0f} MB, "
                        f"{files[0]} and {files[1]} files")
