"""A page with the results as a table and as a roofline: no script, nothing from the network."""

import html
import math

WIDTH, HEIGHT = 960, 560
LEFT, RIGHT, TOP, BOTTOM = 70, 200, 20, 50
COLOURS = ["#1b6ca8", "#c0392b", "#1e8449", "#8e44ad", "#b9770e", "#00a3b4", "#7f8c8d", "#d35400"]

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; color: #222; }
table { border-collapse: collapse; font-size: 13px; }
td, th { padding: 2px 10px; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
td:first-child, th:first-child { text-align: left; font-family: ui-monospace, monospace; }
svg { width: 100%; height: auto; }
svg text { font-size: 12px; fill: #444; }
"""


def unit(ceiling):
    """Of a ceiling, by its name."""
    return "GB/s" if ceiling.split("/")[0] in ("read", "copy") else "GFLOP/s"


def threads_of(name):
    return int(name.rsplit("threads:", 1)[1])


class Axes:
    """Logarithmic on both: operations a byte, and GFLOP/s."""

    def __init__(self, x_values, y_values):
        self.x0, self.x1 = math.floor(math.log10(min(x_values))), math.ceil(math.log10(max(x_values)))
        self.y0, self.y1 = math.floor(math.log10(min(y_values))), math.ceil(math.log10(max(y_values)))
        self.x1, self.y1 = max(self.x1, self.x0 + 1), max(self.y1, self.y0 + 1)

    def x(self, value):
        return LEFT + (math.log10(value) - self.x0) / (self.x1 - self.x0) * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        return HEIGHT - BOTTOM - (math.log10(value) - self.y0) / (self.y1 - self.y0) * (HEIGHT - TOP - BOTTOM)

    def grid(self):
        for power in range(self.x0, self.x1 + 1):
            x = self.x(10.0**power)
            yield f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#eee"/>'
            yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{10.0**power:g}</text>'
        for power in range(self.y0, self.y1 + 1):
            y = self.y(10.0**power)
            yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#eee"/>'
            yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
        yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">operations a byte</text>'
        middle = (TOP + HEIGHT - BOTTOM) / 2
        yield f'<text x="16" y="{middle}" text-anchor="middle" transform="rotate(-90 16 {middle})">GFLOP/s</text>'


def roof(axes, ceilings, threads):
    """The slope of memory, then a flat line for each instruction from where the slope meets it."""
    slope = ceilings[f"read/threads:{threads}"]
    flats = {n.split("/")[0]: r for n, r in ceilings.items() if threads_of(n) == threads and unit(n) == "GFLOP/s"}
    dashes = "" if threads == 1 else ' stroke-dasharray="5 3"'
    right = 10.0**axes.x1
    for name, rate in flats.items():
        ridge, y = rate / slope, axes.y(rate)
        if ridge < right:
            yield f'<line x1="{axes.x(ridge):.1f}" y1="{y:.1f}" x2="{axes.x(right):.1f}" y2="{y:.1f}" stroke="#444"{dashes}/>'
            label = f"{name}, {threads} thread{'s' if threads > 1 else ''}"
            yield f'<text x="{WIDTH - RIGHT + 6}" y="{y + 4:.1f}">{html.escape(label)}</text>'
    start = max(10.0**axes.x0, 10.0**axes.y0 / slope)
    end = min(right, max(flats.values()) / slope)
    yield (
        f'<line x1="{axes.x(start):.1f}" y1="{axes.y(start * slope):.1f}" x2="{axes.x(end):.1f}" '
        f'y2="{axes.y(end * slope):.1f}" stroke="#444"{dashes}/>'
    )


def plot(document):
    """Products only: a conversion has no operations to count."""
    products = [r for r in document["results"] if r["operations"] > 0]
    if not products:
        return "<p>No products were measured, so there is no roofline.</p>"
    points = [(r, r["operations"] / r["bytes"], r["operations"] / r["seconds"] * 1e-9) for r in products]
    instructions = [rate for name, rate in document["ceilings"].items() if unit(name) == "GFLOP/s"]
    axes = Axes([x for _, x, _ in points] + [1.0], [y for _, _, y in points] + instructions)
    pairs = list(dict.fromkeys(r["name"].split("/")[1] for r in products))
    colour = {pair: COLOURS[i % len(COLOURS)] for i, pair in enumerate(pairs)}
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="roofline">', *axes.grid()]
    for threads in sorted({threads_of(r["name"]) for r in products}):
        parts += roof(axes, document["ceilings"], threads)
    for result, x, y in points:
        pair, one = result["name"].split("/")[1], threads_of(result["name"]) == 1
        style = f'fill="{colour[pair]}"' if one else f'fill="white" stroke="{colour[pair]}" stroke-width="1.5"'
        title = f"{result['name']}: {y:.4g} GFLOP/s, {result['ceiling_share']:.0%} of {result['ceiling']}"
        parts.append(f'<circle cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}" r="4" {style}><title>{html.escape(title)}</title></circle>')
    for i, pair in enumerate(pairs):
        y = HEIGHT - BOTTOM - 16 * (len(pairs) - i)
        parts.append(f'<circle cx="{WIDTH - RIGHT + 12}" cy="{y - 4}" r="4" fill="{colour[pair]}"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 22}" y="{y}" style="font-size: 10px">{html.escape(pair)}</text>')
    parts.append("</svg>")
    return "\n".join(parts)


def page(document, table):
    machine = document["machine"]
    head, *body = [[html.escape(cell) for cell in row] for row in table]
    about = f"{machine['processor']}, {machine['cores']} cores; {machine['system']}; {machine['compiler']}; {machine['date']}."
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8"><title>Microscale benchmarks</title>',
        f"<style>{STYLE}</style></head><body>",
        "<h1>Microscale benchmarks</h1>",
        f"<p>{html.escape(about)} {html.escape('; '.join(machine['peers']))}.</p>",
        "<h2>Roofline</h2>",
        "<p>Filled: one thread, full lines. Hollow: more threads, dashed lines. Point at a dot for its name.</p>",
        plot(document),
        "<h2>Ceilings</h2><table>",
        *(f"<tr><td>{html.escape(n)}</td><td>{r:.1f} {unit(n)}</td></tr>" for n, r in document["ceilings"].items()),
        "</table>",
        "<h2>Results</h2>",
        "<p>Ratios are the other's time over ours: above 1, ours is faster. Medians.</p>",
        '<div style="overflow-x: auto"><table><tr>' + "".join(f"<th>{cell}</th>" for cell in head) + "</tr>",
        *("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in body),
        "</table></div></body></html>",
    ]
    return "\n".join(lines) + "\n"
