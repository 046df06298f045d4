import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { startCompletion } from "@codemirror/autocomplete";
import { EditorState, type Extension } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import { complete, type Completion as Found } from "@/shared/workflow/expression/complete";
import type { Scope } from "@/shared/workflow/expression/scope";
import type { Form } from "./missing";

/** completion offers the names and functions available at the cursor. */
export function completion(scope: () => Scope, form: Form): Extension {
	const source = (context: CompletionContext): CompletionResult | null => {
		const found = complete(context.state.doc.toString(), context.pos, scope(), form);
		const [first] = found;
		if (!first) return null;
		const from = Math.max(...found.map((one) => one.from));
		if (!context.explicit && from === context.pos && !/[.{[(]\s?$/.test(context.state.sliceDoc(0, context.pos)))
			return null;
		return { from, filter: false, options: found.map(option) };
	};
	return EditorState.languageData.of(() => [{ autocomplete: source }]);
}

function option(found: Found): Completion {
	return {
		label: found.label,
		type: found.kind === "function" ? "function" : "property",
		...((found.type ?? found.detail) && { detail: detailOf(found) }),
		...(found.doc && { info: found.doc }),
		apply: (view: EditorView) => {
			view.dispatch({
				changes: { from: found.from, to: Math.max(found.to, view.state.selection.main.head), insert: found.insert },
				selection: { anchor: found.from + found.insert.length },
				userEvent: "input.complete",
			});
			if (found.insert.endsWith("(")) startCompletion(view);
		},
	};
}

function detailOf(found: Found): string {
	const { value } = found;
	const plain = value !== undefined && (value === null || typeof value !== "object");
	if (plain) return short(JSON.stringify(value));
	return found.detail ?? found.type ?? "";
}

function short(text: string): string {
	return text.length > 32 ? `${text.slice(0, 31)}…` : text;
}
