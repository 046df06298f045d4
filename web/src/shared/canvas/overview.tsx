import { MiniMap, type MiniMapProps, type Node, Panel } from "@xyflow/react";
import { useEffect, useState } from "react";
import { IconButton } from "@/ui/button";
import { CloseIcon, icon } from "@/ui/icons";
import { isLarge } from "./large";
import { useRemembered } from "./remembered";

const MapIcon = icon("M2.5 3.5h11v9h-11zM8.5 8h3v2.5h-3z");

/** Overview is the minimap of a large workflow, which can be closed. It is rendered after the workflow itself. */
export function Overview<N extends Node>({ nodes, ...map }: MiniMapProps<N> & { nodes: readonly N[] }) {
	const painted = useAfterPaint();
	const [shown, setShown] = useRemembered("stepmill.minimap", true);
	if (!painted || !isLarge(nodes)) return null;
	return (
		<>
			{shown && (
				<MiniMap pannable zoomable {...map} className="!m-3 max-lg:!hidden" style={{ width: 160, height: 120 }} />
			)}
			<Panel position="bottom-right" className="!m-3 rounded-8 border bg-surface p-0.5 max-lg:!hidden">
				<IconButton
					icon={shown ? CloseIcon : MapIcon}
					label={shown ? "Close the minimap" : "Show the minimap"}
					small
					onClick={() => setShown(!shown)}
				/>
			</Panel>
		</>
	);
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
