#!/usr/bin/env python3
"""Writes data/expected.txt: what the example should print, computed without Microscale.

    pip install numpy ml_dtypes && python3 expect.py

Runs both models in every format with numpy and ml_dtypes: OCP MX blocks of 32 with the RCEIL scale rule, NVFP4 blocks of
16 with a dynamic tensor scale, sums in double precision, activations rounded to bf16 between layers. One line for each
run: model, format of the weights, of the activations, digits right, SQNR of the logits in dB; separated by tabs.
"""

import json
import pathlib
import struct

import ml_dtypes
import numpy as np

DATA = pathlib.Path(__file__).parent / "data"
DTYPES = {"BF16": ml_dtypes.bfloat16, "F32": np.float32, "I32": np.int32}


def read_safetensors(path):
    blob = path.read_bytes()
    begin = 8 + struct.unpack("<Q", blob[:8])[0]
    header = json.loads(blob[8:begin])
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(blob[begin:], DTYPES[t["dtype"]], np.prod(t["shape"], dtype=int), t["data_offsets"][0]).reshape(
            t["shape"]
        )
        for name, t in header.items()
    }


def mx(element):
    """OCP MX: scale 2^ceil(log2(amax / largest element))."""
    largest = float(ml_dtypes.finfo(element).max)

    def quantize(x):
        blocks = np.asarray(x, np.float64).reshape(-1, 32)
        amax = np.abs(blocks).max(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            scale = np.where(amax > 0, 2.0 ** np.ceil(np.log2(amax / largest)), 1)
        return ((blocks / scale).astype(np.float32).astype(element).astype(np.float64) * scale).reshape(np.shape(x))

    return quantize


def nvfp4(x):
    """E2M1 with E4M3 block scales under one tensor scale, in binary32 throughout."""
    f = np.float32
    blocks = np.asarray(x, f).reshape(-1, 16)
    encode = f(2688) / np.abs(blocks).max()
    decode = f(1) / encode
    scale = np.abs(blocks).max(axis=1, keepdims=True) * (encode * f(1 / 6))
    scale = scale.astype(ml_dtypes.float8_e4m3fn).astype(f)
    with np.errstate(divide="ignore"):
        multiplier = np.where(scale > 0, f(1) / (scale * decode), f(0))
    codes = (blocks * multiplier).astype(ml_dtypes.float4_e2m1fn).astype(f)
    return (codes * scale * decode).astype(np.float64).reshape(np.shape(x))


FORMATS = {
    "MXFP8 E4M3": mx(ml_dtypes.float8_e4m3fn),
    "MXFP8 E5M2": mx(ml_dtypes.float8_e5m2),
    "MXFP6 E2M3": mx(ml_dtypes.float6_e2m3fn),
    "MXFP6 E3M2": mx(ml_dtypes.float6_e3m2fn),
    "NVFP4": nvfp4,
    "MXFP4": mx(ml_dtypes.float4_e2m1fn),
}


def bf16(x):
    return np.asarray(x, np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)


def dense(w, name, x, weights, activations):
    return activations(x) @ weights(w[name + ".weight"]).T + w[name + ".bias"].astype(np.float64)


def mlp(w, x, weights, activations):
    x = bf16(np.maximum(dense(w, "mlp.layers.0", x, weights, activations), 0))
    x = bf16(np.maximum(dense(w, "mlp.layers.1", x, weights, activations), 0))
    return dense(w, "mlp.layers.2", x, weights, activations)


def moe(w, x, weights, activations):
    h = bf16(np.maximum(dense(w, "moe.proj_in", x, weights, activations), 0))
    router = h @ w["moe.router.weight"].astype(np.float64).T
    chosen = np.argsort(-router, axis=1, kind="stable")[:, :2]
    share = np.exp(np.take_along_axis(router, chosen, axis=1))
    share /= share.sum(axis=1, keepdims=True)
    # Each expert has a tensor scale of its own; the activations of all experts share one.
    gate_up = np.stack([weights(e) for e in w["moe.experts.gate_up_proj.weight"]])[chosen]
    down = np.stack([weights(e) for e in w["moe.experts.down_proj.weight"]])[chosen]
    both = np.einsum("bk,bjnk->bjn", activations(h), gate_up)
    gate, up = both[..., 0::2], both[..., 1::2]
    inner = activations(bf16(gate / (1 + np.exp(-gate)) * up))
    mixed = np.einsum("bj,bjn->bn", share, np.einsum("bjk,bjnk->bjn", inner, down))
    return dense(w, "moe.proj_out", bf16(h + mixed), weights, activations)


def main():
    test = read_safetensors(DATA / "test.safetensors")
    lines = []
    for name, model in (("mlp", mlp), ("moe", moe)):
        w = read_safetensors(DATA / f"{name}.safetensors")
        exact = test[f"{name}.logits"].astype(np.float64)
        for label, quantize in FORMATS.items():
            for activations, function in ((label, quantize), ("bf16", bf16)):
                logits = model(w, test["images"].astype(np.float64), quantize, function)
                right = int((logits.argmax(axis=1) == test["labels"]).sum())
                sqnr = 10 * np.log10((exact**2).sum() / ((exact - logits) ** 2).sum())
                lines.append(f"{name}\t{label}\t{activations}\t{right}\t{sqnr:.2f}\n")
    (DATA / "expected.txt").write_text("".join(lines))
    print("".join(lines), end="")


if __name__ == "__main__":
    main()
