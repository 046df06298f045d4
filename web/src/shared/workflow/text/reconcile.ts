import { isMap } from "yaml";
import { definedKeys, equal, isObject } from "../model/json";
import { type Json, type JsonObject, triggerNode } from "../model/types";
import { type Content, print } from "./content";
import type { Ids } from "./match";
import { document } from "./print";
import { Weaver } from "./weave";
import { type Written, weaveFlow } from "./weave-flow";
import { type Parsed, readYaml } from "./yaml";

/**
 * Changes a text so that it has a new content. Only changes are written: all other bytes,
 * comments and the order of keys are preserved. Positions are written only if the text
 * already has them. Steps and triggers are matched by id; `renamed` lists those with a
 * different id in the text.
 */
export function reconcile(source: string, content: Content, renamed: Renamed = new Map()): string {
	const parsed = readYaml(source);
	if ("error" in parsed || !isObject(parsed.value)) return print(content);
	const after = target(parsed.value, content);
	if (equal(parsed.value, after)) return source;
	const text = weaveText(parsed, after, idsIn(parsed.value, after, renamed));
	if (text !== undefined && readsAs(text, after)) return text;
	return document(after, "workflow");
}

/** The target value of the text, without adding empty fields. */
function target(before: JsonObject, content: Content): JsonObject {
	const after: Record<string, unknown> = { ...before };
	const put = (key: keyof Content, empty: boolean) => {
		if (content[key] !== undefined && !(empty && before[key] === undefined)) after[key] = content[key];
	};
	put("name", false);
	put("description", content.description === null);
	put("triggers", content.triggers.length === 0);
	put("steps", content.steps.length === 0);
	put("settings", definedKeys(content.settings).length === 0);
	if (before.layout !== undefined) put("layout", false);
	// Drops undefined fields.
	return JSON.parse(JSON.stringify(after)) as JsonObject;
}

/** Maps node ids in the text to current ids. A trigger is a node by `@id`. */
export type Renamed = ReadonlyMap<string, string>;

function idsIn(before: JsonObject, after: JsonObject, renamed: Renamed): Written["ids"] {
	const former = new Map([...renamed].map(([was, is]) => [is, was]));
	const known = (member: "steps" | "triggers", formerly: Ids["formerly"]): Ids => ({
		formerly,
		written: new Set(idsUnder(before[member])),
		kept: new Set(idsUnder(after[member]).map(formerly)),
	});
	const steps = known("steps", (id) => former.get(id) ?? id);
	const triggers = known("triggers", (id) => former.get(triggerNode(id))?.slice(1) ?? id);
	return (kind) => (kind === "trigger" ? triggers : steps);
}

function idsUnder(list: Json | undefined): string[] {
	if (!Array.isArray(list)) return [];
	return list.flatMap((entry: Json) => (isObject(entry) ? [String(entry.id), ...idsUnder(entry.steps)] : []));
}

function weaveText(parsed: Parsed, after: JsonObject, ids: Written["ids"]): string | undefined {
	const root = parsed.document.contents as unknown;
	if (!isMap(root) || root.items.length === 0 || definedKeys(after).length === 0) return undefined;
	// CRLF line breaks are restored at the end.
	if (/\r\n/.test(parsed.source) && !/[^\r]\n/.test(parsed.source)) {
		const plain = readYaml(parsed.source.replaceAll("\r\n", "\n"));
		if ("error" in plain) return undefined;
		return weaveText(plain, after, ids)?.replaceAll("\n", "\r\n");
	}
	const [from, to] = [root.range?.[0] ?? 0, root.range?.[1] ?? 0];
	const head = parsed.source.slice(0, from);
	const text = { source: parsed.source, ids };
	if (root.flow) return head + weaveFlow(text, root, parsed.value, after, "workflow") + parsed.source.slice(to);
	return head + new Weaver(text).weave(root, parsed.value as JsonObject, after);
}

function readsAs(text: string, value: Json): boolean {
	const read = readYaml(text);
	return !("error" in read) && equal(read.value, value);
}
