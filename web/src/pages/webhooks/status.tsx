import type { Schema } from "@/api/client";
import { type Status, StatusBadge } from "@/ui/status";

export type DeliveryStatus = Schema["DeliveryStatus"];

/** Each status of a delivery: its name, what it means, and the look that it shares with runs. */
export const statuses: Record<DeliveryStatus, { name: string; means: string; look: Status }> = {
	pending: { name: "Pending", means: "It is under way or waits for its next attempt.", look: "waiting" },
	delivered: { name: "Delivered", means: "The endpoint answered 2xx.", look: "succeeded" },
	exhausted: { name: "Given up", means: "All ten attempts failed.", look: "failed" },
	dropped: { name: "Dropped", means: "The webhook was disabled before it got through.", look: "cancelled" },
};

export function DeliveryBadge({ status }: { status: DeliveryStatus }) {
	const { name, look } = statuses[status];
	return <StatusBadge status={look}>{name}</StatusBadge>;
}
