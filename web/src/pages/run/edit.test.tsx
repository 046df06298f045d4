import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { renderPage } from "@/test/render";
import { RunActions } from "./actions";
import type { Head } from "./model/record";

it("leads from a run to the step that failed, with the data of the run", async () => {
	const head = {
		id: "run_1",
		workflow_id: "wf_1",
		workflow_version: 1,
		status: "failed",
		error: { code: "http_error", message: "no", step_id: "lines[3].reserve" },
	} as unknown as Head;
	await renderPage(<RunActions head={head} current={1} />);
	const link = await screen.findByRole("link", { name: "Edit" });
	expect(link.getAttribute("href")).toBe("/workflows/wf_1?run=run_1&step=reserve");
});
