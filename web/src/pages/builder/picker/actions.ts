import { type UseQueryResult, useQueries, useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { api, got, gotOrNull, type Schema } from "@/api/client";
import { staleTimeOf } from "@/shared/own";
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

/** useActions returns the actions of Stepmill itself. They do not change while the server runs. */
export function useActions() {
	return useQuery({
		queryKey: ["actions"],
		queryFn: ({ signal }) => readAll(signal),
		staleTime: Number.POSITIVE_INFINITY,
	});
}

/** What is known about actions by name: null for one that does not exist. Missing ones are not known yet. */
export type KnownActions = ReadonlyMap<string, Action | null>;

/**
 * foreignNames divides names of actions that are not Stepmill's own into those that may be operations of a service,
 * and those that are unknown: nothing is asked about `log.wri` while somebody types it.
 */
export function foreignNames(names: readonly string[], own: readonly Action[] | undefined) {
	const actions = new Set(own?.map(({ name }) => name));
	const families = new Set([...actions].map(familyOf));
	const foreign = own ? names.filter((name) => !actions.has(name)).sort() : [];
	const mayExist = (name: string) => operationName.test(name) && !families.has(familyOf(name));
	return { wanted: foreign.filter(mayExist), unknown: foreign.filter((name) => !mayExist(name)) };
}

const operationName = /^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*(@[2-9])?$/;

const familyOf = (name: string) => name.slice(0, name.indexOf("."));

/** useOperations returns the operations of integrations with these names. Each is loaded when it is first needed. */
export function useOperations(names: readonly string[]): KnownActions {
	return useQueries({
		queries: names.map((name) => ({
			queryKey: ["actions", name],
			queryFn: ({ signal }: { signal: AbortSignal }) =>
				gotOrNull(api.GET("/v1/actions/{name}", { params: { path: { name } }, signal })),
			staleTime: staleTimeOf(name),
		})),
		// A function that stays the same, or the result would be a new one each time.
		combine: useCallback(
			(results: UseQueryResult<Action | null>[]) =>
				new Map(names.flatMap((name, i) => (results[i]?.data === undefined ? [] : [[name, results[i].data]]))),
			[names],
		),
	});
}

/** The input schemas of actions, for checking steps; null for unknown actions. */
export function inputsOf(known: KnownActions | undefined): Inputs {
	return (name) => {
		const action = known?.get(name);
		return action && (action.input_schema as JsonObject | null);
	};
}
