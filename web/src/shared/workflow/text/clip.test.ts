import { expect, it } from "vitest";
import { clipText, readClip } from "./clip";

const steps = [
	{ id: "a", uses: "log.write", with: { message: "${{ trigger.payload }}" } },
	{ id: "b", needs: [], foreach: "[1]", steps: [{ id: "c", uses: "x.y" }] },
];

it("reads its own output, a list, or a single step", () => {
	expect(readClip(clipText({ steps }))).toEqual({ steps });
	expect(readClip("- id: a\n  uses: x.y\n")).toEqual({ steps: [{ id: "a", uses: "x.y" }] });
	expect(readClip("id: a\nuses: x.y\n")).toEqual({ steps: [{ id: "a", uses: "x.y" }] });
	expect(readClip("id: a\nforeach: x\nsteps: [{id: b, uses: x.y}]")?.steps[0]?.steps).toHaveLength(1);
});

it("rejects everything else", () => {
	for (const text of ["", "hello", "- 1\n", "steps: []", "a: [", "- id: a\n- id: a\n", "{name: x}"]) {
		expect(readClip(text)).toBeUndefined();
	}
});
