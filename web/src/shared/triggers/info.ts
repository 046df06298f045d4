import type { JsonObject, TriggerType } from "@/shared/workflow/model";
import type { Icon } from "@/ui/icons";

/** What the dashboard knows about a type of trigger, besides its form in the builder. */
export interface TriggerInfo {
	readonly type: TriggerType;
	readonly name: string;
	readonly icon: Icon;
	/** What starts the workflow, in the picker. */
	readonly summary: string;
	/** Further words that people search for it by. */
	readonly keywords: readonly string[];
	/** What starts runs, above its settings. */
	readonly lead: string;
	/** The members of a new trigger. */
	readonly initial: JsonObject;
	/** The pointer of the field that gets the focus in a new trigger. */
	readonly first: string;
	/** It has a URL, and its calls are recorded. */
	readonly called?: boolean;
	/** Several of them are not counted: any workflow can be started this way. */
	readonly uncounted?: boolean;
}
