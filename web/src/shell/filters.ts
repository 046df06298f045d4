import { useNavigate, useRouterState } from "@tanstack/react-router";
import { useCallback } from "react";

export type Search = Record<string, string>;

/** readSearch and writeSearch keep query strings readable: plain names and plain text. */
export function readSearch(text: string): Search {
	return Object.fromEntries(new URLSearchParams(text));
}

export function writeSearch(search: Record<string, unknown>): string {
	const params = new URLSearchParams();
	for (const [name, value] of Object.entries(search)) {
		if (value !== undefined && value !== null && value !== "") params.set(name, String(value));
	}
	const text = params.toString();
	return text ? `?${text}` : "";
}

/**
 * useFilters keeps the filters of a list in the URL. Setting a filter to undefined or ""
 * removes it. `replace` adds no history entry, as for each keystroke of a search.
 */
export function useFilters<K extends string>(): [
	Partial<Record<K, string>>,
	(patch: Partial<Record<K, string | undefined>>, options?: { replace?: boolean }) => void,
] {
	const search: Search = useRouterState({ select: (state) => state.location.search as Search });
	const navigate = useNavigate();
	const set = useCallback(
		(patch: Partial<Record<K, string | undefined>>, options?: { replace?: boolean }) =>
			void navigate({ to: ".", search: (old) => ({ ...old, ...patch }) as Search, replace: options?.replace }),
		[navigate],
	);
	return [search as Partial<Record<K, string>>, set];
}
