import { type ReactNode, useEffect, useRef } from "react";
import { Button } from "./button";
import { ErrorNote, ErrorState, SkeletonRows } from "./states";

/** The part of the result of `usePages` that a list needs. */
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
	/** Shown if the list is empty. */
	empty: ReactNode;
	children: (items: T[]) => ReactNode;
	rows?: number;
}

/** Paged renders a list in all its states: loading, empty, failed, and with more to load. */
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

/** More loads the next page when it scrolls into view or is clicked. */
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
