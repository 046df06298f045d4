import { act, within } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";
import { renderBuilder } from "@/test/builder";
import { DetailsPanel, DetailsSheet } from "./details";
import { Header } from "./header";
import { Notices } from "./notices";

const source = "name: Orders\nsteps:\n  - id: a\n    uses: log.write\n";

describe("the problems of a workflow", () => {
	const problem = { pointer: "/steps/0/with/message", message: "is required", node: "a" };

	it("are counted, listed and linked to their field", async () => {
		const { screen, user, editor } = await renderBuilder(
			<>
				<Header />
				<DetailsPanel />
			</>,
		);
		await user.click(screen.getByRole("button", { name: "0 problems" }));
		screen.getByText("No problems");
		act(() => editor.set({ problems: [problem] }));
		screen.getByRole("button", { name: "1 problem" });
		const list = within(screen.getByRole("region", { name: "Problems" }));
		await user.click(list.getByRole("button", { name: "a Message is required." }));
		expect(editor.get()).toMatchObject({ selected: ["a"], side: "settings", target: { field: "/with/message" } });
	});

	it("are followed by warnings, which an active workflow shows", async () => {
		const { screen, user, editor } = await renderBuilder(
			<>
				<Header />
				<Notices />
				<DetailsPanel />
			</>,
		);
		const message = "Step Send the report still has the placeholder address api.example.com";
		act(() => editor.set({ warnings: [{ pointer: "/steps/0/with/url", message, node: "a" }] }));
		screen.getByRole("button", { name: "1 warning" });
		expect(screen.queryByText(/The workflow is active/)).toBeNull();
		act(() => editor.set({ about: { ...editor.get().about, state: "active" } }));
		screen.getByText(`The workflow is active. ${message}.`);
		await user.click(screen.getByRole("button", { name: "Show warnings" }));
		const list = within(screen.getByRole("region", { name: "Problems" }));
		await user.click(list.getByRole("button", { name: new RegExp(`Warning: ${message}`) }));
		expect(editor.get()).toMatchObject({ selected: ["a"], side: "settings", target: { field: "/with/url" } });
		act(() => editor.set({ problems: [problem] }));
		screen.getByRole("button", { name: "1 problem" });
	});

	it("include errors in the YAML, linked to their line", async () => {
		const { screen, user, editor } = await renderBuilder(
			<>
				<Header />
				<Notices />
				<DetailsPanel />
			</>,
			{ source },
		);
		act(() => {
			editor.setText(`${source}  - [`);
			editor.open("problems");
		});
		screen.getByRole("button", { name: "1 problem" });
		expect(screen.getByRole("alert").textContent).toContain("The YAML has an error in line 5");
		await user.click(screen.getByRole("button", { name: /^YAML line 5/ }));
		expect(editor.get()).toMatchObject({ view: "yaml", spot: editor.get().broken?.errors[0]?.offset });
		act(() => editor.setText(source));
		screen.getByRole("button", { name: "0 problems" });
		expect(screen.queryByRole("alert")).toBeNull();
	});
});

describe("on narrow screens", () => {
	it("the details open as a sheet and close again", async () => {
		const { screen, user, editor } = await renderBuilder(<DetailsSheet />, { source });
		expect(screen.queryByRole("dialog")).toBeNull();
		act(() => editor.select(["a"]));
		expect(screen.queryByRole("dialog")).toBeNull();
		act(() => editor.showDetails());
		within(await screen.findByRole("dialog", { name: "a" })).getByRole("textbox", { name: "ID" });
		await user.keyboard("{Escape}");
		expect(screen.queryByRole("dialog")).toBeNull();
		act(() => editor.open("versions"));
		await screen.findByRole("dialog", { name: "Versions" });
		await user.click(screen.getByRole("button", { name: "Close" }));
		expect(editor.get()).toMatchObject({ side: "settings", details: false });
	});

	it("a problem leads from its sheet to the field", async () => {
		const { screen, user, editor } = await renderBuilder(<DetailsSheet />, { source });
		const problems = [{ pointer: "/steps/0/name", message: "is too long", node: "a" }];
		act(() => {
			editor.set({ problems });
			editor.open("problems");
		});
		await user.click(await screen.findByRole("button", { name: /is too long/ }));
		const name = await screen.findByRole("textbox", { name: "Name" });
		await vi.waitFor(() => expect(document.activeElement).toBe(name), { timeout: 30_000 });
		screen.getByRole("dialog", { name: "a" });
	});

	it("the workflow settings have a button", async () => {
		const { screen, user } = await renderBuilder(
			<>
				<Header narrow />
				<DetailsSheet />
			</>,
		);
		await user.click(screen.getByRole("button", { name: "Workflow settings" }));
		await screen.findByRole("dialog", { name: "Workflow" });
	});
});
