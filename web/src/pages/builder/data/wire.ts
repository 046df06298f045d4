import { api, got, type Schema } from "@/api/client";
import { type FileMember, startWith } from "@/shared/files/attachment";
import type { Doc, Json } from "@/shared/workflow/model";
import type { Answer, Question } from "../inspector/expression/preview";
import type { Sample } from "./sample";

// The API calls that test an unsaved document.

type Definition = NonNullable<Schema["RunStart"]["definition"]>;
type Pins = NonNullable<Schema["RunStart"]["pinned"]>;

/** The request body for an unsaved document, with exactly the pins of that document. */
export function draftBody(doc: Doc, stored: Readonly<Record<string, Json>>) {
	const { triggers, steps, settings } = doc;
	const gone = Object.keys(stored).filter((id) => doc.pinned[id] === undefined);
	const pinned = { ...Object.fromEntries(gone.map((id) => [id, null])), ...doc.pinned } as Pins;
	return { definition: { triggers, steps, settings } as unknown as Definition, use_pinned: true, pinned };
}

export interface EvaluateData {
	readonly run?: string;
	/** The path of the step in the run. */
	readonly path?: string;
	readonly pinned: Readonly<Record<string, Json>>;
	/** The data of the trigger, in place of that of the run. */
	readonly sample: Sample | null;
}

/** evaluate returns the values of expressions, in order. */
export async function evaluate(
	questions: readonly Question[],
	{ run, path, pinned, sample }: EvaluateData,
	signal: AbortSignal,
): Promise<readonly Answer[]> {
	const steps = Object.entries(pinned)
		.filter(([id]) => !id.startsWith("@"))
		.map(([id, output]) => [id, { output, status: "succeeded" }]);
	const context = {
		...(steps.length > 0 && { steps: Object.fromEntries(steps) }),
		...(sample && { trigger: triggerOf(sample) }),
	};
	const body: Schema["ExpressionEvaluate"] = {
		expressions: [...questions],
		...(run && { run_id: run, ...(path && { step_id: path }) }),
		...(Object.keys(context).length > 0 && { context }),
	};
	const answer = await got(api.POST("/v1/expressions/evaluate", { body, signal }));
	return (answer as Schema["EvaluationList"]).results as readonly Answer[];
}

function triggerOf({ payload, headers, query }: Sample) {
	return { payload, ...(headers && { headers }), ...(query && { query }) } as never;
}

export type Tested = Schema["StepTested"];

/** testStep executes one step of the document. */
export function testStep(
	workflow: string,
	path: string,
	draft: ReturnType<typeof draftBody>,
	run: string | null,
	sample: Sample | null,
): Promise<Tested> {
	const params = { path: { id: workflow, step_id: path } };
	const body = { ...draft, ...(run && { run_id: run }), ...(sample && { context: { trigger: triggerOf(sample) } }) };
	return got(api.POST("/v1/workflows/{id}/steps/{step_id}/test", { params, body }));
}

/** runDraft starts a run of the document. */
export async function runDraft(
	workflow: string,
	draft: ReturnType<typeof draftBody>,
	{ payload, headers = {}, query = {}, trigger }: Sample,
	attached: readonly FileMember[],
	kept: readonly FileMember[],
): Promise<Schema["Run"]> {
	const params = { path: { workflow_id: workflow } };
	const fired = trigger === undefined ? {} : { trigger_id: trigger, headers: headers as never, query: query as never };
	const body = { ...draft, ...startWith(payload as Record<string, never>, attached, kept), ...fired };
	return got(api.POST("/v1/workflows/{workflow_id}/runs", { params, body }));
}
