import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { curl, quote } from "./curl";
import { groupByTag, type Operation } from "./document";

const document = parse(readFileSync(new URL("../../../../openapi/openapi.yaml", import.meta.url), "utf8"));
const all = groupByTag(document);
const find = (id: string): Operation => {
	const found = all.flatMap((chapter) => chapter.operations).find((operation) => operation.id === id);
	if (!found) throw new Error(`no operation ${id}`);
	return found;
};

test("every public operation is in a group, and none of the dashboard's own", () => {
	const shown = all.flatMap((chapter) => chapter.operations);
	const count = Object.entries<object>(document.paths)
		.filter(([path]) => !path.startsWith("/ui/"))
		.flatMap(([, item]) => Object.keys(item).filter((key) => ["get", "post", "put", "patch", "delete"].includes(key)));
	expect(shown).toHaveLength(count.length);
	expect(shown.every((operation) => operation.summary !== "" && operation.responses.length > 0)).toBe(true);
	expect(shown.some((operation) => operation.path.startsWith("/ui/"))).toBe(false);
});

test("a command contains the key, the body and example path parameters", () => {
	const command = curl(find("startRun"), "https://flows.example.com", "sk_test");
	expect(command).toContain("curl -X POST");
	expect(command).toMatch(/https:\/\/flows\.example\.com\/v1\/workflows\/wf_\w+\/runs/);
	expect(command).toContain("-H 'Authorization: Bearer sk_test'");
	expect(command).toContain(`-d '{"payload":{"name":"Ada"}}'`);
	expect(curl(find("startRun"), "", "")).toContain('"Authorization: Bearer $STEPMILL_KEY"');
});

test("public operations get no key", () => {
	const open = all.flatMap((chapter) => chapter.operations).filter((operation) => !operation.scope);
	expect(open.length).toBeGreaterThan(0);
	for (const operation of open) expect(curl(operation, "", "sk_test")).not.toContain("Bearer");
});

test("quotes text for a shell", () => {
	expect(quote("plain-1.2/x")).toBe("plain-1.2/x");
	expect(quote("it's $HOME")).toBe(`'it'\\''s $HOME'`);
});
