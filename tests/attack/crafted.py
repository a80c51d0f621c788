"""Files, names and targets made to break something, each with its expected outcome."""
import os
import re
import stat
import struct
import threading
import zipfile
import zlib

from support import GIGABYTE, TINY, is_sentence, read, run_bytes, set_of_series, write

TRAIN = ["--epochs", "2", *TINY, "--quiet"]


def refused(attack, name, *words, names=None, memory=GIGABYTE, seconds=30, **options):
    """An error in a plain sentence which names the file, in bounded memory and time."""
    outcome = attack.run(*words, limit=seconds, **options)
    attack.expect(is_sentence(outcome), f"{name}: expected a plain error, got {outcome}")
    if names and outcome.code == 1:
        attack.expect(names in outcome.err, f"{name}: the error does not name '{names}': {outcome}")
    attack.expect(outcome.peak < memory, f"{name}: {outcome.peak / 2**20:.0f} MB of memory")
    return outcome


def array(shape, data=b"", kind="<f8"):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def npz(path, members, packing=zipfile.ZIP_STORED):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def overflowing_shape(attack):
    file = npz(attack.path("overflow.npz"), [("values.npy", array((1, 63995, 864758687727616), b"\0" * 4096))])
    refused(attack, "overflow.npz", "data", "info", file, names="overflow.npz")


def bomb(attack):
    """2 GB of zeros in 2 MB."""
    size = 1 << 28
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    packed = b"".join(packer.compress(bytes(1 << 24)) for _ in range(size >> 24)) + packer.flush()
    checksum = 0
    for _ in range(size >> 24):
        checksum = zlib.crc32(bytes(1 << 24), checksum)
    body, directory = b"", b""
    for name in [b"values.npy", b"times.npy", b"offsets.npy", b"labels.npy", b"ids.npy", b"parts.npy", b"groups.npy",
                 b"statics.npy"]:
        common = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, checksum, len(packed), size, len(name), 0)
        directory += b"PK\1\2" + struct.pack("<H", 20) + common + struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name
        body += b"PK\3\4" + common + name + packed
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 8, 8, len(directory), len(body), 0)
    refused(attack, "bomb.npz", "data", "info", write(attack.path("bomb.npz"), body + directory + end), names="bomb.npz")


def sound_claim(attack):
    """142 bytes of FLAC that claim 5e8 samples."""
    rate, samples = 16000, 500_000_000
    bits = (rate << 44) | (0 << 41) | (15 << 36) | samples
    info = struct.pack(">HH", 4096, 4096) + bytes(6) + bits.to_bytes(8, "big") + bytes(16)
    write(attack.path("speech", "yes", "a_nohash_0.wav"), b"fLaC\x80\x00\x00\x22" + info + bytes(100))
    refused(attack, "flac", "data", "info", attack.path("speech"), names="speech")


def flood(attack):
    size = 5_000_000 if attack.options.short else 50_000_000
    file = write(attack.path("flood.ts"), "@univariate false\n@classLabel true a b\n@data\n" + ":" * size + "\n")
    refused(attack, "flood.ts", "data", "info", file, names="flood.ts")


def long_cell(attack):
    file = write(attack.path("long.csv"), "id,time,x\na,0," + "z" * 500_000 + "\n")
    refused(attack, "a cell of 500 kB", "data", "info", file, names="long.csv")
    file = write(attack.path("wide.csv"), "id,time," + "y" * 500_000 + "\na,0,q\n")
    refused(attack, "a name of 500 kB", "data", "info", file, names="wide.csv")


def little_text(attack):
    """Text of which a few bytes each describe a series, a column, a class or a dimension, with --read-limit."""
    limit = 10_000_000 if attack.options.short else 50_000_000
    count = limit // 25
    small = attack.run("data", "info", write(attack.path("small.csv"), "id,time,x\na,0,1\n"), "--threads", "1")
    numbers = [f"{i:x}" for i in range(count)]
    sets = {"labels.csv of many series": ("many/labels.csv", "id,label\n" + ",\n".join(numbers) + ",\n", "many"),
            "a header of many columns": ("columns.csv", "id,time," + ",".join(numbers) + "\n", None),
            "a row of many fields": ("fields.csv", "id,time,x\na,0,1" + "," * count + "\n", None),
            "many classes": ("classes.ts", "@classLabel true " + " ".join(numbers) + "\n@data\n1:1\n", None),
            "many classes in braces": ("classes.arff", "@attribute x numeric\n@attribute c {" + ",".join(numbers) +
                                       "}\n@data\n1,1\n", None),
            "many dimensions": ("dimensions.arff", "@attribute d relational\n@attribute x numeric\n@end d\n@data\n'" +
                                "1\\n" * count + "1'\n", None),
            "a stay of many columns": ("stays/p1.psv", "|" * (limit // 3) + "\n", "stays")}
    for name, (file, text, folder) in sets.items():
        path = attack.path(file)
        write(path, text)
        # the text, what it describes, and as much again for what the allocator keeps
        refused(attack, name, "data", "info", attack.path(folder) if folder else path, "--threads", "1", "--no-cache",
                "--read-limit", str(limit), names=os.path.basename(file), memory=small.peak + 3 * limit, seconds=60)
        os.remove(path)


def nested_settings(attack, table):
    """Settings that are nested deeply enough to exhaust the stack of a recursion."""
    out = ["--out", attack.path("run nested"), *TRAIN]
    for name, text in (("lists", '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"), ("unclosed", "[" * 100_000),
                       ("objects", '{"a":' * 40_000 + "1" + "}" * 40_000), ("twice", '{"task": {}, "task": {}}')):
        file = write(attack.path(f"nested {name}.json"), text)
        refused(attack, f"--config with {name}", "train", table, "--config", file, *out, names=os.path.basename(file))
        folder = attack.path("folds " + name)
        write(os.path.join(folder, "folds.json"), text)
        refused(attack, f"folds.json with {name}", "train", table, "--resume", folder, names="folds.json")
    refused(attack, "--set with many dots", "train", table, "--set", ".".join("a" * 60_000) + "=1", *out)
    refused(attack, "--set with many lists", "train", table, "--set", "task.kind=" + "[" * 60_000, *out)


def latin_names(attack):
    """Names that are not UTF-8: a model, or an error before the first epoch."""
    rows = [b"id,time,temp\xe9rature,label"]
    for i in range(24):
        rows += [b"n\xfc%d,%d,%d,%s" % (i, k, k * (i % 2), b"\xe4" if i % 2 else b"\xf6") for k in range(4)]
    file = write(attack.path("latin.csv"), b"\n".join(rows) + b"\n")
    finishes(attack, "Latin-1 names", file)
    odd = os.path.join(os.fsencode(attack.work), b"caf\xe9.csv")
    with open(odd, "wb") as table:
        table.write(read(set_of_series(attack.path("plain.csv"))))
    finishes(attack, "a file name in Latin-1", odd)


def finishes(attack, name, table, refusal=True):
    """Training ends with a model that predicts, or is refused before the first epoch."""
    run = attack.path("run " + re.sub(r"\W", "-", name))
    outcome = attack.run("train", table, "--out", run, *TRAIN)
    if outcome.code != 0 and refusal:
        attack.expect(is_sentence(outcome) and not os.path.exists(os.path.join(run, "metrics.jsonl")),
                      f"{name}: training is lost: {outcome}")
        return None
    attack.expect(outcome.code == 0, f"{name}: {outcome}")
    after = attack.run("predict", run, table)
    attack.expect(after.code == 0, f"{name}: the model cannot be used: {after}")
    return outcome


def extreme_values(attack):
    base = read(set_of_series(attack.path("base.csv"))).decode()
    for value in ("1e155", "1e300", "-1.7e308"):
        table = write(attack.path(f"{value}.csv"), base.replace("s1,1.1,0.27,", f"s1,1.1,{value},", 1))
        attack.expect(value.encode() in read(table), "the table has no extreme value")
        finishes(attack, f"a value of {value}", table)
    # nothing, or one huge value: a warning
    lines = base.splitlines()
    missing = [lines[0]] + [",".join([*line.split(",")[:2], "", "", line.split(",")[4]]) for line in lines[1:]]
    for name, text in (("all missing", "\n".join(missing) + "\n"), ("an outlier of 1e30", base.replace("0.27,", "1e30,", 1))):
        table = write(attack.path(name + ".csv"), text)
        outcome = attack.run("train", table, "--out", attack.path("run " + name), *TRAIN[:-1])
        said = outcome.out + outcome.err
        attack.expect(outcome.code == 1 or re.search("warn|missing|outlier|no value|large", said, re.I),
                      f"{name}: trained without a warning")


def special_files(attack, model, table):
    """A FIFO without a writer, FIFOs, devices and links as targets, a full device."""
    fifo = attack.path("fifo.csv")
    os.mkfifo(fifo)
    outcome = attack.run("data", "info", fifo, limit=10)
    attack.expect(is_sentence(outcome), f"a FIFO without a writer: {outcome}")
    expected = attack.works("predict", model, table).out
    received = []
    reader = threading.Thread(target=lambda: received.append(read(fifo)), daemon=True)
    reader.start()
    outcome = attack.run("predict", model, table, "--out", fifo, limit=20)
    reader.join(timeout=2)
    attack.expect(stat.S_ISFIFO(os.lstat(fifo).st_mode), "--out on a FIFO has replaced it")
    attack.expect(received and received[0].decode() == expected, f"--out on a FIFO: nothing came out: {outcome}")
    with open("/dev/full", "w") as full:
        for words in (["predict", model, table], ["data", "info", table], ["evaluate", model, table], ["models"],
                      ["train", table, "--out", attack.path("run full"), *TRAIN[:-1]]):
            outcome = attack.run(*words, out=full)
            attack.expect(outcome.code == 1 and outcome.err, f"{words[0]} to a full device: {outcome}")
    # devices of our own: a program that replaces them must not replace those of the machine
    try:
        for name, number in (("null", 3), ("full", 7)):
            os.mknod(attack.path(name), 0o600 | stat.S_IFCHR, os.makedev(1, number))
            outcome = attack.run("predict", model, table, "--out", attack.path(name))
            attack.expect(stat.S_ISCHR(os.lstat(attack.path(name)).st_mode), f"--out on a device, {name}, has replaced it")
            attack.expect(outcome.code == 0 if name == "null" else is_sentence(outcome), f"--out on {name}: {outcome}")
    except PermissionError:
        attack.notes.append("no right to make devices")
    outcome = attack.run("data", "convert", table, "--out", attack.path("limited.csv"), sizes=512)
    attack.expect(is_sentence(outcome), f"a limit of file sizes: {outcome}")


def names_in_output(attack, table):
    """Terminal escapes are not printed; formulas can be kept out of tables."""
    text = read(table).decode()
    escape = write(attack.path("escape.csv"), text.replace("x,y", "\x1b[31mx,\x1b]0;t\x07y", 1).replace("up", "u\x1b[2Jp"))
    broken = write(attack.path("broken.csv"), text + "s1,99,\x1b[2J\x1b[1;1Hnumber,0,up\n")
    run = attack.path("run escape")
    attack.run("train", escape, "--out", run, *TRAIN)
    for words in (["data", "info", escape], ["data", "info", broken], ["evaluate", run, escape], ["inspect", run],
                  ["predict", run, set_of_series(attack.path("other.csv"))],
                  ["train", escape, "--out", attack.path("run escape 2"), *TRAIN[:-1]]):
        outcome = attack.run(*words)
        attack.expect("\x1b" not in outcome.out + outcome.err, f"{' '.join(words[:2])}: a terminal escape is printed")
    formula = write(attack.path("formula.csv"), text.replace("up", "=1+1+cmd|' /C calc'!A0").replace("down", "@SUM(A1)"))
    attack.run("train", formula, "--out", attack.path("run formula"), *TRAIN)
    option = re.search(r"--[\w-]*formula[\w-]*|--[\w-]*spreadsheet[\w-]*", attack.run("predict", "--help").out)
    if attack.expect(option, "predict has no option against formulas"):
        out = attack.run("predict", attack.path("run formula"), formula, option.group(0)).out
        cells = [cell for line in out.splitlines()[1:] for cell in line.split(",")]
        attack.expect(not any(re.match(r'"?[=@]', cell) for cell in cells), "a formula in the predictions")


def cut_table(attack, table):
    """A converted table that ends at the end of a line, or anywhere."""
    attack.works("data", "convert", table, "--out", attack.path("whole.csv"))
    whole, counts = read(attack.path("whole.csv")), read(attack.path("whole.csv.rows"))
    lines = whole.splitlines(keepends=True)
    for name, data in (("half.csv", b"".join(lines[:len(lines) // 2])), ("less.csv", b"".join(lines[:-1])),
                       ("byte.csv", whole[:-2])):
        write(attack.path(name + ".rows"), counts)
        refused(attack, f"a table that is cut: {name}", "data", "info", write(attack.path(name), data), names=name)


def flipped_bits(attack, model, table):
    """One bit of a model or a checkpoint."""
    for file, words in (("model.safetensors", ["predict", model, table]),
                        ("checkpoint.safetensors", ["train", "--resume", model])):
        path = os.path.join(model, file)
        whole = read(path)
        done = os.path.join(model, "result.json")
        result, kept = read(done), read(os.path.join(model, "model.safetensors"))
        for _ in range(3 if attack.options.short else 40):
            at = attack.random.randrange(len(whole))
            damaged = bytearray(whole)
            damaged[at] ^= 1 << attack.random.randrange(8)
            write(path, bytes(damaged))
            if words[0] == "train":
                os.remove(done)
            outcome = attack.run(*words)
            attack.expect(is_sentence(outcome) and file in outcome.err,
                          f"a flipped bit at byte {at} of {len(whole)} of {file}: {outcome}")
            write(done, result)
            write(os.path.join(model, "model.safetensors"), kept)
        write(path, whole)


def damaged_run(attack, model):
    """Garbage in the files of a run: worked around, or an error that names the file."""
    metrics = os.path.join(model, "metrics.jsonl")
    whole = read(metrics)
    lines = whole.splitlines(keepends=True)
    for name, data in (("binary", whole + b"\0\xff\xfe{\n"), ("half a line", whole[:-20]),
                       ("other types", lines[0] + b'{"epoch":"x","validation":3}\n{"epoch":1e99,"validation":{}}\n' + lines[1]),
                       ("lists", b"[1]\n" + whole), ("twice", whole + whole)):
        write(metrics, data)
        outcome = attack.run("report", model)
        attack.expect(outcome.code == 0, f"metrics.jsonl with {name}: {outcome}")
    write(metrics, whole)
    # a log that cannot be written is said
    run = attack.path("run log")
    os.makedirs(os.path.join(run, "log.txt"))
    outcome = attack.run("train", "spirals:samples=40", "--out", run, "--epochs", "2", *TINY)
    attack.expect("log.txt cannot be written" in outcome.out + outcome.err, f"a log that cannot be written: {outcome}")
    for name in ("result.json", "config.json", "report.json", "data.json"):
        path = os.path.join(model, name)
        kept = read(path)
        for garbage in (b"", b"\xff\xfe", b"[]", b'{"best_epoch":"x","threshold":[]}', kept[:len(kept) // 2], b"[" * 100_000):
            write(path, garbage)
            for words in (["report", model], ["train", "--resume", model, "--quiet"]):
                outcome = attack.run(*words)
                if outcome.code != 0:
                    attack.expect(is_sentence(outcome) and name in outcome.err, f"{words[0]} with a damaged {name}: {outcome}")
            if attack.options.short:
                break
        write(path, kept)


def large_models(attack, table):
    outcome = refused(attack, "100,000 layers", "train", table, "--out", attack.path("run layers"), *TRAIN, "--set",
                      "model.layers=100000", memory=2 * GIGABYTE, seconds=60)
    attack.expect(outcome.seconds < 30, f"100,000 layers: {outcome.seconds:.0f} s")
    refused(attack, "a hidden size of 1e9", "train", table, "--out", attack.path("run size"), *TRAIN, "--set",
            "model.hidden_size=1000000000", memory=2 * GIGABYTE, seconds=60)
    if attack.options.short:
        return
    rows = ["id,time,x,label"] + [f"s{i},{k},{i * k % 7},class number {i}" for i in range(10_000) for k in range(2)]
    run = attack.path("run classes")
    outcome = attack.run("train", write(attack.path("classes.csv"), "\n".join(rows) + "\n"), "--out", run, "--epochs",
                         "1", *TINY, "--quiet", limit=300)
    if outcome.code != 0:
        attack.expect(is_sentence(outcome), f"10,000 classes: {outcome}")
        return
    size = os.path.getsize(os.path.join(run, "report.html"))
    attack.expect(size < 20_000_000, f"10,000 classes: a report of {size / 1e6:.0f} MB")


def caches(attack, table):
    """A cache that cannot be written, and one that an edit has made stale."""
    expected = attack.works("data", "info", table, "--no-cache").out
    for name, cache in (("no folder", "/dev/null/cache"), ("a file", write(attack.path("cache-file"), "x"))):
        outcome = attack.run("data", "info", table, environment={"FASTWEIGHTS_CACHE": cache})
        attack.expect(outcome.code == 0 and outcome.out == expected, f"a cache that is {name}: {outcome}")
    folder = attack.path("folder")
    attack.works("data", "convert", table, "--to", "csv-folder", "--out", folder)
    attack.works("data", "info", folder)
    edited = os.path.join(folder, "s2.csv")
    times = os.stat(edited)
    write(edited, re.sub(rb"\n0\.2,([^,]*),", lambda m: b"\n0.2," + b"9" * len(m.group(1)) + b",", read(edited)))
    os.utime(edited, ns=(times.st_atime_ns, times.st_mtime_ns))
    attack.expect(attack.run("data", "info", folder).out == attack.run("data", "info", folder, "--no-cache").out,
                  "an edit that keeps size and time of a file: stale data from the cache")


def crafted(attack):
    table = set_of_series(attack.path("table.csv"))
    model = attack.path("model")
    attack.works("train", table, "--out", model, *TRAIN)
    before = run_bytes(model)
    cases = [lambda: overflowing_shape(attack), lambda: bomb(attack), lambda: sound_claim(attack), lambda: flood(attack),
             lambda: long_cell(attack), lambda: little_text(attack), lambda: nested_settings(attack, table),
             lambda: latin_names(attack), lambda: extreme_values(attack),
             lambda: special_files(attack, model, table), lambda: names_in_output(attack, table),
             lambda: cut_table(attack, table), lambda: flipped_bits(attack, model, table),
             lambda: damaged_run(attack, model), lambda: large_models(attack, table), lambda: caches(attack, table)]
    for case in cases:
        try:
            case()
        except (RuntimeError, OSError) as error:
            attack.find(f"could not be completed: {error}")
    attack.expect(run_bytes(model)["model.safetensors"] == before["model.safetensors"], "a command has changed a model")
