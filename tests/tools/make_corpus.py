#!/usr/bin/env python3
"""Makes the hand-written part of corpus/: small files that a reader of safetensors must accept (good-*) or refuse
(bad-*). The files called found-* come from the fuzzer."""
import json
import pathlib
import struct

folder = pathlib.Path(__file__).parent / "corpus"
folder.mkdir(exist_ok=True)


def write(name, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    (folder / name).write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


u8 = tensor("U8", [4], 0, 4)
write("good-empty", {})
write("good-padded", b"{}      ")
write("good-metadata", {"__metadata__": {"format": "pt", "": ""}, "x": u8}, b"1234")
write("good-scalar-and-empty", {"s": tensor("F32", [], 0, 4), "e": tensor("BF16", [0, 9], 4, 4)}, b"1234")
write("good-sub-byte", {"a": tensor("F4", [3, 2], 0, 3), "b": tensor("F6_E2M3", [4], 3, 6)}, b"123456")
write("good-nvfp4", {"w_packed": tensor("U8", [1, 8], 0, 8), "w_scale": tensor("F8_E4M3", [1, 1], 8, 9),
                     "w_global_scale": tensor("F32", [1], 9, 13)}, b"1234567880000")
write("good-modelopt", {"w": tensor("U8", [1, 8], 0, 8), "w_scale": tensor("F8_E4M3", [1, 1], 8, 9),
                        "w_scale_2": tensor("F32", [], 9, 13)}, b"1234567880000")
write("good-mxfp4", {"w_packed": tensor("U8", [1, 16], 0, 16), "w_scale": tensor("U8", [1, 1], 16, 17)}, b"1" * 17)
write("good-mxfp8", {"w": tensor("F8_E5M2", [2, 40], 0, 80), "w_scale": tensor("U8", [2, 2], 80, 84)}, b"1" * 84)
write("good-gpt-oss", {"w_blocks": tensor("U8", [2, 1, 2, 16], 0, 64), "w_scales": tensor("U8", [2, 1, 2], 64, 68)},
      b"1" * 68)
write("bad-no-length", b"")
(folder / "bad-no-length").write_bytes(b"1234567")
write("bad-length-zero", b"")
write("bad-length-huge", {}, length=2**64 - 1)
write("bad-length-past-end", {}, length=3)
write("bad-truncated-data", {"x": u8}, b"123")
write("bad-trailing-data", {"x": u8}, b"12345")
write("bad-overlap", {"x": u8, "y": tensor("U8", [4], 2, 6)}, b"123456")
write("bad-hole", {"x": u8, "y": tensor("U8", [4], 5, 9)}, b"123456789")
write("bad-overflow", {"x": tensor("F32", [2**62], 0, 0)})
write("bad-dtype", {"x": tensor("F33", [4], 0, 4)}, b"1234")
write("bad-duplicate", b'{"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
                       b'"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}')
write("bad-utf8", b'{"\xc3\x28":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}')
write("bad-depth", b'{"x":' * 200)
write("bad-nul", b'{}\0\0')
write("bad-missing-global-scale", {"w_packed": tensor("U8", [1, 8], 0, 8), "w_scale": tensor("F8_E4M3", [1, 1], 8, 9)},
      b"1" * 9)
write("bad-scale-shape", {"w": tensor("F8_E4M3", [1, 64], 0, 64), "w_scale": tensor("U8", [1, 1], 64, 65)}, b"1" * 65)
write("bad-scale-rows", {"w": tensor("F8_E4M3", [2, 32], 0, 64), "w_scale": tensor("U8", [1, 2], 64, 66)}, b"1" * 66)
