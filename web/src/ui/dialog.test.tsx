import { waitFor } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";
import { ApiError } from "@/api/error";
import { renderPage } from "@/test/render";
import { Button } from "./button";
import { ConfirmDialog, Dialog, Sheet } from "./dialog";
import { Field, TextInput } from "./field";

describe("a dialog", () => {
	it("is labelled by its title and description, and focuses its first field", async () => {
		const { screen } = await renderPage(
			<Dialog open onOpenChange={() => {}} title="New key" description="For programs.">
				<Field label="Name">
					<TextInput />
				</Field>
			</Dialog>,
		);
		const dialog = screen.getByRole("dialog", { name: "New key" });
		expect(document.getElementById(dialog.getAttribute("aria-describedby") ?? "")?.textContent).toBe("For programs.");
		expect(document.activeElement).toBe(screen.getByRole("textbox", { name: "Name" }));
	});

	it("closes on Escape and by its button", async () => {
		const onOpenChange = vi.fn();
		const { screen, user } = await renderPage(<Dialog open onOpenChange={onOpenChange} title="One" />);
		await user.keyboard("{Escape}");
		await user.click(screen.getByRole("button", { name: "Close" }));
		expect(onOpenChange.mock.calls).toEqual([[false], [false]]);
	});

	it("submits on Enter without leaving the page", async () => {
		const onSubmit = vi.fn();
		const { screen, user } = await renderPage(
			<Dialog open onOpenChange={() => {}} title="One" onSubmit={onSubmit} actions={<Button type="submit">Go</Button>}>
				<TextInput aria-label="Name" />
			</Dialog>,
		);
		await user.type(screen.getByRole("textbox", { name: "Name" }), "a{Enter}");
		expect(onSubmit).toHaveBeenCalledOnce();
	});
});

describe("a confirmation", () => {
	const asked = (onConfirm: () => Promise<unknown>, onOpenChange = vi.fn()) => (
		<ConfirmDialog open onOpenChange={onOpenChange} title="Delete it?" verb="Delete" danger onConfirm={onConfirm}>
			This cannot be undone.
		</ConfirmDialog>
	);

	it("waits for the call, then closes", async () => {
		let done = () => {};
		const onOpenChange = vi.fn();
		const call = vi.fn(() => new Promise<void>((resolve) => (done = resolve)));
		const { screen, user } = await renderPage(asked(call, onOpenChange));
		await user.click(screen.getByRole("button", { name: "Delete" }));
		expect(screen.getByRole<HTMLButtonElement>("button", { name: "Cancel" }).disabled).toBe(true);
		await user.keyboard("{Escape}");
		expect(onOpenChange).not.toHaveBeenCalled();
		done();
		await waitFor(() => expect(onOpenChange).toHaveBeenCalledWith(false));
		expect(call).toHaveBeenCalledOnce();
	});

	it("stays open with the server's error, and clears it when closed", async () => {
		const onOpenChange = vi.fn();
		const fail = () => Promise.reject(new ApiError(409, "workflow_in_use", "it is in use", [], "req_9"));
		const { screen, user } = await renderPage(asked(fail, onOpenChange));
		await user.click(screen.getByRole("button", { name: "Delete" }));
		expect((await screen.findByRole("alert")).textContent).toContain("It is in use.");
		expect(screen.getByRole("alert").textContent).toContain("req_9");
		expect(onOpenChange).not.toHaveBeenCalled();
		await user.click(screen.getByRole("button", { name: "Cancel" }));
		expect(onOpenChange).toHaveBeenCalledWith(false);
		expect(screen.queryByRole("alert")).toBeNull();
	});
});

describe("a sheet", () => {
	const sheet = (focus?: "field" | "sheet") => (
		<Sheet open onOpenChange={() => {}} title="Step" focus={focus}>
			<TextInput aria-label="Name" />
		</Sheet>
	);

	it("focuses its first field", async () => {
		const { screen } = await renderPage(sheet());
		expect(document.activeElement).toBe(screen.getByRole("textbox", { name: "Name" }));
	});

	it("leaves the focus to its content if asked to", async () => {
		const { screen } = await renderPage(sheet("sheet"));
		expect(document.activeElement).toBe(screen.getByRole("dialog", { name: "Step" }));
	});
});
