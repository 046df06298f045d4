import { graph } from "../graph";
import { isObject } from "../json";
import { needOn } from "../need";
import type { Place } from "../place";
import type { Random } from "../random.test-data";
import { find, idsOf, listOf } from "../tree";
import { type Doc, type Edit, isBlock } from "../types";
import { addStep } from "./add";
import { placeNodes, tidy } from "./arrange";
import { change } from "./change";
import { connect } from "./connect";
import { disconnect } from "./disconnect";
import { duplicate } from "./duplicate";
import { move, moveInto, moveOut } from "./move";
import { pin } from "./pin";
import { remove } from "./remove";
import { rename } from "./rename";
import { addPath, newSwitch, removePath, setElse } from "./switch";
import { addTrigger } from "./trigger";
import { unwrap } from "./unwrap";
import { wrap } from "./wrap";

export interface Operation {
	readonly name: string;
	readonly edit: Edit;
	/** Steps whose needs the operation may change. */
	readonly touched: ReadonlySet<string>;
}

function randomPlace(random: Random, doc: Doc): Place {
	const ids = idsOf(doc.steps);
	const edges = graph(doc).edges;
	const blocks = ids.filter((id) => listOf(doc.steps, id) && isBlock(find(doc.steps, id)?.step ?? { id }));
	const kind = random.below(6);
	if (ids.length === 0 || kind === 0) return { at: "end", block: random.pick([null, ...blocks]) };
	if (kind === 1) return { at: "after", step: random.pick(ids) };
	if (kind === 2) return { at: "before", step: random.pick(ids) };
	if (kind === 3) return { at: "branch", step: random.pick([null, ...ids]) };
	if (edges.length === 0) return { at: "after", step: random.pick(ids) };
	const edge = random.pick(edges);
	return { at: "edge", from: needOn(edge.from, edge.path), to: edge.to };
}

/** The steps that may have to run after something put at a place. */
function displaced(doc: Doc, place: Place): string[] {
	const g = graph(doc);
	if (place.at === "after") return [...(g.nodes.get(place.step)?.followers ?? [])];
	if (place.at === "before") return [place.step];
	return place.at === "edge" ? [place.to] : [];
}

function followers(doc: Doc, ids: readonly string[]): string[] {
	const g = graph(doc);
	return ids.flatMap((id) => [...(g.nodes.get(id)?.followers ?? [])]);
}

const step = { uses: "log.write", with: { message: 'new: "text" # with ${{ trigger.payload }}' } };

/** A random operation on a document, with the steps it may affect. */
export function randomOperation(random: Random, doc: Doc): Operation {
	const ids = idsOf(doc.steps);
	const place = randomPlace(random, doc);
	const some = [random.pick(ids)];
	const siblings = some[0] === undefined ? [] : (listOf(doc.steps, find(doc.steps, some[0])?.block ?? null) ?? []);
	if (random.chance(0.4) && siblings.length > 1) some.push(random.pick(siblings).id);
	const chosen = [...new Set(some)].filter((id) => id !== undefined);
	const touch = (name: string, edit: Edit, touched: readonly string[] = []): Operation => ({
		name,
		edit,
		touched: new Set(touched),
	});
	const first = chosen[0];
	if (first === undefined) return touch("add", addStep(doc, step, place));
	const last = siblings.filter((s) => chosen.includes(s.id)).at(-1)?.id ?? first;
	switch (random.below(18)) {
		case 0:
			return touch("remove", remove(doc, chosen), followers(doc, chosen));
		case 1: {
			const to = random.pick(ids);
			return touch("connect", connect(doc, first, to), [to]);
		}
		case 2: {
			const edge = random.pick(graph(doc).edges);
			return edge
				? touch("disconnect", disconnect(doc, needOn(edge.from, edge.path), edge.to), [edge.to])
				: touch("add", addStep(doc, step, place), displaced(doc, place));
		}
		case 3:
			return touch("move", move(doc, chosen, place), [...chosen, ...followers(doc, chosen), ...displaced(doc, place)]);
		case 4: {
			const block = ids.find((id) => listOf(doc.steps, id) && find(doc.steps, id)?.step.steps) ?? null;
			return touch("into", moveInto(doc, chosen, block), [...chosen, ...followers(doc, chosen)]);
		}
		case 5: {
			const block = find(doc.steps, first)?.block;
			const after = block == null ? [] : followers(doc, [block]);
			return touch("out", moveOut(doc, chosen), [...chosen, ...followers(doc, chosen), ...after]);
		}
		case 6:
			return touch("duplicate", duplicate(doc, chosen), followers(doc, [last]));
		case 7:
			return touch("wrap", wrap(doc, chosen, { foreach: "trigger.payload" }), [...chosen, ...followers(doc, chosen)]);
		case 8: {
			const inner = (find(doc.steps, first)?.step.steps ?? []).map((s) => s.id);
			return touch("unwrap", unwrap(doc, first), [...inner, ...followers(doc, [first])]);
		}
		case 9: {
			return touch("switch", addStep(doc, newSwitch, place), displaced(doc, place));
		}
		case 16: {
			const change = random.pick([addPath, (now: Doc, id: string) => removePath(now, id, "path_1")]);
			return touch("paths", change(doc, first));
		}
		case 17:
			return touch("else", setElse(doc, first, random.chance(0.5)));
		case 10:
			return touch(
				"change",
				change(doc, first, "/with/message", random.pick(["x", "a: b", "", "two\nlines\n", 12, null])),
			);
		case 11:
			return touch("name", change(doc, first, "/name", random.pick([undefined, "Say hello", "no", "# x"])));
		case 12: {
			const at = random.pick(["/with/extra", "/retry", "/on_error", "/if"]);
			const values = { "/with/extra": { list: [1, { a: "b" }], text: "é ☃" }, "/retry": { max_attempts: 3 } };
			return touch(
				"field",
				change(doc, first, at, isObject(values) && at in values ? values[at as keyof typeof values] : "true"),
			);
		}
		case 13:
			return touch("rename", rename(doc, first, `r${random.below(1_000_000)}`), ids);
		case 14: {
			const more = random.pick([
				addTrigger(doc, { type: "webhook", verify: { scheme: "none" } }),
				placeNodes(doc, { [first]: [8, 16] }),
				tidy(doc),
				pin(doc, first, { ok: true }),
			]);
			return touch("beside", more);
		}
		default:
			return touch("add", addStep(doc, step, place), displaced(doc, place));
	}
}
