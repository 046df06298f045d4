import type { Schema } from "@/api/client";

export type EventName = Schema["EventName"];

/** The events that a webhook can receive, and when. */
export const events: readonly { readonly name: EventName; readonly when: string }[] = [
	// generated: event types (make gen)
	{ name: "run.started", when: "A run begins." },
	{ name: "run.succeeded", when: "A run succeeds." },
	{ name: "run.failed", when: "A run fails." },
	{ name: "run.cancelled", when: "A run is cancelled." },
	{ name: "workflow.activated", when: "A workflow becomes active." },
	{ name: "workflow.paused", when: "A workflow is paused." },
	{ name: "connection.broken", when: "A connection has to be reconnected." },
	{ name: "connection.ending", when: "The consent for a connection ends soon." },
	// end of event types
];
