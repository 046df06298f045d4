import { type Extension, Prec } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { spanAt } from "@/shared/workflow/expression/complete";
import { pathType } from "../../data/path";
import type { Form } from "./missing";

/** Inserts a path, wrapped in ${{ }} unless it is already inside an expression. */
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

/** dropping accepts paths dragged from the data tree. */
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
