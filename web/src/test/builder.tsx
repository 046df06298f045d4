import type { ReactNode } from "react";
import { vi } from "vitest";
import type { Schema } from "@/api/client";
import { Editor, EditorContext } from "@/pages/builder/state";
import { FakeServer, MemoryDrafts, workflow } from "@/pages/builder/state/fake.test-data";
import { type Options, renderPage } from "./render";

const empty = { data: [], next_cursor: null };

const text = { type: "string" };
const actions = [
	{
		name: "log.write",
		title: "Write to the log",
		summary: "Adds a line to the log of the step.",
		accepts_connection: false,
		input_schema: { type: "object", properties: { message: text }, required: ["message"] },
		output_schema: { type: "object", properties: {} },
	},
];

/** renderBuilder renders part of the builder with an open workflow. */
export async function renderBuilder(
	ui: ReactNode,
	change: Partial<Schema["Workflow"]> | object = {},
	{ answers, ...options }: Options & { mayWrite?: boolean } = {},
) {
	const server = new FakeServer(workflow(change as Partial<Schema["Workflow"]>));
	const onRejected = vi.fn();
	const editor = new Editor(server.now, { server, drafts: new MemoryDrafts(), onRejected, mayWrite: options.mayWrite });
	const drawn = await renderPage(<EditorContext value={editor}>{ui}</EditorContext>, {
		...options,
		answers: {
			"GET /v1/actions": { data: actions, next_cursor: null },
			"GET /v1/schemas/workflow.json": {
				$defs: { step: { properties: {} }, retry: { type: "object", properties: {} } },
			},
			"GET /v1/workflows/wf_1/runs": empty,
			"GET /v1/workflows/wf_1/triggers": empty,
			"GET /v1/workflows/wf_1/versions": empty,
			"GET /v1/variables": empty,
			"GET /v1/secrets": empty,
			"POST /v1/expressions/evaluate": { results: [] },
			...answers,
		},
	});
	return { ...drawn, editor, server, onRejected };
}
