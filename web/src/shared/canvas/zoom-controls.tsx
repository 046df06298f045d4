import { Panel, useReactFlow } from "@xyflow/react";
import type { ReactNode } from "react";
import { IconButton } from "@/ui/button";
import { icon, PlusIcon } from "@/ui/icons";
import { zoomIn, zoomOut, zoomToFit } from "./viewport";

const MinusIcon = icon("M3 8h10");
const FitIcon = icon("M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10");

export interface ZoomControlsProps {
	/** The label of the button that shows the whole workflow. */
	fit: string;
	/** -1 if there are shortcuts. */
	tabIndex?: number;
	/** Additional buttons. */
	children?: ReactNode;
}

/** ZoomControls are the zoom buttons at the bottom left of a canvas. */
export function ZoomControls({ fit, tabIndex, children }: ZoomControlsProps) {
	const flow = useReactFlow();
	const common = { small: true, tabIndex };
	return (
		<Panel position="bottom-left" className="!m-3 flex rounded-8 border bg-surface p-0.5">
			<IconButton icon={MinusIcon} label="Zoom out" {...common} onClick={() => zoomOut(flow)} />
			<IconButton icon={PlusIcon} label="Zoom in" {...common} onClick={() => zoomIn(flow)} />
			<IconButton icon={FitIcon} label={fit} {...common} onClick={() => zoomToFit(flow)} />
			{children}
		</Panel>
	);
}
