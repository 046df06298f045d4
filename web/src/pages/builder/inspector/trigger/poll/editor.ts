import type { TriggerEditor } from "../editor";
import { PollConnection } from "./connection";

export const poll: TriggerEditor = {
	order: ["request", "every", "items", "key", "cursor"],
	without: ["connection"],
	After: PollConnection,
	bare: ["items", "key", "cursor"],
	expressions: { request: true },
};
