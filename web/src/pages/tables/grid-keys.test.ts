import { expect, test } from "vitest";
import { placeAfter } from "./grid-keys";

const size = { rows: 3, cols: 4 };

test.each([
	["ArrowUp", false, { row: 0, col: 1 }],
	["ArrowDown", false, { row: 2, col: 1 }],
	["ArrowLeft", false, { row: 1, col: 0 }],
	["ArrowRight", false, { row: 1, col: 2 }],
	["ArrowRight", true, { row: 1, col: 3 }],
	["Home", false, { row: 1, col: 0 }],
	["End", true, { row: 2, col: 3 }],
	["a", false, undefined],
	["toString", false, undefined],
])("%s (with Ctrl: %s) moves to %j", (key, ctrl, place) => {
	expect(placeAfter(key, ctrl, { row: 1, col: 1 }, size)).toEqual(place);
});

test("stops at the edges", () => {
	expect(placeAfter("ArrowDown", false, { row: 2, col: 3 }, size)).toEqual({ row: 2, col: 3 });
	expect(placeAfter("ArrowLeft", false, { row: 2, col: 0 }, size)).toEqual({ row: 2, col: 0 });
});
