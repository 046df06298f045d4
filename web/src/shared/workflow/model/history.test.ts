import { describe, expect, it } from "vitest";
import { canRedo, canUndo, record, redo, startHistory, undo } from "./history";

describe("history", () => {
	it("undoes and redoes, and clears redo on a new change", () => {
		let h = record(record(startHistory("a"), "b", 0), "c", 10);
		h = undo(h);
		expect(h.present).toBe("b");
		expect(redo(h).present).toBe("c");
		h = record(h, "d", 20);
		expect(canRedo(h)).toBe(false);
		expect(undo(undo(h)).present).toBe("a");
		expect(undo(startHistory("a")).present).toBe("a");
	});

	it("groups continuous typing in one field", () => {
		let h = startHistory("");
		for (const [i, text] of ["h", "he", "hel"].entries()) h = record(h, text, 400 * i, "name");
		expect(undo(h).present).toBe("");
		h = record(h, "hell", 800 + 501, "name");
		expect(undo(h).present).toBe("hel");
		h = record(h, "hell!", 1400, "other");
		expect(undo(h).present).toBe("hell");
		h = record(undo(h), "x", 1401, "other");
		expect(undo(h).present).toBe("hell");
	});

	it("ignores no-op changes and keeps 200 steps", () => {
		let h = startHistory(0);
		expect(record(h, 0, 1)).toBe(h);
		for (let n = 1; n <= 250; n++) h = record(h, n, n);
		let steps = 0;
		for (; canUndo(h); steps++) h = undo(h);
		expect(steps).toBe(200);
		expect(h.present).toBe(50);
	});
});
