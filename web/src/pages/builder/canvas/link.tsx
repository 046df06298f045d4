import { EdgeLabelRenderer, type EdgeProps, type EdgeTypes } from "@xyflow/react";
import { memo } from "react";
import { useEditor, useEditorState, useReadOnly } from "@/pages/builder/state";
import { EdgeLine, edgePath } from "@/shared/canvas";
import { lineEnds } from "@/shared/canvas/elements";
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
	const inserts = data?.kind !== "trigger" && !readOnly;
	return (
		<>
			<EdgeLine {...ends} tone={selected || target ? "accent" : "plain"} reach={data?.kind === "trigger" ? 0 : 24} />
			{inserts && (
				<EdgeLabelRenderer>
					<div
						className="pointer-events-auto absolute size-8"
						style={{ transform: `translate(${x - 16}px, ${y - 16}px)` }}
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

function label(id: string): string {
	const { from, to } = endsOf(id);
	return from === null ? `Add a step before ${to}` : `Add a step between ${from} and ${to}`;
}

export const edgeTypes: EdgeTypes = { link: Link };
