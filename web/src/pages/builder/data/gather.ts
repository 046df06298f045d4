import { chainAt } from "@/shared/workflow/expression/complete";
import { type Data, type Scope, scopeAt } from "@/shared/workflow/expression/scope";
import { shapeAt } from "@/shared/workflow/expression/shape";
import { bareSpan } from "@/shared/workflow/expression/template";
import {
	type Doc,
	find,
	idsOf,
	isObject,
	type Json,
	type JsonObject,
	type Overlay,
	overlay,
	walk,
} from "@/shared/workflow/model";
import type { Known } from "../inspector/expression/missing";
import type { Origin, RunTrigger } from "./origin";
import { type Sample, sampleInUse } from "./sample";

export interface RunData {
	readonly id: string;
	readonly trigger: RunTrigger;
	readonly steps: Parameters<typeof overlay>[0];
}

/** The values known for expressions. */
export interface Gathered {
	readonly data: Data;
	/** By `trigger` and `steps.<id>`. */
	readonly origins: Readonly<Record<string, Origin>>;
	readonly run: RunData | null;
	/** The data of the trigger, if it is not that of the run. */
	readonly sample: Sample | null;
	/** The rounds of the run that represent their loops. */
	readonly drawn: Overlay;
}

export interface Parts {
	readonly doc: Doc;
	readonly run: RunData | null;
	/** What was chosen as the data of the trigger. */
	readonly sample?: Sample;
	/** The output schema of an action. */
	readonly outputOf: (uses: string) => JsonObject | undefined;
	readonly chosen?: Readonly<Record<string, number>>;
	readonly vars?: readonly string[];
	readonly secrets?: readonly string[];
}

const ended = new Set(["succeeded", "failed", "skipped", "cancelled"]);

/** Combines data from runs, pins and schemas. A pin takes precedence over a run, as in step tests. */
export function gather({ doc, run, sample, outputOf, chosen = {}, vars, secrets }: Parts): Gathered {
	const used = sampleInUse(sample, doc, run);
	const drawn = overlay(run?.steps ?? [], chosen);
	const outputs: Record<string, Json> = {};
	const schemas: Record<string, JsonObject> = {};
	const origins: Record<string, Origin> = { trigger: used?.origin ?? "none" };
	const answerable: string[] = [];
	for (const { step } of walk(doc.steps)) {
		const ran = drawn.nodes.get(step.id);
		const pinned = doc.pinned[step.id];
		const schema = step.uses === undefined ? blockOutput : outputOf(step.uses);
		if (step.uses === "flow.approval") answerable.push(step.id);
		if (pinned !== undefined) outputs[step.id] = pinned;
		else if (ran && ended.has(ran.status)) outputs[step.id] = ran.status === "skipped" ? null : (ran.output ?? {});
		else if (schema && isObject(schema.properties)) schemas[step.id] = schema;
		origins[`steps.${step.id}`] =
			pinned !== undefined ? "pinned" : outputs[step.id] !== undefined ? "run" : schemas[step.id] ? "schema" : "none";
	}
	const data: Data = {
		...(used && { trigger: triggerData(used.sample) }),
		outputs,
		schemas,
		approvals: answerable,
		...(vars && { vars }),
		...(secrets && { secrets }),
	};
	return { data, origins, run, sample: used && used.origin !== "run" ? used.sample : null, drawn };
}

function triggerData({ payload, headers, query }: Sample) {
	return { payload, headers: headers ?? null, query: query ?? null };
}

const blockOutput: JsonObject = { type: "object", properties: { items: { type: "array" } } };

/** The scope at a pointer, including the item of the enclosing loop if it is known. */
export function scopeFor(gathered: Gathered, doc: Doc, at: string): Scope {
	const item = itemAt(gathered, doc, at);
	return scopeAt(doc, at, item === undefined ? gathered.data : { ...gathered.data, item });
}

/** The item that a round sees: that of the shown round, or else the first. */
function itemAt(gathered: Gathered, doc: Doc, at: string): Json | undefined {
	const node = [...walk(doc.steps)].findLast((spot) => at.startsWith(`${spot.pointer}/`));
	const loop = node?.path.findLast((id) => find(doc.steps, id)?.step.foreach !== undefined);
	const foreach = loop === undefined ? undefined : find(doc.steps, loop)?.step.foreach;
	if (loop === undefined || foreach === undefined) return undefined;
	const span = bareSpan(foreach);
	const text = foreach.slice(span.from, span.to).trim();
	const chain = chainAt(text, text.length - 1, "bare");
	if (chain?.from !== 0 || chain.to !== text.length) return undefined;
	const spot = find(doc.steps, loop);
	const list = shapeAt(scopeAt(doc, `${spot?.pointer}/foreach`, gathered.data), chain)?.value;
	return Array.isArray(list) ? (list[gathered.drawn.loops.get(loop)?.shown ?? 0] as Json | undefined) : undefined;
}

/** The data available to evaluate the expressions of a step. */
export function knownFor(gathered: Gathered, doc: Doc, node: string | null): Known {
	const spot = node === null ? undefined : find(doc.steps, node);
	const trigger = node?.startsWith("@") ?? false;
	const inLoop = (spot?.path.length ?? 0) > 0;
	const { origins, drawn } = gathered;
	const known = idsOf(doc.steps).filter(
		(id) => origins[`steps.${id}`] === "run" || origins[`steps.${id}`] === "pinned",
	);
	const failed = known.filter((id) => origins[`steps.${id}`] === "run" && drawn.nodes.get(id)?.status !== "succeeded");
	return {
		trigger: origins.trigger !== "none",
		steps: new Set(known),
		failed: new Set(failed),
		item: trigger ? false : !inLoop || pathFor(gathered, doc, node ?? "") !== undefined,
		response: false,
	};
}

/** The path of a step in the shown run, such as lines[3].reserve; undefined if there is no such round. */
export function pathFor(gathered: Gathered, doc: Doc, id: string): string | undefined {
	const around = find(doc.steps, id)?.path ?? [];
	let prefix = "";
	for (const block of around) {
		const shown = gathered.drawn.loops.get(block)?.shown;
		if (shown === undefined || shown === null) return undefined;
		prefix += `${block}[${shown}].`;
	}
	return prefix + id;
}
