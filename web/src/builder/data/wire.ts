import { api, got, type Schema } from "@/api/client";
import type { Doc, Json } from "@/builder/model";
import type { Answer, Question } from "../inspector/expression/preview";

/** The parts of a document that the server takes as an unsaved definition. */
export function definitionOf({ triggers, steps, settings }: Doc): object {
	return { triggers, steps, settings };
}

export interface EvaluateData {
	run_id?: string;
	step_id?: string;
	pinned?: Readonly<Record<string, Json>>;
}

/** evaluate tells the values of expressions, in their order. */
export async function evaluate(
	expressions: readonly Question[],
	data: EvaluateData,
	signal: AbortSignal,
): Promise<readonly Answer[]> {
	const body = { expressions, ...data } as never;
	const answer = await got(api.POST("/v1/expressions/evaluate", { body, signal }));
	return (answer as unknown as { results: Answer[] }).results;
}

/** Where what a step refers to came from. */
export interface TestSource {
	readonly name: string;
	readonly source: "given" | "pinned" | "run" | "none";
}

export type Tested = Schema["StepTested"] & { readonly sources?: readonly TestSource[] };

export interface TestRequest {
	run_id?: string;
	definition: object;
	use_pinned: boolean;
	pinned: Readonly<Record<string, Json>>;
}

/** testStep executes one step of the unsaved document. */
export async function testStep(workflow: string, path: string, request: TestRequest): Promise<Tested> {
	const params = { path: { id: workflow, step_id: path } };
	return got(api.POST("/v1/workflows/{id}/steps/{step_id}/test", { params, body: request as never }));
}

export interface DraftRequest {
	payload?: Json;
	definition: object;
	use_pinned: boolean;
	pinned: Readonly<Record<string, Json>>;
}

/** runDraft starts a run of the unsaved document. */
export async function runDraft(workflow: string, request: DraftRequest): Promise<Schema["Run"]> {
	const params = { path: { workflow_id: workflow } };
	return got(api.POST("/v1/workflows/{workflow_id}/runs", { params, body: request as never })) as Promise<
		Schema["Run"]
	>;
}
