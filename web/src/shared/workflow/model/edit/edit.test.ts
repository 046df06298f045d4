import { describe, expect, it } from "vitest";
import { graph } from "../graph";
import type { Doc, Edit, Step } from "../types";
import { emptyDoc } from "../types";
import { addStep } from "./add";
import { placeNodes, tidy } from "./arrange";
import { change, changeAt } from "./change";
import { canConnect, connect, whyNotConnect } from "./connect";
import { copy } from "./copy";
import { disconnect, reconnect } from "./disconnect";
import { duplicate } from "./duplicate";
import { move, moveInto, moveOut } from "./move";
import { paste, pastePlace } from "./paste";
import { pin, unpin } from "./pin";
import { remove } from "./remove";
import { rename } from "./rename";
import { addTrigger, changeTrigger, renameTrigger } from "./trigger";
import { unwrap } from "./unwrap";
import { wrap } from "./wrap";

const step = (id: string, needs?: string[], more: Partial<Step> = {}): Step => ({
	id,
	...(needs && { needs }),
	...more,
});
const doc = (steps: Step[], more: Partial<Doc> = {}): Doc => ({ ...emptyDoc, steps, ...more });
const abc = () => doc([step("a"), step("b"), step("c")]);
/** The list in short form: ids, with explicit needs. */
const written = (steps: readonly Step[]): string =>
	steps.map((s) => `${s.id}${s.needs ? `[${s.needs}]` : ""}${s.steps ? `{${written(s.steps)}}` : ""}`).join(" ");
const shown = (edit: Edit): string =>
	edit.rejected === undefined ? written(edit.doc.steps) : `rejected: ${edit.rejected}`;
const n = { id: "n", uses: "log.write" };

describe("adding a step", () => {
	it.each([
		["on an implicit edge", abc(), { at: "edge", from: "a", to: "b" } as const, "a n b c"],
		["before the first", abc(), { at: "edge", from: null, to: "a" } as const, "n a b c"],
		["at the end", abc(), { at: "after", step: "c" } as const, "a b c n"],
		["into an empty workflow", doc([]), { at: "end", block: null } as const, "n"],
		["in the middle", abc(), { at: "after", step: "a" } as const, "a n b c"],
		["before a step", abc(), { at: "before", step: "b" } as const, "a n b c"],
		["as a branch", abc(), { at: "branch", step: "a" } as const, "a b c n[a]"],
		["as a branch of the start", abc(), { at: "branch", step: null } as const, "a b c n[]"],
		["as a branch of a leaf", abc(), { at: "branch", step: "c" } as const, "a b c n"],
		[
			"on an explicit edge",
			doc([step("a"), step("b"), step("c", ["a"])]),
			{ at: "edge", from: "a", to: "c" } as const,
			"a b n[a] c",
		],
		[
			"on one edge of a join",
			doc([step("a"), step("b", ["a"]), step("c", ["a"]), step("j", ["b", "c"])]),
			{ at: "edge", from: "b", to: "j" } as const,
			"a b[a] c[a] n[b] j[n,c]",
		],
		[
			"into an empty block",
			doc([step("x", undefined, { foreach: "[1]", steps: [] })]),
			{ at: "end", block: "x" } as const,
			"x{n}",
		],
	])("%s", (_, before, place, after) => {
		expect(shown(addStep(before, n, place))).toBe(after);
	});

	it("derives the id from the name or the action, and selects the step", () => {
		const edit = addStep(doc([step("request")]), { uses: "http.request" }, { at: "after", step: "request" });
		expect(edit.select).toEqual(["request_2"]);
		expect(addStep(doc([]), { uses: "x.y", name: "Größe prüfen!" }, { at: "end", block: null }).select).toEqual([
			"gro_e_prufen",
		]);
	});

	it("rejects a place that does not exist", () => {
		expect(addStep(abc(), n, { at: "after", step: "zzz" }).rejected).toBeDefined();
		expect(addStep(abc(), n, { at: "edge", from: "a", to: "c" }).rejected).toBeDefined();
		expect(addStep(abc(), n, { at: "edge", from: null, to: "c" }).rejected).toBeDefined();
	});
});

describe("removing", () => {
	it("connects followers to predecessors", () => {
		expect(shown(remove(abc(), ["b"]))).toBe("a c");
		expect(shown(remove(abc(), ["a"]))).toBe("b c");
		expect(shown(remove(abc(), ["a", "b"]))).toBe("c");
		expect(shown(remove(doc([step("a"), step("b"), step("c", ["a"]), step("j", ["b", "c"])]), ["b"]))).toBe(
			"a c[a] j[a,c]",
		);
		expect(shown(remove(doc([step("a"), step("b"), step("c", ["a"]), step("d", ["b"])]), ["a"]))).toBe("b c[] d[b]");
	});

	it("removes positions and pinned data, including those inside a block", () => {
		const before = doc([step("x", undefined, { foreach: "1", steps: [step("y")] }), step("z")], {
			layout: { x: [0, 0], z: [8, 8], "@t": [0, 0] },
			pinned: { y: 1, z: 2 },
			triggers: [{ id: "t", type: "manual" }],
		});
		const { doc: after, select } = remove(before, ["x", "y", "@t"]);
		expect(after).toEqual(doc([step("z")], { layout: { z: [8, 8] }, pinned: { z: 2 } }));
		expect(select).toEqual(["z"]);
	});
});

describe("connecting", () => {
	const fan = doc([step("a"), step("b"), step("c", ["a"])]);
	it("adds a need", () => expect(shown(connect(fan, "b", "c"))).toBe("a b c[a,b]"));
	it("rejects a cycle", () => {
		expect(canConnect(fan, "c", "a")).toBe(false);
		expect(whyNotConnect(fan, "b", "a")).toContain("wait for each other");
		expect(whyNotConnect(fan, "a", "b")).toContain("already");
		expect(whyNotConnect(fan, "a", "a")).toContain("itself");
	});
	it("rejects a connection into a block", () => {
		const before = doc([step("a"), step("x", undefined, { foreach: "1", steps: [step("y")] })]);
		expect(whyNotConnect(before, "a", "y")).toContain("block");
	});
	it("removes a need", () => {
		expect(shown(disconnect(fan, "a", "c"))).toBe("a b c[]");
		expect(shown(disconnect(fan, "b", "c"))).toContain("rejected");
	});
	it("moves an end", () => {
		expect(shown(reconnect(fan, { from: "a", to: "c" }, { from: "b", to: "c" }))).toBe("a b c");
		expect(reconnect(fan, { from: "a", to: "b" }, { from: "b", to: "a" }).doc.steps).not.toBe(fan.steps);
	});
});

describe("moving", () => {
	it("onto an edge", () => {
		expect(shown(move(abc(), ["c"], { at: "edge", from: "a", to: "b" }))).toBe("a c b");
		expect(shown(move(abc(), ["b"], { at: "edge", from: "a", to: "b" }))).toBe("a b c");
		const fan = doc([step("a"), step("b"), step("c", ["a"]), step("d", ["a"])]);
		expect(shown(move(fan, ["d"], { at: "edge", from: "a", to: "c" }))).toBe("a b d[a] c");
	});
	it("into a block and out of it", () => {
		const before = doc([step("a"), step("x", undefined, { foreach: "1", steps: [step("y")] }), step("b")]);
		const into = moveInto(before, ["b"], "x");
		expect(shown(into)).toBe("a x{y b}");
		expect(shown(moveOut(into.doc, ["y"]))).toBe("a x{b} y");
		expect(shown(moveInto(before, ["x"], "x"))).toContain("into itself");
		expect(shown(moveOut(before, ["a"]))).toContain("not in a block");
	});
});

describe("renaming", () => {
	it("rewrites all references to the step, and nothing else", () => {
		const before = doc(
			[
				step("a", undefined, {
					with: { text: "steps.a is ${{ steps.a.output + 'steps.a' }} ${{ steps[\"a\"].status }}" },
				}),
				step("b", ["a"], { if: "steps.a.status == 'steps.a' /* steps.a */ && x.steps.a", on_error: "continue" }),
				step("x", undefined, {
					foreach: "${{ steps.a.output.list }}",
					steps: [step("y", undefined, { with: { deep: [{ page: "${{ links.a.page }}" }], n: 1 } })],
				}),
				step("z", undefined, { repeat: { until: "steps?.a?.output ?? steps.ab" }, steps: [step("w")] }),
			],
			{
				layout: { a: [0, 8] },
				pinned: { a: { ok: true } },
				settings: { concurrency: { key: "${{ steps.a.output }}" } },
			},
		);
		const { doc: after, select } = rename(before, "a", "get");
		expect(select).toEqual(["get"]);
		expect(after.layout).toEqual({ get: [0, 8] });
		expect(after.pinned).toEqual({ get: { ok: true } });
		expect(after.settings.concurrency?.key).toBe("${{ steps.get.output }}");
		const [a, b, x, z] = after.steps;
		expect(a?.with?.text).toBe("steps.a is ${{ steps.get.output + 'steps.a' }} ${{ steps[\"get\"].status }}");
		expect(b).toEqual(
			step("b", ["get"], { if: "steps.get.status == 'steps.a' /* steps.a */ && x.steps.a", on_error: "continue" }),
		);
		expect(x?.foreach).toBe("${{ steps.get.output.list }}");
		expect(x?.steps?.[0]?.with).toEqual({ deep: [{ page: "${{ links.get.page }}" }], n: 1 });
		expect(z?.repeat?.until).toBe("steps?.get?.output ?? steps.ab");
	});

	it("rejects invalid and taken ids", () => {
		expect(rename(abc(), "a", "b").rejected).toContain("used by another");
		expect(rename(abc(), "a", "B!").rejected).toContain("must start with a letter");
	});
});

describe("copying", () => {
	const before = doc([
		step("a"),
		step("b", undefined, { with: { v: "${{ steps.a.output }}" } }),
		step("c", ["a", "b"], { if: "steps.b.output > 1" }),
	]);
	it("keeps inner connections and assigns new ids", () => {
		const clip = copy(before, ["b", "c"]);
		expect(written(clip.steps)).toBe("b c");
		const edit = paste(before, clip, pastePlace(before, ["c"]));
		expect(shown(edit)).toBe("a b c[a,b] b_2 c_2");
		expect(edit.doc.steps[4]?.if).toBe("steps.b_2.output > 1");
		expect(edit.doc.steps[3]?.with).toEqual({ v: "${{ steps.a.output }}" });
		expect(edit.select).toEqual(["b_2", "c_2"]);
	});
	it("duplicates a step after itself", () => expect(shown(duplicate(before, ["b"]))).toBe("a b b_2 c[a,b_2]"));
	it("pastes at the end when nothing is selected", () => {
		expect(pastePlace(before, [])).toEqual({ at: "end", block: null });
	});
});

describe("blocks", () => {
	it("wraps steps and unwraps them again", () => {
		const wrapped = wrap(abc(), ["b", "c"], { foreach: "steps.a.output" });
		expect(shown(wrapped)).toBe("a each{b c}");
		expect(shown(unwrap(wrapped.doc, "each"))).toBe("a b c");
		expect(shown(wrap(abc(), ["b"], { repeat: { until: "true" } }))).toBe("a repeat{b} c");
	});
	it("rejects wrapping around a step that stays outside", () => {
		expect(wrap(abc(), ["a", "c"], { foreach: "[1]" }).rejected).toContain("between them");
	});
	it("keeps the condition of a block", () => {
		const before = doc([
			step("x", undefined, { foreach: "1", if: "a > 1", steps: [step("y", undefined, { if: "${{ b }}" }), step("z")] }),
		]);
		expect(unwrap(before, "x").doc.steps).toEqual([step("y", undefined, { if: "(a > 1) && (b)" }), step("z")]);
	});
});

describe("other operations", () => {
	it("changes fields, and removes them", () => {
		const set = change(abc(), "b", "/with/url", "https://x");
		expect(set.doc.steps[1]).toEqual({ id: "b", with: { url: "https://x" } });
		expect(change(set.doc, "b", "/with/url", undefined).doc.steps[1]).toEqual({ id: "b", with: {} });
		expect(change(abc(), "b", "/id", "q").doc.steps[1]?.id).toBe("q");
		expect(changeAt(abc(), "/settings/timeout", "5m").doc.settings).toEqual({ timeout: "5m" });
	});
	it("adds, changes and renames triggers", () => {
		const one = addTrigger(addTrigger(emptyDoc, { type: "webhook" }).doc, { type: "webhook", rate: 5 });
		expect(one.select).toEqual(["@webhook_2"]);
		const two = changeTrigger(one.doc, "webhook_2", "/verify/scheme", "github");
		const three = renameTrigger({ ...two.doc, layout: { "@webhook_2": [8, 8] } }, "webhook_2", "hook");
		expect(three.doc.triggers[1]).toEqual({ id: "hook", type: "webhook", rate: 5, verify: { scheme: "github" } });
		expect(three.doc.layout).toEqual({ "@hook": [8, 8] });
		expect(renameTrigger(one.doc, "webhook", "webhook_2").rejected).toBeDefined();
	});
	it("places nodes on the grid, but not inside blocks, and tidies up", () => {
		const before = doc([step("x", undefined, { foreach: "1", steps: [step("y")] })]);
		const placed = placeNodes(before, { x: [13, -3], y: [1, 1] });
		expect(placed.doc.layout).toEqual({ x: [16, 0] });
		expect(tidy(placed.doc).doc.layout).toEqual({});
	});
	it("limits the size of pinned data", () => {
		const pinned = pin(abc(), "a", { ok: 1 });
		expect(unpin(pinned.doc, ["a"]).doc.pinned).toEqual({});
		expect(pin(abc(), "a", "x".repeat(64 * 1024)).rejected).toContain("64 KiB");
	});
	it("finds cycles", () => {
		expect(graph(doc([step("a", ["b"]), step("b", ["a"])])).cycles).toEqual([["a", "b", "a"]]);
	});
});
