import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, got } from "@/api/client";
import { useLiveQueries } from "@/live/hooks";

/** No event announces that a run has reached an approval, so the list is also refetched periodically. */
const refreshInterval = 15_000;

/** useFreshApprovals refetches approvals when runs start and end, and periodically while the tab is visible. */
export function useFreshApprovals(part: "all" | "count"): void {
	const client = useQueryClient();
	useLiveQueries("run.*", ["approvals", part]);
	useEffect(() => {
		const timer = setInterval(() => {
			if (document.visibilityState !== "hidden") void client.invalidateQueries({ queryKey: ["approvals", part] });
		}, refreshInterval);
		return () => clearInterval(timer);
	}, [client, part]);
}

/** useWaitingCount returns the number of waiting approvals, such as "3" or "100+". */
export function useWaitingCount(): string | undefined {
	useFreshApprovals("count");
	const { data } = useQuery({
		queryKey: ["approvals", "count"],
		queryFn: ({ signal }) => got(api.GET("/v1/approvals", { params: { query: { limit: 100 } }, signal })),
	});
	if (!data || data.data.length === 0) return undefined;
	return data.next_cursor === null ? String(data.data.length) : `${data.data.length}+`;
}
