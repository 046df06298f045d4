import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

type Waiting = { status: string; next_at: string | null };

/** due is in how many milliseconds one of the deliveries will have been tried again; null when none waits. */
export function due(deliveries: readonly Waiting[], now: number): number | null {
	const times = deliveries
		.filter((delivery) => delivery.status === "pending")
		.map((delivery) => (delivery.next_at ? Date.parse(delivery.next_at) : now));
	if (times.length === 0) return null;
	// An attempt takes a moment; a timer cannot run for more than some days.
	return Math.min(Math.max(Math.min(...times) - now + 500, 1_000), 3_600_000);
}

/** useDue reads a query again when a delivery in it has been tried: no event tells of that. */
export function useDue(deliveries: readonly Waiting[], key: readonly unknown[], readAt: number): void {
	const client = useQueryClient();
	const name = JSON.stringify(key);
	// biome-ignore lint/correctness/useExhaustiveDependencies: each reading sets the timer anew
	useEffect(() => {
		const wait = due(deliveries, Date.now());
		if (wait === null) return undefined;
		const timer = setTimeout(() => void client.invalidateQueries({ queryKey: JSON.parse(name) }), wait);
		return () => clearTimeout(timer);
	}, [client, name, readAt]);
}
