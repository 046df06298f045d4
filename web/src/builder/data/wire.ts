import { api, got, type Schema } from "@/api/client";
import type { Doc, Json } from "@/builder/model";
import type { Answer, Question } from "../inspector/expression/preview";

// The calls that build and try out a document that is not saved.

type Definition = NonNullable<Schema["RunStart"]["definition"]>;
type Pins = NonNullable<Schema["RunStart"]["pinned"]>;

/** The document as the server takes one that is not saved, with the pins of the document and no others. */
export function draftOf(doc: Doc, stored: Readonly<Record<string, Json>>) {
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
}

/** evaluate tells the values of expressions, in their order. */
export async function evaluate(
	questions: readonly Question[],
	{ run, path, pinned }: EvaluateData,
	signal: AbortSignal,
): Promise<readonly Answer[]> {
	const steps = Object.entries(pinned).map(([id, output]) => [id, { output, status: "succeeded" }]);
	const body: Schema["ExpressionEvaluate"] = {
		expressions: [...questions],
		...(run && { run_id: run, ...(path && { step_id: path }) }),
		...(steps.length > 0 && { context: { steps: Object.fromEntries(steps) } }),
	};
	const answer = await got(api.POST("/v1/expressions/evaluate", { body, signal }));
	return (answer as Schema["EvaluationList"]).results as readonly Answer[];
}

export type Tested = Schema["StepTested"];

/** testStep executes one step of the document. */
export function testStep(
	workflow: string,
	path: string,
	draft: ReturnType<typeof draftOf>,
	run: string | null,
): Promise<Tested> {
	const params = { path: { id: workflow, step_id: path } };
	const body = { ...draft, ...(run && { run_id: run }) };
	return got(api.POST("/v1/workflows/{id}/steps/{step_id}/test", { params, body }));
}

/** runDraft starts a run of the document. */
export function runDraft(workflow: string, draft: ReturnType<typeof draftOf>, payload: Json): Promise<Schema["Run"]> {
	const params = { path: { workflow_id: workflow } };
	const body = { ...draft, payload: payload as Record<string, never> };
	return got(api.POST("/v1/workflows/{workflow_id}/runs", { params, body }));
}
