import { Button } from "@/ui/button";
import { formatNumber } from "@/ui/format";
import { ChevronLeftIcon, ChevronRightIcon } from "@/ui/icons";

export interface PagerProps {
	/** The number of the first row, starting at 1. */
	first: number;
	/** How many rows are shown. */
	count: number;
	/** How many rows there are; undefined if it is not known, as with a filter. */
	total?: number;
	onPrevious?: () => void;
	onNext?: () => void;
}

/** Pager shows which rows are shown, and moves to the previous or next page. */
export function Pager({ first, count, total, onPrevious, onNext }: PagerProps) {
	const range = count === 0 ? "No rows" : `Rows ${formatNumber(first)}–${formatNumber(first + count - 1)}`;
	return (
		<nav aria-label="Pages" className="flex items-center gap-2 border-t px-3 py-2">
			<span role="status" className="min-w-0 flex-1 truncate text-12 text-muted tabular">
				{range}
				{total !== undefined && count > 0 && ` of ${formatNumber(Math.max(total, first + count - 1))}`}
			</span>
			<Button small icon={ChevronLeftIcon} disabled={!onPrevious} onClick={onPrevious}>
				Previous
			</Button>
			<Button small disabled={!onNext} onClick={onNext}>
				Next
				<ChevronRightIcon />
			</Button>
		</nav>
	);
}
