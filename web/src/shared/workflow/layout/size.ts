// The dimensions of the canvas, in pixels.

export const grid = 8;
export const node = { width: 240, height: 64 } as const;
export const gap = { node: 32, rank: 64 } as const;
/** Below its last steps a frame has space for their `+` and handles. */
export const frame = { header: 40, padding: 24, bottom: 56, width: 288, height: 136 } as const;
/** A path of a switch that no step is on: its name and a `+`. */
export const exit = { width: 120, height: 56 } as const;
export const start = { height: 32, gap: 32 } as const;

/** The id of the Start bar, which is not a valid step or trigger id. */
export const startNode = "#start";

export interface Box {
	readonly x: number;
	readonly y: number;
	readonly width: number;
	readonly height: number;
}

export function snap(value: number): number {
	return Math.round(value / grid) * grid + 0;
}

export function overlaps(a: Box, b: Box): boolean {
	return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

export function around(boxes: readonly Box[]): Box {
	if (boxes.length === 0) return { x: 0, y: 0, width: 0, height: 0 };
	const x = Math.min(...boxes.map((box) => box.x));
	const y = Math.min(...boxes.map((box) => box.y));
	const right = Math.max(...boxes.map((box) => box.x + box.width));
	const bottom = Math.max(...boxes.map((box) => box.y + box.height));
	return { x, y, width: right - x, height: bottom - y };
}
