import { lex } from "../expression/lex";
import { bareRefs, type Ref, templateRefs } from "../expression/refs";
import { bareSpan, spans } from "../expression/template";
import { type Form, stepTexts, triggerTexts } from "./expressions";
import { type Graph, graph, visible } from "./graph";
import { idPattern, idRule } from "./id";
import { isObject } from "./json";
import { errorPath, pathOf, pathsOf, stepOf, switchAction } from "./need";
import { pointer } from "./pointer";
import { type Spot, walk } from "./tree";
import { type Doc, isBlock, type Json, type JsonObject, type Step, type Trigger, triggerNode } from "./types";

// Checks that need no server. Messages and pointers are identical to the server's, so that
// its results replace these unnoticed.

export interface Problem {
	/** From the root of the document. */
	readonly pointer: string;
	readonly message: string;
	readonly hint?: string;
	/** The node it belongs to: a step, or a trigger as `@id`; absent for the settings. */
	readonly node?: string;
}

/** The input schema of an action; null if there is no such action. */
export type Inputs = (action: string) => JsonObject | null | undefined;

/** The problems of a document. Actions with an undefined schema are not checked. */
export function localProblems(doc: Pick<Doc, "steps" | "triggers">, inputs: Inputs): Problem[] {
	const g = graph(doc);
	const ids = new Set<string>();
	const out: Problem[] = doc.triggers.flatMap((trigger, i) => triggerProblems(trigger, pointer("triggers", i)));
	for (const spot of walk(doc.steps)) {
		const report: Report = (at, message, hint) => {
			out.push({ pointer: spot.pointer + at, message, node: spot.step.id, ...(hint !== undefined && { hint }) });
		};
		checkId(spot.step, ids, report);
		checkNeeds(spot, g, report);
		if (isBlock(spot.step)) checkBlock(spot.step, report);
		else checkAction(spot.step, inputs, report);
		for (const { at, text, form } of stepTexts(spot.step)) checkExpression(text, form, at, spot, g, report);
	}
	for (const cycle of g.cycles) {
		const node = g.nodes.get(cycle[0] as string);
		if (!node) continue;
		const message = `the steps wait for each other: ${cycle.join(" → ")}`;
		out.push({ pointer: `${node.pointer}/needs`, message, node: node.id });
	}
	return out;
}

function triggerProblems(trigger: Trigger, here: string): Problem[] {
	const out: Problem[] = [];
	for (const { at, text, form } of triggerTexts(trigger)) {
		checkSyntax(text, form, at, (place, message) => {
			out.push({ pointer: here + place, message, node: triggerNode(trigger.id) });
		});
	}
	return out;
}

type Report = (at: string, message: string, hint?: string) => void;

function checkId(step: Step, ids: Set<string>, report: Report): void {
	if (!idPattern.test(step.id)) report("/id", idRule);
	else if (ids.has(step.id)) report("/id", `the id "${step.id}" is already used by another step`);
	ids.add(step.id);
}

function checkNeeds({ step, block }: Spot, g: Graph, report: Report): void {
	const seen = new Set<string>();
	for (const [i, need] of (step.needs ?? []).entries()) {
		const id = stepOf(need);
		const known = g.nodes.get(id);
		if (!known) report(`/needs/${i}`, `there is no step "${id}"`);
		else if (known.block !== block) {
			report(
				`/needs/${i}`,
				`step "${id}" is not in this list of steps: steps inside and outside a block cannot need each other`,
			);
		} else if (id === step.id) report(`/needs/${i}`, "a step cannot need itself");
		else if (seen.has(need)) report(`/needs/${i}`, `"${need}" is listed twice`);
		else checkPath(known.step, pathOf(need), (message) => report(`/needs/${i}`, message));
		seen.add(need);
	}
}

function checkPath(step: Step, path: string | undefined, report: (message: string) => void): void {
	if (path === undefined || path === errorPath) return;
	if (step.uses !== switchAction) report(`step "${step.id}" has no paths: it is not a flow.switch`);
	else if (!pathsOf(step).some(({ id }) => id === path)) report(`step "${step.id}" has no path "${path}"`);
}

function checkBlock(step: Step, report: Report): void {
	if (!step.steps?.length) report("/steps", "a loop needs at least one step");
	if (step.foreach !== undefined && step.repeat) report("/repeat", "a block cannot have both foreach and repeat");
	if (step.foreach === "" && !step.repeat) report("/foreach", "is required");
	if (step.foreach === undefined && !step.repeat) {
		report("", "a step that contains steps must be a loop", "add foreach or repeat");
	}
	if (step.repeat && step.repeat.until === "") report("/repeat/until", "is required");
}

function checkAction(step: Step, inputs: Inputs, report: Report): void {
	if (!step.uses) {
		report("/uses", "is required");
		return;
	}
	const schema = inputs(step.uses);
	if (schema === null) report("/uses", `unknown action "${step.uses}"`);
	else if (schema) checkRequired(schema, step.with ?? {}, "/with", report);
	for (const [i, path] of pathsOf(step).entries()) {
		if (path.when === "") report(`/with/paths/${i}/when`, "must not be empty");
	}
}

/** Checks required fields, including those of nested objects. */
function checkRequired(schema: JsonObject, value: JsonObject, at: string, report: Report): void {
	const required = Array.isArray(schema.required) ? schema.required : [];
	for (const name of required) {
		if (typeof name === "string" && value[name] === undefined) report(at + pointer(name), "is required");
	}
	const properties = isObject(schema.properties) ? schema.properties : {};
	for (const [name, inner] of Object.entries(properties)) {
		const member: Json | undefined = value[name];
		if (isObject(inner) && isObject(member)) checkRequired(inner, member, at + pointer(name), report);
	}
}

/** Checks an expression by its tokens. */
function checkSyntax(text: string, form: Form, at: string, report: Report): void {
	if (form === "bare" && text === "") return;
	for (const span of form === "bare" ? [bareSpan(text)] : spans(text)) {
		if (span.unclosed) {
			report(at, `this \${{ has no closing }}, or a quote inside it is not closed (column ${span.open + 1})`);
			return;
		}
		const tokens = lex(text, span.from, span.to);
		const wrong = tokens.find((token) => token.kind === "error");
		if (wrong) report(at, `${wrong.message} (column ${wrong.from + 1})`);
		else if (tokens.every((token) => token.kind === "comment"))
			report(at, `the expression is empty (column ${span.from + 1})`);
	}
}

function checkExpression(text: string, form: Form, at: string, spot: Spot, g: Graph, report: Report): void {
	checkSyntax(text, form, at, report);
	const sees = new Set(visible(g, spot.step.id));
	if (at.startsWith("/repeat")) for (const inner of spot.step.steps ?? []) sees.add(inner.id);
	for (const ref of form === "bare" ? bareRefs(text) : templateRefs(text)) checkRef(ref, at, sees, g, report);
}

function checkRef(ref: Ref, at: string, sees: ReadonlySet<string>, g: Graph, report: Report): void {
	if (ref.root !== "steps" || sees.has(ref.name)) return;
	const known = g.nodes.get(ref.name);
	if (!known) report(at, `there is no step "${ref.name}"`);
	else if (known.block !== null) {
		const hint = `read the results of its rounds from steps.${known.block}.output.items`;
		report(at, `step "${ref.name}" is inside the block "${known.block}"`, hint);
	} else report(at, `step "${ref.name}" does not come before this one`, `add "${ref.name}" to needs`);
}
