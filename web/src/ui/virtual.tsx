import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, type KeyboardEvent, type ReactNode, type Ref, useImperativeHandle, useRef } from "react";
import { cx } from "./class";

export interface VirtualHandle {
	scrollTo: (index: number) => void;
}

export interface VirtualListProps<T> {
	items: readonly T[];
	/** The height of every row in pixels. */
	rowHeight: number;
	itemKey: (item: T, index: number) => string;
	/** Renders a row; apply the style to its outermost element. */
	children: (item: T, index: number, style: CSSProperties) => ReactNode;
	className?: string;
	/** For the scrolling element, such as role="tree" and its label. */
	role?: string;
	label?: string;
	/** The id of the active row, for lists with keyboard navigation. */
	active?: string;
	onKeyDown?: (event: KeyboardEvent) => void;
	ref?: Ref<VirtualHandle>;
}

/** VirtualList renders only the visible rows. */
export function VirtualList<T>({
	items,
	rowHeight,
	itemKey,
	children,
	className,
	role = "list",
	label,
	active,
	onKeyDown,
	ref,
}: VirtualListProps<T>) {
	const outer = useRef<HTMLDivElement>(null);
	const rows = useVirtualizer({
		count: items.length,
		getScrollElement: () => outer.current,
		estimateSize: () => rowHeight,
		overscan: 8,
		// Rendered before the element is measured.
		initialRect: { width: 0, height: 600 },
		// React rejects a synchronous update while it renders or runs effects.
		useFlushSync: false,
	});
	useImperativeHandle(ref, () => ({ scrollTo: (index) => rows.scrollToIndex(index) }), [rows]);
	return (
		// biome-ignore lint/a11y/useAriaPropsSupportedByRole: every role used here supports a name
		// biome-ignore lint/a11y/noStaticElementInteractions: the role is interactive
		<div
			ref={outer}
			role={role}
			aria-label={label}
			aria-activedescendant={active}
			onKeyDown={onKeyDown}
			tabIndex={0}
			className={cx("overflow-y-auto", className)}
		>
			<div role="presentation" style={{ height: rows.getTotalSize(), position: "relative" }}>
				{rows.getVirtualItems().map(({ index, start, size }) => (
					<Row key={itemKey(items[index] as T, index)}>
						{children(items[index] as T, index, { position: "absolute", top: start, left: 0, right: 0, height: size })}
					</Row>
				))}
			</div>
		</div>
	);
}

function Row({ children }: { children: ReactNode }) {
	return children;
}
