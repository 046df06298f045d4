import { afterEach, expect, test, vi } from "vitest";
import { api } from "@/api/client";
import { importText, importWorkflow, nameFor } from "@/shared/workflow/import";

afterEach(() => vi.restoreAllMocks());

/** posted mocks the server and returns the recorded calls. */
function posted() {
	return vi.spyOn(api, "POST").mockResolvedValue({ data: { id: "wf_1" }, response: new Response() } as never).mock
		.calls;
}

test.each([
	["# greets\nname: Greet\n", "application/yaml"],
	['\n {"name": "Greet",\t"id": "wf_0"}', "application/json"],
])("%j is sent unchanged in one call as %s", async (text, type) => {
	const calls = posted();
	expect(await importText(text, "From a file")).toEqual({ id: "wf_1" });
	expect(calls).toEqual([["/v1/workflows/import", expect.anything()]]);
	const options = calls[0]?.[1] as unknown as { bodySerializer: () => string };
	expect(options).toMatchObject({ params: { query: { name: "From a file" } }, headers: { "Content-Type": type } });
	expect(options.bodySerializer()).toBe(text);
});

test("a whole workflow is sent in one call", async () => {
	const calls = posted();
	await importWorkflow({ name: "Copy", steps: [] });
	expect(calls).toEqual([["/v1/workflows/import", { body: { name: "Copy", steps: [] } }]]);
});

test("derives a missing name from the file name", () => {
	expect(nameFor("close-the-books.yaml")).toBe("close-the-books");
	expect(nameFor("a.b.json")).toBe("a.b");
	expect(nameFor(undefined)).toBe("Imported workflow");
	expect([...nameFor(`${"😀".repeat(300)}.yaml`)]).toHaveLength(200);
});
