import type { Schema } from "@/api/client";

export type EventName = Schema["EventName"];

/** The events that a webhook can be told of. */
export const events: { name: EventName; when: string }[] = [
	{ name: "run.started", when: "A run begins." },
	{ name: "run.succeeded", when: "A run comes to a good end." },
	{ name: "run.failed", when: "A run fails." },
	{ name: "run.cancelled", when: "Somebody or something stops a run." },
	{ name: "workflow.activated", when: "A workflow becomes active." },
	{ name: "workflow.paused", when: "A workflow is paused." },
];
