import { formatNumber } from "./format";

export interface ProgressBarProps {
	value: number;
	max: number;
	label: string;
	/** What is counted, as in "4 of 10 rows imported". */
	unit?: string;
}

/** ProgressBar shows how much of something is done. */
export function ProgressBar({ value, max, label, unit }: ProgressBarProps) {
	return (
		<div className="flex items-center gap-3">
			<div
				role="progressbar"
				aria-label={label}
				aria-valuenow={value}
				aria-valuemin={0}
				aria-valuemax={max}
				className="h-2 flex-1 overflow-hidden rounded-full bg-sunken"
			>
				<div className="h-full bg-accent" style={{ width: `${(value / Math.max(1, max)) * 100}%` }} />
			</div>
			<span className="text-12 text-muted tabular">
				{formatNumber(value)} of {formatNumber(max)} {unit}
			</span>
		</div>
	);
}
