import { type KeyboardEvent, type PointerEvent, type ReactNode, useState } from "react";

const minHeight = 160;
const maxHeight = 640;

/** Tray is the resizable panel at the bottom. */
export function Tray({ children }: { children: ReactNode }) {
	const [height, setHeight] = useState(280);
	const to = (next: number) => setHeight(Math.max(minHeight, Math.min(maxHeight, next)));
	const onPointerDown = (event: PointerEvent<HTMLDivElement>) => {
		event.currentTarget.setPointerCapture(event.pointerId);
	};
	const onPointerMove = (event: PointerEvent<HTMLDivElement>) => {
		if (event.currentTarget.hasPointerCapture(event.pointerId)) to(height - event.movementY);
	};
	const onKeyDown = (event: KeyboardEvent) => {
		if (event.key === "ArrowUp") to(height + 24);
		else if (event.key === "ArrowDown") to(height - 24);
		else return;
		event.preventDefault();
	};
	return (
		<div style={{ height }} className="relative shrink-0 overflow-hidden border-t bg-surface">
			<div
				role="separator"
				tabIndex={0}
				aria-label="Height of the test panel"
				aria-orientation="horizontal"
				aria-valuenow={height}
				aria-valuemin={minHeight}
				aria-valuemax={maxHeight}
				onPointerDown={onPointerDown}
				onPointerMove={onPointerMove}
				onKeyDown={onKeyDown}
				className="absolute inset-x-0 top-0 z-10 h-1.5 cursor-row-resize -outline-offset-2 hover:bg-accent/40"
			/>
			{children}
		</div>
	);
}
