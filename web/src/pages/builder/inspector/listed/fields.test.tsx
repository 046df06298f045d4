import { waitFor } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { errorResponse } from "@/test/render";
import { options, renderStep } from "./listed.test-data";

const field = (name: string, type = "any", more: object = {}) => ({
	name,
	title: name,
	type,
	required: false,
	options: null,
	...more,
});
const fields = (...list: object[]) => ({ options: null, fields: list, more: false });
const sheet = { spreadsheet: "s", sheet: 0 };

/** Lists the fields, and nothing for the inputs that they depend on. */
const only = (list: () => unknown) => (call: { body: { input: string } }) =>
	call.body.input === "row" ? list() : options();

describe("an object whose members the account lists", () => {
	it("has a field for each of them", async () => {
		const listed = fields(
			field("Name", "string", { required: true }),
			field("Status", "string", { options: [{ value: "o", label: "Open" }] }),
			field("Paid", "boolean"),
		);
		const { screen, user, value, asked } = await renderStep(
			only(() => listed),
			{ ...sheet, row: {} },
		);
		await user.type(await screen.findByRole("textbox", { name: "Name" }), "Ada");
		await user.click(screen.getByRole("combobox", { name: "Status" }));
		await user.click(await screen.findByRole("option", { name: /Open/ }));
		await user.click(screen.getByRole("combobox", { name: "Paid" }));
		await user.click(await screen.findByRole("option", { name: /No/ }));
		expect(value()).toEqual({ ...sheet, row: { Name: "Ada", Status: "o", Paid: false } });
		expect(asked().filter(({ input }) => input === "row")).toEqual([
			{ operation: "sheets.append_row", input: "row", with: sheet },
		]);
	});

	it("keeps members that are not listed, and adds others by name", async () => {
		const { screen, user, value } = await renderStep(
			only(() => fields(field("Name"))),
			{ ...sheet, row: { Old: "kept" } },
		);
		expect((await screen.findByRole<HTMLInputElement>("textbox", { name: "Old" })).value).toBe("kept");
		await user.click(screen.getByRole("button", { name: "Add another field" }));
		await user.keyboard("New{Enter}");
		await user.type(await screen.findByRole("textbox", { name: "New" }), "x");
		expect(value()).toEqual({ ...sheet, row: { Old: "kept", New: "x" } });
		await user.clear(screen.getByRole("textbox", { name: "Old" }));
		screen.getByRole("textbox", { name: "Old" });
		await user.click(screen.getByRole("button", { name: "Remove Old" }));
		expect(screen.queryByRole("textbox", { name: "Old" })).toBeNull();
		expect(value()).toEqual({ ...sheet, row: { New: "x" } });
	});

	it("does not add a member twice", async () => {
		const { screen, user } = await renderStep(
			only(() => fields(field("Name"))),
			sheet,
		);
		await user.click(await screen.findByRole("button", { name: "Add another field" }));
		await user.keyboard("Name{Enter}");
		await screen.findByText("A field with this name already exists.");
	});

	it("is the editor for any object until what it depends on is chosen", async () => {
		const { screen, editor, asked } = await renderStep(
			only(() => fields(field("Name"))),
			{ row: { Name: "Ada" } },
		);
		await screen.findByText("Choose “Spreadsheet” first. Then its fields are shown here.");
		screen.getByRole("textbox", { name: "Name of Name" });
		expect(asked().filter(({ input }) => input === "row")).toEqual([]);
		editor.setField("/steps/0/with/spreadsheet", "s");
		editor.setField("/steps/0/with/sheet", 0);
		expect((await screen.findByRole<HTMLInputElement>("textbox", { name: "Name" })).value).toBe("Ada");
	});

	it("is the editor for any object if the list cannot be read", async () => {
		let fails = true;
		const { screen, user } = await renderStep(
			only(() => (fails ? errorResponse(422, "service_failed", "the sheet has no columns") : fields(field("Name")))),
			{ ...sheet, row: { Name: "Ada" } },
		);
		await screen.findByText("The sheet has no columns.");
		screen.getByRole("textbox", { name: "Name of Name" });
		fails = false;
		await user.click(screen.getByRole("button", { name: "Try again" }));
		await screen.findByRole("textbox", { name: "Name" });
	});

	it("lists the members of another sheet, and keeps the values", async () => {
		const { screen, editor, value } = await renderStep(
			({ body }) => (body.input === "row" ? fields(field(`Column ${body.with.sheet}`)) : options()),
			{ ...sheet, row: { "Column 0": "a" } },
		);
		await screen.findByRole("textbox", { name: "Column 0" });
		editor.setField("/steps/0/with/sheet", 1);
		await screen.findByRole("textbox", { name: "Column 1" });
		screen.getByRole("button", { name: "Remove Column 0" });
		expect(value()).toMatchObject({ row: { "Column 0": "a" } });
	});

	it("does not take away the editor in which somebody is typing", async () => {
		let answer = (_: unknown) => {};
		const list = new Promise((resolve) => {
			answer = resolve;
		});
		const { screen, user, value } = await renderStep(
			only(() => list),
			{ ...sheet, row: { Name: "A" } },
		);
		await screen.findByText("Loading the fields…");
		const text = screen.getByRole("textbox", { name: "Value of Name" });
		await user.type(text, "d");
		answer(fields(field("Name")));
		await screen.findByRole("button", { name: "Show 1 field" });
		await user.type(text, "a");
		expect(value()).toMatchObject({ row: { Name: "Ada" } });
		await user.click(screen.getByRole("button", { name: "Show 1 field" }));
		await waitFor(() => expect(screen.getByRole<HTMLInputElement>("textbox", { name: "Name" }).value).toBe("Ada"));
	});
});
