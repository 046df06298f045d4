import type { Schema } from "@/api/client";
import { triggerName } from "@/shared/triggers";

type Starter = Schema["RunStarter"];

/** starterName returns the name of an API key or a person. */
export function starterName({ type, id, name }: Starter): string {
	if (type !== "api_key") return name ?? id;
	return name === null ? `API key ${id}` : `API key “${name}”`;
}

/** originOf describes what started a run: a trigger, a person or an API key. */
export function originOf(trigger: string, by: Starter | null | undefined): string {
	if (!by) return triggerName(trigger);
	if (trigger !== "manual") return `${triggerName(trigger)}, by ${starterName(by)}`;
	return by.type === "user" ? `Run by ${starterName(by)}` : starterName(by);
}
