import { act, waitFor } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { renderBuilder } from "@/test/builder";
import { type Call, writeCode } from "@/test/render";
import { Inspector } from "./inspector";

const step = (id: string, more: object = {}) => ({ id, uses: "log.write", with: { message: id }, ...more });

describe("the settings of a step", () => {
	it("show its action with a field for each input, and change the document", async () => {
		const { screen, user, editor } = await renderBuilder(<Inspector />, { steps: [step("a")] });
		act(() => editor.select(["a"]));
		const message = await screen.findByRole<HTMLTextAreaElement>("textbox", { name: /^Message/ });
		expect(message.value).toBe("a");
		await user.clear(message);
		await user.type(message, "Hello");
		await user.type(screen.getByRole("textbox", { name: "Name" }), "Greet");
		expect(editor.doc.steps[0]).toEqual({ id: "a", name: "Greet", uses: "log.write", with: { message: "Hello" } });
	});

	it("offer to turn the expressions of other products into expressions", async () => {
		const { screen, user, editor } = await renderBuilder(<Inspector />, {
			steps: [step("a", { with: { message: "Hello {{ trigger.payload.name }}" } })],
		});
		act(() => editor.select(["a"]));
		await screen.findByRole("textbox", { name: /^Message/ });
		await user.click(screen.getByRole("button", { name: "Make it an expression" }));
		expect(editor.doc.steps[0]?.with).toEqual({ message: `Hello \${{ trigger.payload.name }}` });
		expect(screen.queryByRole("button", { name: "Make it an expression" })).toBeNull();
		expect(editor.get().problems).toEqual([]);
	});

	it("rename the step on blur, and reject an invalid id", async () => {
		const { screen, user, editor } = await renderBuilder(<Inspector />, { steps: [step("a"), step("b")] });
		act(() => editor.select(["a"]));
		const id = await screen.findByRole<HTMLInputElement>("textbox", { name: "ID" });
		await user.clear(id);
		await user.type(id, "Not an id");
		expect(id.getAttribute("aria-invalid")).toBe("true");
		await user.tab();
		expect(id.value).toBe("a");
		await user.clear(id);
		await user.type(id, "first{Enter}");
		expect(editor.doc.steps.map((one) => one.id)).toEqual(["first", "b"]);
	});

	it("show a problem at its field and focus it", async () => {
		const { screen, editor } = await renderBuilder(<Inspector />, { steps: [step("a")] });
		act(() => {
			editor.set({ problems: [{ pointer: "/steps/0/with/message", message: "is required", node: "a" }] });
			editor.reveal("a", "/with/message");
		});
		const message = await screen.findByRole("textbox", { name: /^Message/ });
		screen.getByText("Is required.");
		expect(message.getAttribute("aria-invalid")).toBe("true");
		await waitFor(() => expect(document.activeElement).toBe(message));
	});

	it("are disabled without write access", async () => {
		const { screen, editor } = await renderBuilder(<Inspector />, { steps: [step("a")] }, { mayWrite: false });
		act(() => editor.select(["a"]));
		await screen.findByRole("textbox", { name: /^Message/ });
		expect(screen.getByRole("group", { name: "Settings" }).hasAttribute("disabled")).toBe(true);
	});

	it("show the workflow if nothing is selected, and a message for several steps", async () => {
		const { screen, editor } = await renderBuilder(<Inspector />, { steps: [step("a"), step("b")] });
		expect(screen.getByRole<HTMLInputElement>("textbox", { name: /^Name/ }).value).toBe("Orders");
		act(() => editor.select(["a", "b"]));
		await screen.findByText("2 selected");
	});
});

describe("the condition of a step", () => {
	const split = [
		step("a"),
		step("big", { needs: ["a"], if: "trigger.payload.total > 100" }),
		step("small", { needs: ["a"], if: "!(trigger.payload.total > 100)" }),
	];

	it("that is the opposite of another one can be turned into a branch", async () => {
		const { screen, user, editor } = await renderBuilder(<Inspector />, { steps: split });
		act(() => editor.select(["small"]));
		await screen.findByText(/This is the opposite of the condition of “big”/);
		await user.click(screen.getByRole("button", { name: "Turn into a branch" }));
		expect(editor.doc.steps.map(({ id, needs, if: condition }) => [id, needs, condition])).toEqual([
			["a", undefined, undefined],
			["branch", undefined, undefined],
			["big", ["branch.big"], undefined],
			["small", ["branch.small"], undefined],
		]);
		act(() => editor.undo());
		expect(editor.doc.steps).toEqual(split);
	});

	it("does not change with another one", async () => {
		const { editor } = await renderBuilder(<Inspector />, { steps: split });
		act(() => editor.select(["big"]));
		await writeCode("Condition", "trigger.payload.total > 500");
		expect(editor.doc.steps[2]?.if).toBe("!(trigger.payload.total > 100)");
	});

	const run = {
		id: "run_1",
		finished_at: "2026-11-15T09:00:00.000Z",
		trigger: { payload: {}, headers: null, query: null },
		steps: [{ step_id: "a", status: "failed", output: null, attempt: 1, duration_ms: 1 }],
	};
	const answers = (code: string) => ({
		"GET /v1/workflows/wf_1/runs": { data: [run], next_cursor: null },
		"GET /v1/runs/run_1": run,
		"POST /v1/expressions/evaluate": ({ body }: Call) => ({
			results: body.expressions.map(() => ({
				valid: false,
				error: { code, message: "cannot use > on nil", line: 1, column: 3 },
			})),
		}),
	});
	const asks = { steps: [step("a", { name: "Get it" }), step("b", { if: "steps.a.output.total > 100" })] };

	it("is not marked as an error if only the latest run failed", async () => {
		const drawn = await renderBuilder(<Inspector />, asks, { answers: answers("expression_failed") });
		act(() => drawn.editor.select(["b"]));
		const note = await drawn.screen.findByText(/No value in this run/);
		expect(note.textContent).toContain("Get it did not succeed");
		expect(note.closest("p")?.className).not.toContain("text-failed");
	});

	it("is marked as an error if it is invalid", async () => {
		const drawn = await renderBuilder(<Inspector />, asks, { answers: answers("expression_invalid") });
		act(() => drawn.editor.select(["b"]));
		const note = await drawn.screen.findByText("cannot use > on nil");
		expect(note.closest("p")?.className).toContain("text-failed");
	});
});

describe("a branch", () => {
	const branch = step("size", {
		uses: "flow.switch",
		with: { paths: [{ id: "path_1", name: "Path 1", when: "" }], else: "otherwise" },
	});
	const steps = [branch, step("call", { needs: ["size.path_1"] }), step("mail", { needs: ["size.otherwise"] })];

	it("has a row for each path, whose id follows its name", async () => {
		const { screen, user, editor } = await renderBuilder(<Inspector />, { steps });
		act(() => editor.select(["size"]));
		const name = await screen.findByRole("textbox", { name: "Name of path 1" });
		await user.clear(name);
		await user.type(name, "Over 100");
		await writeCode("Condition of path 1", "trigger.payload.total > 100");
		await user.click(screen.getByRole("button", { name: "Add a path" }));
		await user.click(screen.getByRole("button", { name: "Move Path 2 up" }));
		expect(editor.doc.steps[0]?.with?.paths).toEqual([
			{ id: "path_2", name: "Path 2", when: "" },
			{ id: "over_100", name: "Over 100", when: "trigger.payload.total > 100" },
		]);
		expect(editor.doc.steps[1]?.needs).toEqual(["size.over_100"]);
		await user.selectOptions(screen.getByRole("combobox", { name: "Which paths are taken" }), "all");
		expect(editor.doc.steps[0]?.with?.match).toBe("all");
	});

	it("keeps a path that a step is on", async () => {
		const { screen, user, editor } = await renderBuilder(<Inspector />, { steps });
		act(() => editor.select(["size"]));
		await user.click(await screen.findByRole("checkbox", { name: /^Otherwise/ }));
		expect(editor.doc.steps[0]?.with?.else).toBe("otherwise");
	});

	it("is chosen in what a step runs after", async () => {
		const { screen, user, editor } = await renderBuilder(<Inspector />, { steps });
		act(() => editor.select(["mail"]));
		await user.click(await screen.findByRole("button", { name: /^Runs after/ }));
		await user.selectOptions(screen.getByRole("combobox", { name: "Path out of size" }), "Path 1");
		expect(editor.doc.steps[2]?.needs).toEqual(["size.path_1"]);
		await user.selectOptions(screen.getByRole("combobox", { name: "Path out of size" }), "on error");
		expect(editor.doc.steps[2]?.needs).toEqual(["size.error"]);
	});
});
