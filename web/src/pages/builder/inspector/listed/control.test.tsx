import { waitFor } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { errorResponse, writeCode } from "@/test/render";
import { options, renderStep } from "./listed.test-data";

/** An answer that comes when the test says. */
function later() {
	let answer = (_: unknown) => {};
	const promise = new Promise((resolve) => {
		answer = resolve;
	});
	return { promise, answer };
}

const labels = (list: HTMLElement[]) => list.map((option) => option.textContent);

describe("an input that the account lists", () => {
	it("opens on focus, filters while one types, and takes the value of a label", async () => {
		const { screen, user, value, asked } = await renderStep(() => options("Orders", "Customers", "Old orders"));
		await user.click(await screen.findByRole("combobox", { name: /^Spreadsheet/ }));
		expect(labels(await screen.findAllByRole("option", { name: /v\d/ }))).toEqual([
			"Ordersv1",
			"Customersv2",
			"Old ordersv3",
		]);
		expect(asked()).toEqual([{ operation: "sheets.append_row", input: "spreadsheet", with: {} }]);
		await user.keyboard("ORD");
		expect(labels(screen.getAllByRole("option", { name: /v\d/ }))).toEqual(["Ordersv1", "Old ordersv3"]);
		await user.keyboard("{ArrowDown}{ArrowDown}{Enter}");
		expect(value()).toEqual({ spreadsheet: "v3" });
		expect(screen.getByRole<HTMLInputElement>("combobox", { name: /^Spreadsheet/ }).value).toBe("Old orders");
		expect(screen.queryByRole("listbox")).toBeNull();
	});

	it("shows the label of a value that the list knows, and the value itself otherwise", async () => {
		const { screen } = await renderStep(() => options("Orders"), { spreadsheet: "v1", tags: ["other"] });
		await waitFor(() =>
			expect(screen.getByRole<HTMLInputElement>("combobox", { name: /^Spreadsheet/ }).value).toBe("Orders"),
		);
		await screen.findByText("“other” is not in the list. It is used as it is.");
		expect(screen.getByRole<HTMLInputElement>("combobox", { name: "Tags 1" }).value).toBe("other");
	});

	it("never changes what is typed when the list arrives", async () => {
		const list = later();
		const { screen, user, value } = await renderStep(() => list.promise);
		const field = await screen.findByRole<HTMLInputElement>("combobox", { name: /^Spreadsheet/ });
		await user.click(field);
		await screen.findByText("Loading…");
		await user.keyboard("my-own-id");
		expect(value()).toEqual({ spreadsheet: "my-own-id" });
		list.answer(options("my-own-idea"));
		await waitFor(() => expect(screen.queryByText("Loading…")).toBeNull());
		await screen.findByText("my-own-idea");
		await user.tab(); // to the button that refreshes the list
		await user.tab();
		expect(field.value).toBe("my-own-id");
		expect(value()).toEqual({ spreadsheet: "my-own-id" });
	});

	it("takes the value of a label that is typed in full", async () => {
		const { screen, user, value } = await renderStep(() => options("Orders", "Orders of 2025"));
		await user.click(await screen.findByRole("combobox", { name: /^Spreadsheet/ }));
		await screen.findAllByRole("option", { name: /v\d/ });
		await user.keyboard("orders");
		await user.tab(); // to the button that refreshes the list
		await user.tab();
		expect(value()).toEqual({ spreadsheet: "v1" });
	});

	it("lets a person write an expression", async () => {
		const { screen, user, value } = await renderStep(() => options("Orders"));
		await user.click(await screen.findByRole("combobox", { name: /^Spreadsheet/ }));
		await user.keyboard("${{{{");
		await writeCode("Spreadsheet", "${{ vars.sheet }}");
		expect(value()).toEqual({ spreadsheet: "${{ vars.sheet }}" });
		expect(screen.queryByRole("combobox", { name: /^Spreadsheet/ })).toBeNull();
	});

	it("says what the service says, and tries again", async () => {
		let fails = true;
		const { screen, user } = await renderStep(() =>
			fails ? errorResponse(422, "service_failed", "Sheets allows no more requests for now") : options("Orders"),
		);
		await user.click(await screen.findByRole("combobox", { name: /^Spreadsheet/ }));
		await screen.findByText("Sheets allows no more requests for now.");
		fails = false;
		await user.click(screen.getByRole("button", { name: "Try again" }));
		await screen.findByRole("option", { name: /Orders/ });
	});

	it("says that there is nothing, and that nothing matches", async () => {
		const { screen, user } = await renderStep(() => options());
		await user.click(await screen.findByRole("combobox", { name: /^Spreadsheet/ }));
		await screen.findByText("The account has nothing to choose from.");
		await user.keyboard("x");
		await screen.findByText("No entry matches “x”. It is used as you entered it.");
	});

	it("asks for a connection first", async () => {
		const { screen, user, asked } = await renderStep(() => options("Orders"), {}, { connection: "" });
		await user.click(await screen.findByRole("combobox", { name: /^Spreadsheet/ }));
		await screen.findByText("Choose a connection first. You can also enter a value.");
		expect(asked()).toEqual([]);
	});

	it("asks for what the list depends on first, keeps a value without it, and lists what depends on it", async () => {
		const { screen, user, value, asked, editor } = await renderStep(
			({ body }) => ({ ...options(), options: [{ value: 12, label: `Sheet of ${body.with.spreadsheet ?? ""}` }] }),
			{ sheet: 5 },
		);
		const field = await screen.findByRole("combobox", { name: "Sheet" });
		await user.click(field);
		await screen.findByText("Choose “Spreadsheet” first. You can also enter a value.");
		expect(asked().filter(({ input }) => input === "sheet")).toEqual([]);
		editor.setField("/steps/0/with/spreadsheet", "s");
		await user.click(await screen.findByRole("option", { name: /Sheet of s/ }));
		expect(value()).toEqual({ sheet: 12, spreadsheet: "s" });
		editor.setField("/steps/0/with/spreadsheet", undefined);
		await waitFor(() => expect(screen.getByRole<HTMLInputElement>("combobox", { name: "Sheet" }).value).toBe("12"));
		expect(value()).toEqual({ sheet: 12 });
	});

	it("lets the service search a list that is too long", async () => {
		const { screen, user, value, asked } = await renderStep(({ body }) =>
			body.search
				? { ...options(), options: [{ value: "far", label: `Far ${body.search}` }] }
				: { ...options("Near"), more: true },
		);
		await user.click(await screen.findByRole("combobox", { name: /^Spreadsheet/ }));
		await screen.findByText("There are more. Type to search.");
		await user.keyboard("far");
		await user.click(await screen.findByRole("option", { name: /Far far/ }));
		expect(value()).toEqual({ spreadsheet: "far" });
		expect(screen.getByRole<HTMLInputElement>("combobox", { name: /^Spreadsheet/ }).value).toBe("Far far");
		expect(asked().map(({ search }) => search)).toEqual([undefined, "far"]);
	});

	it("is listed once, until somebody refreshes it", async () => {
		let count = 0;
		const { screen, user, asked } = await renderStep(() => options(`Version ${++count}`));
		const field = await screen.findByRole("combobox", { name: /^Spreadsheet/ });
		await user.click(field);
		await screen.findByRole("option", { name: /Version 1/ });
		await user.keyboard("{Escape}");
		expect(screen.queryByRole("listbox")).toBeNull();
		await user.keyboard("{ArrowDown}");
		await screen.findByRole("option", { name: /Version 1/ });
		expect(asked()).toHaveLength(1);
		await user.click(screen.getByRole("button", { name: "Refresh the list of Spreadsheet" }));
		await screen.findByRole("option", { name: /Version 2/ });
	});
});
