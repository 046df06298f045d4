import type { Diagnostic } from "@codemirror/lint";
import type { Extension } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";

export type Language = "json" | "yaml" | "javascript" | "text";

export interface CodeEditorProps {
	value: string;
	onChange?: (value: string) => void;
	/** Read by screen readers. */
	label: string;
	language?: Language;
	readOnly?: boolean;
	/** Returns diagnostics, called when typing pauses. Must be stable between renders. */
	lint?: (text: string, view: EditorView) => readonly Diagnostic[] | Promise<readonly Diagnostic[]>;
	/** Additional CodeMirror extensions, such as completion. Must be stable between renders. */
	extensions?: Extension;
	placeholder?: string;
	/** Wraps long lines; false scrolls. */
	wrap?: boolean;
	/** For expressions: Enter does not insert a line break. */
	singleLine?: boolean;
	lineNumbers?: boolean;
	/** Tab indents and Escape leaves the editor; false lets Tab move the focus. */
	tabIndents?: boolean;
	/** The height in pixels, or "fill" to fill the parent. */
	height?: number | "fill";
	onReady?: (view: EditorView) => void;
	onFocusChange?: (focused: boolean) => void;
}
