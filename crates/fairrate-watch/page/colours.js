// Maps from values to colours. Lightness rises or falls all the way, so that they hold in grey and for colour-blind readers.

/** The number of colours of a map. */
export const LEVELS = 64;

const MAPS = {
  light: {
    sequence: ["#e9e6dc", "#f5d08a", "#f0954a", "#cf4a3d", "#8b1d5b", "#35104a"],
    difference: ["#0b4f94", "#5b9bd0", "#e4e4e2", "#d9904a", "#8f4306"],
  },
  dark: {
    sequence: ["#262a33", "#4b2a6b", "#97306f", "#dd5b4b", "#f6a84f", "#fbf3b4"],
    difference: ["#7fc4ff", "#3a77ad", "#2b2e36", "#b06f2c", "#ffc06b"],
  },
};

function channels(colour) {
  return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
}

/** Returns the colours between `anchors`, as CSS texts and as pixels. */
function ramp(anchors) {
  const points = anchors.map(channels);
  const css = [];
  const pixels = new Uint32Array(LEVELS);
  for (let i = 0; i < LEVELS; i += 1) {
    const place = (i / (LEVELS - 1)) * (points.length - 1);
    const below = Math.min(Math.floor(place), points.length - 2);
    const [r, g, b] = points[below].map((low, c) => Math.round(low + (place - below) * (points[below + 1][c] - low)));
    css.push(`rgb(${r} ${g} ${b})`);
    // Canvases have red first in memory.
    pixels[i] = new Uint32Array(new Uint8Array([r, g, b, 255]).buffer)[0];
  }
  return { css, pixels };
}

/** Returns the maps of the present theme. */
export function maps() {
  const theme = matchMedia("(prefers-color-scheme: dark)").matches ? MAPS.dark : MAPS.light;
  return { sequence: ramp(theme.sequence), difference: ramp(theme.difference) };
}

/** Returns the number of the colour of `value` between `low` and `high`. */
export function level(value, low, high) {
  const share = (value - low) / (high - low);
  return share <= 0 ? 0 : share >= 1 ? LEVELS - 1 : Math.floor(share * LEVELS);
}
