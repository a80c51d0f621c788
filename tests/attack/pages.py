"""Text that would become elements or scripts, in every name of the data, opened in a browser."""
import os
import re
import shutil
import subprocess

from support import TINY, read, write

TAKEN = "document.documentElement.dataset.taken=1"
PAYLOADS = [f"<script>{TAKEN}</script>", f"</script><script>{TAKEN}</script>", f"<img src=x onerror={TAKEN}>",
            f"\" onmouseover=\"{TAKEN}", f"';{TAKEN};'", f"<svg onload={TAKEN}>", f"]]><!--<script>{TAKEN}</script>",
            f"<iframe srcdoc='<script>parent.{TAKEN}</script>'>", "\u2028\u2029</style>", f"javascript:{TAKEN}",
            f"${{{TAKEN}}}", f"<a href=javascript:{TAKEN}>"]


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


def hostile_table(path):
    """Channels, classes, ids and groups with payloads."""
    channels = PAYLOADS[:4]
    rows = [",".join(["id", "time", *map(quoted, channels), "label", "g"])]
    for i in range(36):
        for k in range(5):
            values = [f"{(1 if i % 2 else -1) * k + c}" for c in range(len(channels))]
            label, name = PAYLOADS[4 + i % 8], PAYLOADS[i % len(PAYLOADS)]
            rows.append(",".join([quoted(f"{name} {i}"), str(k), *values, quoted(label), quoted(name)]))
    return write(path, "\n".join(rows) + "\n")


def opened(attack, chromium, page):
    """The root element of a page after its scripts have run."""
    result = subprocess.run(
        [chromium, "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
         f"--user-data-dir={attack.path('profile')}", "--virtual-time-budget=5000", "--dump-dom", "file://" + page],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120)
    found = re.search(r"<html[^>]*>", result.stdout.decode("utf-8", "replace"))
    return found.group(0) if found else ""


def pages(attack):
    chromium = shutil.which("chromium")
    if not chromium:
        attack.notes.append("no chromium: left out")
        return
    # as a name of a file, too
    table = hostile_table(attack.path("<img src=x onerror=document.documentElement.dataset.taken=1>.csv"))
    attack.works("train", table, "--group-column", "g", "--epochs", "1", *TINY, "--out", attack.path("run"))
    page = attack.path("run", "report.html")
    # someone who tries every control
    exercise = read(os.path.join(attack.options.root, "tests", "report", "exercise.js"))
    write(attack.path("used.html"), read(page) + b"<script>" + exercise + b"</script>")
    for name in (page, attack.path("used.html")):
        root = opened(attack, chromium, name)
        attack.expect("data-ready" in root and "data-error" not in root, f"{os.path.basename(name)}: {root}")
        attack.expect("data-taken" not in root, f"{os.path.basename(name)}: a name was executed: {root}")
    # a script that runs is noticed: otherwise the above shows nothing
    write(attack.path("taken.html"), read(page) + f"<script>{TAKEN}</script>".encode())
    attack.expect("data-taken" in opened(attack, chromium, attack.path("taken.html")), "an executed script is not noticed")
