import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

type PendingDelivery = { status: string; next_at: string | null };

/** nextRefresh returns in how many milliseconds the next attempt should be finished; null if no delivery is pending. */
export function nextRefresh(deliveries: readonly PendingDelivery[], now: number): number | null {
	const times = deliveries
		.filter((delivery) => delivery.status === "pending")
		.map((delivery) => (delivery.next_at ? Date.parse(delivery.next_at) : now));
	if (times.length === 0) return null;
	// Allow for the duration of an attempt, and for the limit of setTimeout.
	return Math.min(Math.max(Math.min(...times) - now + 500, 1_000), 3_600_000);
}

/**
 * useRefreshWhenDue refetches a query when one of its deliveries has been attempted,
 * because no event announces that.
 */
export function useRefreshWhenDue(
	deliveries: readonly PendingDelivery[],
	key: readonly unknown[],
	readAt: number,
): void {
	const client = useQueryClient();
	const name = JSON.stringify(key);
	// biome-ignore lint/correctness/useExhaustiveDependencies: each fetch resets the timer
	useEffect(() => {
		const wait = nextRefresh(deliveries, Date.now());
		if (wait === null) return undefined;
		const timer = setTimeout(() => void client.invalidateQueries({ queryKey: JSON.parse(name) }), wait);
		return () => clearTimeout(timer);
	}, [client, name, readAt]);
}
