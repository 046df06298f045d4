import type { TriggerEditor } from "../editor";

export const poll: TriggerEditor = {
	order: ["request", "every", "items", "key", "cursor"],
	bare: ["items", "key", "cursor"],
	expressions: { request: true },
};
