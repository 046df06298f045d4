import type { Schema } from "@/api/client";
import { type Status, StatusBadge } from "@/ui/status";

export type DeliveryStatus = Schema["DeliveryStatus"];

/** The delivery statuses: name, description, and the run status whose style they share. */
export const statuses: Record<DeliveryStatus, { name: string; description: string; look: Status }> = {
	pending: { name: "Pending", description: "In progress or waiting for the next attempt.", look: "waiting" },
	delivered: { name: "Delivered", description: "The endpoint responded with a 2xx status.", look: "succeeded" },
	exhausted: { name: "Exhausted", description: "All ten attempts failed.", look: "failed" },
	dropped: {
		name: "Dropped",
		description: "The webhook was disabled before the event was delivered.",
		look: "cancelled",
	},
};

export function DeliveryBadge({ status }: { status: DeliveryStatus }) {
	const { name, look } = statuses[status];
	return <StatusBadge status={look}>{name}</StatusBadge>;
}
