import { expect, it, vi } from "vitest";
import { renderPage } from "@/test/render";
import { RunRecord, type StepHead } from "./model/record";
import { RoundPager } from "./round-pager";

const record = new RunRecord();
for (const path of ["lines", "lines[0].note", "lines[41].note"]) {
	const data = { step_id: path, type: "log.write", status: "succeeded", started_at: "2026-11-15T09:00:00.000Z" };
	record.apply({
		type: "step",
		id: "",
		data: { ...data, finished_at: data.started_at, attempts: [] } as unknown as StepHead,
	});
}
record.stop();
const steps = [{ id: "lines", name: "Each line", foreach: "x", steps: [{ id: "note", uses: "log.write" }] }];

it("jumps to a round by its number", async () => {
	const select = vi.fn();
	const { screen, user } = await renderPage(
		<RoundPager record={record} steps={steps} path="lines[0].note" select={select} />,
	);
	const number = screen.getByRole<HTMLInputElement>("textbox", { name: "Number of the round" });
	expect(number.value).toBe("1");
	await user.clear(number);
	await user.type(number, "42{Enter}");
	expect(select).toHaveBeenCalledWith("lines[41].note");
	await user.clear(number);
	await user.type(number, "7{Enter}");
	expect(select).toHaveBeenCalledTimes(1);
	expect(screen.getByRole("alert").textContent).toBe("not started");
});
