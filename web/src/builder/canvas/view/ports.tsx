import { Handle, Position } from "@xyflow/react";

/** Ports are where lines begin and end when nothing can be connected. */
export function Ports({ top = true, bottom = true }: { top?: boolean; bottom?: boolean }) {
	return (
		<>
			{top && <Handle type="target" position={Position.Top} isConnectable={false} className="port" />}
			{bottom && <Handle type="source" position={Position.Bottom} isConnectable={false} className="port" />}
		</>
	);
}
