import { CompletionContext, type CompletionResult, type CompletionSource } from "@codemirror/autocomplete";
import { EditorState } from "@codemirror/state";
import { expect, test } from "vitest";
import { scopeAt } from "@/shared/workflow/expression/scope";
import { emptyDoc } from "@/shared/workflow/model";
import { completion } from "./completion";

function optionsAt(text: string) {
	const doc = { ...emptyDoc, steps: [{ id: "get", uses: "http.request" }] };
	const scope = scopeAt(doc, "/steps/0/with/url", {});
	const state = EditorState.create({ doc: text, extensions: completion(() => scope, "bare") });
	const [source] = state.languageDataAt<CompletionSource>("autocomplete", text.length);
	const found = source?.(new CompletionContext(state, text.length, true)) as CompletionResult | null;
	return found?.options ?? [];
}

test("a function is offered with its signature and description", () => {
	expect(optionsAt("formatN")).toMatchObject([
		{
			label: "formatNumber",
			type: "function",
			detail: "(number[, locale[, options]]) string",
			info: expect.stringMatching(/^The number as people write it/),
		},
	]);
});

test("a name has no description", () => {
	expect(optionsAt("workf")[0]).toMatchObject({ label: "workflow", type: "property", detail: "this workflow" });
	expect(optionsAt("workf")[0]).not.toHaveProperty("info");
});
