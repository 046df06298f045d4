import type { Json } from "@/shared/workflow/model";

/** Where a value comes from. */
export type Origin = "sample" | "run" | "pinned" | "schema" | "none";

/** What started a run. */
export interface RunTrigger {
	readonly id?: string | null;
	readonly payload: Json;
	readonly headers: Json;
	readonly query: Json;
}
