import { isMap } from "yaml";
import { equal, isObject, present } from "../model/json";
import type { Json, JsonObject } from "../model/types";
import { type Content, print } from "./content";
import { document } from "./print";
import { Weaver } from "./weave";
import { weaveFlow } from "./weave-flow";
import { type Parsed, readYaml } from "./yaml";

/**
 * The text changed so that it says something else. Only what changed is
 * written; every other byte, comment and the order of members stay. Places are
 * written only into a text that has them.
 */
export function reconcile(source: string, content: Content): string {
	const parsed = readYaml(source);
	if ("error" in parsed || !isObject(parsed.value)) return print(content);
	const after = target(parsed.value, content);
	if (equal(parsed.value, after)) return source;
	const text = woven(parsed, after);
	if (text !== undefined && says(text, after)) return text;
	return document(after, "workflow");
}

/** What the text should say: members that would be empty are not added to it. */
function target(before: JsonObject, content: Content): JsonObject {
	const after: Record<string, unknown> = { ...before };
	const put = (key: keyof Content, empty: boolean) => {
		if (content[key] !== undefined && !(empty && before[key] === undefined)) after[key] = content[key];
	};
	put("name", false);
	put("description", content.description === null);
	put("triggers", content.triggers.length === 0);
	put("steps", content.steps.length === 0);
	put("settings", present(content.settings).length === 0);
	if (before.layout !== undefined) put("layout", false);
	// Members that are undefined have no place in a text.
	return JSON.parse(JSON.stringify(after)) as JsonObject;
}

function woven(parsed: Parsed, after: JsonObject): string | undefined {
	const root = parsed.document.contents as unknown;
	if (!isMap(root) || root.items.length === 0 || present(after).length === 0) return undefined;
	// Line breaks of two characters are put back at the end.
	if (/\r\n/.test(parsed.source) && !/[^\r]\n/.test(parsed.source)) {
		const plain = readYaml(parsed.source.replaceAll("\r\n", "\n"));
		if ("error" in plain) return undefined;
		return woven(plain, after)?.replaceAll("\n", "\r\n");
	}
	const [from, to] = [root.range?.[0] ?? 0, root.range?.[1] ?? 0];
	const head = parsed.source.slice(0, from);
	if (root.flow)
		return head + weaveFlow(parsed.source, root, parsed.value, after, "workflow") + parsed.source.slice(to);
	return head + new Weaver(parsed.source).weave(root, parsed.value as JsonObject, after);
}

function says(text: string, value: Json): boolean {
	const read = readYaml(text);
	return !("error" in read) && equal(read.value, value);
}
