import { useQuery } from "@tanstack/react-query";
import { api, got, type Schema } from "@/api/client";
import type { Inputs, JsonObject } from "@/shared/workflow/model";

export type Action = Schema["Action"];

async function readAll(signal: AbortSignal): Promise<Action[]> {
	const out: Action[] = [];
	let cursor: string | undefined;
	do {
		const page = await got(api.GET("/v1/actions", { params: { query: { limit: 100, cursor } }, signal }));
		out.push(...page.data);
		cursor = page.next_cursor ?? undefined;
	} while (cursor !== undefined);
	return out;
}

/** useActions returns all actions of this installation. They do not change while the server runs. */
export function useActions() {
	return useQuery({
		queryKey: ["actions"],
		queryFn: ({ signal }) => readAll(signal),
		staleTime: Number.POSITIVE_INFINITY,
	});
}

/** The input schemas of the actions, for checking steps; null for unknown actions. */
export function inputsOf(actions: readonly Action[] | undefined): Inputs {
	if (!actions) return () => undefined;
	const known = new Map(actions.map((action) => [action.name, action.input_schema as JsonObject]));
	return (name) => known.get(name) ?? null;
}
