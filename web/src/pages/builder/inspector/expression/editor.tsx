import "@/ui/editor/styles";
import { setDiagnostics } from "@codemirror/lint";
import type { EditorView } from "@codemirror/view";
import { useEffect, useMemo, useRef, useState } from "react";
import type { Scope } from "@/shared/workflow/expression/scope";
import { CodeEditor } from "@/ui/editor";
import { completion } from "./completion";
import { highlight } from "./highlight";
import { dropping, insertPath } from "./insert";
import type { ExpressionFieldProps } from "./props";

export interface ExpressionEditorProps extends ExpressionFieldProps {
	lines: boolean;
	scope: () => Scope;
	wrong: { message: string; line: number; column: number } | null;
	/** A path to insert at the cursor; each count is inserted once. */
	insert?: { path: string; count: number };
	describedBy: string;
}

/** The editor of an expression field, in its own module so that CodeMirror is loaded on demand. */
export default function ExpressionEditor(props: ExpressionEditorProps) {
	const { form, wrong, insert, lines, value } = props;
	const [view, setView] = useState<EditorView>();
	const latest = useRef(props);
	useEffect(() => {
		latest.current = props;
	});
	const extensions = useMemo(
		() => [highlight(form), completion(() => latest.current.scope(), form), dropping(form)],
		[form],
	);
	useEffect(() => {
		if (!view) return;
		view.dispatch(setDiagnostics(view.state, wrong ? [diagnostic(view, wrong)] : []));
	}, [view, wrong]);
	useEffect(() => {
		if (view && insert && insert.count > 0) insertPath(view, insert.path, form);
	}, [view, insert, form]);
	const rows = Math.min(12, Math.max(2, value.split("\n").length));
	return (
		<CodeEditor
			label={props.label}
			value={value}
			onChange={props.onChange}
			extensions={extensions}
			singleLine={!lines}
			wrap={lines}
			lineNumbers={false}
			tabIndents={false}
			height={lines ? rows * 20 + 14 : 34}
			placeholder={props.placeholder ?? (form === "bare" ? "steps.get.output.total > 100" : "${{ … }}")}
			onReady={(ready) => {
				setView(ready);
				if (!latest.current.autoFocus) return;
				ready.focus();
				ready.dispatch({ selection: { anchor: cursorAfter(ready.state.doc.toString()) } });
			}}
		/>
	);
}

/** Where to continue typing: inside a newly opened expression, or at the end. */
function cursorAfter(text: string): number {
	const open = text.lastIndexOf("${{");
	return open >= 0 &&
		text
			.slice(open + 3)
			.replace("}}", "")
			.trim() === ""
		? open + 3
		: text.length;
}

function diagnostic(view: EditorView, wrong: { message: string; line: number; column: number }) {
	const { doc } = view.state;
	const line = doc.line(Math.min(Math.max(1, wrong.line), doc.lines));
	const at = Math.min(line.from + wrong.column - 1, line.to);
	const word = view.state.wordAt(at);
	const from = word?.from ?? Math.max(line.from, Math.min(at, line.to - 1));
	const to = Math.min(Math.max(word?.to ?? at + 1, from), doc.length);
	return { from, to, severity: "error" as const, message: wrong.message };
}
