import type { Diagnostic } from "@codemirror/lint";
import type { Extension } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";

export type Language = "json" | "yaml" | "javascript" | "text";

export interface CodeEditorProps {
	value: string;
	onChange?: (value: string) => void;
	/** Said to screen readers. */
	label: string;
	language?: Language;
	readOnly?: boolean;
	/** What is wrong where, asked after typing pauses. Keep it the same function between renders. */
	lint?: (text: string, view: EditorView) => readonly Diagnostic[] | Promise<readonly Diagnostic[]>;
	/** More of CodeMirror, such as completion. Keep it the same value between renders. */
	extensions?: Extension;
	placeholder?: string;
	/** Long lines break; false scrolls. */
	wrap?: boolean;
	/** For expressions: Enter writes no line. */
	singleLine?: boolean;
	lineNumbers?: boolean;
	/** Tab indents, and Escape leaves; false lets Tab move on. */
	tabIndents?: boolean;
	/** Height in pixels, or "fill" for what the parent gives. */
	height?: number | "fill";
	onReady?: (view: EditorView) => void;
	onFocusChange?: (focused: boolean) => void;
}
