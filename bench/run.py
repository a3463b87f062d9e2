#!/usr/bin/env python3
"""Runs microscale_compare for several numbers of threads, prints one table, and writes JSON and a page with a roofline.

run.py --program PATH [--quick] [--filter RE] [--peers RE] [--threads N,N...] [--json FILE] [--html FILE]
run.py --from FILE [--html FILE]      shows what an earlier run wrote
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile

import roofline


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            return next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def run(arguments):
    """One JSON document of all runs."""
    document = {
        "machine": {
            "processor": processor(),
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "system": platform.platform(),
            "date": datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %z"),
        },
        "ceilings": {},
        "results": [],
    }
    for threads in arguments.threads:
        environment = dict(os.environ)
        for library in ("OMP", "KOKKOS", "OPENBLAS"):
            environment[f"{library}_NUM_THREADS"] = str(threads)
        environment.setdefault("OMP_PROC_BIND", "false")  # Kokkos asks for a choice
        environment.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # its threads do not spin while others are measured
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "results.json")
            command = [arguments.program, "--json", file, "--filter", arguments.filter, "--peers", arguments.peers]
            command += ["--quick"] if arguments.quick else []
            status = subprocess.run(command, env=environment, check=False).returncode
            if status != 0:
                sys.exit(f"run.py: {arguments.program} with {threads} threads ended with status {status}")
            with open(file, encoding="utf-8") as text:
                part = json.load(text)
        document["machine"].update(part["machine"])
        document["ceilings"].update(part["ceilings"])
        known = {result["name"] for result in document["results"]}  # a space without threads says the same again
        document["results"] += [result for result in part["results"] if result["name"] not in known]
    return document


def peer_names(results):
    """Of all results, in the order in which they were first met."""
    return list(dict.fromkeys(name for result in results for name in result["peers"]))


def rows(results):
    """The table as text: a header, then a row a result."""
    peers = peer_names(results)
    table = [["case", "seconds", "rate", "ceiling", "share"] + ["vs " + name for name in peers]]
    for result in results:
        table.append(
            [
                result["name"],
                f"{result['seconds']:.3g}",
                f"{result['rate']:.4g} {result['unit']}",
                result["ceiling"].split("/")[0],
                f"{result['ceiling_share']:.0%}",
            ]
            + [f"{result['peers'][name]['ratio']:.2f}" if name in result["peers"] else "-" for name in peers]
        )
    return table


def print_table(document):
    machine = document["machine"]
    print(f"{machine['processor']}, {machine['cores']} cores; {machine['system']}; {machine['date']}")
    print(f"{machine['compiler']}; backend {machine['backend']}; " + "; ".join(machine["peers"]))
    for name, rate in document["ceilings"].items():
        print(f"  ceiling {name:<22} {rate:9.1f} {roofline.unit(name)}")
    table = rows(document["results"])
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        cells = [cell.ljust(width) if column == 0 else cell.rjust(width) for column, (cell, width) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip())


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measures Microscale and its peers on this machine.")
    parser.add_argument("--program", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="a rough look: few and short samples")
    parser.add_argument("--filter", default="", metavar="RE", help="only cases whose name matches, such as '^matmul/.*M:512'")
    parser.add_argument("--peers", default="", metavar="RE", help="only peers whose name matches, such as onednn")
    parser.add_argument("--threads", default="1,2", metavar="N,N...", help="numbers of threads (default: 1,2)")
    parser.add_argument("--json", metavar="FILE", help="write the results")
    parser.add_argument("--html", metavar="FILE", help="write a page with the table and a roofline plot")
    parser.add_argument("--from", dest="source", metavar="FILE", help="show what an earlier run wrote with --json")
    arguments = parser.parse_args()
    try:
        arguments.threads = [int(n) for n in arguments.threads.split(",")]
    except ValueError:
        parser.error(f"--threads: {arguments.threads!r} is not a list of numbers")
    if min(arguments.threads) < 1:
        parser.error("--threads: every number is 1 or more")

    if arguments.source:
        with open(arguments.source, encoding="utf-8") as file:
            document = json.load(file)
    else:
        document = run(arguments)
    if not document["results"]:
        sys.exit(f"scripts/bench: no case matches --filter {arguments.filter!r}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
    if arguments.html:
        with open(arguments.html, "w", encoding="utf-8") as file:
            file.write(roofline.page(document, rows(document["results"])))
    print_table(document)


if __name__ == "__main__":
    main()
