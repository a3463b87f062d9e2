"""codes.txt: the value of every code of every element and scale type. One line each: type, code, binary32 bits, class."""
import math

import numpy as np

import oracles
import reference

CLASS = {"nan": "nan", "inf": "inf", "zero": "zero", "finite": "finite"}


def kind(bits):
    value = np.uint32(bits).view(np.float32)
    return "nan" if np.isnan(value) else "inf" if np.isinf(value) else "zero" if value == 0 else "finite"


with open("codes.txt", "w") as out:
    out.write("# type code binary32 class\n")
    for e in reference.ELEMENTS:
        codes = np.arange(2 * e.sign, dtype=np.uint8)
        for code, bits in zip(codes, oracles.decode(e.name, codes)):
            exact = reference.decode(e, int(code))
            if not (isinstance(exact, float) and math.isnan(exact)):
                assert reference.to_bits(exact) == bits, (e.name, code)
            out.write(f"{e.name} {code:02x} {bits:08x} {kind(bits)}\n")
    for byte, bits in enumerate(oracles.decode_e8m0(np.arange(256))):
        out.write(f"e8m0 {byte:02x} {bits:08x} {kind(bits)}\n")
    # UE4M3 is E4M3 without its sign; bit 7 is ignored.
    positive = oracles.decode("e4m3", np.arange(128))
    for byte in range(256):
        bits = positive[byte & 0x7F]
        out.write(f"ue4m3 {byte:02x} {bits:08x} {kind(bits)}\n")
