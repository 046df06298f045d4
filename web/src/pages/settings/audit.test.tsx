import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { renderPage } from "@/test/render";
import Audit, { actionLabel } from "./audit";

const entry = (more: object) => ({
	id: "aud_1",
	at: "2026-11-15T09:00:00Z",
	actor: { type: "user", id: "usr_1", name: "Ada Lovelace" },
	action: "workflow.restored",
	target_type: "workflow",
	target_id: "wf_1",
	target_name: "Orders",
	details: { name: "Orders", version: 4, restored_version: 2 },
	request_id: null,
	...more,
});

describe("the audit log", () => {
	it("names actors and objects, and falls back to ids", async () => {
		const gone = entry({
			id: "aud_2",
			actor: { type: "api_key", id: "key_1", name: null },
			action: "workflow.deleted",
			target_id: "wf_2",
			target_name: "Old orders",
			details: { name: "Old orders" },
		});
		await renderPage(<Audit />, { answers: { "GET /v1/audit": { data: [entry({}), gone], next_cursor: null } } });
		expect((await screen.findByRole("link", { name: "Orders" })).getAttribute("href")).toBe("/workflows/wf_1");
		screen.getByText("Ada Lovelace");
		screen.getByText("by Ada Lovelace"); // on a phone, instead of the column
		screen.getByText("version: 4, restored version: 2");
		screen.getByText("Old orders");
		expect(screen.queryByRole("link", { name: "Old orders" })).toBeNull();
		screen.getByText("key_1");
	});

	it("says actions in words", () => {
		expect(actionLabel("workflow.restored")).toBe("Workflow restored");
		expect(actionLabel("api_key.revoked")).toBe("API key revoked");
		expect(actionLabel("user.password_changed")).toBe("User password changed");
	});
});
