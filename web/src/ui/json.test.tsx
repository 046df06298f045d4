import { describe, expect, it, vi } from "vitest";
import { renderPage } from "@/test/render";
import { JsonView } from "./json";

const value = { order: { id: 42, lines: [{ sku: "a" }], paid: true, note: null }, name: 'Ada "L"' };

describe("the view of a JSON value", () => {
	it("keeps the order of keys and collapses deep containers", async () => {
		const { screen } = await renderPage(<JsonView value={value} label="Output" />);
		const lines = screen.getAllByRole("listitem").map((line) => line.textContent);
		expect(lines).toEqual([
			"{",
			'"order": {',
			'"id": 42,',
			'"lines": […]1,',
			'"paid": true,',
			'"note": null',
			"},",
			'"name": "Ada \\"L\\""',
			"}",
		]);
	});

	it("expands and collapses containers", async () => {
		const { screen, user } = await renderPage(<JsonView value={value} label="Output" />);
		const lines = screen.getByRole("button", { name: "lines, 1 item" });
		expect(lines.getAttribute("aria-expanded")).toBe("false");
		await user.click(lines);
		await user.click(screen.getByRole("button", { name: "value, 1 item" }));
		screen.getByText('"a"');
		await user.click(screen.getByRole("button", { name: "order, 4 items" }));
		expect(screen.queryByText('"a"')).toBeNull();
		expect(screen.getAllByRole("listitem")).toHaveLength(4);
	});

	it("renders only the visible part of a large value", async () => {
		const large = Array.from({ length: 10_000 }, (_, i) => i);
		const { screen } = await renderPage(<JsonView value={large} label="Output" />);
		expect(screen.getAllByRole("listitem").length).toBeLessThan(100);
	});

	it("copies the whole value", async () => {
		const { screen, user } = await renderPage(<JsonView value={value} label="Output" />);
		const write = vi.spyOn(navigator.clipboard, "writeText");
		await user.click(screen.getByRole("button", { name: "Copy output" }));
		expect(write).toHaveBeenCalledWith(JSON.stringify(value, null, 2));
		expect(screen.getByRole("status").textContent).toBe("Copied");
	});
});
