"""mx_blocks.txt and nvfp4_blocks.txt: whole blocks, scale byte and codes. dequantize.txt: hashes of every (scale, code).

mx_blocks.txt has input lines (`input id binary32...`) followed by result lines for them
(`strict|saturate id element rule byte codes...`, the first word being the treatment of NaN and Inf). Exact rationals.

nvfp4_blocks.txt has lines `pair kind argument enc dec`, the tensor scale, and under each
`strict|saturate byte 16 codes, 16 binary32 inputs`. numpy float32 in the contract's order of operations.
"""
import numpy as np

import oracles
import patterns
import reference
from patterns import splitmix64

F32 = np.float32


class Random:
    """A small generator that gives the same numbers with any numpy version."""

    def __init__(self, seed):
        self.words = iter(splitmix64(seed, 1 << 20))

    def below(self, n):
        return int(next(self.words) >> np.uint64(11)) % n

    def uniform(self):
        return float(int(next(self.words) >> np.uint64(11))) * 2.0**-53

    def value(self, scale_exponent, spread):
        """A value of random sign, near-logarithmic over `spread` binades below 2^scale_exponent; a few land on short binary
        fractions, where ties are."""
        x = (1 + self.uniform()) * 2.0 ** (scale_exponent - 1 - self.below(max(spread, 1)))
        if self.below(3) == 0:
            m, e = np.frexp(x)
            x = np.ldexp(np.round(m * 32) / 32, e)
        return F32(-x if self.below(2) else x)


def special(kind):
    return {"nan": F32(np.nan), "-nan": np.uint32(0xFFC00001).view(F32), "inf": F32(np.inf), "-inf": F32(-np.inf),
            "-0": F32(-0.0), "0": F32(0), "max": F32(np.finfo(F32).max), "-max": -F32(np.finfo(F32).max),
            "tiny": F32(2.0**-149), "-tiny": F32(-(2.0**-149)), "min": F32(2.0**-126)}[kind]


def inputs(length, seed):
    r = Random(seed)
    blocks = []
    for scale in (0, 1, 2, 3, 4, 7, 8, 9, 15, -1, -5, -14, -30):
        for spread in (1, 4, 12):
            blocks.append([r.value(scale, spread) for _ in range(length)])
    for scale in (-148, -140, -130, -127, -126, -120, 100, 120, 127):
        blocks.append([r.value(scale, 6) for _ in range(length)])
    for n in (1, 2, 3, 7, length // 2, length - 1):  # tails
        blocks.append([r.value(2, 6) for _ in range(n)])
    for zeros in (["0"], ["-0"], ["0", "-0"]):
        blocks.append([special(zeros[i % len(zeros)]) for i in range(length)])
    blocks.append([special("tiny"), special("-tiny"), special("-0")] + [special("0")] * (length - 3))
    blocks.append([special("max"), special("-max"), special("min"), special("-0")] + [r.value(127, 3) for _ in range(length - 4)])
    for kind in ("nan", "-nan", "inf", "-inf"):
        for at in (0, length // 2, length - 1):
            block = [r.value(3, 5) for _ in range(length)]
            block[at] = special(kind)
            blocks.append(block)
    mixed = [r.value(0, 4) for _ in range(length)]
    mixed[1], mixed[2], mixed[3], mixed[4] = special("nan"), special("inf"), special("-0"), special("-inf")
    blocks.append(mixed)
    blocks.append([special("nan")] * length)
    blocks.append([special("0")] * (length - 1) + [special("nan")])
    return [np.array(b, dtype=F32) for b in blocks]


def hex32(x):
    return " ".join(f"{int(b):08x}" for b in np.asarray(x, dtype=F32).view(np.uint32))


def mx():
    with open("mx_blocks.txt", "w") as out:
        out.write("# input id binary32...  |  strict|saturate id element rule byte codes...\n")
        for index, block in enumerate(inputs(32, 11)):
            values = [reference.from_bits(int(b)) for b in block.view(np.uint32)]
            out.write(f"input {index} {hex32(block)}\n")
            modes = ["strict"] if np.all(np.isfinite(block)) else ["strict", "saturate"]
            for mode in modes:
                for e in reference.ELEMENTS:
                    for rule in reference.RULES:
                        byte, codes = reference.mx_block(e, values, rule, mode)
                        out.write(f"{mode} {index} {e.name} {rule} {byte} {' '.join(f'{c:x}' for c in codes)}\n")


def nvfp4():
    blocks = inputs(16, 12)
    finite = [np.abs(b[np.isfinite(b)]).max(initial=F32(0)) for b in blocks]
    r = Random(13)
    with open("nvfp4_blocks.txt", "w") as out:
        out.write("# pair kind argument enc dec  |  strict|saturate byte codes... : binary32...\n")

        def write(kind, argument, pair, chosen):
            enc, dec = pair
            out.write(f"pair {kind} {hex32([argument])} {hex32([enc])} {hex32([dec])}\n")
            for block in chosen:
                modes = ["strict"] if np.all(np.isfinite(block)) else ["strict", "saturate"]
                for mode in modes:
                    byte, codes = reference.nvfp4_block(block, enc, dec, mode)
                    out.write(f"{mode} {byte:x} {' '.join(f'{c:x}' for c in codes)} : {hex32(block)}\n")

        # The pairs alone, on both sides of where each reciprocal overflows or becomes subnormal.
        def near(x):
            return [F32(x), np.nextafter(F32(x), F32(0)), np.nextafter(F32(x), F32(np.inf))]

        ends = near(2.0**-149) + near(2.0**-128) + near(2.0**-126) + near(2.0**126) + near(1.0) + [F32(np.finfo(F32).max)]
        ends = [x for x in ends if x > 0]
        for t in ends + near(2688 * 2.0**-128) + near(2688.0) + near(2688 * 2.0**-127) + [F32(0)]:
            write("dynamic", t, reference.tensor_scale_dynamic(t), [])
        for s in ends:
            write("decode", s, reference.tensor_scale_decode(s), [])
            write("encode", s, reference.tensor_scale_encode(s), [])
        # Every block under the scale of a tensor that it alone makes up, and of one whose amax is 40 times larger.
        for block, t in zip(blocks, finite):
            write("dynamic", t, reference.tensor_scale_dynamic(t), [block])
        for block, t in zip(blocks, finite):
            with np.errstate(over="ignore"):
                t = np.minimum(t * F32(40), F32(np.finfo(F32).max))
            write("dynamic", t, reference.tensor_scale_dynamic(t), [block])
        for s in (F32(1), F32(1) / F32(448), F32(0.01), F32(1.7), F32(2.0**-127), F32(2.0**-149), F32(2.0**100)):
            write("decode", s, reference.tensor_scale_decode(s), [blocks[r.below(len(blocks))] for _ in range(24)])
        for g in (F32(1), F32(448), F32(672), F32(0.013), F32(2.0**-100), F32(2.0**120)):
            write("encode", g, reference.tensor_scale_encode(g), [blocks[r.below(len(blocks))] for _ in range(24)])
        # Blocks whose bytes tell the contract's order of operations from others that are equal in exact arithmetic.
        def others(amax, x, enc, dec):
            """(byte, code of x) under the contract's order, then under the orders that are found elsewhere."""
            six, sixth, one = F32(6), F32(1) / F32(6), F32(1)
            code = lambda y: reference.encode(reference.E2M1, reference.f32_value(y))
            byte_of = lambda y: reference.encode(reference.E4M3, reference.f32_value(y))
            byte = byte_of(amax * (enc * sixth))
            scale = F32(float(reference.decode(reference.E4M3, byte)))
            if scale == 0:
                return [(0, 0)]
            return [(byte, code(x * (one / (scale * dec)))),
                    (byte_of((amax * sixth) * enc), code(x * (one / (scale * dec)))),
                    (byte_of((amax * enc) * sixth), code(x * (one / (scale * dec)))),
                    (byte_of((amax * enc) / six), code(x * (one / (scale * dec)))),
                    (byte_of(amax / (six * dec)), code(x * (one / (scale * dec)))),
                    (byte, code(x * (enc / scale))),
                    (byte, code(x * (one / dec / scale))),
                    (byte, code((x / dec) / scale)),
                    (byte, code(x / (scale * dec)))]

        missing = {order: 3 for order in range(1, 9)}
        while any(missing.values()):
            t = abs(r.value(3, 6))
            enc, dec = pair = reference.tensor_scale_dynamic(t)
            # An amax near a tie between block bytes, and a value near a tie between codes.
            byte = 1 + r.below(125)
            low, high = (F32(float(reference.decode(reference.E4M3, b))) for b in (byte, byte + 1))
            amax = (low + high) / F32(2) * F32(6) * dec
            for _ in range(r.below(3)):
                amax = np.nextafter(amax, F32(0))
            if amax > t:
                continue
            scale = F32(float(reference.decode(reference.E4M3, reference.nvfp4_block([amax], enc, dec)[0])))
            x = F32((0.25, 0.75, 1.25, 1.75, 2.5, 3.5)[r.below(6)]) * scale * dec
            results = others(amax, x, enc, dec)
            telling = [order for order in range(1, len(results)) if results[order] != results[0] and missing[order]]
            if not telling:
                continue
            for order in telling:
                missing[order] -= 1
            write("dynamic", t, pair, [np.array([x, -amax] + [r.value(0, 8) * amax for _ in range(14)], dtype=F32).clip(-amax, amax)])
        # Blocks of a tensor with an ordinary amax: ties of the block scale and of the elements.
        for t in (F32(2688), F32(6), F32(1), F32(0.7), F32(11.9)):
            chosen = [np.array([r.value(int(np.ceil(np.log2(t))), 10) for _ in range(16)], dtype=F32) for _ in range(24)]
            chosen = [np.clip(b, -t, t) for b in chosen]
            write("dynamic", t, reference.tensor_scale_dynamic(t), chosen)


def dequantize():
    with open("dequantize.txt", "w") as out:
        out.write("# format dec output fnv1a of the results, codes fastest, scale bytes 00..FF (every NaN as 7FC0...)\n")

        def write(name, dec, values):
            nan = np.isnan(values)
            bits = np.where(nan, np.uint32(0x7FC00000), values.view(np.uint32))
            out.write(f"{name} {dec} float {patterns.fnv1a_of(bits.astype('<u4')):016x}\n")
            out.write(f"{name} {dec} bf16 {patterns.fnv1a_of(oracles.to_bf16(values).astype('<u2')):016x}\n")
            out.write(f"{name} {dec} half {patterns.fnv1a_of(oracles.to_half(values).astype('<u2')):016x}\n")

        with np.errstate(all="ignore"):
            scale = oracles.decode_e8m0(np.arange(256)).astype(np.uint32).view(F32).astype(np.float64)
            for e in reference.ELEMENTS:
                value = oracles.decode(e.name, np.arange(2 * e.sign)).astype(np.uint32).view(F32).astype(np.float64)
                write(e.name, "3f800000", (scale[:, None] * value[None, :]).astype(F32).reshape(-1))
            scale = oracles.decode("e4m3", np.arange(256) & 0x7F).astype(np.uint32).view(F32)
            value = oracles.decode("e2m1", np.arange(16)).astype(np.uint32).view(F32)
            for dec in (F32(1), F32(1) / F32(448), F32(0.01), F32(2.0**-149), F32(3e38), F32(2.0**-127), F32(7e2)):
                product = scale[:, None] * value[None, :]  # at most 6 significant bits: exact
                write("nvfp4", hex32([dec]), (product * dec).astype(F32).reshape(-1))


def check_against_torchao():
    """torchao's quantizer on the whole finite blocks. It takes byte 0 as 2^-126, so blocks of that byte are left out."""
    import torch
    from torchao.prototype.mx_formats import config, mx_tensor

    kinds = {"e2m1": torch.float4_e2m1fn_x2, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2,
             "e2m3": "fp6_e2m3", "e3m2": "fp6_e3m2"}
    modes = {"floor": config.ScaleCalculationMode.FLOOR, "rceil": config.ScaleCalculationMode.RCEIL,
             "ceil": config.ScaleCalculationMode.CEIL, "even": config.ScaleCalculationMode.EVEN}
    blocks = [b for b in inputs(32, 11) if len(b) == 32 and np.all(np.isfinite(b))]
    compared = 0
    for e in reference.ELEMENTS:
        for rule, mode in modes.items():
            scales, data = mx_tensor.to_mx(torch.from_numpy(np.stack(blocks)), kinds[e.name], 32, mode)
            scales = scales.view(torch.uint8).numpy().reshape(-1)
            data = data.view(torch.uint8).numpy().reshape(len(blocks), -1)
            if e is reference.E2M1:
                data = np.stack([data & 15, data >> 4], axis=-1).reshape(len(blocks), 32)
            for block, scale, codes in zip(blocks, scales, data):
                byte, mine = reference.mx_block(e, [reference.from_bits(int(b)) for b in block.view(np.uint32)], rule)
                if byte == 0:
                    continue
                assert byte == scale and mine == codes.tolist(), (e.name, rule, byte, scale, hex32(block))
                compared += 1
    print(f"{compared} MX blocks compared with torchao")


mx()
nvfp4()
dequantize()
check_against_torchao()
