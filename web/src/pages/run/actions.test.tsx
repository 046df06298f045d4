import { describe, expect, it } from "vitest";
import { handleKeyDown } from "@/shell/keys";
import { renderPage } from "@/test/render";
import { RunActions } from "./actions";
import type { Head } from "./model/record";

const head = { id: "run_1", workflow_id: "wf_1", workflow_version: 3, status: "failed", draft: false } as Head;

describe("the key for a retry", () => {
	it("asks first, and then sends one request", async () => {
		addEventListener("keydown", handleKeyDown);
		const { screen, user, calls, unmount } = await renderPage(<RunActions head={head} current={3} />, {
			answers: { "POST /v1/runs/run_1/retry": { id: "run_2", trigger: {} } },
		});
		await user.keyboard("r");
		const dialog = await screen.findByRole("dialog", { name: "Retry this run?" });
		expect(calls).toEqual([]);
		const confirm = [...dialog.querySelectorAll("button")].find((one) => one.textContent?.startsWith("Retry from"));
		await user.click(confirm as HTMLElement);
		await expect
			.poll(() => calls.map(({ method, path }) => `${method} ${path}`))
			.toEqual(["POST /v1/runs/run_1/retry"]);
		unmount();
		removeEventListener("keydown", handleKeyDown);
	});
});
