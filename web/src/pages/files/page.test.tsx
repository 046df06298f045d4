import { expect, test } from "vitest";
import { errorResponse, renderPage } from "@/test/render";
import Files from "./page";

const file = {
	id: "file_1",
	name: "invoice.pdf",
	type: "application/pdf",
	size: 2048,
	sha256: "a1",
	created_at: "2026-11-16T10:20:00Z",
	expires_at: null,
};
const list = { "GET /v1/files": { data: [file], next_cursor: null } };

test("a file in use is listed, and deleting it is explained", async () => {
	const message = "Something refers to the file file_1, such as a run; it is deleted with the last of them.";
	const { screen, user } = await renderPage(<Files />, {
		answers: { ...list, "DELETE /v1/files/file_1": errorResponse(409, "file_in_use", message) },
	});
	await screen.findByRole("row", { name: /invoice\.pdf.*application\/pdf 2 KiB.*in use/ });
	await user.click(screen.getByRole("button", { name: "Delete invoice.pdf" }));
	screen.getByText(/As long as it does, the file cannot be deleted/);
	await user.click(screen.getByRole("button", { name: "Delete file" }));
	expect((await screen.findByRole("alert")).textContent).toContain(message);
});

test("people who may only read can neither upload nor delete", async () => {
	const { screen } = await renderPage(<Files />, { answers: list, scopes: ["read"] });
	await screen.findByRole("link", { name: "Download invoice.pdf" });
	expect(screen.queryByRole("button", { name: "Choose files" })).toBeNull();
	expect(screen.queryByRole("button", { name: "Delete invoice.pdf" })).toBeNull();
});
