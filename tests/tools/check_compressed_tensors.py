#!/usr/bin/env python3
"""Checks by hand that what `microscale quantize` writes loads in compressed-tensors and means the same there.

    pip install torch compressed-tensors transformers safetensors
    check_compressed_tensors.py build/release/tools/microscale MODEL_FOLDER

For each format that compressed-tensors has, the model is quantized by the program and then read in three ways: by
`microscale dequantize`, by compressed-tensors' own decompressor for each module under the scheme that it reads from
config.json, and (unless --no-model) by transformers' AutoModel with compressed-tensors' own loading. The values must be
equal, bit for bit, for MX formats. compressed-tensors dequantizes NVFP4 in bfloat16, rounding the product of the two
scales on the way, so there each value may be off by two roundings to bfloat16.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationConfig
from safetensors import safe_open

FORMATS = ["nvfp4", "mxfp4", "mxfp8-e4m3", "mxfp6-e2m3"]


def load(folder):
    tensors = {}
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():
                tensors[name] = file.get_tensor(name)
    return tensors


def decompress(stored, config):
    """Weights by compressed-tensors' decompressor, module by module."""
    compressor = BaseCompressor.get_value_from_registry(config.format)
    scheme = config.config_groups["group_0"]
    weights = {}
    for name in stored:
        if not name.endswith("weight_scale"):
            continue
        module = name[: -len("weight_scale")]
        state = {key[len(module):]: value for key, value in stored.items() if key.startswith(module + "weight")}
        weights[module + "weight"] = compressor.decompress(state, scheme)["weight"]
    return weights


def load_model(folder):
    """Weights by transformers: the whole model, decompressed."""
    from compressed_tensors.compressors import decompress_module
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder, dtype=torch.bfloat16)
    for _, module in model.named_modules():
        if getattr(module, "quantization_scheme", None) is not None and hasattr(module, "weight_scale"):
            if "weight" not in dict(module.named_parameters(recurse=False)) or module.weight.dtype != torch.bfloat16:
                decompress_module(module)
    return {name: value for name, value in model.state_dict().items() if name.endswith("weight")}


def compare(name, ours, theirs, exact):
    assert ours.shape == theirs.shape, f"{name}: {ours.shape} and {theirs.shape}"
    a, b = ours.double(), theirs.double()
    if exact:
        assert torch.equal(a, b), f"{name}: largest difference {(a - b).abs().max()}"
    else:
        worst = ((a - b).abs() / a.abs().clamp_min(1e-30)).max().item()
        assert worst <= 2 * 2.0**-8, f"{name}: relative difference {worst}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("microscale")
    parser.add_argument("model")
    parser.add_argument("--no-model", action="store_true", help="do not load the whole model with transformers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for format in FORMATS:
            folder = pathlib.Path(temporary) / format
            plain = pathlib.Path(temporary) / (format + "-plain")
            run = lambda *args: subprocess.run([arguments.microscale, *map(str, args)], check=True,
                                               stdout=subprocess.DEVNULL)
            run("quantize", arguments.model, folder, "--format", format)
            run("dequantize", folder, plain, "--dtype", "f32" if format == "nvfp4" else "bf16")
            config = QuantizationConfig.model_validate(
                json.loads((folder / "config.json").read_text())["quantization_config"])
            ours = load(plain)
            exact = format != "nvfp4"
            theirs = decompress(load(folder), config)
            assert theirs
            for name, weight in theirs.items():
                compare(name, ours[name], weight, exact)
            print(f"{format}: {len(theirs)} weights equal to compressed-tensors'"
                  f"{'' if exact else ' up to its rounding to bfloat16'}")
            if not arguments.no_model:
                model = load_model(folder)
                checked = [name for name in theirs if name in model]
                assert len(checked) == len(theirs), sorted(set(theirs) - set(model))[:3]
                for name in checked:
                    compare(name, ours[name], model[name], exact)
                print(f"{format}: {len(checked)} weights equal in the model that transformers loads")
    return 0


if __name__ == "__main__":
    sys.exit(main())
