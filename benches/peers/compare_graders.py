"""Graders side by side on files of pairs: right, false positives, false negatives, pairs a processor second.

    python3 -m venv venv
    venv/bin/pip install -r benches/peers/requirements.txt
    venv/bin/pip install --no-deps -r benches/peers/requirements-no-deps.txt
    venv/bin/python benches/peers/compare_graders.py --epikv target/release/epikv tests/golden/grading.jsonl

Lines of the tier `convention` have no truth of their own and are left out. A pair that takes a grader longer than
`--limit` seconds, or makes it raise, counts as not the same.
"""

import argparse
import json
import logging
import resource
import signal
import subprocess
import tempfile
import time
import warnings

import graders


class TooLong(BaseException):
    """Not an `Exception`: graders catch these."""


def with_limit(seconds, function, *arguments):
    def ring(*_):
        raise TooLong

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return function(*arguments)
    except (Exception, TooLong):
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def grade(grader, row, limit):
    def run():
        if row.get("kind") != "extract":
            return grader.same(row["pred"], row["gold"])
        answer = grader.answer(row["pred"])
        return answer is not None and grader.same(answer, row["gold"])

    return bool(with_limit(limit, run))


def peer(grader, rows, limit):
    grade(grader, rows[0], limit)  # what is loaded at the first call is not timed
    start = time.process_time()
    verdicts = [grade(grader, row, limit) for row in rows]
    return grader.name, verdicts, len(rows) / (time.process_time() - start)


def run_epikv(binary, mode, rows):
    """What the program tells of the rows, and the processor time of all of it, its start included."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
        file.flush()
        command = [binary, "grade", "--file", file.name, "--json", "--explain", f"--{mode}"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return told, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def epikv(binary, mode, rows, repeats=20):
    told, _ = run_epikv(binary, mode, rows)
    _, seconds = run_epikv(binary, mode, rows * repeats)
    verdicts = [pair["verdict"] in ("same", "same_other_form") for pair in told["pairs"]]
    return f"epikv {told['grader']}, {mode}", verdicts, repeats * len(rows) / seconds


def table(title, rows, results):
    print(f"\n{title}: {len(rows)} lines\n")
    print(f"| {'grader':<30} | right | false positive | false negative | pairs/s |")
    print(f"| {'-' * 30} | ----- | -------------- | -------------- | ------- |")
    for name, verdicts, rate in results:
        wrong = [(same, row["equal"]) for same, row in zip(verdicts, rows) if same != row["equal"]]
        positive = sum(same for same, _ in wrong)
        right, negative = len(rows) - len(wrong), len(wrong) - positive
        print(f"| {name:<30} | {right:>5} | {positive:>14} | {negative:>14} | {rate:>7.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="F.jsonl")
    parser.add_argument("--epikv", default="epikv", metavar="BINARY")
    parser.add_argument("--limit", type=float, default=10, metavar="SECONDS")
    options = parser.parse_args()
    logging.disable()
    warnings.simplefilter("ignore")
    lines = [json.loads(line) for path in options.files for line in open(path, encoding="utf-8") if line.strip()]
    lines = [line for line in lines if line.get("tier") != "convention"]
    loaded = [load() for load in graders.ALL]
    for title, kind in (("Pairs of answers", "pair"), ("Texts to find the answer in", "extract")):
        rows = [line for line in lines if line.get("kind", "pair") == kind]
        if rows:
            results = [epikv(options.epikv, "lenient", rows), epikv(options.epikv, "strict", rows)]
            table(title, rows, results + [peer(grader, rows, options.limit) for grader in loaded])


if __name__ == "__main__":
    main()
