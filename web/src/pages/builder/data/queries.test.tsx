import { expect, it } from "vitest";
import type { KnownActions } from "@/pages/builder/picker/actions";
import { useEditor } from "@/pages/builder/state";
import { renderBuilder } from "@/test/builder";
import { useActions } from "./queries";

const action = (name: string) => ({ name, title: name, summary: name, accepts_connection: true, input_schema: {} });

/** A button that renames the step, and tells which actions are known whenever it is rendered. */
function Rename({ onRender }: { onRender: (actions: KnownActions) => void }) {
	const editor = useEditor();
	const actions = useActions();
	if (!actions?.get("chat.send")) return null;
	onRender(actions);
	return (
		<button type="button" onClick={() => editor.setField("/steps/0/name", `${editor.doc.steps[0]?.name ?? ""}!`)}>
			Rename
		</button>
	);
}

it("keeps what is known about actions while other parts of steps are edited", async () => {
	const seen = new Set<KnownActions>();
	const { screen, user, editor } = await renderBuilder(
		<Rename onRender={(actions) => seen.add(actions)} />,
		{ steps: [{ id: "one", uses: "chat.send" }] },
		{
			answers: {
				"GET /v1/actions": { data: [action("log.write")], next_cursor: null },
				"GET /v1/actions/chat.send": action("chat.send"),
			},
		},
	);
	const rename = await screen.findByRole("button", { name: "Rename" });
	for (let i = 0; i < 3; i++) await user.click(rename);
	expect(editor.doc.steps[0]?.name).toBe("!!!");
	expect(seen.size).toBe(1);
});
