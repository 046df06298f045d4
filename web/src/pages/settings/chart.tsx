import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useTheme } from "@/shell/theme";

export interface Series {
	label: string;
	/** The name of a color token, such as "succeeded". */
	token: string;
	values: number[];
}

export interface ChartProps {
	/** Read by screen readers, which get the numbers as a table elsewhere. */
	label: string;
	/** The start of each bar, in seconds. */
	times: number[];
	series: Series[];
}

const height = 200;
const day = 86_400;

/** Chart draws daily counts as stacked bars. */
export function Chart({ label, times, series }: ChartProps) {
	const theme = useTheme();
	const frame = useRef<HTMLDivElement>(null);
	// biome-ignore lint/correctness/useExhaustiveDependencies: the colors depend on the theme
	useEffect(() => {
		const into = frame.current;
		if (!into) return undefined;
		const plot = new uPlot(options(into, series), [times, ...stacked(series)], into);
		const resize = new ResizeObserver(() => plot.setSize({ width: into.clientWidth, height }));
		resize.observe(into);
		return () => {
			resize.disconnect();
			plot.destroy();
		};
	}, [times, series, theme]);
	return <div ref={frame} role="img" aria-label={label} className="w-full overflow-hidden" />;
}

/** stacked accumulates the series; the first one is drawn last, in front. */
function stacked(series: Series[]): number[][] {
	const below: number[] = [];
	return series
		.map(({ values }) => {
			return values.map((value, i) => {
				below[i] = (below[i] ?? 0) + value;
				return below[i] as number;
			});
		})
		.reverse();
}

function options(into: HTMLElement, series: Series[]): uPlot.Options {
	const style = getComputedStyle(into);
	const token = (name: string) => style.getPropertyValue(`--${name}`).trim();
	const axis: uPlot.Axis = {
		stroke: token("muted"),
		grid: { stroke: token("border"), width: 1 },
		ticks: { show: false },
		font: `12px ${style.fontFamily}`,
	};
	const bars = uPlot.paths.bars?.({ size: [0.7, 24], align: 1, radius: 0.15 });
	return {
		width: into.clientWidth,
		height,
		legend: { show: false },
		cursor: { show: false },
		scales: {
			x: { time: true, range: (_, min, max) => [min - day * 0.2, max + day] },
			y: { range: (_, __, max) => [0, Math.max(4, max)] },
		},
		axes: [
			{ ...axis, grid: { show: false }, values: (_, splits) => splits.map(dayName) },
			{ ...axis, size: 56, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6, 1e7] },
		],
		series: [
			{},
			...[...series].reverse().map(({ label, token: name }) => ({
				label,
				fill: token(name),
				width: 0,
				paths: bars,
				points: { show: false },
			})),
		],
		tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
	};
}

function dayName(seconds: number): string {
	return new Date(seconds * 1000).toLocaleDateString("en-US", { month: "short", day: "numeric", timeZone: "UTC" });
}
