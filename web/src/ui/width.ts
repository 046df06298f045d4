import { type RefObject, useLayoutEffect, useRef, useState } from "react";

/** useWidth measures an element when it is rendered and resized; undefined before that. */
export function useWidth<T extends HTMLElement>(): readonly [number | undefined, RefObject<T | null>] {
	const [width, setWidth] = useState<number>();
	const box = useRef<T>(null);
	useLayoutEffect(() => {
		const own = box.current;
		if (!own) return undefined;
		const measure = () => setWidth(own.clientWidth);
		measure();
		const observer = new ResizeObserver(measure);
		observer.observe(own);
		return () => observer.disconnect();
	}, []);
	return [width, box];
}
