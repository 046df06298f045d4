import { EdgeLabelRenderer, type EdgeProps, type EdgeTypes } from "@xyflow/react";
import { memo, useSyncExternalStore } from "react";
import { useEditor, useEditorState, useFixed } from "@/builder/state";
import type { CanvasEdge } from "./build";
import { dropping, endsOf } from "./drop";
import { Plus } from "./plus";
import { EdgeLine, edgePath } from "./view";

/** Link is an edge with a `+` in its middle. */
const Link = memo(function Link(props: EdgeProps<CanvasEdge>) {
	const { id, data } = props;
	const editor = useEditor();
	const fixed = useFixed();
	const selected = useEditorState((state) => state.edge === id);
	const target = useSyncExternalStore(dropping.watch, () => dropping.get().edge === id);
	const { sourceX, sourceY, sourcePosition, targetY, targetPosition } = props;
	const targetX = data?.straight ? sourceX : props.targetX;
	const ends = { sourceX, sourceY, sourcePosition, targetX, targetY, targetPosition, bends: data?.bends };
	const [, x, y] = edgePath(ends);
	const inserts = data?.kind !== "trigger" && !fixed;
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
