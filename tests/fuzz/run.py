"""Run many cases and write a table of what was found: `make fuzz`.

CONTRAFACT_FUZZ is the number of cases (default 41000, of which more than 40,000 can be made: an
empty array has no variant with a NaN). A text as argument runs one case or door:

    python tests/fuzz/run.py "geometry.lmo: eps='3'"
"""

import argparse
import os
import resource
import sys
import time
from collections import Counter, defaultdict
from multiprocessing import get_context
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import torch  # noqa: E402
from cases import choose, counts  # noqa: E402
from doors import DOORS  # noqa: E402
from judging import judge  # noqa: E402

MEMORY = 6 * 2**30
KINDS = ("clear", "confirmed", "unclear", "silent", "hang", "state")


def prepare():
    """Limit the memory and threads of this process."""
    torch.set_num_threads(1)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))


def run_door(name, count):
    """Run some cases of one door; return outcomes with the texts of their cases."""
    found = []
    for case in choose(DOORS[name], count):
        outcome = judge(case)
        if outcome is not None:
            found.append((str(case), outcome))
    return name, found


def table(found):
    """Write findings grouped by door and by what failed, with one line to repeat each."""
    totals = Counter(outcome.kind for outcomes in found.values() for _, outcome in outcomes)
    lines = ["| door | cases | " + " | ".join(KINDS) + " |", "|---" * (len(KINDS) + 2) + "|"]
    for name in sorted(found):
        kinds = Counter(outcome.kind for _, outcome in found[name])
        numbers = " | ".join(str(kinds[kind]) for kind in KINDS)
        lines.append(f"| {name} | {len(found[name])} | {numbers} |")
    numbers = " | ".join(str(totals[kind]) for kind in KINDS)
    lines.append(f"| all | {totals.total()} | {numbers} |")
    groups = defaultdict(list)
    for name in sorted(found):
        for case, outcome in found[name]:
            if outcome.finding:
                key = (name.partition(".")[0], outcome.kind, name, outcome.where)
                groups[key].append((case, outcome))
    package = None
    for key in sorted(groups):
        cases = groups[key]
        if key[0] != package:
            package = key[0]
            lines.append(f"\n## {package}\n")
        case, outcome = cases[0]
        detail = " ".join(outcome.detail.split())[:160]
        lines.append(f"- {key[1]}, {len(cases)} x, {key[3]}: `{case}`\n  {detail}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="door, or door: name=value")
    parser.add_argument("--cases", type=int, default=int(os.environ.get("CONTRAFACT_FUZZ", 41000)))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/fuzz.md"))
    options = parser.parse_args()
    door, _, arguments = options.only.partition(": ")
    shares = counts(options.cases)
    if arguments:
        prepare()
        for case in choose(DOORS[door], 10**4):
            if str(case) == options.only:
                print(judge(case))
                return
        parser.error(f"no case {options.only!r}")
    tasks = [(name, share) for name, share in shares.items() if name.startswith(door) and share]
    tasks.sort(key=lambda task: -task[1])
    started = time.time()
    found = {}
    # Each door has a process of its own: what one leaves behind does not disturb another.
    with get_context("spawn").Pool(options.jobs, prepare, maxtasksperchild=30) as pool:
        for name, outcomes in pool.imap_unordered(_star, tasks):
            found[name] = outcomes
            bad = sum(outcome.finding for _, outcome in outcomes)
            print(
                f"{time.time() - started:6.0f} s  {name}: {len(outcomes)}, {bad} findings",
                flush=True,
            )
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(table(found))
    text = table(found)
    print(text)
    if any(outcome.finding for outcomes in found.values() for _, outcome in outcomes):
        sys.exit(1)


def _star(task):
    return run_door(*task)


if __name__ == "__main__":
    main()
