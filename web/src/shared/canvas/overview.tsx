import { MiniMap, type MiniMapProps, type Node } from "@xyflow/react";
import { useEffect, useState } from "react";

export interface OverviewProps<N extends Node> extends MiniMapProps<N> {
	/** The number of nodes on the canvas. */
	count: number;
	/** Canvases with fewer nodes have no minimap. */
	least: number;
}

/** Overview is the minimap of a large workflow. It is rendered after the workflow itself. */
export function Overview<N extends Node>({ count, least, ...map }: OverviewProps<N>) {
	const painted = useAfterPaint();
	if (!painted || count < least) return null;
	return <MiniMap pannable zoomable {...map} />;
}

/** Defers what can wait until after the first paint. */
function useAfterPaint(): boolean {
	const [painted, setPainted] = useState(false);
	useEffect(() => {
		const timer = setTimeout(() => setPainted(true), 300);
		return () => clearTimeout(timer);
	}, []);
	return painted;
}
