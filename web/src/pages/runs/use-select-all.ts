import { useRef, useState } from "react";
import type { useRuns } from "./use-runs";

type Pages = Pick<ReturnType<typeof useRuns>, "fetchNextPage">;

/**
 * useSelectAll selects all runs that match the filters, not only those that are loaded. The API does not count them, so
 * they are loaded first, and the selection grows as they arrive.
 */
export function useSelectAll({ fetchNextPage }: Pages, onPick: (picked: ReadonlySet<string>) => void) {
	const [loading, setLoading] = useState(false);
	const stopped = useRef(false);
	const start = async () => {
		stopped.current = false;
		setLoading(true);
		for (let more = true; more; ) {
			const { data, error, hasNextPage } = await fetchNextPage();
			if (stopped.current) break;
			onPick(new Set(data?.pages.flatMap((page) => page.data.map((run) => run.id))));
			more = hasNextPage && !error; // the list shows the error
		}
		setLoading(false);
	};
	const stop = () => {
		stopped.current = true;
	};
	return { loading, start, stop };
}
