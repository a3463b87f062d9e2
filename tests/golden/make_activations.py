"""activations.txt: torch's activations in double on binary32 inputs.

`unary x silu gelu_tanh gelu_erf` and `gate g u silu(g)*u clamped`, x, g, u as binary32 bits and results as binary64 bits; the
clamped gate is gpt-oss's: min(g, 7) * sigmoid(1.702 min(g, 7)) * (clamp(u, -7, 7) + 1), its constants taken as binary32.
"""
import numpy as np
import torch
import torch.nn.functional as f

from patterns import splitmix64

grid = np.concatenate([np.linspace(-12, 12, 97), [0.0, -0.0, 1e-30, -1e-30, 2.0**-20, -(2.0**-20), 30, -30, 80, -80, 500, -500, 1e30]])
words = (splitmix64(21, 400) >> np.uint64(11)).astype(np.float64) * 2.0**-53
x = np.concatenate([grid, words[:200] * 16 - 8]).astype(np.float32)
g, u = (words[200:300] * 30 - 15).astype(np.float32), (words[300:400] * 30 - 15).astype(np.float32)


def double(values):
    return torch.from_numpy(np.asarray(values, dtype=np.float64))


with open("activations.txt", "w") as out:
    out.write("# unary x silu gelu_tanh gelu_erf  |  gate g u silu(g)*u clamped\n")
    results = [f.silu(double(x)), f.gelu(double(x), approximate="tanh"), f.gelu(double(x))]
    for row in zip(x, *(r.numpy() for r in results)):
        out.write("unary %08x %016x %016x %016x\n" % (row[0].view(np.uint32), *(np.float64(v).view(np.uint64) for v in row[1:])))
    gate, up = double(g).clamp(max=7), double(u).clamp(-7, 7)
    slope = float(np.float32(1.702))
    results = [f.silu(double(g)) * double(u), gate * torch.sigmoid(gate * slope) * (up + 1)]
    for row in zip(g, u, *(r.numpy() for r in results)):
        out.write("gate %08x %08x %016x %016x\n" % (row[0].view(np.uint32), row[1].view(np.uint32),
                                                    *(np.float64(v).view(np.uint64) for v in row[2:])))
