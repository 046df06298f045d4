import { describe, expect, it } from "vitest";
import { errorResponse, renderPage } from "@/test/render";
import { AnswerButtons } from "./answer";

const resume = "POST /v1/runs/run_1/steps/ask/resume";

describe("a decision", () => {
	it("is sent with its comment and data, and closes the dialog", async () => {
		const { screen, user, calls } = await renderPage(<AnswerButtons run="run_1" step="ask" />, {
			answers: { [resume]: {} },
			toasts: true,
		});
		await user.click(screen.getByRole("button", { name: "Reject" }));
		await user.type(await screen.findByRole("textbox", { name: "Comment" }), "Too much");
		await user.type(screen.getByRole("textbox", { name: "Data" }), "250");
		await user.click(screen.getByRole("button", { name: "Reject" }));
		await screen.findByText("Rejected. The run continues.");
		expect(screen.queryByRole("dialog")).toBeNull();
		expect(calls.map(({ body }) => body)).toEqual([{ approved: false, comment: "Too much", data: 250 }]);
	});

	it("that the server rejects shows the error and can be changed", async () => {
		const { screen, user } = await renderPage(<AnswerButtons run="run_1" step="ask" />, {
			answers: { [resume]: errorResponse(409, "step_not_waiting", "The step has already been answered.") },
		});
		await user.click(screen.getByRole("button", { name: "Approve" }));
		await user.type(await screen.findByRole("textbox", { name: "Comment" }), "Fine");
		await user.click(screen.getByRole("button", { name: "Approve" }));
		await screen.findByText(/The step has already been answered\./);
		expect(screen.getByRole<HTMLTextAreaElement>("textbox", { name: "Comment" }).value).toBe("Fine");
	});
});
