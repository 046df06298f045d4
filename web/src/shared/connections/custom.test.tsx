import { expect, it, vi } from "vitest";
import { renderPage } from "@/test/render";
import { CustomForm } from "./custom";
import { emptyCustom } from "./form";

it("says with which scheme a host is used, and that the test URL has another", async () => {
	const draft = { ...emptyCustom, hosts: "127.0.0.1:9701", test_url: "http://127.0.0.1:9701/me" };
	const { screen } = await renderPage(<CustomForm kind="bearer" draft={draft} onChange={vi.fn()} />);
	expect(screen.getByText("https://127.0.0.1:9701")).toBeDefined();
	expect(screen.getByRole("status").textContent).toContain("Enter http://127.0.0.1:9701 if the server has no TLS.");
});

it("takes the host of a URL", async () => {
	const draft = { ...emptyCustom, hosts: "http://127.0.0.1:9701/v1", test_url: "http://127.0.0.1:9701/me" };
	const { screen } = await renderPage(<CustomForm kind="bearer" draft={draft} onChange={vi.fn()} />);
	expect(screen.getByText("http://127.0.0.1:9701")).toBeDefined();
	expect(screen.queryByRole("status")).toBeNull();
});
