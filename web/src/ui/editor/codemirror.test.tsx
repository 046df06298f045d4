import { type EditorView, runScopeHandlers } from "@codemirror/view";
import { act, render } from "@testing-library/react";
import { useLayoutEffect, useState } from "react";
import { expect, it } from "vitest";
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

it("indents a new line of a text that is too long to be parsed at once", async () => {
	const text = `steps:\n${"  - id: a\n    uses: log.write\n".repeat(20_000)}  - id: b`;
	const onReady = (ready: EditorView) => {
		view = ready;
	};
	render(<CodeMirror label="Text" language="yaml" value={text} onReady={onReady} />);
	await act(async () => view.dispatch({ selection: { anchor: text.length } }));
	runScopeHandlers(view, new KeyboardEvent("keydown", { key: "Enter" }), "editor");
	expect(view.state.doc.lineAt(view.state.selection.main.head).text).toBe("    ");
});
