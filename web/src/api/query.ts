import { MutationCache, QueryCache, QueryClient, useInfiniteQuery } from "@tanstack/react-query";
import { toast } from "@/ui/toast";
import { toApiError } from "./error";
import { isUnreachable, recovery } from "./recovery";

declare module "@tanstack/react-query" {
	interface Register {
		defaultError: Error;
		mutationMeta: {
			/** The component shows the error itself, next to its field or in its form. */
			quiet?: boolean;
		};
	}
}

export const queries = new QueryClient({
	defaultOptions: {
		queries: {
			staleTime: 10_000,
			retry: (count, error) => {
				const { status } = toApiError(error);
				return count < 2 && (status === 0 || status >= 500);
			},
		},
		mutations: { retry: false },
	},
	queryCache: new QueryCache({
		// Inactive queries are fetched when they are used again.
		onError: (error, query) => {
			if (isUnreachable(error)) recovery.add(() => void (query.isActive() && query.fetch().catch(() => undefined)));
		},
	}),
	mutationCache: new MutationCache({
		onError: (error, _variables, _context, mutation) => {
			if (!mutation.meta?.quiet) toast.error(toApiError(error));
		},
	}),
});

export interface Page<T> {
	data: T[];
	next_cursor: string | null;
}

/**
 * usePages reads a list page by page, using the API's cursor. The key starts with the
 * resource, as in ["runs", filters], so that live events can invalidate it.
 */
export function usePages<T>(
	key: readonly unknown[],
	read: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>,
	options: { enabled?: boolean } = {},
) {
	const query = useInfiniteQuery({
		queryKey: key,
		queryFn: ({ pageParam, signal }) => read(pageParam, signal),
		initialPageParam: undefined as string | undefined,
		getNextPageParam: (page) => page.next_cursor ?? undefined,
		...options,
	});
	return { ...query, items: query.data?.pages.flatMap((page) => page.data) ?? [] };
}
