import { describe, expect, it } from "vitest";
import { type Box, fittingView } from "./viewport";

const pane = { clientWidth: 640, clientHeight: 600 };
const first: Box = { x: 100, y: 0, width: 240, height: 64 };

/** Where a box is on the screen. */
function onScreen(box: Box, bounds: Box, target = first) {
	const { x, y, zoom } = fittingView(pane, bounds, target);
	return {
		left: box.x * zoom + x,
		right: (box.x + box.width) * zoom + x,
		top: box.y * zoom + y,
		bottom: (box.y + box.height) * zoom + y,
	};
}

describe("the view that a graph opens with", () => {
	it.each<[string, Box]>([
		["a small graph", { x: 0, y: 0, width: 240, height: 400 }],
		["a wide graph", { x: -900, y: -40, width: 2_400, height: 500 }],
		["a tall graph", { x: 0, y: 0, width: 300, height: 2_800 }],
	])("shows all of %s", (_, bounds) => {
		const shown = onScreen(bounds, bounds);
		expect(shown.left).toBeGreaterThanOrEqual(0);
		expect(shown.right).toBeLessThanOrEqual(640);
		expect(shown.top).toBeGreaterThanOrEqual(0);
		expect(shown.bottom).toBeLessThanOrEqual(600);
	});

	it("does not enlarge a small graph", () => {
		expect(fittingView(pane, { x: 0, y: 0, width: 240, height: 64 }, first).zoom).toBe(1);
	});

	it("shows the selected step of a graph that is too large to recognize anything in", () => {
		const bounds = { x: 0, y: 0, width: 600, height: 26_000 };
		const target = { x: 200, y: 12_000, width: 240, height: 64 };
		const shown = onScreen(target, bounds, target);
		expect(shown.top).toBeGreaterThan(0);
		expect(shown.bottom).toBeLessThan(600);
		expect(shown.right - shown.left).toBeGreaterThan(120);
	});
});
