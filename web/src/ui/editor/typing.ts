import type { Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";

/**
 * Replaces a selection when the user types over it. The browser would preserve the style
 * of the selected text in a style attribute, which the content security policy forbids.
 */
export const replaceSelection: Extension = EditorView.domEventHandlers({
	beforeinput: (event, view) => {
		const { main, ranges } = view.state.selection;
		const text = event.data;
		if (event.inputType !== "insertText" || !text || main.empty || ranges.length > 1) return false;
		if (view.composing || view.state.readOnly) return false;
		event.preventDefault();
		const insert = () =>
			view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
		const handled = view.state
			.facet(EditorView.inputHandler)
			.some((handle) => handle(view, main.from, main.to, text, insert));
		if (!handled) view.dispatch(insert());
		return true;
	},
});
