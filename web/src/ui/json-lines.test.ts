import { describe, expect, it } from "vitest";
import { jsonLines, wrapLines } from "./json-lines";

const wrapped = (value: unknown, room: number) =>
	wrapLines(
		jsonLines(value, () => false),
		room,
	);
const texts = (value: unknown, room: number) =>
	wrapped(value, room).map(({ key, text }) => (key ? `${key}: ${text}` : text));

describe("a long value", () => {
	it("continues on the next lines, divided at spaces", () => {
		expect(texts({ note: "one two three four five six" }, 30)).toEqual([
			"{",
			'note: "one two three ',
			'four five six"',
			"}",
		]);
	});

	it("is whole in its parts", () => {
		const value = "x".repeat(500);
		const parts = wrapped({ deep: [[value]] }, 40).filter(({ kind }) => kind === "string");
		expect(parts.length).toBeGreaterThan(10);
		expect(parts.map(({ text }) => text).join("")).toBe(JSON.stringify(value));
		expect(parts.map(({ part }) => part)).toEqual(parts.map((_, at) => at));
		expect(parts.every(({ text }) => text.length <= 40)).toBe(true);
	});

	it("does not tear characters apart", () => {
		const parts = wrapped("😀".repeat(60), 20);
		expect(parts.length).toBeGreaterThan(2);
		for (const { text } of parts) expect(text).not.toMatch(/[\uD800-\uDBFF]$/);
	});

	it("has its comma at its end", () => {
		const parts = wrapped({ a: "word ".repeat(20), b: 1 }, 30).filter(({ path }) => path === "/a");
		expect(parts.map(({ last }) => last)).toEqual([...parts.slice(1).map(() => true), false]);
	});
});

it("leaves values that fit", () => {
	expect(texts({ a: 1, b: "short" }, 40)).toEqual(["{", "a: 1", 'b: "short"', "}"]);
});
