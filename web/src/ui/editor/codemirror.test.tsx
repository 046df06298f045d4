import type { EditorView } from "@codemirror/view";
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
