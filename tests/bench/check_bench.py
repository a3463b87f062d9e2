#!/usr/bin/env python3
"""check_bench.py RUN PROGRAM: what bench/run.py writes is what docs/performance.md says. How fast it is is no matter.

Amounts are worked out here from the names alone; rates, shares and ratios must follow from them.
"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile

RUN, PROGRAM = sys.argv[1:]
FILTER = "(M:64/N:64/K:64|matmul/BF16xMXFP4/M:130/.*K:200|M:16/.*experts:32|quantize/.*(F32|BF16)to(MX|NV)FP4/M:1/|dequantize/NVFP4toF32/M:1/)"
PLAIN = {"F32": 4, "BF16": 2}
PAIRS = ["MXFP4xMXFP4", "NVFP4xNVFP4", "MXFP8_E4M3xMXFP8_E4M3", "MXFP8_E4M3xMXFP4", "BF16xMXFP4", "BF16xNVFP4", "BF16xMXFP8_E4M3"]
FORMAT = r"(F32|BF16|NVFP4|MX[A-Z0-9_]+)"
TAIL = r"/backend:(?P<backend>[a-z0-9_]+)/threads:(?P<threads>\d+)"
PRODUCT = re.compile(rf"(grouped_)?matmul/{FORMAT}x{FORMAT}/M:(?P<m>\d+)/N:(?P<n>\d+)/K:(?P<k>\d+)(/experts:\d+)?(/B:plain)?{TAIL}")
CONVERSION = re.compile(
    rf"(grouped_quantize|quantize|dequantize)/(?P<f>{FORMAT})to(?P<t>{FORMAT})/M:(?P<m>\d+)/K:(?P<k>\d+)"
    rf"(/tensor_scale:dynamic)?(/experts:\d+)?{TAIL}"
)


def call(*arguments):
    return subprocess.run([sys.executable, RUN, "--program", PROGRAM, *arguments], capture_output=True, text=True, check=False)


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-9)


def check_result(result, document):
    name, ceiling = result["name"], result["ceiling"]
    product, conversion = PRODUCT.fullmatch(name), CONVERSION.fullmatch(name)
    match = product or conversion
    assert match, name
    extent = {key: int(value) for key, value in match.groupdict().items() if key in "mnk" and value}
    assert match["backend"] == document["machine"]["backend"], name
    assert ceiling.endswith(f"/threads:{match['threads']}"), (name, ceiling)

    instruction = ceiling.split("/")[0] not in ("read", "copy")
    assert result["unit"] == ("GFLOP/s" if instruction else "GB/s"), (name, result["unit"])
    assert instruction == bool(product), (name, ceiling)  # decode is not in the filter
    if product:
        amount = 2 * extent["m"] * extent["n"] * extent["k"]
    else:
        amount = extent["m"] * extent["k"] * (PLAIN.get(conversion["f"]) or PLAIN[conversion["t"]])
    assert result["seconds"] > 0, name
    assert close(result["rate"], amount / result["seconds"] * 1e-9), (name, result["rate"], amount)
    assert close(result["ceiling_share"], result["rate"] / document["ceilings"][ceiling]), name
    for peer, numbers in result["peers"].items():
        assert re.fullmatch("[a-z0-9_]+", peer), peer
        assert close(numbers["ratio"], numbers["seconds"] / result["seconds"]), (name, peer)


def main():
    with tempfile.TemporaryDirectory() as folder:
        file, page = os.path.join(folder, "results.json"), os.path.join(folder, "page.html")
        done = call("--quick", "--threads", "1,2", "--filter", FILTER, "--json", file, "--html", page)
        assert done.returncode == 0, done.stderr
        with open(file, encoding="utf-8") as text:
            document = json.load(text)
        with open(page, encoding="utf-8") as text:
            html = text.read()

        assert sorted(document) == ["ceilings", "machine", "results"], sorted(document)
        names = [result["name"] for result in document["results"]]
        assert len(set(names)) == len(names), "a name comes twice"
        backend = document["machine"]["backend"]
        for threads in (1, 2) if document["machine"]["execution_space"] in ("OpenMP", "Threads") else (1,):
            tail = f"/backend:{backend}/threads:{threads}"
            for expected in [f"matmul/{pair}/M:64/N:64/K:64" for pair in PAIRS] + [
                "matmul/MXFP4xMXFP4/M:64/N:64/K:64/B:plain",
                "grouped_matmul/MXFP4xMXFP4/M:16/N:768/K:1024/experts:32",
                "quantize/F32toMXFP4/M:1/K:4096",
                "quantize/F32toNVFP4/M:1/K:4096",
                "quantize/F32toNVFP4/M:1/K:4096/tensor_scale:dynamic",
                "dequantize/NVFP4toF32/M:1/K:4096",
            ]:
                assert expected + tail in names, f"{expected + tail} is missing; there are {names}"
            for ceiling in ("fma", "read", "copy"):
                assert document["ceilings"][f"{ceiling}/threads:{threads}"] > 0, ceiling
        for result in document["results"]:
            check_result(result, document)
            assert result["name"] in done.stdout and result["name"] in html, result["name"]
            if backend != "reference":
                assert "reference" in result["peers"], result["name"]
        assert "<svg" in html and not re.search(r"https?:|<script|<link|src=", html), "the page is not self-contained"

        again = call("--from", file)
        assert again.returncode == 0 and again.stdout == done.stdout, "the table of --from is another one"

    nothing = call("--quick", "--threads", "1", "--filter", "^no such case$")
    assert nothing.returncode != 0 and "no case matches --filter '^no such case$'" in nothing.stderr, nothing.stderr
    wrong = call("--quick", "--threads", "1", "--filter", "(")
    assert wrong.returncode != 0 and "--filter" in wrong.stderr, wrong.stderr


main()
