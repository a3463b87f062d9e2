"""Block-scaled arithmetic in exact rationals: the slow, obvious statement of docs/numerics.md.

Nothing here is shared with the C++ headers, and nothing rounds except where the contract says so. Finite values are
Fractions; NaN and the infinities are float('nan') and float('inf'); a negative zero is NEG_ZERO.
"""
import math
import struct
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

NAN = float("nan")
INF = float("inf")


class _NegZero(Fraction):
    """Equal to 0, but remembers its sign."""


NEG_ZERO = _NegZero(0)


@dataclass(frozen=True)
class Element:
    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    max: Fraction
    emax: int
    max_code: int
    nan_code: int  # what a NaN becomes

    @property
    def sign(self):
        return 1 << (self.exponent_bits + self.mantissa_bits)


E2M1 = Element("e2m1", 2, 1, 1, Fraction(6), 2, 0x07, 0x07)
E2M3 = Element("e2m3", 2, 3, 1, Fraction(15, 2), 2, 0x1F, 0x1F)
E3M2 = Element("e3m2", 3, 2, 3, Fraction(28), 4, 0x1F, 0x1F)
E4M3 = Element("e4m3", 4, 3, 7, Fraction(448), 8, 0x7E, 0x7F)
E5M2 = Element("e5m2", 5, 2, 15, Fraction(57344), 15, 0x7B, 0x7E)
ELEMENTS = [E2M1, E4M3, E5M2, E2M3, E3M2]
RULES = ["floor", "rceil", "ceil", "even"]
FLT_MAX = (2 - Fraction(1, 2**23)) * Fraction(2) ** 127


def floor_log2(x: Fraction) -> int:
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def ceil_log2(x: Fraction) -> int:
    e = floor_log2(x)
    return e if Fraction(2) ** e == x else e + 1


def from_bits(bits: int):
    """binary32 bit pattern to value."""
    f = struct.unpack("<f", struct.pack("<I", bits))[0]
    if math.isnan(f) or math.isinf(f):
        return f
    return NEG_ZERO if bits == 0x80000000 else Fraction(f)


def to_bits(x) -> int:
    """Value to the nearest binary32 bit pattern, ties to even (struct rounds a double, so x must fit one exactly)."""
    if isinstance(x, _NegZero):
        return 0x80000000
    f = float(x)
    assert math.isnan(f) or math.isinf(f) or Fraction(f) == Fraction(x)
    return int(np.float32(f).view(np.uint32))


def is_negative(x) -> bool:
    return isinstance(x, _NegZero) or x < 0


def is_finite(x) -> bool:
    return isinstance(x, Fraction)


def round_to(x: Fraction, mantissa_bits: int, emin: int) -> Fraction:
    """x >= 0 rounded to nearest, ties to even, with unbounded exponent above and gradual underflow at emin."""
    if x == 0:
        return Fraction(0)
    ulp = Fraction(2) ** (max(floor_log2(x), emin) - mantissa_bits)
    quotient = x / ulp
    whole = quotient.numerator // quotient.denominator
    rest = quotient - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1):
        whole += 1
    return whole * ulp


def encode(e: Element, x) -> int:
    """Nearest code, ties to even, saturating, sign of zero kept."""
    if not is_finite(x) and math.isnan(x):
        return e.nan_code
    sign = e.sign if is_negative(x) else 0
    if not is_finite(x):
        return sign | e.max_code
    emin = 1 - e.bias
    y = round_to(abs(Fraction(x)), e.mantissa_bits, emin)
    if y >= e.max:
        return sign | e.max_code
    if y < Fraction(2) ** emin:
        return sign | int(y / Fraction(2) ** (emin - e.mantissa_bits))
    exponent = floor_log2(y)
    mantissa = int((y / Fraction(2) ** exponent - 1) * 2**e.mantissa_bits)
    return sign | ((exponent + e.bias) << e.mantissa_bits) | mantissa


def decode(e: Element, code: int):
    magnitude = code & (e.sign - 1)
    negative = (code & e.sign) != 0
    exponent, mantissa = magnitude >> e.mantissa_bits, magnitude & ((1 << e.mantissa_bits) - 1)
    if e is E4M3 and magnitude == 0x7F:
        return NAN
    if e is E5M2 and exponent == 31:
        return NAN if mantissa else (-INF if negative else INF)
    if magnitude == 0:
        return NEG_ZERO if negative else Fraction(0)
    fraction = Fraction(mantissa, 1 << e.mantissa_bits)
    if exponent == 0:
        value = fraction * Fraction(2) ** (1 - e.bias)
    else:
        value = (1 + fraction) * Fraction(2) ** (exponent - e.bias)
    return -value if negative else value


def scale_byte(e: Element, amax, rule: str) -> int:
    """E8M0 byte of a block from its amax (a binary32 value)."""
    if not is_finite(amax):
        return 255
    if amax == 0:
        return 0
    if rule == "floor":
        exponent = floor_log2(amax) - e.emax
    elif rule == "ceil":
        exponent = ceil_log2(amax) - e.emax
    elif rule == "rceil":
        exponent = ceil_log2(amax / e.max)
    else:  # even: half an element ulp is added before the exponent is taken
        binade = floor_log2(amax)
        carries = amax >= Fraction(2) ** binade * (2 - Fraction(1, 2 ** (e.mantissa_bits + 1)))
        exponent = binade + (1 if carries else 0) - e.emax
    return max(0, min(254, exponent + 127))


def finite_amax(values):
    return max([abs(Fraction(v)) for v in values if is_finite(v)], default=Fraction(0))


def saturated(values):
    """NonFinite::saturate: an infinity counts as FLT_MAX, a NaN stays and is left out of the amax."""
    return [v if is_finite(v) or math.isnan(v) else (FLT_MAX if v > 0 else -FLT_MAX) for v in values]


def mx_block(e: Element, values, rule: str, nonfinite="strict"):
    """(scale byte, codes) of one MX block."""
    if nonfinite == "saturate":
        values = saturated(values)
    elif not all(is_finite(v) for v in values):
        return 255, [0] * len(values)
    byte = scale_byte(e, finite_amax(values), rule)
    scale = Fraction(2) ** (byte - 127)
    return byte, [encode(e, v if isinstance(v, _NegZero) or not is_finite(v) else v / scale) for v in values]


# NVFP4: every operation is one binary32 operation, so these are numpy float32 scalars on purpose.
_FLT_MAX = np.float32(np.finfo(np.float32).max)
_SIXTH = np.float32(1) / np.float32(6)


def tensor_scale_dynamic(t):
    t = np.float32(t)
    with np.errstate(all="ignore"):
        enc = np.float32(1) if t == 0 else np.minimum(np.float32(2688) / t, _FLT_MAX)
        return enc, np.float32(1) / enc


def tensor_scale_decode(s):
    s = np.float32(s)
    with np.errstate(all="ignore"):
        return np.minimum(np.float32(1) / s, _FLT_MAX), s


def tensor_scale_encode(g):
    g = np.float32(g)
    with np.errstate(all="ignore"):
        return g, np.float32(1) / g


def f32_value(f) -> object:
    return from_bits(int(np.float32(f).view(np.uint32)))


def nvfp4_block(values, enc, dec, nonfinite="strict"):
    """(UE4M3 byte, codes) of one NVFP4 block; values as numpy float32."""
    x = np.asarray(values, dtype=np.float32)
    if nonfinite == "saturate":
        x = np.where(np.isinf(x), np.copysign(_FLT_MAX, x), x)
    elif not np.all(np.isfinite(x)):
        return 0x7F, [0] * len(x)
    finite = x[np.isfinite(x)]
    amax = np.abs(finite).max() if finite.size else np.float32(0)
    with np.errstate(all="ignore"):
        byte = encode(E4M3, f32_value(amax * (enc * _SIXTH)))
        if byte == 0:
            multiplier = np.float32(0)
        else:
            multiplier = np.minimum(np.float32(1) / (np.float32(float(decode(E4M3, byte))) * dec), _FLT_MAX)
        scaled = x * multiplier
    assert scaled.dtype == np.float32
    return byte, [encode(E2M1, f32_value(s)) for s in scaled]
