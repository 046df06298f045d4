import type { Trigger } from "@/shared/workflow/model";
import { ConnectionField } from "../../connection";

/** PollConnection selects the connection that authenticates the request of a poll. */
export function PollConnection({ trigger, pointer }: { trigger: Trigger; pointer: string }) {
	const { connection } = trigger;
	return <ConnectionField value={typeof connection === "string" ? connection : undefined} pointer={pointer} />;
}
