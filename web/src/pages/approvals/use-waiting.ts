import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, got } from "@/api/client";
import { useLiveQueries } from "@/live/hooks";

/** No event says that a run has come to an approval, so that the list is also read again now and then. */
const every = 15_000;

/** useFreshApprovals reads approvals again when runs start and end, and now and then while somebody looks. */
export function useFreshApprovals(part: "all" | "count"): void {
	const client = useQueryClient();
	useLiveQueries("run.*", ["approvals", part]);
	useEffect(() => {
		const timer = setInterval(() => {
			if (document.visibilityState !== "hidden") void client.invalidateQueries({ queryKey: ["approvals", part] });
		}, every);
		return () => clearInterval(timer);
	}, [client, part]);
}

/** useWaiting is how many steps wait for a person, as far as they are counted. */
export function useWaiting(): string | undefined {
	useFreshApprovals("count");
	const { data } = useQuery({
		queryKey: ["approvals", "count"],
		queryFn: ({ signal }) => got(api.GET("/v1/approvals", { params: { query: { limit: 100 } }, signal })),
	});
	if (!data || data.data.length === 0) return undefined;
	return data.next_cursor === null ? String(data.data.length) : `${data.data.length}+`;
}
