import { type Extension, Prec } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { spanAt } from "@/builder/expression/complete";
import { pathType } from "../../data/path";
import type { Form } from "./missing";

/** Puts a path at a place of the text: with brackets around it, unless it stands in an expression already. */
function put(view: EditorView, path: string, form: Form, from: number, to: number): void {
	const text = view.state.doc.toString();
	const insert = form === "bare" || spanAt(text, from, form) ? path : `\${{ ${path} }}`;
	view.dispatch({
		changes: { from, to, insert },
		selection: { anchor: from + insert.length },
		userEvent: "input.paste",
		scrollIntoView: true,
	});
	view.focus();
}

export function insertPath(view: EditorView, path: string, form: Form): void {
	const { from, to } = view.state.selection.main;
	put(view, path, form, from, to);
}

/** dropping takes paths that are dragged from the tree of data. */
export function dropping(form: Form): Extension {
	return Prec.high(
		EditorView.domEventHandlers({
			drop: (event, view) => {
				const path = event.dataTransfer?.getData(pathType);
				if (!path) return false;
				event.preventDefault();
				const at = view.posAtCoords({ x: event.clientX, y: event.clientY }) ?? view.state.doc.length;
				put(view, path, form, at, at);
				return true;
			},
		}),
	);
}
