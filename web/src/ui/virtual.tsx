import {
	type CSSProperties,
	type KeyboardEvent,
	type ReactNode,
	type Ref,
	useCallback,
	useImperativeHandle,
	useLayoutEffect,
	useRef,
	useState,
} from "react";
import { cx } from "./class";

/** span is the part of a list of equal rows that is seen, with some more on both sides. */
export function span(top: number, height: number, row: number, count: number, extra = 8): { from: number; to: number } {
	const from = Math.max(0, Math.floor(top / row) - extra);
	const to = Math.min(count, Math.ceil((top + height) / row) + extra);
	return { from: Math.min(from, count), to: Math.max(to, Math.min(from, count)) };
}

export interface VirtualHandle {
	scrollTo: (index: number) => void;
}

export interface VirtualListProps<T> {
	items: readonly T[];
	/** Height of every row in pixels. */
	rowHeight: number;
	itemKey: (item: T, index: number) => string;
	/** Draws a row; put the style on its outermost element. */
	children: (item: T, index: number, style: CSSProperties) => ReactNode;
	className?: string;
	/** Called when the end comes near, to read more. */
	onEnd?: () => void;
	/** Of the scrolling element, such as role="tree" and its label. */
	role?: string;
	label?: string;
	/** The id of the row that has the focus of the list, for lists that are walked by keyboard. */
	active?: string;
	onKeyDown?: (event: KeyboardEvent) => void;
	ref?: Ref<VirtualHandle>;
}

/** VirtualList draws only the rows that are seen: ten thousand cost as much as fifty. */
export function VirtualList<T>({
	items,
	rowHeight,
	itemKey,
	children,
	className,
	onEnd,
	role = "list",
	label,
	active,
	onKeyDown,
	ref,
}: VirtualListProps<T>) {
	const outer = useRef<HTMLDivElement>(null);
	const [view, setView] = useState({ top: 0, height: 600 });
	const measure = useCallback(() => {
		const box = outer.current;
		if (!box) return;
		setView((old) =>
			old.top === box.scrollTop && old.height === box.clientHeight
				? old
				: { top: box.scrollTop, height: box.clientHeight },
		);
	}, []);
	useLayoutEffect(() => {
		measure();
		const box = outer.current;
		if (!box || typeof ResizeObserver === "undefined") return undefined;
		const observer = new ResizeObserver(measure);
		observer.observe(box);
		return () => observer.disconnect();
	}, [measure]);
	useImperativeHandle(ref, () => ({
		scrollTo: (index) => {
			const box = outer.current;
			if (!box) return;
			const top = index * rowHeight;
			if (top < box.scrollTop) box.scrollTop = top;
			else if (top + rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + rowHeight - box.clientHeight;
		},
	}));
	const { from, to } = span(view.top, view.height, rowHeight, items.length);
	useLayoutEffect(() => {
		if (onEnd && to >= items.length) onEnd();
	}, [onEnd, to, items.length]);
	return (
		// biome-ignore lint/a11y/useAriaPropsSupportedByRole: every role that a list has takes a name
		// biome-ignore lint/a11y/noStaticElementInteractions: the role says that it takes keys
		<div
			ref={outer}
			onScroll={measure}
			role={role}
			aria-label={label}
			aria-activedescendant={active}
			onKeyDown={onKeyDown}
			tabIndex={0}
			className={cx("overflow-y-auto", className)}
		>
			<div role="presentation" style={{ height: items.length * rowHeight, position: "relative" }}>
				{items.slice(from, to).map((item, at) => (
					<Row key={itemKey(item, from + at)}>
						{children(item, from + at, {
							position: "absolute",
							top: (from + at) * rowHeight,
							left: 0,
							right: 0,
							height: rowHeight,
						})}
					</Row>
				))}
			</div>
		</div>
	);
}

function Row({ children }: { children: ReactNode }) {
	return children;
}
