import { Handle, Position } from "@xyflow/react";

/** Ports are the non-interactive ends of edges. */
export function Ports({ top = true, bottom = true }: { top?: boolean; bottom?: boolean }) {
	return (
		<>
			{top && <Handle type="target" position={Position.Top} isConnectable={false} className="port" />}
			{bottom && <Handle type="source" position={Position.Bottom} isConnectable={false} className="port" />}
		</>
	);
}
