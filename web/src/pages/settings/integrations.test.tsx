import { describe, expect, it, vi } from "vitest";
import { type Call, errorResponse, type Options, renderPage, writeCode } from "@/test/render";
import NewIntegration from "./integration-new";
import { OwnIntegration } from "./integration-page";
import Integrations from "./integrations";

const own = {
	id: "x_acme",
	name: "Acme tickets",
	category: "support",
	keywords: [],
	own: true,
	confirm_hosts: ["api.acme.example"],
	auth: [],
	operations: [{ action: "x_acme.create_ticket" }, { action: "x_acme.get_ticket" }],
	triggers: [{ type: "x_acme.new_ticket" }],
};
const shipped = { ...own, id: "gitlab", name: "GitLab", own: false };
const manifest = {
	id: "x_acme",
	manifest: "id: x_acme # ours\nname: Acme tickets\n",
	created_at: "2026-11-15T10:20:00.250Z",
	created_by: "usr_1",
	updated_at: "2026-11-15T10:21:07.910Z",
	updated_by: "usr_1",
};
const connection = { id: "conn_1", name: "tickets", integration: "x_acme", status: "needs_reconnect" };
const answers = {
	"GET /v1/integrations": { data: [shipped, own], next_cursor: null },
	"GET /v1/integrations/x_acme/manifest": manifest,
	"GET /v1/connections": { data: [connection], next_cursor: null },
};

/** A response with an ETag. */
const tagged = (body: object, etag: string) =>
	new Response(JSON.stringify(body), { headers: { "Content-Type": "application/json", ETag: etag } });

const editor = "Manifest";

describe("the integrations of the workspace", () => {
	const draw = (more: object = {}, options: Options = {}) =>
		renderPage(<Integrations />, { answers: { ...answers, ...more }, ...options });

	it("are listed with their id, operations and triggers, without those that are part of Stepmill", async () => {
		const { screen } = await draw();
		const row = await screen.findByRole("row", { name: /Acme tickets/ });
		for (const text of ["x_acme", "2", "1"]) expect(row.textContent).toContain(text);
		await vi.waitFor(() => expect(row.querySelector("time")).not.toBeNull());
		expect(screen.queryByText("GitLab")).toBeNull();
		expect(document.querySelector("img")).toBeNull();
		screen.getByRole("link", { name: "Add integration" });
	});

	it("can only be read without the scope to write", async () => {
		const { screen } = await draw({}, { scopes: ["read"] });
		await screen.findByRole("row", { name: /Acme tickets/ });
		expect(screen.queryByRole("link", { name: "Add integration" })).toBeNull();
		expect(screen.queryByRole("button", { name: /Delete/ })).toBeNull();
	});

	it("say what they are for if there are none", async () => {
		const { screen } = await draw({ "GET /v1/integrations": { data: [shipped], next_cursor: null } });
		await screen.findByText("No integrations of your own yet");
		screen.getByText("stepmill integrations from-openapi");
	});

	it("name the connections that keep one from being deleted", async () => {
		const message = "the connection “tickets” belongs to it";
		const { screen, user } = await draw({
			"DELETE /v1/integrations/x_acme": errorResponse(409, "integration_in_use", message),
		});
		await user.click(await screen.findByRole("button", { name: "Delete Acme tickets" }));
		await screen.findByRole("link", { name: "tickets" });
		await user.click(screen.getByRole("button", { name: "Delete integration" }));
		expect((await screen.findByRole("alert")).textContent).toContain("belongs to it");
	});
});

describe("a new integration", () => {
	it("begins with an example, shows problems at their place, and is sent as it was written", async () => {
		let rejected = false;
		const { screen, user, calls, router } = await renderPage(<NewIntegration />, {
			answers: {
				...answers,
				"POST /v1/integrations": () => {
					if (rejected) return tagged(own, '"1"');
					rejected = true;
					const problem = { pointer: "/name", message: "is required", line: 2, column: 1 };
					return errorResponse(422, "integration_invalid", "the manifest is not valid", [problem]);
				},
			},
		});
		const area = await screen.findByRole("textbox", { name: editor });
		expect(area.textContent).toContain("id: x_acme");
		const text = "# ours\nid: x_acme\n";
		await writeCode(editor, text);
		const add = screen.getByRole("button", { name: "Add integration" });
		await user.click(add);
		expect((await screen.findByRole("alert")).textContent).toContain("The manifest has 1 problem.");
		screen.getByRole("button", { name: "Line 2, column 1" });
		await vi.waitFor(() => expect(area.querySelector(".cm-lintRange-error")?.textContent).toBe("id: x_acme"));
		await user.click(add);
		await vi.waitFor(() => expect(router.state.location.pathname).toBe("/settings/integrations/x_acme"));
		expect(calls.filter(({ method }) => method === "POST").map((call: Call) => call.text)).toEqual([text, text]);
	});

	it("says where the YAML has a mistake while it is typed", async () => {
		const { screen } = await renderPage(<NewIntegration />, { answers });
		await writeCode(editor, "id: x_acme\nname: [");
		await screen.findByText(/^Line 2, column \d+: /);
	});
});

describe("the manifest of an integration", () => {
	const draw = (more: object = {}, options: Options = {}) =>
		renderPage(<OwnIntegration id="x_acme" />, { answers: { ...answers, ...more }, toasts: true, ...options });

	it("is replaced if nobody else has changed it", async () => {
		let etag = "";
		const { screen, user, calls } = await draw({
			"PUT /v1/integrations/x_acme": (call: Call) => {
				etag = call.headers.get("If-Match") ?? "";
				return tagged(own, '"2"');
			},
		});
		const save = await screen.findByRole<HTMLButtonElement>("button", { name: "Save" });
		expect(save.disabled).toBe(true);
		const section = await screen.findByRole("region", { name: "Connections" });
		expect(section.textContent).toContain("tickets");
		expect(section.textContent).toContain("Needs reconnecting");
		await writeCode(editor, "id: x_acme # ours\nname: Tickets\n");
		await user.click(save);
		await screen.findByText("“Acme tickets” was saved");
		expect(etag).toBe('"1"');
		expect(calls.find(({ method }) => method === "PUT")?.text).toBe("id: x_acme # ours\nname: Tickets\n");
	});

	it("is not overwritten if somebody else has changed it, unless that is wanted", async () => {
		const theirs = { ...manifest, manifest: "id: x_acme\nname: Theirs\n" };
		const tags: (string | null)[] = [];
		let changed = false;
		const { screen, user } = await draw({
			"GET /v1/integrations/x_acme/manifest": () => (changed ? tagged(theirs, '"2"') : tagged(manifest, '"1"')),
			"PUT /v1/integrations/x_acme": (call: Call) => {
				tags.push(call.headers.get("If-Match"));
				changed = true;
				if (tags.length > 1) return tagged(own, '"3"');
				return errorResponse(412, "version_conflict", "it has changed");
			},
		});
		await screen.findByRole("textbox", { name: editor });
		await writeCode(editor, "id: x_acme\nname: Mine\n");
		await user.click(screen.getByRole("button", { name: "Save" }));
		await screen.findByRole("dialog", { name: "“Acme tickets” was changed by somebody else" });
		expect((await screen.findByRole("textbox", { name: "The manifest now" })).textContent).toContain("Theirs");
		await user.click(screen.getByRole("button", { name: "Overwrite with mine" }));
		await screen.findByText("“Acme tickets” was saved");
		expect(tags).toEqual(['"1"', '"2"']);
	});

	it("is replaced by what somebody else has saved, if that is wanted", async () => {
		const theirs = { ...manifest, manifest: "id: x_acme\nname: Theirs\n" };
		let changed = false;
		const { screen, user } = await draw({
			"GET /v1/integrations/x_acme/manifest": () => (changed ? tagged(theirs, '"2"') : tagged(manifest, '"1"')),
			"PUT /v1/integrations/x_acme": () => {
				changed = true;
				return errorResponse(412, "version_conflict", "it has changed");
			},
		});
		await screen.findByRole("textbox", { name: editor });
		await writeCode(editor, "id: x_acme\nname: Mine\n");
		await user.click(screen.getByRole("button", { name: "Save" }));
		await user.click(await screen.findByRole("button", { name: "Discard mine" }));
		await vi.waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
		expect(screen.getByRole("textbox", { name: editor }).textContent).toContain("Theirs");
		expect(screen.getByRole<HTMLButtonElement>("button", { name: "Save" }).disabled).toBe(true);
	});

	it("can only be read without the scope to write", async () => {
		const { screen } = await draw({}, { scopes: ["read"] });
		await screen.findByRole("textbox", { name: editor });
		for (const name of ["Save", "Delete"]) expect(screen.queryByRole("button", { name })).toBeNull();
		screen.getByText("Read only");
	});

	it("is not left unsaved without asking", async () => {
		const { screen, user, router } = await draw();
		await screen.findByRole("textbox", { name: editor });
		await writeCode(editor, "id: x_acme\nname: Mine\n");
		void router.navigate({ to: "/elsewhere" as never });
		await screen.findByRole("dialog", { name: "Leave without saving?" });
		await user.click(screen.getByRole("button", { name: "Leave" }));
		await vi.waitFor(() => expect(router.state.location.pathname).toBe("/elsewhere"));
	});
});
