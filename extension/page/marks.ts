/** One colour and one shape for each verdict: told apart without seeing colour. */

import { color } from "./theme";

export const VERDICTS = [
  "compute-bound",
  "memory-bound",
  "latency-bound",
  "overhead-bound",
  "sync-bound",
  "unknown",
] as const;

export function verdictName(verdict: string | null): string {
  return verdict && (VERDICTS as readonly string[]).includes(verdict) ? verdict : "unknown";
}

export function verdictColor(verdict: string | null): string {
  return color(verdictName(verdict));
}

/** Adds the outline of a verdict's mark, of about the same area in every shape. */
export function trace(
  path: Path2D | CanvasRenderingContext2D,
  verdict: string | null,
  x: number,
  y: number,
  r: number,
): void {
  switch (verdictName(verdict)) {
    case "memory-bound": {
      const half = 0.886 * r;
      path.rect(x - half, y - half, 2 * half, 2 * half);
      break;
    }
    case "latency-bound":
      polygon(path, x, y, 1.253 * r, 4, 0);
      break;
    case "overhead-bound":
      polygon(path, x, y, 1.45 * r, 3, -Math.PI / 2);
      break;
    case "sync-bound":
      polygon(path, x, y, 1.45 * r, 3, Math.PI / 2);
      break;
    default:
      path.moveTo(x + r, y);
      path.arc(x, y, r, 0, 2 * Math.PI);
  }
}

function polygon(
  path: Path2D | CanvasRenderingContext2D,
  x: number,
  y: number,
  r: number,
  corners: number,
  turn: number,
): void {
  for (let corner = 0; corner < corners; corner++) {
    const angle = turn + (2 * Math.PI * corner) / corners;
    const [px, py] = [x + r * Math.cos(angle), y + r * Math.sin(angle)];
    if (corner === 0) {
      path.moveTo(px, py);
    } else {
      path.lineTo(px, py);
    }
  }
  path.closePath();
}

/** A mark as it stands in a legend. */
export function swatch(verdict: string): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  const scale = window.devicePixelRatio || 1;
  canvas.width = canvas.height = 14 * scale;
  canvas.className = "swatch";
  canvas.setAttribute("aria-hidden", "true");
  const context = canvas.getContext("2d");
  if (context) {
    context.scale(scale, scale);
    context.beginPath();
    trace(context, verdict, 7, verdict === "overhead-bound" ? 8 : verdict === "sync-bound" ? 6 : 7, 4.5);
    context.fillStyle = verdictColor(verdict);
    context.fill();
  }
  return canvas;
}
