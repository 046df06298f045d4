import { expect, it } from "vitest";
import { renderPage, writeCode } from "@/test/render";
import { KeyDialog } from "./key-dialog";
import { Keys } from "./keys";

const big = "12345678901234567890";
const json = (text: string, status = 200) =>
	new Response(text, { status, headers: { "Content-Type": "application/json" } });
const keys = json(
	`{"data":[{"key":"counter","value":${big},"expires_at":"2126-01-01T00:00:00.000Z","updated_at":"2026-11-15T10:20:00.250Z"}],"next_cursor":null}`,
);

it("lists the keys of a workflow with exact values", async () => {
	const { screen, calls } = await renderPage(<Keys workflow="wf_1" onNew={() => undefined} />, {
		answers: { "GET /v1/state": keys },
	});
	await screen.findByRole("cell", { name: big });
	expect(calls[0]?.query.get("workflow_id")).toBe("wf_1");
});

it("keeps the expiry of a key that is edited", async () => {
	const { screen, user, calls } = await renderPage(<Keys workflow="" onNew={() => undefined} />, {
		answers: { "GET /v1/state": keys, "PUT /v1/state/counter": {} },
	});
	await user.click(await screen.findByRole("button", { name: "Edit counter" }));
	await writeCode("Value", `[${big}]`);
	await user.click(screen.getByRole("button", { name: "Save key" }));
	await screen.findByRole("button", { name: "Edit counter" });
	const put = calls.find(({ method }) => method === "PUT");
	expect(put?.text).toMatch(new RegExp(`^{"value":\\[${big}\\],"if_absent":false,"expires_in":"[0-9]+s"}$`));
});

it("does not overwrite a key that exists", async () => {
	const { screen, user } = await renderPage(<KeyDialog workflow="" onClose={() => undefined} />, {
		answers: { "PUT /v1/state/counter": json("{}", 200) },
	});
	await user.type(await screen.findByLabelText(/^Name/), "counter");
	await user.click(screen.getByRole("button", { name: "Save key" }));
	await screen.findByText("“counter” already exists. Change its value in the list.");
});

it("shows keys without changing them with read access", async () => {
	const { screen, user } = await renderPage(<Keys workflow="" onNew={() => undefined} />, {
		answers: { "GET /v1/state": keys },
		scopes: ["read"],
	});
	await user.click(await screen.findByRole("button", { name: "View counter" }));
	await screen.findByRole("group", { name: "Value" });
	expect(screen.queryByRole("button", { name: /Save|Delete/ })).toBeNull();
});
