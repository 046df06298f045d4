import { expect, it, vi } from "vitest";
import { type Call, renderPage } from "@/test/render";
import { Logs } from "./logs";

const line = (number: number) => ({
	step_id: "a",
	at: "2026-11-15T09:00:00.000Z",
	level: number === 149 ? "error" : "info",
	message: `Line ${number}`,
});
const lines = Array.from({ length: 150 }, (_, at) => line(at));
/** Two pages: the second one is at the cursor. */
const answers = {
	"GET /v1/runs/run_1/logs": ({ query }: Call) =>
		query.get("cursor")
			? { data: lines.slice(100), next_cursor: null }
			: { data: lines.slice(0, 100), next_cursor: "b" },
};
const shown = () => renderPage(<Logs run="run_1" path="a" count={150} />, { answers });

it("searches all lines, also those that were not loaded", async () => {
	const { screen, user } = await shown();
	await screen.findByText("Line 0");
	await user.type(screen.getByRole("searchbox", { name: "Search the log" }), "error");
	await screen.findByText("Line 149");
	expect(screen.queryByText("Line 0")).toBeNull();
	await user.type(screen.getByRole("searchbox"), " nothing");
	await screen.findByText("No line contains “error nothing”.");
});

it("downloads all lines", async () => {
	let saved: Blob | undefined;
	const create = vi.spyOn(URL, "createObjectURL").mockImplementation((blob) => {
		saved = blob as Blob;
		return "blob:x";
	});
	// happy-dom would leave the page.
	const click = vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(() => {});
	const { screen, user } = await shown();
	await screen.findByText("Line 0");
	await user.click(screen.getByRole("button", { name: "Download" }));
	await expect.poll(() => create.mock.calls.length).toBe(1);
	const text = await saved?.text();
	expect(text?.split("\n").length).toBe(151);
	expect(text).toContain("error Line 149");
	create.mockRestore();
	click.mockRestore();
});

it("shows the end", async () => {
	const { screen, user } = await shown();
	await screen.findByText("Line 0");
	await user.click(screen.getByRole("button", { name: "Show the end" }));
	await screen.findByText("Line 149");
});
