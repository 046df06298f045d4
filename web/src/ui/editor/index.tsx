import { lazy, Suspense } from "react";
import { Skeleton } from "../states";
import type { CodeEditorProps } from "./props";

export type { CodeEditorProps, Language } from "./props";

const CodeMirror = lazy(() => import("./codemirror"));

/** CodeEditor is a text editor with highlighting and diagnostics. Its code is loaded on first use. */
export function CodeEditor(props: CodeEditorProps) {
	const height = props.height ?? (props.singleLine ? 34 : 200);
	return (
		<div
			style={{ height: height === "fill" ? "100%" : height }}
			className="min-h-0 min-w-0 overflow-hidden rounded-6 border border-control"
		>
			<Suspense fallback={<Skeleton className="h-full w-full" />}>
				<CodeMirror {...props} />
			</Suspense>
		</div>
	);
}
