import { EdgeLabelRenderer, type EdgeProps, type EdgeTypes } from "@xyflow/react";
import { memo } from "react";
import { useEditor, useEditorState, useReadOnly } from "@/pages/builder/state";
import { EdgeLine, edgePath, PathLabel } from "@/shared/canvas";
import { lineEnds } from "@/shared/canvas/elements";
import { type Doc, errorPath, find, pathName, stepOf } from "@/shared/workflow/model";
import type { CanvasEdge } from "./build";
import { endsOf, useDropping } from "./drop";
import { Plus } from "./plus";

/** Link is an edge with a `+` in its middle. */
const Link = memo(function Link(props: EdgeProps<CanvasEdge>) {
	const { id, data } = props;
	const editor = useEditor();
	const readOnly = useReadOnly();
	const selected = useEditorState((state) => state.edge === id);
	const target = useDropping((state) => state.edge === id);
	const ends = lineEnds(props);
	const [, x, y] = edgePath(ends);
	const path = useEditorState(({ history }) => wordsOf(history.present.doc, data?.path, id));
	// On a vertical line, the name of a path needs the space below the `+`.
	const named = path !== undefined && ends.sourceX === ends.targetX;
	const inserts = data?.kind !== "trigger" && data?.kind !== "exit" && !readOnly;
	return (
		<>
			<EdgeLine {...ends} tone={selected || target ? "accent" : toneOf(data)} reach={inserts ? 24 : 0} />
			{path !== undefined && (
				<PathLabel name={path} error={data?.path === errorPath} x={ends.targetX} y={ends.targetY} />
			)}
			{inserts && (
				<EdgeLabelRenderer>
					<div
						className="pointer-events-auto absolute size-8"
						style={{ transform: `translate(${x - 16}px, ${y - (named ? 28 : 16)}px)` }}
					>
						<Plus
							label={label(id)}
							onClick={() => editor.add({ kind: "step", place: { at: "edge", ...endsOf(id) } })}
						/>
					</div>
				</EdgeLabelRenderer>
			)}
		</>
	);
});

function toneOf(data: CanvasEdge["data"]): "plain" | "error" {
	return data?.path === errorPath ? "error" : "plain";
}

/** The name of the path of an edge. */
function wordsOf(doc: Doc, path: string | undefined, id: string): string | undefined {
	if (path === undefined) return undefined;
	const { from } = endsOf(id);
	return pathName(from === null ? undefined : find(doc.steps, stepOf(from))?.step, path);
}

function label(id: string): string {
	const { from, to } = endsOf(id);
	return from === null ? `Add a step before ${to}` : `Add a step between ${from} and ${to}`;
}

export const edgeTypes: EdgeTypes = { link: Link };
