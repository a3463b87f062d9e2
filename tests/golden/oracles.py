"""Element conversions by other people's libraries, with Microscale's saturating semantics put around them.

Every function takes binary32 values (numpy float32) and returns codes. `encode` asks every library that has the format and
fails unless all of them agree on every input, so a golden file never rests on one opinion.
"""
import gfloat
import gfloat.formats as gf
import ml_dtypes
import numpy as np
import torch

import reference

ML = {
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
}
GFLOAT = {
    "e2m1": gf.format_info_ocp_e2m1,
    "e2m3": gf.format_info_ocp_e2m3,
    "e3m2": gf.format_info_ocp_e3m2,
    "e4m3": gf.format_info_ocp_e4m3,
    "e5m2": gf.format_info_ocp_e5m2,
}
TORCH = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
ELEMENT = {e.name: e for e in reference.ELEMENTS}


def _clipped(name, x):
    """x with NaN replaced by 0 (set aside) and everything beyond the largest value brought to it, so that a conversion that
    overflows to NaN or Inf never has the occasion. Rounding of what is inside is untouched."""
    top = np.float32(float(ELEMENT[name].max))
    nan = np.isnan(x)
    inside = np.where(nan, np.float32(0), x)
    return nan, np.where(np.abs(inside) > top, np.copysign(top, inside), inside).astype(np.float32)


def by_ml_dtypes(name, x):
    nan, clipped = _clipped(name, x)
    codes = clipped.astype(ML[name]).view(np.uint8)
    return np.where(nan, ELEMENT[name].nan_code, codes).astype(np.uint8)


def by_gfloat(name, x):
    info = GFLOAT[name]
    nan = np.isnan(x)
    wide = np.where(nan, 0.0, x.astype(np.float64))
    rounded = gfloat.round_ndarray(info, wide, gfloat.RoundMode.TiesToEven, sat=True)
    codes = gfloat.encode_ndarray(info, rounded)
    return np.where(nan, ELEMENT[name].nan_code, codes).astype(np.uint8)


def by_torch(name, x):
    nan, clipped = _clipped(name, x)
    codes = torch.from_numpy(clipped).to(TORCH[name]).view(torch.uint8).numpy()
    return np.where(nan, ELEMENT[name].nan_code, codes).astype(np.uint8)


def _agreed(what, results):
    first = results[0]
    for other in results[1:]:
        if not np.array_equal(first, other):
            at = np.flatnonzero(first != other)[0]
            raise AssertionError(f"{what}: the oracles disagree, first at index {at}: {[hex(int(r[at])) for r in results]}")
    return first


def encode(name, x):
    x = np.ascontiguousarray(x, dtype=np.float32).reshape(-1)
    results = [by_ml_dtypes(name, x), by_gfloat(name, x)]
    if name in TORCH:
        results.append(by_torch(name, x))
    return _agreed(name, results)


def to_bf16(x):
    """binary32 to bfloat16 bits; every NaN becomes 7FC0."""
    x = np.ascontiguousarray(x, dtype=np.float32).reshape(-1)
    results = [x.astype(ml_dtypes.bfloat16).view(np.uint16),
               torch.from_numpy(x).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)]
    return _agreed("bf16", [np.where(np.isnan(x), np.uint16(0x7FC0), r) for r in results])


def to_half(x):
    """binary32 to binary16 bits; every NaN becomes 7E00."""
    x = np.ascontiguousarray(x, dtype=np.float32).reshape(-1)
    with np.errstate(over="ignore"):
        results = [x.astype(np.float16).view(np.uint16),
                   torch.from_numpy(x).to(torch.float16).view(torch.int16).numpy().view(np.uint16)]
    return _agreed("half", [np.where(np.isnan(x), np.uint16(0x7E00), r) for r in results])


def from_bf16(bits):
    """bfloat16 bits to binary32 bits, by ml_dtypes and torch."""
    bits = np.ascontiguousarray(bits, dtype=np.uint16)
    return _agreed("from bf16", [bits.view(ml_dtypes.bfloat16).astype(np.float32).view(np.uint32),
                                 torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16).float().numpy().view(np.uint32)])


def from_half(bits):
    """binary16 bits to binary32 bits, by numpy and torch; a NaN gives 7FC00000 in both."""
    bits = np.ascontiguousarray(bits, dtype=np.uint16)
    results = [bits.view(np.float16).astype(np.float32),
               torch.from_numpy(bits.view(np.int16)).view(torch.float16).float().numpy()]
    return _agreed("from half", [np.where(np.isnan(r), np.uint32(0x7FC00000), r.view(np.uint32)) for r in results])


def decode(name, codes):
    """Codes to binary32 bits by ml_dtypes, gfloat and torch; every NaN becomes 7FC00000."""
    codes = np.ascontiguousarray(codes, dtype=np.uint8)
    values = [codes.view(ML[name]).astype(np.float32),
              np.array([gfloat.decode_float(GFLOAT[name], int(c)).fval for c in codes], dtype=np.float32)]
    if name in TORCH:
        values.append(torch.from_numpy(codes).view(TORCH[name]).float().numpy())
    return _agreed(name, [np.where(np.isnan(v), np.uint32(0x7FC00000), v.view(np.uint32)) for v in values])


def decode_e8m0(bytes_):
    bytes_ = np.ascontiguousarray(bytes_, dtype=np.uint8)
    values = [bytes_.view(ml_dtypes.float8_e8m0fnu).astype(np.float32),
              np.array([gfloat.decode_float(gf.format_info_ocp_e8m0, int(b)).fval for b in bytes_], dtype=np.float32),
              torch.from_numpy(bytes_).view(torch.float8_e8m0fnu).float().numpy()]
    return _agreed("e8m0", [np.where(np.isnan(v), np.uint32(0x7FC00000), v.view(np.uint32)) for v in values])
