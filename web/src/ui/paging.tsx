import { type ReactNode, useEffect, useRef } from "react";
import { Button } from "./button";
import { ErrorNote, ErrorState, SkeletonRows } from "./states";

/** What `usePages` of the API answers, as far as a list needs it. */
interface Pages<T> {
	items: T[];
	isPending: boolean;
	error: unknown;
	refetch: () => unknown;
	hasNextPage: boolean;
	isFetchingNextPage: boolean;
	fetchNextPage: () => unknown;
}

export interface PagedProps<T> {
	pages: Pages<T>;
	/** Shown when there is nothing at all. */
	empty: ReactNode;
	children: (items: T[]) => ReactNode;
	rows?: number;
}

/** Paged is a list in all its states: being read, empty, refused, and with more to come. */
export function Paged<T>({ pages, empty, children, rows }: PagedProps<T>) {
	if (pages.isPending) return <SkeletonRows rows={rows} />;
	if (pages.error && pages.items.length === 0)
		return <ErrorState error={pages.error} onRetry={() => pages.refetch()} />;
	if (pages.items.length === 0 && !pages.hasNextPage) return empty;
	return (
		<>
			{pages.items.length > 0 && children(pages.items)}
			{pages.error != null && <ErrorNote error={pages.error} className="m-4" />}
			<More pages={pages} />
		</>
	);
}

/** More reads the next page when it comes into view, or when asked. */
export function More<T>({ pages }: { pages: Pages<T> }) {
	const end = useRef<HTMLDivElement>(null);
	const { hasNextPage, isFetchingNextPage, fetchNextPage, error } = pages;
	const idle = hasNextPage && !isFetchingNextPage && !error;
	useEffect(() => {
		const mark = end.current;
		if (!mark || !idle) return undefined;
		const observer = new IntersectionObserver(
			(seen) => seen.some((one) => one.isIntersecting) && void fetchNextPage(),
			{ rootMargin: "400px" },
		);
		observer.observe(mark);
		return () => observer.disconnect();
	}, [idle, fetchNextPage]);
	if (!hasNextPage) return null;
	return (
		<div ref={end} className="flex justify-center border-t p-3">
			<Button kind="quiet" busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
				{isFetchingNextPage ? "Loading more" : "Load more"}
			</Button>
		</div>
	);
}
