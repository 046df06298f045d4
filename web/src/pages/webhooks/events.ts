import type { Schema } from "@/api/client";
import { eventNameValues } from "@/api/values";

export type EventName = Schema["EventName"];

const when: Record<EventName, string> = {
	"run.started": "A run begins.",
	"run.succeeded": "A run succeeds.",
	"run.failed": "A run fails.",
	"run.cancelled": "A run is cancelled.",
	"workflow.activated": "A workflow becomes active.",
	"workflow.paused": "A workflow is paused.",
	"connection.broken": "A connection has to be reconnected.",
	"connection.ending": "The consent for a connection ends soon.",
};

/** The events that a webhook can receive. */
export const events = eventNameValues.map((name) => ({ name, when: when[name] }));
