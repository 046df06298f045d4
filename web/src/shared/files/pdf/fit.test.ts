import { expect, test } from "vitest";
import { fitPage } from "./fit";

const a4 = { width: 595, height: 842 };

test("a page gets the available width", () => {
	const { width, height, scale } = fitPage(a4, 1190, 1);
	expect([width, height, scale]).toEqual([1190, 1684, 2]);
});

test("a dense screen gets more pixels for the same size", () => {
	const { width, height, scale } = fitPage(a4, 1190, 2);
	expect([width, height, scale]).toEqual([1190, 1684, 4]);
});

test("a long page is made narrower", () => {
	const { width, height } = fitPage({ width: 10, height: 14_400 }, 800, 1);
	expect(height).toBeCloseTo(16_000);
	expect(width).toBeCloseTo(11.1, 1);
});

test.each([
	[{ width: 14_400, height: 14_400 }, 5_000],
	[{ width: 200, height: 4_000 }, 800],
	[{ width: 0.001, height: 0.001 }, 800],
	[{ width: 1e9, height: 1 }, 800],
	[{ width: 1, height: 1e9 }, 800],
])("the canvas for %j is bounded", (page, available) => {
	const { scale } = fitPage(page, available, 3);
	expect(page.width * scale).toBeLessThanOrEqual(16_384.01);
	expect(page.height * scale).toBeLessThanOrEqual(16_384.01);
	expect(page.width * scale * page.height * scale).toBeLessThanOrEqual((1 << 24) * 1.0001);
});
