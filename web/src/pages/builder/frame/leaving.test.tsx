import { act } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { renderBuilder } from "@/test/builder";
import { LeaveWarning } from "./leaving";

const source = "name: Orders\nsteps:\n  - id: a\n    uses: log.write\n";

async function renderEdited() {
	const drawn = await renderBuilder(<LeaveWarning />, { source }, { at: "/workflows/wf_1" });
	act(() => drawn.editor.setText(`${source}  - id: b\n    uses: log.write\n`));
	const leave = (to: string) => act(async () => void drawn.router.navigate({ to: to as never }));
	return { ...drawn, leave, path: () => drawn.router.state.location.pathname };
}

describe("leaving with unsaved edits", () => {
	it.each(["/workflows", "/workflows/wf_2"])("asks before it opens %s", async (to) => {
		const { screen, user, leave, path } = await renderEdited();
		await leave(to);
		await screen.findByRole("dialog", { name: "Leave without saving?" });
		expect(path()).toBe("/workflows/wf_1");
		await user.click(screen.getByRole("button", { name: "Stay" }));
		expect(screen.queryByRole("dialog")).toBeNull();
		await leave(to);
		await user.click(await screen.findByRole("button", { name: "Leave" }));
		await expect.poll(path, { timeout: 30_000 }).toBe(to);
	});

	it("can save them first", async () => {
		const { screen, user, editor, leave, path } = await renderEdited();
		await leave("/workflows");
		await user.click(await screen.findByRole("button", { name: "Save and leave" }));
		await expect.poll(path, { timeout: 30_000 }).toBe("/workflows");
		expect(editor.get().dirty).toBe(false);
	});

	it("does not ask on the same page, or without edits", async () => {
		const { screen, editor, leave, path } = await renderEdited();
		await leave("/workflows/wf_1?view=yaml");
		expect(screen.queryByRole("dialog")).toBeNull();
		act(() => editor.setText(source));
		await leave("/workflows");
		await expect.poll(path, { timeout: 30_000 }).toBe("/workflows");
	});
});
