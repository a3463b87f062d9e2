#!/usr/bin/env python3
"""Makes golden/: small checkpoints written by other tools or by hand from the styles' documents, with the values that
those tools read from them.

    pip install torch compressed-tensors transformers safetensors ml_dtypes numpy
    make_golden.py

compressed-tensors-FORMAT.safetensors is what compressed-tensors' own compressors make of a random weight, and
.expected its values: for MX formats as their decompressors give them, in bfloat16, where they are exact; for NVFP4,
which they round on the way, computed here in binary32 as (code * block scale) * (1 / global scale).
modelopt-FORMAT.* hold the same codes and scales under ModelOpt's names, for NVFP4 with the decode scale.
"""
import pathlib

import ml_dtypes
import numpy as np
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationScheme, preset_name_to_scheme
from compressed_tensors.quantization.utils import calculate_qparams
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).parent / "golden"
FORMATS = {
    "nvfp4": ("NVFP4A16", "nvfp4-pack-quantized"),
    "mxfp4": ("MXFP4A16", "mxfp4-pack-quantized"),
    "mxfp8-e4m3": ("MXFP8A16", "mxfp8-quantized"),
    "mxfp6-e2m3": ("MXFP6A16", "mxfp6-pack-quantized"),
}


def weight():
    generator = torch.Generator().manual_seed(7)
    values = torch.randn(6, 96, generator=generator)
    return values * torch.exp2(torch.randint(-6, 7, (6, 3), generator=generator)).repeat_interleave(32, 1)


def compress(preset, format):
    scheme = preset_name_to_scheme(preset, ["Linear"])
    args = scheme.weights
    w = weight()
    state = {"weight": w}
    groups = w.reshape(w.shape[0], -1, args.group_size)
    global_scale = None
    if preset.startswith("NVFP4"):
        global_scale = (2688.0 / w.abs().max()).reshape(1)
        state["weight_global_scale"] = global_scale
    scale, _ = calculate_qparams(groups.amin(-1), groups.amax(-1), args, global_scale=global_scale)
    if scale.dtype == torch.uint8:
        scale = torch.exp2(scale.float() - 127)
    state["weight_scale"] = scale
    compressor = BaseCompressor.get_value_from_registry(format)
    stored = compressor.compress(state, scheme)
    values = compressor.decompress(dict(stored), scheme)["weight"]
    return {key: value for key, value in stored.items() if value is not None}, values


def nvfp4_values(stored):
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
    packed = stored["weight_packed"].numpy()
    codes = np.stack([packed & 15, packed >> 4], -1).reshape(packed.shape[0], -1)
    scale = stored["weight_scale"].view(torch.uint8).numpy().view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    decode = np.float32(1) / stored["weight_global_scale"].numpy().astype(np.float32)[0]
    return torch.from_numpy((table[codes] * np.repeat(scale, 16, 1)) * decode), torch.tensor(decode)


def save(name, tensors, metadata=None):
    save_file({key: value.contiguous() for key, value in tensors.items()}, FOLDER / (name + ".safetensors"), metadata)


FOLDER.mkdir(exist_ok=True)
for name, (preset, format) in FORMATS.items():
    stored, values = compress(preset, format)
    decode = None
    if name == "nvfp4":
        values, decode = nvfp4_values(stored)
    config = '{"quant_method":"compressed-tensors","format":"%s"}' % format
    save("compressed-tensors-" + name, {"layer." + key: value for key, value in stored.items()},
         {"format": "pt", "quantization_config": config})
    save("expected-" + name, {"layer.weight": values.float()}, {"format": "pt"})
    if name == "nvfp4":
        save("modelopt-" + name, {"layer.weight": stored["weight_packed"], "layer.weight_scale": stored["weight_scale"],
                                  "layer.weight_scale_2": decode}, {"format": "pt"})
    if name == "mxfp8-e4m3":
        save("modelopt-" + name, {"layer." + key: value for key, value in stored.items()}, {"format": "pt"})
