import { ApiError, toApiError } from "@/api/error";
import { nameOf } from "@/pages/builder/command/edit";
import { words } from "@/shared/listed/field";
import { type JsonSchema, resolve } from "@/shared/listed/schema";
import { triggerInfo } from "@/shared/triggers";
import { type Doc, find, nodeAt, nodePointer } from "@/shared/workflow/model";
import { members } from "@/shared/workflow/model/pointer";
import { sentence } from "@/ui/sentence";

/** Where the titles of fields come from. */
export interface Titles {
	/** The schema of the workflow format. */
	readonly format?: JsonSchema;
	readonly inputOf: (uses: string) => JsonSchema | undefined;
}

interface Located {
	readonly pointer: string;
	readonly message: string;
}

/** The title of the field at a pointer, such as “Message”; "" for a node as a whole. */
export function fieldTitle(doc: Doc, titles: Titles, at: string): string {
	const node = nodeAt(doc, at);
	const start = node === undefined ? "" : (nodePointer(doc, node) ?? "");
	const path = members(at.slice(start.length));
	let root = titles.format ?? {};
	let schema = node === undefined ? (titles.format ?? {}) : nodeSchema(titles, node);
	let title = "";
	for (const [i, member] of path.entries()) {
		const known = resolve(schema, root);
		if (/^\d+$/.test(member) && known.properties?.[member] === undefined) {
			title = `${title} ${Number(member) + 1}`.trim();
			schema = known.items ?? {};
			continue;
		}
		const isInput = i === 0 && member === "with" && node !== undefined;
		const uses = isInput ? find(doc.steps, node)?.step.uses : undefined;
		const next = uses === undefined ? known.properties?.[member] : titles.inputOf(uses);
		schema = typeof next === "object" ? next : {};
		if (uses !== undefined) root = schema;
		if (!isInput || path.length === 1) title = isInput ? "Input" : (resolve(schema, root).title ?? words(member));
	}
	return title;
}

function nodeSchema({ format }: Titles, node: string): JsonSchema {
	return (node.startsWith("@") ? format?.$defs?.trigger : format?.$defs?.step) ?? {};
}

/** A message that continues the name of its field. */
const continues =
	/^(is|are|must|has|have|needs?|cannot|may|does|refers?|names?|contains?|uses?|reads?|takes?|exceeds?)\b/;

/** Warnings say themselves what they are about. */
const isSentence = (message: string) => /^[A-Z][a-z]/.test(message);

/** “Message is required”, or the message alone if it does not continue the name of the field. */
export function fieldSentence(title: string, message: string): string {
	if (title === "" || isSentence(message)) return sentence(message);
	return sentence(continues.test(message) ? `${title} ${message}` : `${title}: ${message}`);
}

/** “Message is required in step Notify.” */
export function problemSentence(doc: Doc, titles: Titles, { pointer, message }: Located): string {
	const at = pointer.replace(/^\/definition(?=\/|$)/, "");
	const where = whereOf(doc, nodeAt(doc, at));
	const title = fieldTitle(doc, titles, at);
	if (isSentence(message)) return sentence(message);
	if (where === "" || title === "") return fieldSentence([where, title].join(""), message);
	if (!continues.test(message)) return sentence(`${title} in ${where}: ${message}`);
	return sentence(`${title} ${message} in ${where}`);
}

function whereOf(doc: Doc, node: string | undefined): string {
	if (node === undefined) return "";
	if (!node.startsWith("@")) return `step ${nameOf(doc, node)}`;
	const trigger = doc.triggers.find(({ id }) => `@${id}` === node);
	return trigger ? `trigger ${triggerInfo(trigger.type).name}` : "";
}

/** The error of a definition in the words of the page: its pointers are those of the request. */
export function definitionError(doc: Doc, titles: Titles, thrown: unknown): ApiError {
	const error = toApiError(thrown);
	const found = error.fields.filter(({ pointer }) => /^(\/definition)?\/(steps|triggers|settings)\b/.test(pointer));
	if (found.length === 0) return error;
	const sentences = found.map((field) => problemSentence(doc, titles, field));
	const [first = error.message] = sentences;
	const { status, code, requestId } = error;
	if (sentences.length === 1) return new ApiError(status, code, first, [], requestId);
	const fields = sentences.map((message) => ({ pointer: "", message }));
	return new ApiError(status, code, `The workflow has ${sentences.length} problems.`, fields, requestId);
}
