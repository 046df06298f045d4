import { graph, visible } from "../model/graph";
import { find, stepAt } from "../model/tree";
import type { Doc, Json, JsonObject } from "../model/types";
import { type ExpressionFunction, functions } from "./functions";

// The names available to an expression, depending on its position.

/** The known values, from runs, pinned data and schemas. */
export interface Data {
	readonly trigger?: { readonly payload?: Json; readonly headers?: Json; readonly query?: Json };
	/** Outputs by step id. */
	readonly outputs?: Readonly<Record<string, Json>>;
	/** Output schemas by step id, for steps without an output. */
	readonly schemas?: Readonly<Record<string, JsonObject>>;
	readonly item?: Json;
	readonly response?: Json;
	readonly cursor?: Json;
	readonly vars?: readonly string[];
	readonly secrets?: readonly string[];
	/** The ids of approval steps. */
	readonly approvals?: readonly string[];
}

/** A value, its schema, or nothing known. */
export interface Shape {
	readonly value?: Json;
	readonly schema?: JsonObject;
	/** The members it has regardless of its value. */
	readonly members?: Readonly<Record<string, Shape>>;
	/** A description for users. */
	readonly detail?: string;
}

export interface Scope {
	readonly names: Readonly<Record<string, Shape>>;
	readonly functions: readonly ExpressionFunction[];
}

const text: Shape = { schema: { type: "string" } };

/** The scope at a JSON pointer, such as /steps/1/with/url. */
export function scopeAt(doc: Pick<Doc, "steps" | "triggers">, at: string, data: Data): Scope {
	const names = at.startsWith("/triggers/") ? triggerNames(at, data) : stepNames(doc, at, data);
	const inStep = stepAt(doc.steps, at) !== undefined;
	return { names, functions: functions.filter((fn) => inStep || !fn.inSteps) };
}

function shapeOf(value: Json | undefined, detail?: string): Shape {
	return { ...(value !== undefined && { value }), ...(detail !== undefined && { detail }) };
}

function triggerShape(data: Data): Shape {
	const { payload, headers, query } = data.trigger ?? {};
	return {
		detail: "what started the run",
		members: { payload: shapeOf(payload), headers: shapeOf(headers), query: shapeOf(query), type: text, id: text },
	};
}

/** The names available everywhere. */
function common(data: Data): Record<string, Shape> {
	return {
		trigger: triggerShape(data),
		run: { detail: "this run", members: { id: text, started_at: text } },
		workflow: { detail: "this workflow", members: { id: text, name: text, version: { schema: { type: "integer" } } } },
		vars: { detail: "variables of the workspace", members: named(data.vars) },
	};
}

function named(list: readonly string[] | undefined, shape: Shape = {}): Record<string, Shape> {
	return Object.fromEntries((list ?? []).map((name) => [name, shape]));
}

function secretNames(data: Data): Record<string, Shape> {
	return {
		secrets: { detail: "secrets of the workspace", members: named(data.secrets, { ...text, detail: "secret" }) },
	};
}

/** No step has run when a trigger fires. */
function triggerNames(at: string, data: Data): Record<string, Shape> {
	const member = at.split("/")[3];
	const response = { response: shapeOf(data.response, "the answer"), cursor: shapeOf(data.cursor) };
	switch (member) {
		case "request":
			return { ...common(data), ...secretNames(data), cursor: shapeOf(data.cursor, "how far it has come") };
		case "items":
		case "cursor":
			return { ...common(data), ...response };
		case "key":
			return {
				...common(data),
				...response,
				item: shapeOf(data.item, "the item"),
				index: { schema: { type: "integer" } },
			};
		case "verify":
			return secretNames(data);
		default:
			return { trigger: triggerShape(data) };
	}
}

function stepNames(doc: Pick<Doc, "steps">, at: string, data: Data): Record<string, Shape> {
	const spot = stepAt(doc.steps, at);
	if (!spot) return common(data);
	const field = at.slice(spot.pointer.length);
	const inside = field.startsWith("/repeat");
	const g = graph(doc);
	const ids = visible(g, spot.step.id);
	// The condition of a repeat sees the steps of the round that has just ended.
	if (inside) ids.push(...(spot.step.steps ?? []).map((step) => step.id));
	const blocks = spot.path.map((id) => find(doc.steps, id)?.step);
	const names = common(data);
	names.steps = {
		detail: "earlier steps",
		members: Object.fromEntries(ids.map((id) => [id, stepShape(doc, id, data)])),
	};
	if (blocks.some((block) => block?.foreach !== undefined))
		names.item = shapeOf(data.item, "the element of this round");
	if (blocks.length > 0 || inside)
		names.index = { schema: { type: "integer" }, detail: "the number of this round, from 0" };
	if (inside || blocks.some((block) => block?.repeat !== undefined))
		names.previous = { detail: "the output of the round before" };
	if (!inside && !field.startsWith("/foreach")) Object.assign(names, secretNames(data));
	const links = (data.approvals ?? []).filter((id) => around(doc, spot.path, id));
	if (field.startsWith("/with") && links.length > 0) {
		names.links = {
			detail: "where a step is answered",
			members: named(links, { members: { page: text, callback: text } }),
		};
	}
	return names;
}

/** Whether a step is in one of the enclosing lists. */
function around(doc: Pick<Doc, "steps">, path: readonly string[], id: string): boolean {
	const block = find(doc.steps, id)?.block;
	return block === null || (block !== undefined && path.includes(block));
}

function stepShape(doc: Pick<Doc, "steps">, id: string, data: Data): Shape {
	const name = find(doc.steps, id)?.step.name;
	const value = data.outputs?.[id];
	const schema = data.schemas?.[id];
	const output: Shape = value !== undefined ? { value } : schema ? { schema } : {};
	const error: Shape = { members: { code: text, message: text } };
	return { ...(name !== undefined && { detail: name }), members: { output, status: text, error } };
}
