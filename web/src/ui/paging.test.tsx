import { act, waitFor } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";
import { api, got } from "@/api/client";
import { usePages } from "@/api/query";
import { type Call, errorResponse, renderPage } from "@/test/render";
import { Paged } from "./paging";

interface Variable {
	name: string;
}

function List() {
	const pages = usePages<Variable>(["variables"], (cursor, signal) =>
		got(api.GET("/v1/variables", { params: { query: { cursor } }, signal })),
	);
	return (
		<Paged pages={pages} empty={<p>Nothing yet</p>}>
			{(items) => items.map((item) => <p key={item.name}>{item.name}</p>)}
		</Paged>
	);
}

const page = (names: string[], next: string | null = null) => ({
	data: names.map((name) => ({ name })),
	next_cursor: next,
});

const at = "GET /v1/variables";

describe("a list", () => {
	it("shows a loading state, then the empty state", async () => {
		let answer = (_: unknown) => {};
		const waiting = new Promise((resolve) => (answer = resolve));
		const { screen } = await renderPage(<List />, { answers: { [at]: () => waiting } });
		screen.getByRole("status", { name: "Loading" });
		await act(async () => answer(page([])));
		await screen.findByText("Nothing yet");
	});

	it("loads the next page on click or when its end scrolls into view", async () => {
		let seen = () => {};
		vi.stubGlobal(
			"IntersectionObserver",
			class {
				constructor(tell: (entries: { isIntersecting: boolean }[]) => void) {
					seen = () => tell([{ isIntersecting: true }]);
				}
				observe() {}
				disconnect() {}
			},
		);
		const pages: Record<string, unknown> = { "": page(["a"], "2"), 2: page(["b"], "3"), 3: page(["c"]) };
		const answers = { [at]: ({ query }: Call) => pages[query.get("cursor") ?? ""] };
		const { screen, user, calls } = await renderPage(<List />, { answers });
		await user.click(await screen.findByRole("button", { name: "Load more" }));
		await screen.findByText("b");
		await act(async () => seen());
		await screen.findByText("c");
		screen.getByText("a");
		expect(screen.queryByRole("button", { name: "Load more" })).toBeNull();
		expect(calls.map(({ query }) => query.get("cursor"))).toEqual([null, "2", "3"]);
	});

	it("keeps its items if the next page fails", async () => {
		const answers = {
			[at]: ({ query }: Call) =>
				query.has("cursor") ? errorResponse(429, "rate_limited", "too many calls") : page(["a"], "2"),
		};
		const { screen, user } = await renderPage(<List />, { answers });
		await user.click(await screen.findByRole("button", { name: "Load more" }));
		expect((await screen.findByRole("alert")).textContent).toContain("Too many calls.");
		screen.getByText("a");
	});

	it("offers a retry if nothing could be loaded", async () => {
		let fails = true;
		const answers = { [at]: () => (fails ? errorResponse(400, "bad_request", "it cannot be read") : page(["a"])) };
		const { screen, user } = await renderPage(<List />, { answers });
		await screen.findByText("It cannot be read.");
		fails = false;
		await user.click(screen.getByRole("button", { name: "Try again" }));
		await waitFor(() => screen.getByText("a"));
	});
});
