import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, got } from "@/api/client";
import { type Found, narrow, nothing } from "./narrow";

/** The longest query that the server accepts, in characters. */
export const maxQuery = 200;

/** How long to wait after the last keystroke before asking the server. */
const pause = 150;

/** useDebounced returns the value once it has not changed for a while. */
export function useDebounced<T>(value: T, ms: number): T {
	const [settled, setSettled] = useState(value);
	useEffect(() => {
		const timer = setTimeout(() => setSettled(value), ms);
		return () => clearTimeout(timer);
	}, [value, ms]);
	return settled;
}

export interface Searching {
	found: Found;
	/** The results for the current text have not arrived yet. */
	busy: boolean;
	error: unknown;
	retry: () => void;
}

/**
 * useSearch searches the workspace on the server while the user types. It cancels requests
 * that are no longer needed. Empty text finds nothing.
 */
export function useSearch(text: string, types: string, limit: number): Searching {
	const wanted = text.trim();
	const asked = useDebounced(wanted, pause);
	const query = useQuery({
		queryKey: ["search", types, limit, asked],
		queryFn: ({ signal }) => got(api.GET("/v1/search", { params: { query: { q: asked, types, limit } }, signal })),
		enabled: asked !== "",
		placeholderData: keepPreviousData,
	});
	const fresh = asked === wanted && !query.isPlaceholderData;
	const data = query.data ?? nothing;
	const retry = () => void query.refetch();
	if (wanted === "") return { found: nothing, busy: false, error: null, retry };
	if (!fresh) return { found: narrow(data, wanted), busy: true, error: null, retry };
	return { found: data, busy: query.isPending, error: query.error, retry };
}

/** useRecentWorkflows returns the newest workflows, to choose from before anything is typed. */
export function useRecentWorkflows(limit: number) {
	return useQuery({
		queryKey: ["workflows", "recent", limit],
		queryFn: ({ signal }) => got(api.GET("/v1/workflows", { params: { query: { limit } }, signal })),
	});
}

/** useWorkflowName returns the name of a workflow: undefined while loading, null if it does not exist. */
export function useWorkflowName(id: string | null): string | null | undefined {
	const { data, error } = useQuery({
		queryKey: ["workflows", "name", id],
		queryFn: async ({ signal }) => {
			const workflow = await got(api.GET("/v1/workflows/{id}", { params: { path: { id: id ?? "" } }, signal }));
			return (workflow as { name: string }).name;
		},
		enabled: Boolean(id),
		staleTime: 60_000,
	});
	return error ? null : data;
}
