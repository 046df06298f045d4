import { syntaxTree } from "@codemirror/language";
import { type EditorView, runScopeHandlers } from "@codemirror/view";
import { act, render } from "@testing-library/react";
import { useLayoutEffect, useState } from "react";
import { expect, it, vi } from "vitest";
import CodeMirror from "./codemirror";

let view: EditorView;
const type = (text: string) => view.dispatch({ changes: { from: view.state.doc.length, insert: text } });

/** A form in which "b" is typed right after "a" has been rendered. */
function Form() {
	const [value, setValue] = useState("");
	useLayoutEffect(() => {
		if (value === "a") type("b");
	}, [value]);
	const onReady = (ready: EditorView) => {
		view = ready;
	};
	return <CodeMirror label="Text" value={value} onChange={setValue} onReady={onReady} />;
}

it("keeps a key that is pressed while the page still handles the previous one", async () => {
	render(<Form />);
	await act(async () => type("a"));
	expect(view.state.doc.toString()).toBe("ab");
});

it("indents a new line of a text that is not parsed yet", async () => {
	const text = `steps:\n${"  - id: a\n    uses: log.write\n".repeat(500)}  - id: b`;
	const onReady = (ready: EditorView) => {
		view = ready;
	};
	// CodeMirror parses for some milliseconds at a time: at first they are over at once, then they never end.
	let now = Date.now();
	const clock = vi.spyOn(Date, "now").mockImplementation(() => (now += 1_000));
	render(<CodeMirror label="Text" language="yaml" value={text} onReady={onReady} />);
	view.dispatch({ selection: { anchor: text.length } });
	expect(syntaxTree(view.state).length).toBeLessThan(text.length);
	clock.mockImplementation(() => now);
	runScopeHandlers(view, new KeyboardEvent("keydown", { key: "Enter" }), "editor");
	clock.mockRestore();
	expect(view.state.doc.lineAt(view.state.selection.main.head).text).toBe("    ");
});
