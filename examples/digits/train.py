#!/usr/bin/env python3
"""Trains the two digit classifiers of this example and writes them as safetensors files.

    pip install numpy scikit-learn && python3 train.py

The data are scikit-learn's bundled digits: 1797 grey images of 8 x 8 pixels with values 0..16. 360 of them are held out (a
fixed, stratified split) and never trained on. Both models are written out by hand in numpy, gradients included, so that
nothing else is needed and every run gives the same files up to the rounding of the machine's BLAS.

    mlp.safetensors    64 -> 256 -> 128 -> 10, ReLU
    moe.safetensors    64 -> 128, a residual top-2 mixture of 8 SwiGLU experts, 128 -> 10
    test.safetensors   held-out images (BF16, exact: pixel / 16), labels, and for each model the logits that the BF16 weights
                       give in double precision; the metadata records how many digits they get right

Weights and biases are BF16. Weights are [N, K] (out, in); those of the experts [E, N, K], gate and up rows alternating
(even rows gate, odd rows up), as gpt-oss stores them.
"""

import argparse
import json
import pathlib
import struct

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 20
CLASSES = 10
EXPERTS, TOP_K, HIDDEN, INNER = 8, 2, 128, 64


def bf16_bits(values):
    """The BF16 codes of finite values, rounded to nearest even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def bf16_round(values):
    return (bf16_bits(values).astype(np.uint32) << 16).view(np.float32)


def write_safetensors(path, tensors, metadata):
    """tensors: name -> (dtype, array). The array's bytes are written as they are."""
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    for name, (dtype, array) in tensors.items():
        blob = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def glorot(rng, *shape):
    return rng.normal(0, np.sqrt(2 / (shape[-1] + shape[-2])), shape)


class Mlp:
    def __init__(self, rng):
        sizes = (64, 256, 128, CLASSES)
        self.params = {}
        for i, (k, n) in enumerate(zip(sizes, sizes[1:])):
            self.params[f"mlp.layers.{i}.weight"] = glorot(rng, n, k)
            self.params[f"mlp.layers.{i}.bias"] = np.zeros(n)

    def forward(self, x):
        p, self.inputs = self.params, []
        for i in range(3):
            self.inputs.append(x)
            x = x @ p[f"mlp.layers.{i}.weight"].T + p[f"mlp.layers.{i}.bias"]
            if i < 2:
                x = np.maximum(x, 0)
        return x

    def backward(self, grad):
        grads = {}
        for i in (2, 1, 0):
            x = self.inputs[i]
            grads[f"mlp.layers.{i}.weight"] = grad.T @ x
            grads[f"mlp.layers.{i}.bias"] = grad.sum(axis=0)
            grad = (grad @ self.params[f"mlp.layers.{i}.weight"]) * (x > 0)
        return grads


class Moe:
    def __init__(self, rng):
        self.params = {
            "moe.proj_in.weight": glorot(rng, HIDDEN, 64),
            "moe.proj_in.bias": np.zeros(HIDDEN),
            "moe.router.weight": glorot(rng, EXPERTS, HIDDEN),
            "moe.experts.gate_up_proj.weight": glorot(rng, EXPERTS, 2 * INNER, HIDDEN),
            "moe.experts.down_proj.weight": glorot(rng, EXPERTS, HIDDEN, INNER),
            "moe.proj_out.weight": glorot(rng, CLASSES, HIDDEN),
            "moe.proj_out.bias": np.zeros(CLASSES),
        }

    def forward(self, x):
        p = self.params
        h = np.maximum(x @ p["moe.proj_in.weight"].T + p["moe.proj_in.bias"], 0)
        router = h @ p["moe.router.weight"].T
        chosen = np.argsort(-router, axis=1, kind="stable")[:, :TOP_K]
        mask = np.zeros_like(router, bool)
        np.put_along_axis(mask, chosen, True, axis=1)
        weights = softmax(np.where(mask, router, -np.inf))  # over the chosen experts alone; 0 elsewhere
        gate_up = np.einsum("bk,enk->ben", h, p["moe.experts.gate_up_proj.weight"])
        gate, up = gate_up[..., 0::2], gate_up[..., 1::2]
        sigmoid = 1 / (1 + np.exp(-gate))
        inner = gate * sigmoid * up
        expert_out = np.einsum("bek,enk->ben", inner, p["moe.experts.down_proj.weight"])
        z = h + np.einsum("be,ben->bn", weights, expert_out)
        self.saved = (x, h, router, mask, weights, gate, up, sigmoid, inner, expert_out, z)
        return z @ p["moe.proj_out.weight"].T + p["moe.proj_out.bias"]

    def backward(self, grad):
        p = self.params
        x, h, router, mask, weights, gate, up, sigmoid, inner, expert_out, z = self.saved
        grads = {"moe.proj_out.weight": grad.T @ z, "moe.proj_out.bias": grad.sum(axis=0)}
        dz = grad @ p["moe.proj_out.weight"]
        dweights = np.einsum("bn,ben->be", dz, expert_out)
        dexpert = weights[..., None] * dz[:, None, :]
        grads["moe.experts.down_proj.weight"] = np.einsum("ben,bek->enk", dexpert, inner)
        dinner = np.einsum("ben,enk->bek", dexpert, p["moe.experts.down_proj.weight"])
        dgate_up = np.empty(gate.shape[:2] + (2 * INNER,))
        dgate_up[..., 0::2] = dinner * up * sigmoid * (1 + gate * (1 - sigmoid))
        dgate_up[..., 1::2] = dinner * gate * sigmoid
        grads["moe.experts.gate_up_proj.weight"] = np.einsum("ben,bk->enk", dgate_up, h)
        drouter = weights * (dweights - (weights * dweights).sum(axis=1, keepdims=True))
        # Load balance (Switch Transformer): experts' share of the rows times their mean probability, summed.
        probability = softmax(router)
        share = mask.mean(axis=0)
        drouter += 0.1 / len(x) * EXPERTS * probability * (share - probability @ share[:, None])
        grads["moe.router.weight"] = drouter.T @ h
        dh = dz + np.einsum("ben,enk->bk", dgate_up, p["moe.experts.gate_up_proj.weight"])
        dh = (dh + drouter @ p["moe.router.weight"]) * (h > 0)
        grads["moe.proj_in.weight"] = dh.T @ x
        grads["moe.proj_in.bias"] = dh.sum(axis=0)
        return grads


def shifted(images, rng):
    """Each image moved by -1, 0 or 1 pixel along each axis, so that the models do not learn pixels by heart."""
    padded = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    dy, dx = rng.integers(0, 3, (2, len(images)))
    rows, cols = dy[:, None] + np.arange(8), dx[:, None] + np.arange(8)
    return padded[np.arange(len(images))[:, None, None], rows[:, :, None], cols[:, None, :]].reshape(len(images), 64)


def train(model, images, labels, rng, epochs, batch=64, decay=1e-2):
    """AdamW with a cosine learning rate."""
    first = {name: np.zeros_like(p) for name, p in model.params.items()}
    second = {name: np.zeros_like(p) for name, p in model.params.items()}
    steps, t = epochs * (len(images) // batch), 0
    for _ in range(epochs):
        order = rng.permutation(len(images))
        for start in range(0, len(images) - batch + 1, batch):
            pick = order[start : start + batch]
            target = np.full((batch, CLASSES), 0.05 / CLASSES)  # label smoothing keeps the logits small
            target[np.arange(batch), labels[pick]] += 0.95
            grad = (softmax(model.forward(shifted(images[pick], rng))) - target) / batch
            t += 1
            rate = 1.5e-3 * (1 + np.cos(np.pi * t / steps)) + 1e-6
            for name, g in model.backward(grad).items():
                p = model.params[name]
                first[name] += 0.1 * (g - first[name])
                second[name] += 0.001 * (g * g - second[name])
                p *= 1 - rate * decay * (p.ndim > 1)
                p -= rate * (first[name] / (1 - 0.9**t)) / (np.sqrt(second[name] / (1 - 0.999**t)) + 1e-8)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "data")
    parser.add_argument("--epochs", type=int, default=120)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    digits = load_digits()
    train_x, test_x, train_y, test_y = train_test_split(
        digits.data / 16, digits.target, test_size=360, random_state=SEED, stratify=digits.target
    )
    test = {"images": ("BF16", bf16_bits(test_x)), "labels": ("I32", test_y.astype("<i4"))}
    metadata = {"source": "scikit-learn load_digits, 360 held-out images"}
    for name, kind in (("mlp", Mlp), ("moe", Moe)):
        rng = np.random.default_rng(SEED)
        model = kind(rng)
        train(model, train_x, train_y, rng, args.epochs)
        model.params = {key: bf16_round(value).astype(np.float64) for key, value in model.params.items()}
        logits = model.forward(test_x)
        correct = int((logits.argmax(axis=1) == test_y).sum())
        print(f"{name}: {correct} of {len(test_y)} held-out digits right ({100 * correct / len(test_y):.2f} %)")
        if kind is Moe:
            print("    rows per expert:", model.saved[3].sum(axis=0))
        test[f"{name}.logits"] = ("F32", logits.astype("<f4"))
        metadata[f"{name}.correct"] = str(correct)
        write_safetensors(
            args.out / f"{name}.safetensors",
            {key: ("BF16", bf16_bits(value)) for key, value in model.params.items()},
            {"format": "pt", "held_out_correct": str(correct)},
        )
    write_safetensors(args.out / "test.safetensors", test, metadata)


if __name__ == "__main__":
    main()
