import { act, within } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { ApiError } from "@/api/error";
import { renderPage } from "@/test/render";
import { toast } from "./toast";

beforeEach(() => void vi.useFakeTimers({ shouldAdvanceTime: true }));

const shown = (region: HTMLElement) => [...region.children].map((note) => note.textContent);

it("announces successes and errors in live regions, and removes them after a while", async () => {
	const { screen } = await renderPage(null, { toasts: true });
	act(() => {
		toast.done("Saved.");
		toast.error(new ApiError(500, "internal_error", "it broke", [], "req_3"));
	});
	expect(shown(screen.getByRole("status"))).toEqual(["Saved."]);
	expect(shown(screen.getByRole("alert"))).toEqual(["It broke.req_3"]);
	act(() => void vi.advanceTimersByTime(5_000));
	expect(shown(screen.getByRole("status"))).toEqual([]);
	expect(shown(screen.getByRole("alert"))).toHaveLength(1);
	act(() => void vi.advanceTimersByTime(8_000));
	expect(shown(screen.getByRole("alert"))).toEqual([]);
});

it("shows the last three, and each can be dismissed", async () => {
	const { screen } = await renderPage(null, { toasts: true });
	act(() => {
		for (const text of ["one", "two", "three", "four"]) toast.done(text);
	});
	expect(shown(screen.getByRole("status"))).toEqual(["two", "three", "four"]);
	const note = screen.getByText("three").parentElement as HTMLElement;
	act(() => within(note).getByRole("button", { name: "Dismiss" }).click());
	expect(shown(screen.getByRole("status"))).toEqual(["two", "four"]);
});
